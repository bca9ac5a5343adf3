"""The trial in this process: state and batches come back, switches go on and off, gates hold, and what breaks is switched back."""
import importlib.util
import os
import random
import signal
import subprocess
import sys
import time
from math import exp

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

from trial_driver import Net, Program, drive, run                       # noqa: E402
from hone_hook.trial import batches, cpus, gates, heap, loaders, measure, optimizers, settings_parts, stage, state, switches    # noqa: E402
from hone_hook.trial.switch import Switch                               # noqa: E402


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


# ---- state

def same(a, b):
    return len(a) == len(b) and all(state.same_bits(x, y) for x, y in zip(a, b))


@pytest.mark.parametrize("where", ["device", "host"])
def test_state_comes_back_bit_for_bit(where):
    program, generator, mine = Program(), torch.Generator().manual_seed(1), np.random.default_rng(2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(program.optimizer, 50)
    for _ in range(3):
        program.step()
        schedule.step()
    saved = state.State([program.optimizer], heap.Heap(), where=where)
    before = program.numbers()
    rates = (program.optimizer.param_groups[0]["lr"], schedule.last_epoch)
    drawn = [torch.rand(1).item(), torch.rand(1, generator=generator).item(), np.random.rand(), mine.random(), random.random()]
    for _ in range(4):
        program.step()
        schedule.step()
    program.optimizer.state[program.model.conv.weight]["more"] = torch.ones(1)
    assert not saved.equal() and not same(before, program.numbers())
    saved.restore()
    assert saved.equal() and same(before, program.numbers())
    assert rates == (program.optimizer.param_groups[0]["lr"], schedule.last_epoch)
    assert "more" not in program.optimizer.state[program.model.conv.weight]
    assert drawn == [torch.rand(1).item(), torch.rand(1, generator=generator).item(), np.random.rand(), mine.random(), random.random()]


def lbfgs(model):
    """A step of it, on some batch."""
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=3, history_size=4)

    def step():
        x = torch.randn(8, 5)

        def closure():
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            return loss
        return optimizer.step(closure).item()
    return optimizer, step


def test_lists_in_the_state_of_an_optimizer_come_back():
    """LBFGS: directions are appended to a list, and the first of them let go."""
    torch.manual_seed(0)
    optimizer, step = lbfgs(torch.nn.Linear(5, 5))
    for _ in range(3):
        step()
    saved, entry = state.State([optimizer], heap.Heap()), next(iter(optimizer.state.values()))
    before, n = [d.clone() for d in entry["old_dirs"]], entry["n_iter"]
    after = [step() for _ in range(3)]
    entry["old_dirs"][0].add_(1)
    assert not saved.equal() and entry["n_iter"] > n
    saved.restore()
    assert saved.equal() and entry["n_iter"] == n and same(before, entry["old_dirs"])
    assert [step() for _ in range(3)] == after


def test_what_an_optimizer_counts_in_itself_comes_back():
    optimizer, step = lbfgs(torch.nn.Linear(5, 5))
    optimizer.mine = 3
    step()
    saved = state.State([optimizer], heap.Heap())
    optimizer.mine += 1
    assert not saved.equal()
    saved.restore()
    assert saved.equal() and optimizer.mine == 3


class Rebinds(torch.nn.Module):
    """A step binds other tensors to its names: DINO's center, an average of weights."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))
        self.register_buffer("center", torch.zeros(3))
        self.average = torch.zeros(3)
        self.history = []
        with torch.inference_mode():
            self.metric = torch.zeros(3)            # which nobody may write to outside of it

    def step(self):
        self.center = self.center * 0.9 + self.weight.detach()
        self.average = self.average + 1
        self.weight = torch.nn.Parameter(self.weight.detach() * 2)
        self.history.append(len(self.history))


def test_what_a_step_binds_anew_comes_back():
    model = Rebinds()
    optimizer, history = torch.optim.SGD([model.weight], lr=0.1), model.history
    model.step()
    saved, objects = state.State([optimizer], heap.Heap()), (model.center, model.average, model.weight)
    numbers = [t.detach().clone() for t in objects]
    for _ in range(3):
        model.step()
    assert not saved.equal()
    saved.restore()
    assert saved.equal() and all(a is b for a, b in zip(objects, (model.center, model.average, model.weight)))
    assert same(numbers, objects)
    assert model.history is history and history == [0]         # whoever holds the list still does


def test_a_trial_leaves_nothing_behind_where_the_state_cannot_be_put_back(tmp_path, monkeypatch):
    program = Program()

    def restore(self):
        raise RuntimeError("a tensor that nobody may write")
    with monkeypatch.context() as m:
        m.setattr(state.Tensors, "restore", restore)
        result = drive(program, tmp_path)
    assert result["status"] == "ended early" and result["restored"] is False
    assert "_compiled_call_impl" not in vars(program.model) or program.model._compiled_call_impl is None
    assert sum(1 for _ in iter(program.loader)) == 8         # an epoch ends
    for _ in range(20):
        program.step()


def test_nan_is_equal_to_itself_and_minus_zero_to_no_zero():
    nan, zero = torch.tensor([float("nan"), 0.0]), torch.tensor([float("nan"), -0.0])
    assert state.same_bits(nan, nan.clone()) and not state.same_bits(nan, zero)


def test_state_that_does_not_fit_is_refused(monkeypatch):
    program = Program()
    program.step()
    monkeypatch.setattr(state, "_host_bytes_free", lambda: 1000)
    with pytest.raises(state.DoesNotFit, match="the host has 0.0 GB free"):
        state.State([program.optimizer], heap.Heap())


# ---- batches

def read(iterator, n):
    return [next(iterator).tolist() for _ in range(n)]


def test_batches_come_again_and_once_more_at_the_end():
    plain = batches._BaseDataLoaderIter.__next__
    iterator = iter(torch.utils.data.DataLoader(torch.arange(20), batch_size=2))
    tapes = batches.Tapes(lambda error: False)
    tapes.begin_survey()
    assert read(iterator, 2) == [[0, 1], [2, 3]]
    tapes.begin_trial(1.0)
    first = read(iterator, 3)
    tapes.rewind()
    assert read(iterator, 3) == first == [[4, 5], [6, 7], [8, 9]]
    tapes.begin_drain()
    assert [b.tolist() for b in iterator] == [[4, 5], [6, 7], [8, 9], [10, 11], [12, 13], [14, 15], [16, 17], [18, 19]]
    assert batches._BaseDataLoaderIter.__next__ is plain


def test_the_end_of_an_epoch_waits_for_the_end_of_the_trial():
    iterator = iter(torch.utils.data.DataLoader(torch.arange(6), batch_size=2))
    tapes = batches.Tapes(lambda error: False)
    tapes.begin_survey()
    next(iterator)
    tapes.begin_trial(1.0)
    assert read(iterator, 5) == [[2, 3], [4, 5], [2, 3], [4, 5], [2, 3]]
    tapes.begin_drain()
    assert [b.tolist() for b in iterator] == [[2, 3], [4, 5]]


def test_a_batch_that_the_program_writes_into_comes_back_clean():
    value = {"x": torch.ones(2), "list": [np.ones(2), 3], "word": "a"}
    kept = batches.keep(value)
    given = kept.give()
    given["x"].mul_(5)
    given["list"][0][:] = 7
    given["list"].append(1)
    del given["word"]
    again = kept.give()
    assert again["x"].tolist() == [1, 1] and again["list"][0].tolist() == [1, 1] and len(again["list"]) == 2 and again["word"] == "a"


AHEAD = """
def ahead(loader):
    iterator = iter(loader)
    current = next(iterator)
    while True:
        try:
            following = next(iterator)
        except StopIteration:
            yield current
            return
        yield current
        current = following
"""


def test_a_program_that_reads_ahead_has_its_order_too():
    """accelerate, and so the Trainer of transformers, holds one batch in its hand when a turn ends."""
    inside = {"__name__": "accelerate.data_loader"}
    exec(AHEAD, inside)
    read_on = inside["ahead"](torch.utils.data.DataLoader(torch.arange(20), batch_size=2))
    tapes = batches.Tapes(lambda error: False)
    tapes.begin_survey()
    assert read(read_on, 2) == [[0, 1], [2, 3]]
    tapes.begin_trial(1.0)
    for _ in range(3):
        tapes.rewind()
        first = read(read_on, 2)
        tapes.close_turn()
        assert first + read(read_on, 1) == [[4, 5], [6, 7], [8, 9]]
    tapes.begin_drain()
    assert [b.tolist() for b in read_on] == [[4, 5], [6, 7], [8, 9], [10, 11], [12, 13], [14, 15], [16, 17], [18, 19]]


def test_an_iterator_that_was_set_back_forgets_its_tape():
    """persistent_workers: one iterator for all epochs."""
    loader = torch.utils.data.DataLoader(torch.arange(8), batch_size=2)
    iterator = iter(loader)
    tapes = batches.Tapes(lambda error: False)
    tapes.begin_survey()
    next(iterator)
    tapes.begin_trial(1.0)
    read(iterator, 2)
    tapes.begin_drain()
    iterator._reset(loader)
    assert [b.tolist() for b in iterator] == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_an_evaluation_whose_loader_keeps_its_workers_ends():
    """One iterator for all of them: the survey has seen it end."""
    train, val = (torch.utils.data.DataLoader(torch.arange(n), batch_size=2, num_workers=w, persistent_workers=w > 0) for n, w in ((64, 0), (6, 1)))
    iterator = iter(train)
    tapes = batches.Tapes(lambda error: False)
    tapes.begin_survey()
    read(iterator, 2)
    assert len(list(val)) == 3
    tapes.begin_trial(1.0)
    for _ in range(3):
        tapes.rewind()
        read(iterator, 2)
        assert [b.tolist() for b, _ in zip(val, range(9))] == [[0, 1], [2, 3], [4, 5]]
    tapes.begin_drain()


class Counting(torch.utils.data.Sampler):
    """Every epoch has another order, and how many indices were taken is kept for a checkpoint."""

    def __init__(self):
        self.epoch, self.taken, self.generator = 0, 0, torch.Generator().manual_seed(7)

    def __iter__(self):
        self.epoch += 1
        for i in torch.randperm(8, generator=self.generator).tolist():
            self.taken += 1
            yield i

    def __len__(self):
        return 8


class Once(Counting):
    def __iter__(self):
        return self

    def __next__(self):
        raise StopIteration


def test_a_sampler_is_what_it_was():
    sampler = torch.utils.data.BatchSampler(Counting(), 2, False)
    state_before = sampler.sampler.generator.get_state()
    again = loaders._Again(sampler)
    assert len(again) == 4 and sampler.sampler.epoch == sampler.sampler.taken == 0
    assert torch.equal(sampler.sampler.generator.get_state(), state_before)
    assert loaders._is_used_up(torch.utils.data.BatchSampler(Once(), 2, False)) and not loaders._is_used_up(sampler)


def test_the_allocators_settings_stay_beside_segments(monkeypatch):
    monkeypatch.delenv("PYTORCH_ALLOC_CONF", raising=False)
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "backend:native,max_split_size_mb:128,expandable_segments:False,roundup_power2_divisions:[256:1,512:2]")
    assert settings_parts.allocator_settings(True) == "expandable_segments:True,max_split_size_mb:128,roundup_power2_divisions:[256:1,512:2]"
    monkeypatch.delenv("PYTORCH_CUDA_ALLOC_CONF")
    assert settings_parts.allocator_settings(False) == "expandable_segments:False"


# ---- numbers

def test_the_gain_is_of_pairs():
    """The machine's speed comes and goes by half, and one turn was hit alone."""
    a = [2.0, 3.1, 1.9, 2.0, 3.2, 2.0, 2.9, 2.1] * 2
    b = [x / (2.02 if i % 2 else 1.98) for i, x in enumerate(a)]
    value, low, high = measure.ratio(a[:15] + [9.0], b)
    assert value == pytest.approx(2, rel=0.02) and 1.97 < low < value < high < 2.1


@pytest.mark.parametrize("n,rank", [(5, 1), (6, 3), (8, 6), (10, 11), (20, 61), (25, 101)])
def test_intervals_are_those_of_the_table(n, rank):
    """Of Wilcoxon's signed ranks, one part of ten outside: the largest sum that is too small, and one."""
    assert measure._rank(n) == rank


def itself(rng, seconds):
    """A step against itself on a machine whose speed drifts, and where something else runs now and then."""
    a, b, drift = [], [], 0.0
    while not measure.is_enough(a, b, measure.PAIRS_FEWEST, 0.3 * len(a), seconds):
        drift = 0.9 * drift + rng.gauss(0, 0.05)
        for side in (a, b):
            side.append(exp(drift + rng.gauss(0, 0.015) + (rng.random() < 0.1) * rng.expovariate(5)))
    return measure.ratio(a, b)


@pytest.mark.parametrize("seconds", [2.4, 5.0])
def test_one_interval_of_ten_does_not_hold_the_truth(seconds):
    """Also where turns went on while it was wide."""
    rng = random.Random(1)
    without = sum(low > 1 or high < 1 for _, low, high in (itself(rng, seconds) for _ in range(300)))
    assert 15 <= without <= 42, without


def test_what_others_take_is_not_what_the_program_takes():
    stat = "cpu  9 9 9 9\ncpu0 100 1 20 500 7 2 3 4 0 0\ncpu1 50 0 0 900\ncpu12 1000 0 0 0 0 0 0 0\nintr 5 6\n"
    assert cpus.busy_ticks(stat, {0, 1}) == 130 + 50
    ticks = "%d (a) b) S %d 1 1 0 -1 0 0 0 0 0 %d %d %d %d 20 0 1"
    stats = {pid: ticks % (pid, parent, *times) for pid, parent, times in
             ((1, 0, (5, 5, 900, 900)), (10, 1, (40, 2, 3, 1)), (11, 10, (7, 0, 0, 0)), (12, 11, (1, 1, 0, 0)), (20, 1, (500, 0, 0, 0)))}
    assert cpus.tree_ticks(stats, 10) == 46 + 7 + 2


def test_others_are_seen():
    """A program that nobody of us started: its parent has ended."""
    loop = "import os, time\nif os.fork(): os._exit(0)\nprint(os.getpid(), flush=True)\nend = time.time() + 20\nwhile time.time() < end: pass"
    started = subprocess.Popen([sys.executable, "-c", loop], stdout=subprocess.PIPE, text=True)
    pid = int(started.stdout.readline())
    started.wait()
    try:
        others = cpus.Others()
        time.sleep(1)
        assert others.share() > 0.25 / len(cpus.allowed())
    finally:
        os.kill(pid, signal.SIGKILL)


def test_turns_are_long_enough():
    assert measure.steps_of_turn(0.0001) == 64 and measure.steps_of_turn(0.01) == 10 and measure.steps_of_turn(0.05) == 5 and measure.steps_of_turn(1.0) == 2


def turns(losses, norms):
    return [stage.Turn(1.0, [loss], norms, 0) for loss in losses]


def test_gates_hold_what_is_equal_and_stop_what_is_not():
    a = turns([2.0, 2.0, 2.0], [1.0, 3.0])
    assert not gates.failure(gates.judge("exact", a, turns([2.00001] * 3, [1.0, 3.0001]), 0))
    assert "losses differ" in gates.failure(gates.judge("exact", a, turns([2.01] * 3, [1.0, 3.0]), 0))
    assert "gradients differ" in gates.failure(gates.judge("bf16", a, turns([2.0] * 3, [1.0, 4.0]), 0))
    assert "not finite" in gates.failure(gates.judge("bf16", a, turns([float("nan")] * 3, [1.0, 3.0]), 0))


def test_gates_are_wider_where_batches_differ():
    a, b = turns([2.0, 2.4, 1.8, 2.2], [1.0]), turns([2.3, 1.9, 2.2, 2.1], [1.0])
    assert not gates.failure(gates.judge("exact", a, b, 0))
    assert gates.failure(gates.judge("exact", a, turns([9.0, 9.2, 9.1, 8.9], [1.0]), 0))


def test_memory_above_the_limit_fails():
    a, b = turns([1.0] * 3, [1.0]), turns([1.0] * 3, [1.0])
    for turn in a:
        turn.peak_bytes = 8e9
    for turn in b:
        turn.peak_bytes = 9e9
    assert not gates.failure(gates.judge("exact", a, b, 20e9))
    assert "instead of 8.00" in gates.failure(gates.judge("exact", a, b, 10e9))


# ---- switches

FUSED = "cpu" in optimizers._fused_devices()    # from torch 2.4 on


def settings_now():
    return (torch.get_num_threads(), torch.get_float32_matmul_precision(), torch.backends.cudnn.benchmark, torch.optim.Optimizer.zero_grad,
            torch.nn.Module.zero_grad, torch.nn.Module.__call__, torch.autograd.backward, torch.save, torch.nn.Module.train, torch.nn.Module.state_dict,
            batches._BaseDataLoaderIter._next_data)


SWITCHES = [
    ("autocast-bf16", {}, lambda p: p.model._compiled_call_impl is not None and p.model.head(torch.ones(1, 4)).dtype == torch.float32),
    pytest.param("fused-optimizer", {"foreach": False}, lambda p: p.optimizer.param_groups[0]["fused"], marks=pytest.mark.skipif(not FUSED, reason="no fused kernels here")),
    ("foreach-optimizer", {}, lambda p: p.optimizer.param_groups[0]["foreach"]),
    ("set-to-none", {"set_to_none": False}, lambda p: (p.optimizer.zero_grad(set_to_none=False), p.model.conv.weight.grad)[1] is None),
    ("channels-last", {}, lambda p: p.model.conv.weight.is_contiguous(memory_format=torch.channels_last)),
]


@pytest.mark.parametrize("name,settings,is_on", SWITCHES)
def test_a_switch_goes_on_and_off(tmp_path, name, settings, is_on):
    program, seen = Program(**settings), []
    before, layout = settings_now(), program.model.conv.weight.stride()

    def look(trial, step):
        if trial.stage and trial.stage.state:
            on = any(s.name == name for s in trial.stage.on)
            seen.append(on)
            if on or step % 5 == 0:
                held = [p.grad for p in program.model.parameters()]
                assert bool(is_on(program)) == on or (name == "autocast-bf16" and not on)
                for p, grad in zip(program.model.parameters(), held):
                    p.grad = grad
    result = drive(program, tmp_path, seen=look, switches=[name])
    assert result["status"] == "done", result
    entry = result["switches"][0]
    assert entry["state"] in ("kept", "no gain") and entry["turns"] >= 3, entry
    assert all(g["pass"] for g in entry["gates"]) and {g["gate"] for g in entry["gates"]} >= {"losses", "gradients"}
    assert True in seen and False in seen
    assert result["restored"] is True and settings_now() == before
    assert program.model.conv.weight.stride() == layout and "_compiled_call_impl" not in vars(program.model)


def test_threads_go_back(tmp_path):
    torch.set_num_threads(2)
    program, seen = Program(), set()
    result = drive(program, tmp_path, seen=lambda trial, step: seen.add(torch.get_num_threads()), switches=["threads-half"])
    assert result["status"] == "done" and seen == {1, 2} and torch.get_num_threads() == 2


def test_workers_stand_in_and_leave(tmp_path):
    program = Program()
    result = drive(program, tmp_path, switches=["loader-workers"])
    entry = result["switches"][0]
    assert entry["state"] in ("kept", "no gain"), entry
    assert result["restored"] is True
    import multiprocessing
    assert not multiprocessing.active_children()


def test_what_wins_is_kept_and_written(tmp_path, monkeypatch):
    """By a clock that goes half as fast under the switch."""
    now = {"s": 0.0, "step": 1.0}
    for module in (run, stage):
        monkeypatch.setattr(module, "perf_counter", lambda: now["s"])

    class Timed(Net):
        def forward(self, x):
            now["s"] += now["step"]
            return super().forward(x)

    class Faster(Switch):
        name, rule = "faster", "host-bound"

        def on(self, facts):
            now["step"] = 0.5

        def off(self, facts):
            now["step"] = 1.0

        def lines(self, facts):
            return ["faster = True"]

        def settings(self, facts):
            return "use_threads(1)"
    monkeypatch.setattr(switches, "TABLE", [Faster])
    program = Program()
    program.model = Timed()
    program.optimizer = torch.optim.AdamW(program.model.parameters())
    result = drive(program, tmp_path, pairs=4, turn_steps=2)
    entry = result["switches"][0]
    assert entry["state"] == "kept" and entry["speedup"] == entry["low"] == entry["high"] == 2 and entry["a_ms"] == 1000, result
    assert result["total"]["speedup"] == 2
    assert result["settings_file"] == str(tmp_path / "hone_settings.py") and "faster = True" in (tmp_path / "patch.md").read_text()
    assert now["step"] == 1.0


# ---- what goes wrong

def with_switch(monkeypatch, **parts):
    kind = type("Bad", (Switch,), dict({"name": "bad", "rule": "none", "on": lambda self, facts: None, "off": lambda self, facts: None}, **parts))
    monkeypatch.setattr(switches, "TABLE", [kind])


def test_a_switch_that_breaks_the_loss_is_switched_back(tmp_path, monkeypatch):
    program = Program()
    with_switch(monkeypatch, on=lambda self, facts: setattr(program.model.drop, "p", 0.9), off=lambda self, facts: setattr(program.model.drop, "p", 0.1))
    result = drive(program, tmp_path)
    entry = result["switches"][0]
    assert entry["state"] == "failed" and "differ by" in entry["why"], entry
    assert result["status"] == "done" and result["restored"] is True and program.model.drop.p == 0.1 and "settings_file" not in result


@pytest.mark.parametrize("place", ["forward", "backward"])
def test_an_exception_under_a_switch_is_not_the_programs(tmp_path, monkeypatch, place):
    program, broken = Program(), {"on": False}

    class Breaks(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            if broken["on"] and place == "forward":
                raise RuntimeError("no kernel")
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            if broken["on"]:
                raise RuntimeError("no kernel")
            return grad
    inner = program.model.forward
    program.model.forward = lambda x: Breaks.apply(inner(x))
    with_switch(monkeypatch, on=lambda self, facts: broken.update(on=True), off=lambda self, facts: broken.update(on=False))
    result = drive(program, tmp_path)
    entry = result["switches"][0]
    assert entry["state"] == "failed" and "no kernel" in entry["why"], entry
    assert result["restored"] is True and not broken["on"]


def test_a_switch_that_does_not_go_on_has_failed(tmp_path, monkeypatch):
    def on(self, facts):
        raise RuntimeError("no room")
    with_switch(monkeypatch, on=on)
    result = drive(Program(), tmp_path)
    assert result["switches"][0]["state"] == "failed" and result["switches"][0]["why"] == "RuntimeError: no room" and result["restored"] is True


def test_an_exception_in_the_trial_leaves_the_program_as_it_was(tmp_path, monkeypatch, capsys):
    program = Program()
    monkeypatch.setattr(measure, "ratio", lambda a, b: 1 / 0)
    before = settings_now()
    result = drive(program, tmp_path, switches=["foreach-optimizer"])
    assert result["status"] == "ended early" and "ZeroDivisionError" in result["why"] and result["restored"] is True
    assert settings_now() == before and "the program goes on as it was" in capsys.readouterr().err
    program.step()


def test_an_own_exception_of_the_program_passes(tmp_path):
    program, trials = Program(), []

    def fail(trial, step):
        trials[:] = [trial]
        if trial.stage and trial.stage.state and step > 8:
            program.model(torch.ones(1))
    with pytest.raises(RuntimeError):
        drive(program, tmp_path, seen=fail, switches=["foreach-optimizer"])
    trials[0].drop(trials[0].session)
    assert trials[0].result["status"] == "ended early" and trials[0].result["restored"] is True


def winning(name, **parts):
    return type(name, (Switch,), dict({"name": name, "rule": "none", "on": lambda self, facts: None, "off": lambda self, facts: None,
                                       "lines": lambda self, facts: ["fast()"], "settings": lambda self, facts: "use_threads(1)"}, **parts))


def test_winners_that_break_together_are_not_written(tmp_path, monkeypatch):
    """Each has won, and the program fails with both on."""
    monkeypatch.setattr(switches, "TABLE", [winning("first"), winning("second")])
    monkeypatch.setattr(measure, "ratio", lambda a, b: (1.5, 1.4, 1.6))
    compare = run.Trial._compare

    def broken(self, a, b, kind, switch):
        found = yield from compare(self, a, b, kind, switch)
        if len(b) - len(a) == 2:
            raise run.Broke("no memory for both")
        return found
    monkeypatch.setattr(run.Trial, "_compare", broken)
    program = Program()
    result = drive(program, tmp_path)
    assert [e["state"] for e in result["switches"]] == ["kept", "kept"] and result["restored"] is True, result
    assert result["status"] == "ended early" and result["why"] == "all that won, together: no memory for both"
    assert not result["total"]["gates"][0]["pass"] and "settings_file" not in result and not list(tmp_path.iterdir())
    program.step()


def test_settings_that_cannot_be_written_are_no_end(tmp_path, monkeypatch):
    monkeypatch.setattr(switches, "TABLE", [winning("first")])
    monkeypatch.setattr(measure, "ratio", lambda a, b: (1.5, 1.4, 1.6))
    trials = []
    result = drive(Program(), tmp_path / "missing", seen=lambda trial, step: trials.append(trial))
    assert result["status"] == "ended early" and result["restored"] is True and "settings_file" not in result
    assert any("could not be written" in note for note in trials[0].session.notes), trials[0].session.notes


def test_a_trial_that_is_cut_short_says_what_it_measured(tmp_path, monkeypatch):
    """The first switch has won, the program ends while the second one is tried."""
    class Cut(Exception):
        pass

    monkeypatch.setattr(switches, "TABLE", [winning("first"), winning("second")])
    monkeypatch.setattr(measure, "ratio", lambda a, b: (1.5, 1.4, 1.6))
    trials = []

    def cut(trial, step):
        trials[:] = [trial]
        if len(trial.entries) == 2:
            raise Cut
    with pytest.raises(Cut):
        drive(Program(), tmp_path, seen=cut)
    trials[0].drop(trials[0].session)
    result = trials[0].result
    assert [e["state"] for e in result["switches"]] == ["kept", "cut short"] and result["restored"] is True, result
    assert result["settings_file"] == str(tmp_path / "hone_settings.py") and "use_threads(1)" in (tmp_path / "hone_settings.py").read_text()
    assert "cut short before all were tried together" in (tmp_path / "patch.md").read_text()


class WithLoss(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x, y):
        return torch.nn.functional.cross_entropy(self.inner(x), y)


class Counted(Program):
    """Batches by a counter of the program's own, which goes on in a trial."""

    def __init__(self, inside, **settings):
        super().__init__(**settings)
        self.pool = [(torch.randn(8, 3, 6, 6), torch.randint(0, 3, (8,))) for _ in range(5)]
        self.at, self.inside, self.whole = 0, inside, WithLoss(self.model)

    def step(self):
        x, y = self.pool[self.at % 5]
        self.at += 1
        loss = self.whole(x, y) if self.inside else torch.nn.functional.cross_entropy(self.model(x), y)
        self.optimizer.zero_grad(set_to_none=self.set_to_none)
        loss.backward()
        self.optimizer.step()
        return loss.item()


@pytest.mark.parametrize("inside", [True, False])
def test_batches_by_a_counter_are_made_equal_or_make_the_limit_wider(tmp_path, inside):
    result = drive(Counted(inside, set_to_none=False), tmp_path, switches=["set-to-none"])
    entry = result["switches"][0]
    assert result["same_batches"] == "by inputs" and entry["state"] in ("kept", "no gain"), result
    assert (result["noise"]["losses"] == 0) == inside
    losses = next(g for g in entry["gates"] if g["gate"] == "losses")
    assert (losses["value"] == 0 and losses["limit"] == 1e-5) == inside


def test_a_switch_that_is_not_there_is_named(tmp_path):
    result = drive(Program(), tmp_path, switches=["fused"])
    assert result["status"] == "not tried" and result["why"].startswith("there is no switch 'fused'; there are loader-workers, ") and result["restored"] is True


# ---- hone_settings.py

KEPT = [
    {"name": "autocast-bf16", "settings": 'use_autocast({"Net": 1}, "cpu", torch.bfloat16)', "speedup": 1.5, "low": 1.4, "high": 1.6, "lines": ["a"]},
    {"name": "foreach-optimizer", "settings": 'use_optimizer(["AdamW"], foreach=True, fused=False)', "speedup": 1.2, "low": 1.1, "high": 1.3, "lines": ["b"]},
    {"name": "set-to-none", "settings": "use_set_to_none()", "speedup": 1.1, "low": 1.0, "high": 1.2, "lines": ["c"]},
    {"name": "loader-workers", "settings": "use_loader(num_workers=1)", "speedup": 1.1, "low": 1.0, "high": 1.2, "lines": ["d"]},
]


def test_settings_do_the_same_when_imported(tmp_path, monkeypatch):
    from hone_hook.trial import settings
    for kind, name in ((torch.optim.AdamW, "__init__"), (torch.optim.Optimizer, "zero_grad"), (torch.nn.Module, "zero_grad"), (torch.nn.Module, "__call__"),
                       (torch.utils.data.DataLoader, "__init__")):
        monkeypatch.setattr(kind, name, getattr(kind, name))            # put back afterwards
    settings.write(str(tmp_path), KEPT, {"speedup": 2.0, "low": 1.9, "high": 2.1})
    spec = importlib.util.spec_from_file_location("hone_settings", tmp_path / "hone_settings.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    program, seen = Program(set_to_none=False), []
    program.model.head.register_forward_hook(lambda m, i, o: seen.append(o.dtype))
    program.step()
    assert seen == [torch.bfloat16] and program.loader.num_workers == 1
    assert program.optimizer.param_groups[0]["foreach"] is True
    program.optimizer.zero_grad(set_to_none=False)
    assert program.model.head.weight.grad is None
    assert "x 2.000" in (tmp_path / "patch.md").read_text()
    program.iterator = None
