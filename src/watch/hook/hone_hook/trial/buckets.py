"""The size of the buckets in which DistributedDataParallel sums gradients: its reducer is built anew, as it is where such a model is unpickled."""
import dataclasses

import torch

from .switch import Switch

MB = 1 << 20
KEPT = ("bucket_bytes_cap", "bucket_bytes_cap_default", "bucket_cap_mb", "_bucket_config")      # which of them there are depends on the version of torch


def models_of(heap):
    if not torch.distributed.is_available():
        return []
    return [m for m in heap.modules if isinstance(m, torch.nn.parallel.DistributedDataParallel)]


def _has_hook(model):
    return bool(getattr(model, "_comm_hooks", None)) or bool(model._get_ddp_logging_data().get("comm_hook"))


def _is_special(model):
    return model.static_graph or getattr(model, "mixed_precision", None) is not None or getattr(model, "_use_python_reducer", False) or bool(
        getattr(model, "_delay_all_reduce_params", None)) or bool(getattr(model, "bucket_bytes_cap_list", None))


def _bytes(model):
    return sum(p.numel() * p.element_size() for p in model.module.parameters() if p.requires_grad)


def build(model):
    """A reducer of the sizes that the model has now, which has seen no step. The one before lets go of the parameters."""
    model._remove_autograd_hooks()
    parameters, sparse = model._build_params_for_reducer()
    model._ddp_init_helper(parameters, sparse, model._build_debug_param_to_name_mapping(parameters), model.static_graph)


def _resize(model, size):
    model.bucket_bytes_cap, model.bucket_bytes_cap_default = size, False
    if hasattr(model, "_bucket_config"):
        model._bucket_config = dataclasses.replace(model._bucket_config, bucket_bytes_cap=size, first_bucket_bytes_cap=size)
    build(model)


class Buckets(Switch):
    """Buckets follow the order of gradients from the second step on. All ranks must have the same ones in every step, also in a turn that is void."""
    rule, kind, group, skip, settle, shared = "exposed-comm", "exact", "ddp-buckets", 3, 2, True
    times = 1                           # the size, of the one that the program has

    def __init__(self):
        self.before = []

    def _size(self, model):
        return max(int(model.bucket_bytes_cap * self.times) // MB, 1) * MB

    def applies(self, facts):
        models = models_of(facts.heap)
        if not models:
            return "no DistributedDataParallel"
        if any(_has_hook(m) for m in models):
            return "it has a hook of its own for what is sent"
        if any(_is_special(m) for m in models):
            return "its buckets cannot be built anew"
        self.sizes = sorted({self._size(m) // MB for m in models})
        if all(self._size(m) == m.bucket_bytes_cap for m in models):
            return "they are of 1 MB, and not made smaller"
        return "all gradients fit into one bucket" if all(_bytes(m) <= min(m.bucket_bytes_cap, self._size(m)) for m in models) else None

    def on(self, facts):
        self.before = [(m, {k: vars(m)[k] for k in KEPT if k in vars(m)}) for m in models_of(facts.heap)]
        for model, _ in self.before:
            _resize(model, self._size(model))

    def off(self, facts):
        for model, values in self.before:
            vars(model).pop("bucket_bytes_cap_default", None)
            vars(model).update(values)
            build(model)

    def lines(self, facts):
        return ["model = DistributedDataParallel(..., bucket_cap_mb=%d)" % size for size in self.sizes]

    def settings(self, facts):
        return "use_ddp_buckets(%d)" % self.sizes[-1]


class LargeBuckets(Buckets):
    times = 4


class SmallBuckets(Buckets):
    times = 0.25
