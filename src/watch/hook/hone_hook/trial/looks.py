"""A program that looks at its weights while a trial runs (it evaluates, or saves a checkpoint) finds what it had before the trial."""
import torch


class Looks:
    """Between install and remove: `look` is called before weights are evaluated or saved."""

    def __init__(self, parameters, look):
        self.parameters, self.look = {id(p) for p in parameters}, look
        self.before = []

    def _trains(self, module):
        return any(id(p) in self.parameters for p in module.parameters())

    def install(self):
        self._replace(torch.nn.Module, "train", lambda module, mode=True, *rest: not mode and self._trains(module))
        self._replace(torch.nn.Module, "state_dict", lambda module, *rest, **named: self._trains(module))
        self._replace(torch.optim.Optimizer, "state_dict", lambda *rest, **named: True)
        self._replace(torch, "save", lambda *rest, **named: True)

    def _replace(self, holder, name, looks):
        plain = getattr(holder, name)

        def call(*args, **kwargs):
            if looks(*args, **kwargs):
                self.look()
            return plain(*args, **kwargs)
        self.before.append((holder, name, plain))
        setattr(holder, name, call)

    def remove(self):
        for holder, name, plain in self.before:
            setattr(holder, name, plain)
        self.before = []
