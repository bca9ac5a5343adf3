"""Switches that let a model compute with fewer bits: TF32, and autocast to 16 bits."""
import torch

from . import settings_parts as parts
from .switch import AUTOCAST, Switch, names_of


class Tf32(Switch):
    rule, kind = "no-mixed-precision", "tf32"

    def applies(self, facts):
        if facts.device.kind != "cuda":
            return "only GPUs have it"
        if getattr(torch.version, "hip", None) or torch.cuda.get_device_capability(facts.device.device)[0] < 8:
            return "this GPU does not have it"
        if torch.get_float32_matmul_precision() != "highest":
            return "it is on"
        return None if any(torch.float32 in root.dtypes and not root.autocast for root in facts.roots) else "no model computes in f32"

    def on(self, facts):
        self.before = torch.get_float32_matmul_precision()
        parts.use_tf32()

    def off(self, facts):
        torch.set_float32_matmul_precision(self.before)

    def lines(self, facts):
        return ['torch.set_float32_matmul_precision("high")']

    def settings(self, facts):
        return "use_tf32()"


class _Autocast(Switch):
    """Models that the program calls run under autocast; what they return is f32 again."""
    rule, group, dtype = "no-mixed-precision", "autocast", None

    def _roots(self, facts):
        return [r for r in facts.roots if not r.autocast and torch.float32 in r.dtypes and r.kinds == {facts.device.kind}]

    def on(self, facts):
        for root in self._roots(facts):
            root.wrap(AUTOCAST, lambda call: parts.with_autocast(call, facts.device.kind, self.dtype))

    def off(self, facts):
        for root in facts.roots:
            root.wrap(AUTOCAST, None)

    def lines(self, facts):
        return ['with torch.autocast("%s", %s):        # around the forward pass and the loss, not around backward()' % (facts.device.kind, self.dtype),
                "    ..."]


class Autocast(_Autocast):
    kind, dtype = "bf16", torch.bfloat16

    def applies(self, facts):
        if facts.device.kind not in ("cuda", "cpu"):
            return "not known to help on %s" % facts.device.kind
        if facts.device.kind == "cuda" and not torch.cuda.is_bf16_supported():
            return "this GPU does not have bf16"
        return None if self._roots(facts) else "no model computes in f32 alone"

    def settings(self, facts):
        return 'use_autocast(%r, "%s", torch.bfloat16)' % (names_of(self._roots(facts)), facts.device.kind)


class AutocastF16(_Autocast):
    """With a scaler, which stands where every backward pass goes through: gradients are what the program expects when it first sees them."""
    kind, dtype, warm = "f16", torch.float16, 20         # warm: until the scale has settled

    def __init__(self):
        self.scaler = None              # one for all turns: its scale is found once

    def applies(self, facts):
        if facts.device.kind != "cuda":
            return "only for a GPU"
        if any(scaler.is_enabled() for scaler in facts.heap.scalers):
            return "the program has a scaler of its own"
        if len({p.device for p in facts.parameters}) != 1 or any(p.dtype != torch.float32 for p in facts.parameters):
            return "not all parameters are f32 on one device"
        return None if self._roots(facts) else "no model computes in f32 alone"

    def on(self, facts):
        super().on(facts)
        if self.scaler is None:
            self.scaler = parts.Scaler()
            for parameters in [facts.parameters] + [root.module.parameters() for root in self._roots(facts)]:
                self.scaler.add(parameters)
        facts.evidence.around = self.scaler.backward
        self.hooks = self.scaler.install()

    def off(self, facts):
        super().off(facts)
        facts.evidence.around = None
        for hook in self.hooks:
            hook.remove()

    def lines(self, facts):
        return ['scaler = torch.amp.GradScaler("%s")' % facts.device.kind] + super().lines(facts) + [
            "scaler.scale(loss).backward()", "scaler.unscale_(optimizer)        # before gradients are clipped", "scaler.step(optimizer)", "scaler.update()"]

    def settings(self, facts):
        return 'use_autocast_f16(%r, "%s")' % (names_of(self._roots(facts)), facts.device.kind)
