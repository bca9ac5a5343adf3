"""What hone_settings.py is made of: each function stands alone, and its text is copied into that file (settings.py).

Functions named use_* are called there, before the program builds anything. The others are used by a trial as well, so that what is measured
is what is written.
"""
import functools
import inspect

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


def use_threads(n):
    torch.set_num_threads(n)


def use_cpus(cpus):
    import os
    os.sched_setaffinity(0, cpus)


def use_autocast(names, device, dtype):
    when_first_called(names, lambda module, call: with_autocast(call, device, dtype))


def use_channels_last(names):
    def lay(module, call):
        module.to(memory_format=torch.channels_last)
        return with_channels_last(call)
    when_first_called(names, lay)


def use_compile(names):
    when_first_called(names, lambda module, call: torch.compile(call))


def use_expandable_segments():
    torch.cuda.memory._set_allocator_settings("expandable_segments:True")
