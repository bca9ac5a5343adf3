"""What a gate looks at: the losses of a step and the gradients behind each of them, seen where every backward pass goes through.

Gradients are compared by the norm of each parameter's: all of them are numbers, not tensors, and stay small. They are taken right behind a
backward pass, before the program clips them.
"""
import torch


def _norms(parameters):
    """(parameters), zero for one that has no gradient; on the device."""
    norms = torch.zeros(len(parameters), dtype=torch.float64)
    held = [(i, p.grad.detach()) for i, p in enumerate(parameters) if p.grad is not None and p.grad.layout == torch.strided]
    by_device = {}
    for i, grad in held:
        by_device.setdefault(grad.device, []).append((i, grad))
    for pairs in by_device.values():
        some = torch.stack([g.float().norm() for _, g in pairs])
        norms[[i for i, _ in pairs]] = some.cpu().double()             # an Apple GPU has no doubles
    return norms


def _loss(tensors):
    tensors = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
    return float(sum(t.detach().cpu().double().sum() for t in tensors))


class Evidence:
    """Between install and remove every backward pass comes by here. `broke` is told of exceptions in one, and says whether it was ours; then `mend` is called."""

    def __init__(self, parameters, broke, mend=lambda: None):
        self.parameters, self.broke, self.mend = parameters, broke, mend
        self.watching, self.plain, self.depth = False, None, 0
        self.around = None              # of a switch: around(plain, ...) makes the pass
        self.losses, self.norms = [], []

    def install(self):
        self.plain, evidence = torch.autograd.backward, self

        def backward(*args, **kwargs):
            return evidence.backward(*args, **kwargs)
        torch.autograd.backward = backward

    def remove(self):
        if self.plain is not None:
            torch.autograd.backward = self.plain
            self.plain = None

    def start(self):
        self.watching = True
        self.losses, self.norms = [], []

    def pause(self):
        self.watching = False

    def seen(self):
        """(losses, norms) of all backward passes since the start."""
        norms = torch.cat(self.norms).tolist() if self.norms else []
        return list(self.losses), norms

    def _pass(self, *args, **kwargs):
        if self.around is None or self.depth > 1:
            self.plain(*args, **kwargs)
        else:
            self.around(self.plain, *args, **kwargs)

    def backward(self, *args, **kwargs):
        self.depth += 1
        try:
            self._pass(*args, **kwargs)
        except Exception as error:
            if self.depth > 1 or not self.broke(error):
                raise
            _zero_gradients(self.parameters)
            self.mend()
            return
        finally:
            self.depth -= 1
        if self.watching and self.depth == 0:           # a checkpoint calls backward inside of backward
            self.losses.append(_loss(args[0] if args else kwargs["tensors"]))
            self.norms.append(_norms(self.parameters))


def _zero_gradients(parameters):
    """For the rest of a step that is thrown away: whoever reads gradients finds some."""
    for p in parameters:
        p.grad = torch.zeros_like(p)
