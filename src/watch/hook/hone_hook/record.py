"""Some steps under torch.profiler, and the file of them. One step before them wakes the profiler up and is not recorded."""
import os
from time import perf_counter_ns


def _activities(torch):
    of = torch.profiler.ProfilerActivity
    supported = torch.profiler.supported_activities()
    return [a for a in (of.CPU, getattr(of, "CUDA", None), getattr(of, "XPU", None)) if a is not None and a in supported]


class Record:
    def __init__(self, kind, steps, stacks=False):
        self.kind, self.n, self.stacks = kind, steps, stacks
        self.profiler = None

    def begin(self, session):
        profiler = session.torch.profiler
        self.left = self.n + 1
        self.first = session.steps + 1
        self.profiler = profiler.profile(activities=_activities(session.torch), record_shapes=True, with_stack=self.stacks,
                                         schedule=profiler.schedule(wait=0, warmup=1, active=self.n, repeat=1))
        self.profiler.__enter__()

    def boundary(self, session):
        self.left -= 1
        if self.left == 0:
            session.device.synchronize()        # what the last step launched belongs to it
            self.ended = perf_counter_ns()
        self.profiler.step()
        if self.left == self.n:
            self.started = perf_counter_ns()
        return self.left == 0

    def end(self, session):
        name = self.kind + ".json"
        profiler, self.profiler = self.profiler, None
        profiler.__exit__(None, None, None)
        profiler.export_chrome_trace(os.path.join(session.out, name))
        session.result["recorded"].append({"kind": self.kind, "file": name, "first": self.first, "steps": self.n,
                                           "step_us": (self.ended - self.started) / 1e3 / self.n})

    def drop(self, session):
        profiler, self.profiler = self.profiler, None
        if profiler is not None:
            profiler.__exit__(None, None, None)
