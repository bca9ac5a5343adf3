"""What of a program can be found from outside: its modules, schedules, scalers, random generators, and tensors that a step writes.

Python's collector knows every object that can hold others. Generators of torch are not among those, but somebody holds them.
"""
import gc
import random
import sys

import torch


class _Sorter:
    """Objects by what they are. isinstance would ask proxies for their __class__, which may run code of the program; each type is looked at once."""

    def __init__(self, **kinds):
        self.kinds, self.of_type = kinds, {}
        self.found = {name: {} for name in kinds}       # by id

    def _look_at(self, kind):
        name = next((name for name, kinds in self.kinds.items() if issubclass(kind, kinds)), None)
        self.of_type[kind] = name
        return name

    def add(self, objects):
        of_type = self.of_type
        for o in objects:
            kind = type(o)
            name = of_type[kind] if kind in of_type else self._look_at(kind)
            if name is not None:
                self.found[name][id(o)] = o

    def all(self, name):
        return list(self.found[name].values())


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
    sorter = _Sorter(generators=_generator_kinds())
    sorter.add(_locals_of_callers())
    for o in objects:
        sorter.add(gc.get_referents(o))
    return sorter.all("generators")


class Heap:
    def __init__(self):
        objects = gc.get_objects()
        sorter = _Sorter(modules=torch.nn.Module, optimizers=torch.optim.Optimizer, schedules=_schedule_kinds(), scalers=_scaler_kinds())
        sorter.add(objects)
        self.modules, self.optimizers = sorter.all("modules"), sorter.all("optimizers")
        self.schedules, self.scalers = sorter.all("schedules"), sorter.all("scalers")
        self.generators = _generators(objects)


class Written:
    """Which tensors that live on are written from one look to the next: averages of weights, counters, sums that the program keeps."""

    def __init__(self):
        self.seen = {id(t): (t, t._version) for t in self._tensors()}

    @staticmethod
    def _tensors():
        sorter = _Sorter(tensors=torch.Tensor)
        sorter.add(gc.get_objects())
        return [t for t in sorter.all("tensors") if t.layout == torch.strided and not t.is_inference()]

    def now(self):
        found = [t for t in self._tensors() if id(t) in self.seen and self.seen[id(t)][1] != t._version]
        self.seen = {}
        return found
