"""Devices that are not here: an AMD GPU (ROCm, which torch calls cuda), an Apple GPU (MPS), and what else there may be. A torch that is not real stands in for the parts that are asked."""
import os
import sys
import weakref
from types import SimpleNamespace

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "src", "watch", "hook"))
from hone_hook import cupti, record                                     # noqa: E402
from hone_hook.device import Device                                     # noqa: E402
from hone_hook.window import Undisturbed                                # noqa: E402


class FakeTorch:
    """As much of torch as the hook asks. `kind` is the device that it has."""

    def __init__(self, kind, hip=None):
        self.waited = []
        here = kind == "cuda"
        self.cuda = SimpleNamespace(synchronize=lambda device: self.waited.append(device.type), get_device_name=lambda device: "Instinct" if hip else "GeForce",
                                    max_memory_allocated=lambda device: 12345, is_available=lambda: here, is_initialized=lambda: here, current_device=lambda: 0)
        self.version = SimpleNamespace(hip=hip)
        self.device = lambda kind, index=None: SimpleNamespace(type=kind, index=index)
        if kind not in ("cuda", "cpu", "hpu"):
            setattr(self, kind, SimpleNamespace(synchronize=lambda: self.waited.append(kind)))
        activities = SimpleNamespace(CPU="CPU", CUDA="CUDA", XPU="XPU")
        supported = {"CPU"} | ({"CUDA"} if here else {"XPU"} if kind == "xpu" else set())
        self.profiler = SimpleNamespace(ProfilerActivity=activities, supported_activities=lambda: supported)

    def optimizer(self, kind):
        return SimpleNamespace(param_groups=[{"params": [SimpleNamespace(device=self.device("cpu")), SimpleNamespace(device=self.device(kind, 0))]}])

    def get_num_threads(self):
        return 4


@pytest.mark.parametrize("kind,hip,activities", [("cuda", None, ["CPU", "CUDA"]), ("cuda", "6.2.41133", ["CPU", "CUDA"]), ("mps", None, ["CPU"]), ("xpu", None, ["CPU", "XPU"])])
def test_devices_are_waited_for_and_recorded(kind, hip, activities):
    torch = FakeTorch(kind, hip)
    device = Device(torch, torch.optimizer(kind))
    device.synchronize()
    assert device.kind == kind and torch.waited == [kind] and record._activities(torch) == activities
    words = device.describe()
    assert words["kind"] == kind and words.get("rocm", False) is (hip is not None) and ("peak_bytes" in words) == (kind == "cuda")


def test_a_device_without_a_wait_is_none_to_wait_for():
    torch = FakeTorch("hpu")
    Device(torch, torch.optimizer("hpu")).synchronize()
    assert torch.waited == []


def test_without_an_optimizer_the_gpu_in_use_is_the_device():
    assert Device(FakeTorch("cuda", "6.2"), None).kind == "cuda" and Device(FakeTorch("mps"), None).kind == "cpu"


@pytest.mark.parametrize("bytes_taken,kind", [(0, "cpu"), (4096, "mps")])
def test_without_an_optimizer_an_apple_gpu_that_holds_something_is_the_device(bytes_taken, kind):
    torch = FakeTorch("mps")
    torch.backends = SimpleNamespace(mps=SimpleNamespace(is_available=lambda: True))
    torch.mps.current_allocated_memory = lambda: bytes_taken
    device = Device(torch, None)
    device.synchronize()
    assert device.kind == kind and torch.waited == (["mps"] if bytes_taken else [])


@pytest.mark.parametrize("kind", ["cuda", "mps"])
def test_a_window_waits_at_its_ends_alone(kind):
    torch = FakeTorch(kind)
    session = SimpleNamespace(device=Device(torch, torch.optimizer(kind)), steps=0, result={}, note=lambda text: None)
    window = Undisturbed(4)
    window.begin(session)
    assert [window.boundary(session) for _ in range(4)] == [False, False, False, True] and torch.waited == [kind]
    window.end(session)
    assert torch.waited == [kind, kind] and session.result["undisturbed"]["steps"] == 4


@pytest.mark.parametrize("kind,goes", [("cuda", True), ("mps", False)])
def test_the_profiler_is_taken_out_of_a_gpu_alone(kind, goes, monkeypatch):
    monkeypatch.delenv("TEARDOWN_CUPTI", raising=False)
    torch = FakeTorch(kind)
    assert cupti.may_go(SimpleNamespace(device=Device(torch, torch.optimizer(kind)), torch=torch, note=None)) is goes


def test_graphs_are_looked_for_among_dead_proxies():
    class Thing:
        pass
    thing, torch = Thing(), FakeTorch("cuda")
    proxy = [weakref.proxy(thing)]              # noqa: F841
    del thing
    torch.cuda.CUDAGraph = type("CUDAGraph", (), {})
    assert not cupti._has_graphs(torch)
    graph = torch.cuda.CUDAGraph()              # noqa: F841
    assert cupti._has_graphs(torch)


def test_the_device_is_called_when_the_profiler_goes(monkeypatch, tmp_path):
    """It lets go inside of such a call, and a program that ends without one would wait for that."""
    monkeypatch.setattr(cupti, "PAUSE_S", 0)
    torch = FakeTorch("cuda")
    for goes, calls in ((False, 0), (True, cupti.CALLS)):
        one = record.Record("stacks", 1)
        one.profiler = SimpleNamespace(__exit__=lambda *why: None, export_chrome_trace=lambda path: None)
        one.goes, one.first, one.steps, one.started, one.ended = goes, 1, 1, 0, 1
        torch.waited.clear()
        one.end(SimpleNamespace(device=Device(torch, torch.optimizer("cuda")), out=str(tmp_path), result={"recorded": []}))
        assert len(torch.waited) == calls


# ---- parts of the trial, with the real torch and a device that is said to be another

torch = pytest.importorskip("torch")
from hone_hook.trial import evidence, loaders, optimizers, precision, state, switches    # noqa: E402


class OnMps(torch.Tensor):
    """Has no doubles, as a tensor of an Apple GPU has none; on the CPU it is a tensor like any other."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function is torch.Tensor.double or any(a is torch.float64 for a in [*args, *(kwargs or {}).values()]):
            raise TypeError("Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64.")
        out = super().__torch_function__(function, types, args, kwargs or {})
        return out.as_subclass(torch.Tensor) if function is torch.Tensor.cpu else out


def on_mps(*values):
    return torch.tensor(values).as_subclass(OnMps)


def test_losses_and_gradients_are_read_without_doubles_on_the_device():
    with pytest.raises(TypeError):
        on_mps(1.0).double()
    parameter = SimpleNamespace(grad=on_mps(3.0, 4.0))
    assert evidence._norms([parameter]).tolist() == [5.0] and evidence._loss(on_mps(2.5)) == 2.5
    assert optimizers._length([on_mps(3.0, 4.0), on_mps(12.0)]) == 13.0


def facts(kind, **more):
    root = SimpleNamespace(autocast=False, dtypes={torch.float32}, kinds={kind}, images=False, was_compiled=False, has=lambda kinds: False)
    parameter = SimpleNamespace(device=kind, dtype=torch.float32)
    return SimpleNamespace(**dict(dict(device=SimpleNamespace(kind=kind, device=None), roots=[root], parameters=[parameter], heap=SimpleNamespace(scalers=[], modules=[]),
                                       optimizers=[], compiled=set(), ranks_here=1, has_convolutions=lambda: True, tapes=SimpleNamespace(all=lambda: [])), **more))


def test_what_an_apple_gpu_does_not_have_is_not_tried():
    here = facts("mps")
    reasons = {s.name: s.applies(here) for s in switches.make_switches() if s.name not in ("compile", "foreach-optimizer", "fused-optimizer", "set-to-none")}
    assert reasons["tf32"] == "only GPUs have it" and reasons["autocast-bf16"] == "not known to help on mps" and reasons["autocast-f16"] == "only for a GPU"
    assert None not in reasons.values(), reasons


def test_an_amd_gpu_has_16_bits_but_no_tf32(monkeypatch):
    here = facts("cuda")
    monkeypatch.setattr(torch.version, "hip", "6.2", raising=False)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: True)
    assert precision.Tf32().applies(here) == "this GPU does not have it"
    assert precision.Autocast().applies(here) is None and precision.AutocastF16().applies(here) is None
    assert loaders.PinnedMemory().applies(here) == "no DataLoader was read"


def test_random_numbers_of_an_apple_gpu_are_saved(monkeypatch):
    drawn = {"state": torch.tensor([1], dtype=torch.uint8)}
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(torch.mps, "get_rng_state", lambda: drawn["state"].clone())
    monkeypatch.setattr(torch.mps, "set_rng_state", lambda s: drawn.update(state=s))
    saved = state.Random([])
    drawn["state"] = torch.tensor([9], dtype=torch.uint8)
    assert not saved.equal()
    saved.restore()
    assert saved.equal() and drawn["state"].item() == 1
