"""Everything that a training step changes, saved and put back: weights, buffers, gradients, optimizers, schedules, scalers, random numbers.

Tensors are written back in place, so that whoever holds one (a view, a bucket, an optimizer) still holds the right one. `equal` then compares
every byte with what was saved. What a program counts in variables of its own (its loop, a mean of losses) cannot be reached and goes on.
"""
import copy
import os
import random
import sys

import torch

PLAIN = (int, float, bool, str, bytes, complex, type(None))
ROOM_LEFT = 0.1                         # of the device's memory, which a trial does not take
HOST_SHARE = 0.7                        # of what the host has free, which it takes at most


class DoesNotFit(Exception):
    pass


# ---- tensors

def _overlaps_itself(t):
    return any(step == 0 and size > 1 for step, size in zip(t.stride(), t.shape))


def _is_kept(t):
    return t.layout == torch.strided and t.device.type != "meta" and not _overlaps_itself(t) and not t.is_inference()      # which nobody may write


def _bits(t):
    """The same numbers as integers, of which NaN is equal to itself."""
    if t.is_complex():
        t = torch.view_as_real(t)
    kinds = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return t.view(kinds[t.element_size()])


def same_bits(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and torch.equal(_bits(a.detach().data), _bits(b.detach().to(a.device)))


class Tensors:
    """Copies of a list of tensors, on their device or on the host."""

    def __init__(self, tensors):
        self.live = [t for t in {id(t): t for t in tensors}.values() if _is_kept(t)]
        self.copies = None

    def bytes(self):
        return sum(t.numel() * t.element_size() for t in self.live)

    def save(self, on_host):
        with torch.no_grad():
            self.copies = [t.detach().to("cpu", copy=True) if on_host else t.detach().clone() for t in self.live]

    def restore(self):
        with torch.no_grad():
            for live, copy in zip(self.live, self.copies):
                live.data.copy_(copy)

    def equal(self):
        return all(same_bits(live, copy) for live, copy in zip(self.live, self.copies))


def _tensors_of(module):
    held = [v for v in vars(module).values() if isinstance(v, torch.Tensor)]
    return list(module._parameters.values()) + list(module._buffers.values()) + held


# ---- plain values: numbers and words in dicts, lists and tuples; what else there is stays where it is

def _plain(value):
    if isinstance(value, PLAIN):
        return True
    if isinstance(value, (list, tuple)):
        return all(_plain(v) for v in value)
    return isinstance(value, dict) and all(_plain(v) for v in value.values())


def _is_empty_table(value):
    """Of hooks, say: what is registered there meanwhile is no number of the program's."""
    return isinstance(value, dict) and type(value) is not dict and not value


def _put_into(value, saved):
    """Somebody else may hold the same list."""
    if isinstance(value, list):
        value[:] = copy.deepcopy(saved)
    elif isinstance(value, dict):
        value.clear()
        value.update(copy.deepcopy(saved))


class Plain:
    """The plain entries of a dict (of an object, of a group of parameters): the same objects, and in them what they held."""

    def __init__(self, holder, without=()):
        self.holder = holder
        self.saved = {k: (v, copy.deepcopy(v)) for k, v in holder.items() if k not in without and _plain(v) and not _is_empty_table(v)}

    def restore(self):
        for key, (value, saved) in self.saved.items():
            if value != saved:
                _put_into(value, saved)
            if key not in self.holder or self.holder[key] is not value:
                self.holder[key] = value

    def equal(self):
        return all(k in self.holder and (self.holder[k] == saved or saved != saved) for k, (_, saved) in self.saved.items())


# ---- random numbers

def _gpu_rng(i):
    return (lambda: torch.cuda.get_rng_state(i)), (lambda state: torch.cuda.set_rng_state(state, i))


def _devices_rng():
    """(save, restore) of every device that has begun."""
    pairs = [(torch.get_rng_state, torch.set_rng_state)]
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        pairs.extend(_gpu_rng(i) for i in range(torch.cuda.device_count()) if torch.cuda.memory_reserved(i))
    if getattr(torch.backends, "mps", None) is not None and torch.backends.mps.is_available():
        pairs.append((torch.mps.get_rng_state, torch.mps.set_rng_state))
    return pairs


def _of_generator(g):
    if isinstance(g, random.Random):
        return g.getstate, g.setstate
    if isinstance(g, torch.Generator):
        return g.get_state, g.set_state
    if hasattr(g, "bit_generator"):
        return (lambda: g.bit_generator.state), (lambda s: setattr(g.bit_generator, "state", s))
    return g.get_state, g.set_state


def _rng(generators):
    pairs = _devices_rng() + [(random.getstate, random.setstate)]
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        pairs.append((numpy.random.get_state, numpy.random.set_state))
    return pairs + [_of_generator(g) for g in generators if type(g) is not random.SystemRandom]


def _equal_states(a, b):
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_equal_states(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(_equal_states(x, y) for x, y in zip(a, b))
    return bool((a == b).all()) if hasattr(a, "all") else a == b


class Random:
    def __init__(self, generators):
        self.pairs = _rng(generators)
        self.saved = [get() for get, _ in self.pairs]

    def restore(self):
        for (_, put), state in zip(self.pairs, self.saved):
            put(state)

    def equal(self):
        return all(_equal_states(get(), state) for (get, _), state in zip(self.pairs, self.saved))


# ---- gradients, and what an optimizer's state holds

class Gradients:
    """Whether a parameter has a gradient, and which; its numbers are among the tensors."""

    def __init__(self, parameters):
        self.held = [(p, p.grad) for p in parameters]

    def restore(self):
        for p, grad in self.held:
            if p.grad is not grad:
                p.grad = grad

    def equal(self):
        return all(p.grad is grad for p, grad in self.held)


class Held:
    """What a dict or a list holds, and the dicts and lists in it: the same objects in the same places. Of an optimizer's state: LBFGS keeps lists of tensors there."""

    def __init__(self, holder):
        self.holder, self.saved = holder, _items(holder)
        self.inner = [Held(value) for _, value in self.saved if isinstance(value, (dict, list))]

    def restore(self):
        if not self._is_same():
            self.holder.clear()
            self.holder.update(self.saved) if isinstance(self.holder, dict) else self.holder.extend(value for _, value in self.saved)
        for part in self.inner:
            part.restore()

    def _is_same(self):
        now = _items(self.holder)
        return len(now) == len(self.saved) and all(k is key and v is value for (k, v), (key, value) in zip(now, self.saved))

    def equal(self):
        return self._is_same() and all(part.equal() for part in self.inner)


class Attributes:
    """Which tensors an object has under which names: what is bound anew in a step is not what was saved."""

    def __init__(self, holder):
        self.holder, self.saved = holder, {k: v for k, v in holder.items() if isinstance(v, torch.Tensor)}

    def restore(self):
        for key, value in self.saved.items():
            if self.holder.get(key) is not value:
                self.holder[key] = value

    def equal(self):
        return all(self.holder.get(key) is value for key, value in self.saved.items())


def _items(holder):
    """Of a list no keys, but places."""
    return list(holder.items()) if isinstance(holder, dict) else [(None, value) for value in holder]


# ---- all of it

def is_sharded(module):
    """A part of FSDP, first or second of its kind."""
    return any(kind.__name__ in ("FullyShardedDataParallel", "FSDPModule") for kind in type(module).__mro__)


def parameters_of(optimizers):
    return list({id(p): p for o in optimizers for g in o.param_groups for p in g["params"]}.values())


def _tensors_in(value):
    if isinstance(value, (dict, list, tuple)):
        return [t for v in (value.values() if isinstance(value, dict) else value) for t in _tensors_in(v)]
    return [value] if isinstance(value, torch.Tensor) else []


def _tensors_of_optimizer(optimizer):
    return _tensors_in(optimizer.state) + _tensors_in([v for group in optimizer.param_groups for k, v in group.items() if k != "params"])


def _host_bytes_free():
    try:
        with open("/proc/meminfo") as f:
            return next(int(line.split()[1]) * 1024 for line in f if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError):
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 0


def _bytes_by_device(tensors):
    need = {}
    for t in tensors:
        need[t.device] = need.get(t.device, 0) + t.numel() * t.element_size()
    return need


def _fits_gpu(device, size):
    free, total = torch.cuda.mem_get_info(device)
    return size <= free - ROOM_LEFT * total


def _place(tensors, gradients):
    """Each tensor's copy beside it if there is room, else all of them on the host. The gradients that are there stay, while steps make others."""
    need, held = _bytes_by_device(tensors), _bytes_by_device(gradients)
    gpus = {device: size for device, size in need.items() if device.type == "cuda"}
    if not all(_fits_gpu(device, held.get(device, 0)) for device in gpus):
        raise DoesNotFit("the device has no room for gradients a second time, %.1f GB" % (sum(held.values()) / 1e9))
    here = all(_fits_gpu(device, size + held.get(device, 0)) for device, size in gpus.items())
    on_host, free = sum(need.values()) - (sum(gpus.values()) if here else 0), _host_bytes_free()
    if on_host > HOST_SHARE * free:
        raise DoesNotFit("weights, gradients and optimizer state take %.1f GB a second time; the device has no room for them, and the host has %.1f GB free"
                         % (sum(need.values()) / 1e9, free / 1e9))
    return "device" if here else "host"


class State:
    def __init__(self, optimizers, heap, others=(), where=None):
        parameters = parameters_of(optimizers)
        found = list(parameters) + [p.grad for p in parameters] + list(others)
        for module in heap.modules:
            found.extend(_tensors_of(module))
        for holder in heap.scalers:
            found.extend(vars(holder).values())
        for optimizer in optimizers:
            found.extend(_tensors_of_optimizer(optimizer))
        self.tensors = Tensors([t for t in found if isinstance(t, torch.Tensor)])
        self.where = where or _place(self.tensors.live, [p.grad for p in parameters if p.grad is not None])
        self.tensors.save(self.where == "host")
        self.parts = [Held(o.state) for o in optimizers]
        for module in heap.modules:
            self.parts += [Attributes(holder) for holder in (module._parameters, module._buffers, vars(module)) if isinstance(holder, dict)]
        self.parts += [Gradients(parameters)]
        self.parts += [Plain(group, without=("params",)) for o in optimizers for group in o.param_groups]
        self.parts += [Plain(vars(holder), without=("_compiled_call_impl",)) for holder in heap.schedules + heap.scalers + heap.modules + list(optimizers)]
        self.random = Random(heap.generators)

    def restore(self):
        for part in self.parts:
            part.restore()
        self.tensors.restore()
        self.random.restore()

    def equal(self):
        return self.tensors.equal() and all(part.equal() for part in self.parts) and self.random.equal()

    def describe(self):
        return {"tensors": len(self.tensors.live), "bytes": self.tensors.bytes(), "where": self.where, "generators": len(self.random.pairs)}
