"""What hone_settings.py is made of: each function stands alone, and its text is copied into that file (settings.py).

Functions named use_* are called there, before the program builds anything. The others are used by a trial as well, so that what is measured
is what is written.
"""
import functools
import inspect
import os
import re

import torch


def to_float(value):
    """Outputs in 16 bits as f32, as a program without autocast expects them."""
    if isinstance(value, torch.Tensor):
        return value.float() if value.dtype in (torch.bfloat16, torch.float16) else value
    if isinstance(value, dict):
        for key in list(value):
            value[key] = to_float(value[key])
        return value
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(to_float(v) for v in value))
    return type(value)(to_float(v) for v in value) if type(value) in (list, tuple) else value


def with_autocast(call, device, dtype):
    """A module's call under autocast."""
    def cast(*args, **kwargs):
        with torch.autocast(device, dtype):
            out = call(*args, **kwargs)
        return to_float(out)
    return cast


def with_channels_last(call):
    """A module's call, with images in the order that convolutions like."""
    def lay(value):
        is_image = isinstance(value, torch.Tensor) and value.dim() == 4 and value.is_floating_point()
        return value.contiguous(memory_format=torch.channels_last) if is_image else value

    def laid(*args, **kwargs):
        return call(*[lay(v) for v in args], **{k: lay(v) for k, v in kwargs.items()})
    return laid


def when_first_called(names, wrap):
    """wrap(call) goes around every module of a class in names, when it is called for the first time. names: class, and how many there are."""
    plain, left, done = torch.nn.Module.__call__, dict(names), set()

    def call(module, *args, **kwargs):
        name = type(module).__qualname__
        if left.get(name) and id(module) not in done:
            done.add(id(module))
            left[name] -= 1
            module._compiled_call_impl = wrap(module, module._compiled_call_impl or module._call_impl)
            if not any(left.values()):
                torch.nn.Module.__call__ = plain
        return plain(module, *args, **kwargs)
    torch.nn.Module.__call__ = call


def use_tf32():
    torch.set_float32_matmul_precision("high")


def use_cudnn_benchmark():
    torch.backends.cudnn.benchmark = True


def with_settings(init, settings, applies=lambda *args, **kwargs: True):
    """__init__ with these settings, whatever it is called with."""
    signature = inspect.signature(init)

    @functools.wraps(init)
    def build(*args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        if applies(*args, **kwargs):
            bound.arguments.update(settings)
        init(*bound.args, **bound.kwargs)
    return build


def use_optimizer(names, **settings):
    """Optimizers of these classes are built with these settings."""
    for name in names:
        kind = getattr(torch.optim, name)
        kind.__init__ = with_settings(kind.__init__, settings)


def use_set_to_none():
    """zero_grad lets go of gradients instead of filling them with zeros."""
    for kind in (torch.optim.Optimizer, torch.nn.Module):
        def zero_grad(self, set_to_none=True, plain=kind.zero_grad):
            plain(self, set_to_none=True)
        kind.zero_grad = zero_grad


def use_loader(**settings):
    """DataLoaders are built with these settings; not those of iterable datasets, of which every worker would read all."""
    def is_map(loader, dataset, *args, **kwargs):
        return not isinstance(dataset, torch.utils.data.IterableDataset)
    loader = torch.utils.data.DataLoader
    loader.__init__ = with_settings(loader.__init__, settings, is_map)


def use_ddp_buckets(megabytes):
    ddp = torch.nn.parallel.DistributedDataParallel
    ddp.__init__ = with_settings(ddp.__init__, {"bucket_cap_mb": megabytes})


def use_threads(n):
    torch.set_num_threads(n)


def use_cpus(cpus):
    import os
    os.sched_setaffinity(0, cpus)


def use_autocast(names, device, dtype):
    when_first_called(names, lambda module, call: with_autocast(call, device, dtype))


class Scaler:
    """Keeps small gradients of f16 above zero, as torch.amp.GradScaler does, without a line in the program: losses are multiplied by a scale, and
    gradients divided by it right behind backward(), before anybody reads them. A step with gradients that are not finite changes nothing, and halves the scale."""

    def __init__(self):
        self.parameters, self.hidden = {}, []

    def add(self, parameters):
        self.parameters.update((id(p), p) for p in parameters)
        device = next(iter(self.parameters.values())).device
        self.scale, self.found = torch.full((), 65536.0, device=device), torch.zeros((), device=device)
        self.good_steps = torch.zeros((), dtype=torch.int32, device=device)

    def gradients(self):
        return [p.grad._values() if p.grad.is_sparse else p.grad for p in self.parameters.values() if p.grad is not None]

    def backward(self, plain, tensors, *args, **kwargs):
        """In place of plain. What gradients hold from passes before is scaled with the rest and back again: a power of two changes no digit."""
        if not self.parameters or kwargs.get("create_graph") or any(args[2:3]):
            return plain(tensors, *args, **kwargs)
        tensors, before = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors), self.gradients()
        with torch.no_grad():
            if before:
                torch._foreach_mul_(before, self.scale)
        plain([t * self.scale for t in tensors], *args, **kwargs)
        with torch.no_grad():
            torch._amp_foreach_non_finite_check_and_unscale_(self.gradients(), self.found, self.scale.double().reciprocal().float())

    def before_step(self, optimizer, args, kwargs):
        """Fused optimizers look by themselves whether gradients are finite; from others those that are not are hidden for this step."""
        hidden = []
        if self.parameters and all(group.get("fused") for group in optimizer.param_groups):
            optimizer.grad_scale, optimizer.found_inf = None, self.found
        elif self.parameters and self.found.item():
            hidden = [(p, p.grad) for group in optimizer.param_groups for p in group["params"]]
            for p, _ in hidden:
                p.grad = None
        self.hidden.append(hidden)

    def after_step(self, optimizer, args, kwargs):
        for p, grad in self.hidden.pop():
            p.grad = grad
        if hasattr(optimizer, "found_inf"):
            del optimizer.grad_scale, optimizer.found_inf
        if self.parameters:
            torch._amp_update_scale_(self.scale, self.good_steps, self.found, 2.0, 0.5, 2000)
            self.found.zero_()

    def install(self):
        """Around the steps of all optimizers; what is given back has remove()."""
        from torch.optim import optimizer as hooks
        return [hooks.register_optimizer_step_pre_hook(self.before_step), hooks.register_optimizer_step_post_hook(self.after_step)]


def use_autocast_f16(names, device):
    scaler = Scaler()

    def cast(module, call):
        scaler.add(module.parameters())
        return with_autocast(call, device, torch.float16)
    when_first_called(names, cast)
    torch.autograd.backward = functools.partial(scaler.backward, torch.autograd.backward)
    scaler.install()


def use_channels_last(names):
    def lay(module, call):
        module.to(memory_format=torch.channels_last)
        return with_channels_last(call)
    when_first_called(names, lay)


def use_compile(names):
    when_first_called(names, lambda module, call: torch.compile(call))


def allocator_settings(expandable):
    """With what else the program has set: torch forgets those that are not named again."""
    given = os.environ.get("PYTORCH_ALLOC_CONF") or os.environ.get("PYTORCH_CUDA_ALLOC_CONF") or ""
    kept = re.findall(r"(?:max_split_size_mb|garbage_collection_threshold|roundup_power2_divisions)\s*:\s*(?:\[[^]]*\]|[^,]*)", given)
    return ",".join(["expandable_segments:%s" % expandable] + [k.strip() for k in kept])


def use_expandable_segments():
    torch.cuda.memory._set_allocator_settings(allocator_settings(True))
