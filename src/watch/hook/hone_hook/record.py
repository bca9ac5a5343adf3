"""Some steps under torch.profiler, and the file of them. One step before them wakes the profiler up and is not recorded."""
import inspect
import os
import sys
import threading
from time import perf_counter_ns

from .cupti import let_it_go, letting_go, may_go
from .guard import guarded
from .others import OWN, Others, check_alone

PATIENCE_S = 2                          # with a thread that takes steps
CUT_OFF = "the program has a profile function of its own (sys.setprofile; cProfile), which a recording with stacks would cut off: no lines of Python were recorded"


def _activities(torch):
    of = torch.profiler.ProfilerActivity
    supported = torch.profiler.supported_activities()
    return [a for a in (of.CPU, getattr(of, "CUDA", None), getattr(of, "XPU", None)) if a is not None and a in supported]


def _quiet(profile):
    """What keeps newer versions of torch from warning that a second recording forgets the first."""
    return {"acc_events": True} if "acc_events" in inspect.signature(profile.__init__).parameters else {}


class _Last:
    """Calls when a thread ends whose own it is, in that thread."""

    def __init__(self, call):
        self.call = call

    def __del__(self):
        self.call()


class Record:
    """last: nothing is recorded behind it, and the profiler lets go of the device."""

    def __init__(self, kind, steps, stacks=False, last=False):
        self.kind, self.n, self.stacks, self.last = kind, steps, stacks, last
        self.profiler, self.others = None, None
        self.is_asked, self.let_go = False, threading.Event()           # by another thread
        self.at_once = False                                            # it is left out

    def begin(self, session):
        own = sys.getprofile() is not None
        self.at_once = self.stacks and own
        self.last = self.last or own
        if self.at_once:
            session.note(CUT_OFF)
        else:
            self._begin(session)

    def _begin(self, session):
        profiler = session.torch.profiler
        self.waits, self.steps = False, 0
        self.thread, self.end_of_thread = threading.current_thread(), threading.local()
        self.end_of_thread.last = _Last(guarded(self._let_go))
        self.let_go.clear()             # behind those: where it begins anew one of before goes there, and lets go
        check_alone(session.torch)
        self.left = self.n + 1
        self.first = session.steps + 1
        self.goes = self.last and may_go(session)
        self.profiler = profiler.profile(activities=_activities(session.torch), record_shapes=True, with_stack=self.stacks,
                                         schedule=profiler.schedule(wait=0, warmup=1, active=self.n, repeat=1), **_quiet(profiler.profile))
        self.profiler.__enter__()
        self.others = Others(session.torch, self.profiler, lambda: self.drop(session))

    def boundary(self, session, steps=1):
        """The device is not waited for: that would be a call in the recorded step. The profiler does when it stops."""
        if self.waits:
            self._begin(session)
            return False
        if self.profiler is None:               # dropped
            raise RuntimeError(OWN if self.thread.is_alive() else "the thread that took the steps has ended while they were recorded")
        if self.is_asked:
            self._let_go()
            return False
        self.left -= 1
        if self.left == 0:
            self.ended = perf_counter_ns()
            with letting_go(self.goes):
                self.profiler.step()
        else:
            self.profiler.step()
        if self.left == self.n:
            self.started = perf_counter_ns()
        else:
            self.steps += steps
        return self.left == 0

    def anew(self, session):
        """What the steps before were recorded for is lost."""
        self.waits = True
        self._let_go()

    def end(self, session):
        if self.at_once:
            return
        name = self.kind + ".json"
        profiler = self._let_go()
        profiler.export_chrome_trace(os.path.join(session.out, name))
        if self.goes:
            let_it_go(session)
        session.result["recorded"].append({"kind": self.kind, "file": name, "first": self.first, "steps": self.steps,
                                           "step_us": (self.ended - self.started) / 1e3 / self.steps})

    def _let_go(self):
        profiler, self.profiler = self.profiler, None
        if self.others is not None:
            self.others.close()
        if profiler is not None:
            profiler.__exit__(None, None, None)
            self.let_go.set()
        return profiler

    def drop(self, session):
        """A profiler can be ended by its own thread alone. Where another drops it, that is asked to, at the end of its step; if it does not come the profiler stays."""
        if self.profiler is None or threading.current_thread() is self.thread:
            self._let_go()
        else:
            self.is_asked = True
            self.let_go.wait(PATIENCE_S)
