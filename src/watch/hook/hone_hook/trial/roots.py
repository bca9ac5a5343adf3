"""The modules that a program calls itself, from outside of any other: what autocast and compile go around.

A root is called through `_compiled_call_impl`, which torch keeps for Module.compile(): neither the class nor forward is touched. An
exception while something of ours is on takes it off, and the call is made again as the program would have made it.
"""
import threading

import torch


class Survey:
    """Finds roots while the program takes some steps, and what they are called with."""

    def __init__(self, parameters):
        self.parameters = {id(p) for p in parameters}
        self.roots = {}                 # id: Root
        self.inside = threading.local()

    def begin(self):
        self.plain, survey = torch.nn.Module.__call__, self

        def __call__(module, *args, **kwargs):
            return survey.called(module, args, kwargs)
        torch.nn.Module.__call__ = __call__

    def end(self):
        torch.nn.Module.__call__ = self.plain
        return list(self.roots.values())

    def called(self, module, args, kwargs):
        if getattr(self.inside, "root", False):
            return self.plain(module, *args, **kwargs)
        self._meet(module, args, kwargs)
        self.inside.root = id(module) in self.roots
        try:
            return self.plain(module, *args, **kwargs)
        finally:
            self.inside.root = False

    def _meet(self, module, args, kwargs):
        """DistributedDataParallel is none: a call that is made again must not send again."""
        if torch.distributed.is_available() and isinstance(module, torch.nn.parallel.DistributedDataParallel):
            return
        if module.training and torch.is_grad_enabled() and any(id(p) in self.parameters for p in module.parameters()):
            root = self.roots.setdefault(id(module), Root(module))
            root.look_at(args, kwargs)


def _autocast_is_on(kind):
    try:
        return torch.is_autocast_enabled(kind)
    except TypeError:                   # torch before 2.4 asks each device by a name of its own
        return torch.is_autocast_cpu_enabled() if kind == "cpu" else kind == "cuda" and torch.is_autocast_enabled()


class Root:
    def __init__(self, module):
        self.module = module
        self.name = type(module).__qualname__
        self.kinds = {p.device.type for p in module.parameters()}
        self.dtypes = {p.dtype for p in module.parameters() if p.is_floating_point()}
        self.autocast = False
        self.images = False             # called with a batch of images
        self.wraps = {}                 # order: function of a function
        self.plain, self.stack = None, None
        self.was_compiled = module._compiled_call_impl is not None or type(module).__name__ == "OptimizedModule"
        self.compiled = None            # by a trial
        self.kept = None                # inputs of a step, call by call, where the program's own batches do not come back
        self.calls = None               # so far in the step that is compared; None: in any other

    def look_at(self, args, kwargs):
        self.autocast = self.autocast or any(_autocast_is_on(kind) for kind in self.kinds)
        for value in list(args) + list(kwargs.values()):
            if isinstance(value, torch.Tensor) and value.dim() == 4 and value.is_floating_point():
                self.images = True

    def has(self, kinds):
        return any(isinstance(m, kinds) for m in self.module.modules())

    def install(self, broke):
        """broke(error) says whether something of ours was on, and takes it off."""
        module = self.module
        self.before = module.__dict__.get("_compiled_call_impl")
        self.plain = self.before or module._call_impl
        self.stack = self.plain

        def call(*args, **kwargs):
            if self.calls is not None and self.kept is not None:
                args, kwargs = self._same_inputs(args, kwargs)
            try:
                return self.stack(*args, **kwargs)
            except Exception as error:
                if not broke(error):
                    raise
            return self.plain(*args, **kwargs)
        module._compiled_call_impl = call

    def remove(self):
        if self.plain is not None:
            if self.before is None:
                del self.module.__dict__["_compiled_call_impl"]
            else:
                self.module._compiled_call_impl = self.before
            self.plain = None

    def _same_inputs(self, args, kwargs):
        """Those of the first step that was compared. What has another shape now stays what it is: what comes behind the model relies on it."""
        self.calls += 1
        if self.calls > len(self.kept):
            self.kept.append(([_copy(v) for v in args], {k: _copy(v) for k, v in kwargs.items()}))
        kept_args, kept_kwargs = self.kept[self.calls - 1]
        if len(kept_args) != len(args) or kept_kwargs.keys() != kwargs.keys():
            return args, kwargs
        return [_instead(v, k) for v, k in zip(args, kept_args)], {key: _instead(v, kept_kwargs[key]) for key, v in kwargs.items()}

    def wrap(self, order, function):
        """function goes around what has a lower order; None takes it away."""
        if function is None:
            self.wraps.pop(order, None)
        else:
            self.wraps[order] = function
        self.stack = self.plain
        for key in sorted(self.wraps):
            self.stack = self.wraps[key](self.stack)


def _copy(value):
    return value.detach().clone() if isinstance(value, torch.Tensor) and not value.requires_grad else None


def _instead(value, kept):
    same = kept is not None and isinstance(value, torch.Tensor) and not value.requires_grad
    return kept if same and (value.shape, value.dtype, value.device) == (kept.shape, kept.dtype, kept.device) else value
