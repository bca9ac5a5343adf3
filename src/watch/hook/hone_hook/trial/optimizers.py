"""Optimizers that update all parameters in few kernels instead of some for each: the same optimizer, with the same state.

Before the first step with it, one update is made both ways from the same gradients, and compared: an optimizer that cannot do it says so here
and not in the program.
"""
import inspect

import torch

from .gates import LIMITS
from .switch import Switch


def _fused_devices():
    try:
        from torch.utils._foreach_utils import _get_fused_kernels_supported_devices
        return set(_get_fused_kernels_supported_devices())
    except ImportError:
        return {"cuda"}


def _settings_of(optimizer):
    return [(g.get("foreach"), g.get("fused")) for g in optimizer.param_groups]


def _raw_step(optimizer):
    """A step without the hooks of anybody."""
    with torch.no_grad():
        inspect.unwrap(type(optimizer).step)(optimizer)


def _give_gradients(parameters):
    """Where the program has none just now, some."""
    for p in parameters:
        if p.grad is None and p.requires_grad:
            p.grad = p.detach().clone()


class _Together(Switch):
    rule, kind, group = "unfused-optimizer", "exact", "optimizer"
    setting = None

    def can(self, optimizer):
        return self.setting in optimizer.defaults and not optimizer.defaults.get("differentiable")

    def mine(self, facts):
        return [o for o in facts.optimizers if self.can(o) and not any(g.get(self.setting) for g in o.param_groups)]

    def applies(self, facts):
        if any(id(o) in facts.compiled for o in facts.optimizers):
            return "a step of an optimizer is compiled, and would be anew"
        if not any(self.can(o) for o in facts.optimizers):
            return "%s does not have it" % (", ".join(sorted({type(o).__name__ for o in facts.optimizers})) or "no optimizer")
        return None if self.mine(facts) else "it is on"

    def on(self, facts):
        self.before = [(group, group["foreach"], group.get("fused")) for o in self.mine(facts) for group in o.param_groups]
        for optimizer in self.mine(facts):
            self.flip(optimizer)

    def flip(self, optimizer):
        for group in optimizer.param_groups:
            group["foreach"] = self.setting == "foreach"
            if "fused" in group:
                group["fused"] = self.setting == "fused"

    def off(self, facts):
        for group, foreach, fused in self.before:
            group["foreach"] = foreach
            if "fused" in group:
                group["fused"] = fused

    def check(self, facts, state):
        """One update with and without, from the saved state."""
        gates = []
        for optimizer in self.mine(facts):
            parameters = [p for g in optimizer.param_groups for p in g["params"] if p.requires_grad]
            start = [p.detach().clone() for p in parameters]
            _give_gradients(parameters)
            _raw_step(optimizer)
            plain = [p.detach().clone() for p in parameters]
            state.restore()
            _give_gradients(parameters)
            self.flip(optimizer)
            _raw_step(optimizer)
            gates.append(_compare_updates(start, plain, parameters))
            state.restore()
        return gates

    def _names(self, facts):
        return sorted({type(o).__name__ for o in self.mine(facts)})

    def lines(self, facts):
        return ["optimizer = torch.optim.%s(..., %s=True)" % (name, self.setting) for name in self._names(facts)]

    def settings(self, facts):
        other = "foreach" if self.setting == "fused" else "fused"
        return "use_optimizer(%r, %s=True, %s=False)" % ([n for n in self._names(facts) if hasattr(torch.optim, n)], self.setting, other)


def _length(tensors):
    return sum(float(t.float().norm()) ** 2 for t in tensors) ** 0.5


def _compare_updates(start, plain, now):
    """A small update of large weights is lost in their last digit, so that may differ."""
    update = max(_length([b - a for a, b in zip(start, plain)]), 1e-30)
    error = _length([b.detach() - a for a, b in zip(plain, now)]) / update
    last_digits = _length([p * torch.finfo(p.dtype).eps for p in plain]) / update
    limit = LIMITS["exact"][1] + last_digits
    gate = {"gate": "update", "pass": error <= limit, "value": error, "limit": limit}
    if not gate["pass"]:
        gate["why"] = "the update differs by %.2g, and may by %.2g" % (error, limit)
    return gate


class Fused(_Together):
    setting = "fused"

    def can(self, optimizer):
        devices = _fused_devices()
        return super().can(optimizer) and all(p.device.type in devices and p.is_floating_point() for g in optimizer.param_groups for p in g["params"])

    def flip(self, optimizer):
        """Fused kernels count steps on the device."""
        super().flip(optimizer)
        for p, entry in optimizer.state.items():
            step = entry.get("step")
            if isinstance(step, torch.Tensor):
                entry["step"] = step.to(p.device, torch.float32)


class Foreach(_Together):
    setting = "foreach"

    def applies(self, facts):
        if any(g.get("fused") for o in facts.optimizers for g in o.param_groups):
            return "a fused one is on"
        if facts.device.kind == "cuda" and all(g.get("foreach") is None for o in facts.optimizers for g in o.param_groups):
            return "it is on"
        return super().applies(facts)
