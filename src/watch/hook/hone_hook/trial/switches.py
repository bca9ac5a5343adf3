"""The switches that a trial tries. Which there are, in the order in which they are tried, is the table in switches.txt.

A switch says whether it has anything to do here (`applies`: None, or why not), is turned on and off in the running program between two steps,
and has the lines with which a person would do the same. `kind` is the row of gates.LIMITS that its numbers belong to; `rule` is the finding
of `hone analyze` whose fix it is (None: of none, and nothing is predicted); of switches of one `group` the first that won stands, and the others are not tried.
"""
import functools
import os
import shutil

import torch

from . import settings_parts as parts
from .buckets import LargeBuckets, SmallBuckets        # noqa: F401: the table names them, as all of these
from .cpus import gpu_cpus, physical_cores, set_affinity
from .loaders import PinnedMemory, Workers        # noqa: F401
from .optimizers import Foreach, Fused        # noqa: F401
from .precision import Autocast, AutocastF16, Tf32        # noqa: F401
from .switch import CHANNELS_LAST, COMPILE, Switch, names_of


class ZeroGrad(Switch):
    rule, kind = "zero-grad-fills", "exact"

    def applies(self, facts):
        if not facts.fills:
            return "zero_grad does not fill gradients"
        return None if facts.all_touched else "some parameters get no gradient in a step, and the program may read it"

    def on(self, facts):
        self.before = [(kind, kind.zero_grad) for kind in (torch.optim.Optimizer, torch.nn.Module)]
        parts.use_set_to_none()

    def off(self, facts):
        for kind, zero_grad in self.before:
            kind.zero_grad = zero_grad

    def lines(self, facts):
        return ["optimizer.zero_grad(set_to_none=True)"]

    def settings(self, facts):
        return "use_set_to_none()"


class CudnnBenchmark(Switch):
    kind, skip = "tf32", 3

    def applies(self, facts):
        if facts.device.kind != "cuda" or not facts.has_convolutions():
            return "no convolutions on a GPU"
        return "it is on" if torch.backends.cudnn.benchmark else None

    def on(self, facts):
        parts.use_cudnn_benchmark()

    def off(self, facts):
        torch.backends.cudnn.benchmark = False

    def lines(self, facts):
        return ["torch.backends.cudnn.benchmark = True"]

    def settings(self, facts):
        return "use_cudnn_benchmark()"


class ChannelsLast(Switch):
    rule, kind, skip = "layout-copies", "tf32", 2

    def _roots(self, facts):
        return [r for r in facts.roots if r.images and r.has(torch.nn.Conv2d)]

    def applies(self, facts):
        if not self._roots(facts):
            return "no model of images with convolutions"
        weights = [p for r in self._roots(facts) for p in r.module.parameters() if p.dim() == 4]
        return "it is on" if all(p.is_contiguous(memory_format=torch.channels_last) for p in weights) else None

    def on(self, facts):
        """Weights move to other memory, and what belongs to them with them; the program's own memory waits for `off`."""
        self.before = []
        for root in self._roots(facts):
            root.wrap(CHANNELS_LAST, parts.with_channels_last)
            for p in root.module.parameters():
                if p.dim() == 4:
                    self._move(facts, p)

    def _move(self, facts, p):
        self.before.append((p, p.data))
        p.data = p.data.contiguous(memory_format=torch.channels_last)
        if p.grad is not None:
            p.grad = p.grad.contiguous(memory_format=torch.channels_last)
        for optimizer in facts.optimizers:
            entry = optimizer.state.get(p, {})
            for key, value in entry.items():
                if isinstance(value, torch.Tensor) and value.shape == p.shape:
                    entry[key] = value.contiguous(memory_format=torch.channels_last)

    def off(self, facts):
        for p, data in reversed(self.before):       # a weight of two models was moved twice
            p.data = data
        for root in self._roots(facts):
            root.wrap(CHANNELS_LAST, None)

    def lines(self, facts):
        return ["model = model.to(memory_format=torch.channels_last)", "images = images.to(memory_format=torch.channels_last)"]

    def settings(self, facts):
        return "use_channels_last(%r)" % names_of(self._roots(facts))


class Threads(Switch):
    rule, kind, group = "cpu-oversubscribed", "exact", "threads"

    def applies(self, facts):
        self.n = max(self.count(torch.get_num_threads(), facts.ranks_here), 1)
        if facts.device.kind != "cpu":
            return "the model is not on the CPU"
        return "so many are in use" if self.n == torch.get_num_threads() else None

    def on(self, facts):
        self.before = torch.get_num_threads()
        parts.use_threads(self.n)

    def off(self, facts):
        torch.set_num_threads(self.before)

    def lines(self, facts):
        return ["torch.set_num_threads(%d)" % self.n]

    def settings(self, facts):
        return "use_threads(%d)" % self.n


class ThreadsCores(Threads):
    def count(self, now, ranks):
        return physical_cores() // ranks


class ThreadsHalf(Threads):
    def count(self, now, ranks):
        return now // 2


class Affinity(Switch):
    kind = "exact"

    def applies(self, facts):
        self.cpus = gpu_cpus(facts.device)
        if not self.cpus:
            return "no GPU that is nearer to some CPUs than to others"
        return "it is on" if os.sched_getaffinity(0) <= self.cpus else None

    def on(self, facts):
        self.before = set_affinity(lambda thread: self.cpus)

    def off(self, facts):
        set_affinity(lambda thread: self.before.get(thread))

    def lines(self, facts):
        return ["os.sched_setaffinity(0, %s)        # CPUs beside the GPU; before torch is imported" % sorted(self.cpus)]

    def settings(self, facts):
        return "use_cpus(%s)" % sorted(self.cpus)


class ExpandableSegments(Switch):
    rule, kind, skip = "allocator-churn", "exact", 3

    def applies(self, facts):
        if facts.device.kind != "cuda" or not hasattr(torch.cuda.memory, "_set_allocator_settings"):
            return "not this device's allocator"
        if "expandable_segments:True" in os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "") + os.environ.get("PYTORCH_ALLOC_CONF", ""):
            return "it is on"
        retries = torch.cuda.memory_stats(facts.device.device).get("num_alloc_retries", 0)
        return None if retries else "the allocator never ran short"

    def _set(self, on):
        torch.cuda.memory._set_allocator_settings(parts.allocator_settings(on))
        torch.cuda.empty_cache()

    def on(self, facts):
        self._set(True)

    def off(self, facts):
        self._set(False)

    def lines(self, facts):
        return ['os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "%s"        # before torch is imported' % parts.allocator_settings(True)]

    def settings(self, facts):
        return "use_expandable_segments()"


class Compile(Switch):
    rule, kind, skip, warm = "host-bound", "tf32", 2, 4        # graphs, which launch-bound asks for, are more than this

    def applies(self, facts):
        if not hasattr(torch.nn.Module, "compile"):
            return "this torch has no Module.compile"
        if all(root.was_compiled for root in facts.roots):
            return "it is on" if facts.roots else "no model was seen"
        if facts.device.kind == "cuda":
            from torch.utils._triton import has_triton
            return None if has_triton() else "triton is not installed"
        return None if shutil.which(os.environ.get("CXX", "g++")) else "no C++ compiler"

    def on(self, facts):
        for root in facts.roots:
            if not root.was_compiled:
                root.compiled = root.compiled or torch.compile(root.module._call_impl)
                root.wrap(COMPILE, lambda call, compiled=root.compiled: compiled)

    def off(self, facts):
        for root in facts.roots:
            root.wrap(COMPILE, None)

    def lines(self, facts):
        return ["model.compile()        # before the first step"]

    def settings(self, facts):
        return "use_compile(%r)" % names_of([r for r in facts.roots if not r.was_compiled])


def _named(name, kind):
    switch = kind()
    switch.name = name
    return switch


def _read_table():
    with open(os.path.join(os.path.dirname(__file__), "switches.txt"), encoding="utf-8") as file:
        rows = [line.split() for line in file if line.strip() and not line.startswith("#")]
    return [functools.partial(_named, name, globals()[kind]) for name, kind in rows]


TABLE = _read_table()


def make_switches():
    return [make() for make in TABLE]
