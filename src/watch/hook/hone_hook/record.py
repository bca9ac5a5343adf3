"""Some steps under torch.profiler, and the file of them. One step before them wakes the profiler up and is not recorded."""
import inspect
import os
from time import perf_counter_ns

from .cupti import let_it_go, letting_go, may_go
from .others import OWN, Others, check_alone


def _activities(torch):
    of = torch.profiler.ProfilerActivity
    supported = torch.profiler.supported_activities()
    return [a for a in (of.CPU, getattr(of, "CUDA", None), getattr(of, "XPU", None)) if a is not None and a in supported]


def _quiet(profile):
    """What keeps newer versions of torch from warning that a second recording forgets the first."""
    return {"acc_events": True} if "acc_events" in inspect.signature(profile.__init__).parameters else {}


class Record:
    """last: nothing is recorded behind it, and the profiler lets go of the device."""

    def __init__(self, kind, steps, stacks=False, last=False):
        self.kind, self.n, self.stacks, self.last = kind, steps, stacks, last
        self.profiler, self.others = None, None

    def begin(self, session):
        profiler = session.torch.profiler
        check_alone(session.torch)
        self.left = self.n + 1
        self.first = session.steps + 1
        self.goes = self.last and may_go(session)
        self.profiler = profiler.profile(activities=_activities(session.torch), record_shapes=True, with_stack=self.stacks,
                                         schedule=profiler.schedule(wait=0, warmup=1, active=self.n, repeat=1), **_quiet(profiler.profile))
        self.profiler.__enter__()
        self.others = Others(session.torch, self.profiler, lambda: self.drop(session))

    def boundary(self, session):
        """The device is not waited for: that would be a call in the recorded step. The profiler does when it stops."""
        if self.profiler is None:               # dropped
            raise RuntimeError(OWN)
        self.left -= 1
        if self.left == 0:
            self.ended = perf_counter_ns()
            with letting_go(self.goes):
                self.profiler.step()
        else:
            self.profiler.step()
        if self.left == self.n:
            self.started = perf_counter_ns()
        return self.left == 0

    def end(self, session):
        name = self.kind + ".json"
        profiler = self._let_go()
        profiler.export_chrome_trace(os.path.join(session.out, name))
        if self.goes:
            let_it_go(session)
        session.result["recorded"].append({"kind": self.kind, "file": name, "first": self.first, "steps": self.n,
                                           "step_us": (self.ended - self.started) / 1e3 / self.n})

    def _let_go(self):
        profiler, self.profiler = self.profiler, None
        if self.others is not None:
            self.others.close()
        if profiler is not None:
            profiler.__exit__(None, None, None)
        return profiler

    def drop(self, session):
        self._let_go()
