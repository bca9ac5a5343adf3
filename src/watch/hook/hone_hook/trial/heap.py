"""What of a program can be found from outside: its modules, schedules, scalers, random generators, and tensors that a step writes.

Python's collector knows every object that can hold others. Generators of torch are not among those, but somebody holds them.
"""
import gc
import random
import sys

import torch


def _instances(objects, kinds):
    """isinstance would ask proxies for their __class__, which may run code of the program."""
    return [o for o in objects if issubclass(type(o), kinds)]


def _scaler_kinds():
    kinds = [getattr(home, "GradScaler", None) for home in (getattr(torch, "amp", None), getattr(torch.cuda, "amp", None))]
    return tuple(k for k in kinds if k is not None)


def _schedule_kinds():
    schedules = torch.optim.lr_scheduler
    kinds = [getattr(schedules, name, None) for name in ("LRScheduler", "_LRScheduler", "ReduceLROnPlateau")]
    return tuple(k for k in kinds if k is not None)


def _generator_kinds():
    numpy = sys.modules.get("numpy")
    kinds = (torch.Generator, random.Random)
    return kinds + (numpy.random.Generator, numpy.random.RandomState) if numpy is not None else kinds


def _locals_of_callers():
    frame, found = sys._getframe(1), []
    while frame is not None:
        found.extend(frame.f_locals.values())
        frame = frame.f_back
    return found


def _generators(objects):
    kinds, found = _generator_kinds(), {}
    def look(values):
        for value in values:
            if issubclass(type(value), kinds):
                found[id(value)] = value
    look(_locals_of_callers())
    for o in objects:
        look(gc.get_referents(o))
    return list(found.values())


class Heap:
    def __init__(self):
        objects = gc.get_objects()
        self.modules = _instances(objects, torch.nn.Module)
        self.optimizers = _instances(objects, torch.optim.Optimizer)
        self.schedules = _instances(objects, _schedule_kinds())
        self.scalers = _instances(objects, _scaler_kinds())
        self.generators = _generators(objects)


class Written:
    """Which tensors that live on are written from one look to the next: averages of weights, counters, sums that the program keeps."""

    def __init__(self):
        self.seen = {id(t): (t, t._version) for t in self._tensors()}

    @staticmethod
    def _tensors():
        return [t for t in _instances(gc.get_objects(), torch.Tensor) if t.layout == torch.strided and not t.is_inference()]

    def now(self):
        found = [t for t in self._tensors() if id(t) in self.seen and self.seen[id(t)][1] != t._version]
        self.seen = {}
        return found
