"""f16 with a scaler, which no line of the program knows of: held against torch.amp.GradScaler, and tried in a program, on a CPU."""
import importlib.util

import pytest

torch = pytest.importorskip("torch")

from torch.optim import optimizer as optimizers                     # noqa: E402
from trial_driver import Net, Program, drive                            # noqa: E402
from hone_hook.trial import precision, settings, settings_parts, state  # noqa: E402

if not hasattr(torch.amp, "GradScaler"):
    pytest.skip("torch %s has a scaler for GPUs alone" % torch.__version__, allow_module_level=True)

STEPS, BAD_STEP = 6, 3


class Trained:
    """Two micro-batches a step and clipping; in one step gradients that are not finite."""

    def __init__(self, **optimizer):
        torch.manual_seed(3)
        self.model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.1, **optimizer)
        self.inputs = torch.randn(STEPS, 2, 16, 4)
        self.inputs[BAD_STEP, 1, 0, 0] = float("inf")
        self.seen = []                  # norms of gradients, as the program sees them

    def train(self, scaler=None):
        for i in range(STEPS):
            self.optimizer.zero_grad()
            for x in self.inputs[i]:
                loss = self.model(x).square().mean()
                (scaler.scale(loss) if scaler else loss).backward()
            if scaler:
                scaler.unscale_(self.optimizer)
            self.seen.append(float(torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)))
            if scaler:
                scaler.step(self.optimizer)
                scaler.update()
            else:
                self.optimizer.step()
        return [p.detach().clone() for p in self.model.parameters()]


@pytest.fixture
def plain_backward(monkeypatch):
    monkeypatch.setattr(torch.autograd, "backward", torch.autograd.backward)
    return torch.autograd.backward


@pytest.mark.parametrize("optimizer", [{"foreach": False}, {"fused": True}])
def test_it_does_what_the_one_of_torch_does(monkeypatch, plain_backward, optimizer):
    theirs, their_scaler = Trained(**optimizer), torch.amp.GradScaler("cpu")
    expected = theirs.train(their_scaler)
    ours, scaler = Trained(**optimizer), settings_parts.Scaler()
    scaler.add(ours.model.parameters())
    hooks = scaler.install()
    monkeypatch.setattr(torch.autograd, "backward", lambda *args, **kwargs: scaler.backward(plain_backward, *args, **kwargs))
    found = ours.train()
    for hook in hooks:
        hook.remove()
    assert all(state.same_bits(a, b) for a, b in zip(expected, found))
    assert ours.seen[:BAD_STEP] == theirs.seen[:BAD_STEP] and ours.seen[BAD_STEP] != ours.seen[BAD_STEP] and all(p.isfinite().all() for p in found)
    assert scaler.scale.item() == their_scaler.get_scale() == 32768 and not hasattr(ours.optimizer, "found_inf")
    assert all(p.grad is not None for p in ours.model.parameters())


def test_it_goes_on_and_off_in_a_trial(tmp_path, monkeypatch):
    monkeypatch.setattr(precision.AutocastF16, "applies", lambda self, facts: None)
    program, dtypes = Program(), set()
    program.model.head.register_forward_hook(lambda module, inputs, out: dtypes.add(out.dtype))
    hooks = len(optimizers._global_optimizer_pre_hooks)
    result = drive(program, tmp_path, switches=["autocast-f16"])
    entry = result["switches"][0]
    assert entry["state"] in ("kept", "no gain") and all(g["pass"] for g in entry["gates"]), entry
    assert dtypes == {torch.float16, torch.float32} and result["restored"] is True
    assert len(optimizers._global_optimizer_pre_hooks) == hooks


def test_settings_do_the_same_when_imported(tmp_path, monkeypatch, plain_backward):
    monkeypatch.setattr(torch.nn.Module, "__call__", torch.nn.Module.__call__)
    for name in ("_global_optimizer_pre_hooks", "_global_optimizer_post_hooks"):
        monkeypatch.setattr(optimizers, name, type(getattr(optimizers, name))())
    kept = [{"name": "autocast-f16", "settings": 'use_autocast_f16({"Net": 1}, "cpu")', "speedup": 1.5, "low": 1.4, "high": 1.6, "lines": ["a"]}]
    settings.write(str(tmp_path), kept, {"speedup": 1.5, "low": 1.4, "high": 1.6})
    spec = importlib.util.spec_from_file_location("hone_settings", tmp_path / "hone_settings.py")
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    program, seen = Program(), []
    program.model.head.register_forward_hook(lambda module, inputs, out: seen.append(out.dtype))
    before = program.model.head.weight.detach().clone()
    program.step()
    largest = max(p.grad.abs().max().item() for p in program.model.parameters())
    assert seen == [torch.float16] and not torch.equal(before, program.model.head.weight)
    assert 0 < largest < 100, "gradients are still scaled"
    assert isinstance(program.model, Net)
