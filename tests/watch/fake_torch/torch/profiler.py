import json
import os
import sys
import time


class ProfilerActivity:
    CPU = "cpu"


def supported_activities():
    return {ProfilerActivity.CPU}


def schedule(wait, warmup, active, repeat):
    return wait + warmup, active


class profile:
    """Steps `warmup` to `warmup + active` of those that are told by step()."""

    def __init__(self, activities, record_shapes, with_stack, schedule, acc_events=False):
        if os.environ.get("FAKE_TORCH_PROFILER") == "broken":
            raise RuntimeError("the profiler is broken")
        self.skip, self.active = schedule
        self.with_stack, self.times = with_stack, []

    def __enter__(self):
        """The real one has a profile function of its own where it records stacks."""
        self.at = 0
        if self.with_stack:
            sys.setprofile(lambda *event: None)

    def step(self):
        self.at += 1
        if self.skip <= self.at <= self.skip + self.active:
            self.times.append(time.perf_counter_ns() / 1e3)

    def __exit__(self, *why):
        if self.with_stack:
            sys.setprofile(None)

    def export_chrome_trace(self, path):
        events = []
        for n, (start, end) in enumerate(zip(self.times, self.times[1:])):
            events += self._step(n + 1, start, end - start)
        with open(path, "w") as f:
            if os.environ.get("FAKE_TORCH_PROFILER") == "empty":
                return
            json.dump({"schemaVersion": 1, "deviceProperties": [], "traceEvents": events}, f)

    def _step(self, number, start, length):
        def event(category, name, at, share, **args):
            return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": start + at * length, "dur": share * length, "args": args}
        events = [event("user_annotation", "ProfilerStep#%d" % number, 0, 1), event("cpu_op", "aten::mm", 0.1, 0.3, **{"Input Dims": [[64, 64], [64, 64]]}),
                  event("user_annotation", "Optimizer.step#SGD.step", 0.6, 0.3), event("cpu_op", "aten::add_", 0.61, 0.2)]
        if self.with_stack:
            events.append(event("python_function", "loop.py(7): train", 0.01, 0.98, **{"Python id": number}))
        return events
