"""hone watch on programs with the real torch, in the styles in which people write them. For each: what the program prints is the same with and without
being watched, its steps are found, and the time of a step is that of the program's own clock. Run by tests/watch/torch.sh; HONE is the program."""
import json
import os
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
HONE = os.environ["HONE"]
ATTEMPTS, CLOSE = 5, 0.02               # where a busy machine decides, the clock is asked again


def run(command, tmp_path, **environment):
    settings = dict(os.environ, OMP_NUM_THREADS="1", **environment)
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=settings, timeout=900)
    assert done.returncode == 0, done.stderr
    return done


def program(name, *args):
    return [sys.executable, os.path.join(HERE, "programs", name), *args]


def watched(command, tmp_path, *options, **environment):
    """What the program and hone printed, and report.json."""
    out = str(tmp_path / "report")
    done = run([HONE, "watch", "--out", out, *options, "--", *command], tmp_path, **environment)
    with open(os.path.join(out, "report.json")) as f:
        return done, json.load(f)


def own_step_us(path, window):
    """By the program's clock, read before the optimizer's call in each step, over the very steps of the window."""
    times = [float(t) for t in open(path).read().split()]
    first = window["first"] - 1                 # the boundary behind step `first` is behind reading number first - 1
    return (times[first + window["steps"]] - times[first]) / window["steps"] * 1e6


def of_program(output):
    """Without what Gloo of some torch says of its ranks, all at once."""
    return "".join(line for line in output.splitlines(True) if line.strip() and "peer ranks" not in line and "[Gloo]" not in line)


def check(command, tmp_path, *options, **environment):
    plain = run(command, tmp_path, **environment)
    for attempt in range(ATTEMPTS):
        clock = str(tmp_path / "clock")
        done, report = watched(command, tmp_path, *options, CLOCK=clock, **environment)
        assert of_program(done.stdout).startswith(of_program(plain.stdout))
        assert "hone: watch:" not in done.stderr, done.stderr
        rank = report["watched"]["ranks"][0]
        own = own_step_us(clock, rank["undisturbed"])
        if abs(rank["undisturbed"]["step_us"] / own - 1) < CLOSE:
            break
    else:
        pytest.fail("a step takes %.1f us by hone's clock and %.1f by its own" % (rank["undisturbed"]["step_us"], own))
    assert rank["finished"] and rank["undisturbed"]["steps"] == 20 and len(report["steps"]) == 4
    assert not [n for n in rank["notes"] if "far more than the others" not in n] and report["trace"]["has_shapes"]
    return report, rank


def test_nanogpt(tmp_path):
    report, rank = check(program("nanogpt.py"), tmp_path)
    assert rank["steps"] == 39 and rank["backwards_per_step"] == 1 and rank["optimizer_calls_per_step"] == 1
    assert any(".py(" in (f["where"] or "") for f in report["findings"]), "no finding names a line"


def test_accumulation(tmp_path):
    _, rank = check(program("nanogpt.py"), tmp_path, ACCUMULATE="4")
    assert rank["steps"] == 39 and rank["backwards_per_step"] == 4


def test_amp_with_scaler(tmp_path):
    _, rank = check(program("nanogpt.py"), tmp_path, AMP="1")
    assert rank["backwards_per_step"] == 1


@pytest.mark.parametrize("workers", ["0", "2"])
def test_vision(tmp_path, workers):
    """An epoch ends, and evaluation runs, within the windows or not: what is timed is what the program does."""
    report, rank = check(program("vision.py", workers), tmp_path)
    assert rank["steps"] == 39 and rank["optimizer_calls_per_step"] == 1


def test_trainer(tmp_path):
    """Optimizers around optimizers: a step counts once."""
    _, rank = check(program("trainer.py"), tmp_path)
    assert rank["steps"] == 39 and rank["backwards_per_step"] == 1


def test_gan(tmp_path):
    _, rank = check(program("real_gan.py"), tmp_path)
    assert rank["steps"] == 39 and rank["optimizer_calls_per_step"] == 2 and rank["backwards_per_step"] == 3


def test_ranks(tmp_path):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", os.path.join(HERE, "programs", "ranks.py")]
    report, _ = check(command, tmp_path)
    ranks = report["watched"]["ranks"]
    assert [r["rank"] for r in ranks] == [0, 1] and all(r["world_size"] == 2 and r["finished"] for r in ranks)
    assert [r["rank"] for r in report["ranks"]] == [0, 1] and report["collectives"]
    assert ranks[0]["undisturbed"]["first"] == ranks[1]["undisturbed"]["first"]


@pytest.mark.parametrize("threads", ["1", "3"])
def test_threads(tmp_path, threads):
    """None of them is the main one; they take their first steps at once."""
    command = program("threads.py", threads)
    plain = run(command, tmp_path)
    done, report = watched(command, tmp_path)
    assert done.stdout.startswith(plain.stdout) and "hone: watch:" not in done.stderr, done.stderr
    assert report["watched"]["ranks"][0]["finished"] and len(report["steps"]) + len(report["odd_steps"]) == 4      # on a busy machine one may be odd


@pytest.mark.parametrize("steps", ["33", "37"])
def test_a_thread_that_ends_while_it_is_recorded(tmp_path, steps):
    """With shapes, and with stacks: torch's profiler takes the process along where it is ended by another thread, or not at all."""
    command = program("threads.py", "1", steps)
    plain = run(command, tmp_path)
    done = subprocess.run([HONE, "watch", "--out", "report", "--", *command], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.startswith(plain.stdout) and done.returncode == (2 if steps == "33" else 0) and "hone: watch:" not in done.stderr, done.stderr


NO_ORDER = """
import random
import torch
models = [torch.nn.Linear(4, 4) for _ in range(3)]
optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in models]
for at in random.Random(0).choices(range(3), k=300):
    models[at](torch.ones(1, 4)).sum().backward()
    optimizers[at].step()
"""


def test_optimizers_in_no_order(tmp_path):
    """It takes long until it is known what a step is, and that is said."""
    (tmp_path / "no_order.py").write_text(NO_ORDER)
    done = subprocess.run([HONE, "watch", "--", sys.executable, "no_order.py"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2 and "before anything was recorded: its optimizers are called in no order" in done.stderr, done.stderr


def test_stop(tmp_path):
    done, report = watched(program("nanogpt.py"), tmp_path, "--stop", STEPS="100000")
    assert report["watched"]["ranks"][0]["stopped"] and "iter 90" not in done.stdout


COST = """
import statistics
import sys
import time
import torch

hooks = sys.modules[torch.optim.Optimizer.__module__]._global_optimizer_post_hooks
parameter = torch.nn.Parameter(torch.zeros(1))


class Nothing(torch.optim.Optimizer):
    def __init__(self):
        super().__init__([parameter], {})

    def step(self):
        pass


def nothing(optimizer):
    pass


def cost(function, calls):
    start = time.process_time()         # what others do on the machine is not in it, but how fast it is
    for _ in range(calls):
        function(optimizer)
    return (time.process_time() - start) / calls * 1e6


def turn():
    watched = cost(Nothing.step, 300)
    kept = dict(hooks)
    hooks.clear()
    plain = cost(Nothing.step, 300)
    hooks.update(kept)
    return watched - plain, cost(nothing, 3000)


optimizer = Nothing()
for _ in range(10):
    optimizer.step()
assert hooks
print(*(statistics.median(column) for column in zip(*(turn() for _ in range(100)))))
"""


def test_cost_outside_of_windows(tmp_path):
    """A boundary in the warm-up costs as much as some calls of an empty function: 0.2 microseconds. bench/watch-cost has the figures."""
    path = tmp_path / "cost.py"
    path.write_text(COST)
    done = subprocess.run([HONE, "watch", "--warmup", "1000000", "--out", "cost", "--", sys.executable, str(path)], capture_output=True, text=True,
                          cwd=tmp_path)
    assert done.returncode == 2 and "before anything was recorded" in done.stderr, done.stderr
    more, empty = map(float, done.stdout.split())
    assert more < 15 * empty, (more, empty)


@pytest.mark.parametrize("epochs,options", [("6", ()), ("6", ("--step-call", "__main__:train_step")), ("400", ("--switches", "foreach-optimizer,set-to-none,loader-workers"))])
def test_nothing_is_left_behind(tmp_path, epochs, options):
    """When all is measured the program runs its own functions, all of them the very ones it had."""
    done, report = watched(program("left.py", epochs), tmp_path, *options)
    assert report["watched"]["ranks"][0]["finished"] and done.stdout.startswith("left: []\n"), done.stdout[:2000]


PROFILED = """
import sys
import torch
from torch.profiler import ProfilerActivity, profile, schedule
torch.manual_seed(0)
first, last = int(sys.argv[1]), int(sys.argv[2])
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
own = profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1, active=2, repeat=1))
for i in range(60):
    if i == first:
        own.start()
    model(torch.ones(2, 8)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    if first <= i < last:
        own.step()
    if i == last:
        own.stop()
print("steps", sum(e.name == "aten::addmm" or e.name == "aten::linear" for e in own.events()) // 2, "weight %r" % model.weight.sum().item())
"""


@pytest.mark.parametrize("first,last,watches", [(2, 8, True), (28, 34, False), (30, 38, False), (29, 50, False)])
def test_a_profiler_of_its_own(tmp_path, first, last, watches):
    """Before the recordings it is in nobody's way; in them the program has it for itself, and watching ends."""
    (tmp_path / "profiled.py").write_text(PROFILED)
    command = [sys.executable, "profiled.py", str(first), str(last)]
    plain = run(command, tmp_path)
    done = subprocess.run([HONE, "watch", "--out", "report", "--", *command], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.startswith(plain.stdout) and plain.stdout.startswith("steps 2 "), (plain.stdout, done.stdout, done.stderr)
    assert (done.returncode == 0) == watches or "has a profiler of its own" in done.stderr, done.stderr
