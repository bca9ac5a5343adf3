"""hone watch on programs that torch.compile has a part of, the step of the optimizer too: they print the same with and without being watched, the compiler makes the same graphs and
breaks none of them, and steps are found. What torch itself cannot do fails alike."""
import json
import os
import subprocess
import sys

import pytest

from test_programs import HONE, check, program, run, watched

FEW = ("--warmup", "5", "--steps", "10")


@pytest.mark.parametrize("part,optimizer,backend,graph", [
    ("step", "Own", "eager", "full"), ("update", "Own", "aot_eager", "full"), ("step", "AdamW", "aot_eager", "any"), ("all", "SGD", "eager", "any"), ("all", "Own", "aot_eager", "any"),
    ("forward", "AdamW", "eager", "full")])
def test_compiled(tmp_path, part, optimizer, backend, graph):
    command = program("compiled.py", part, optimizer, backend, graph)
    plain = run(command, tmp_path)
    done, report = watched(command, tmp_path)
    rank = report["watched"]["ranks"][0]
    assert done.stdout.startswith(plain.stdout), (plain.stdout, done.stdout)
    assert "hone: watch:" not in done.stderr, done.stderr
    assert rank["finished"] and rank["steps"] == 39 and rank["undisturbed"]["steps"] == 20 and rank["backwards_per_step"] == 1 and rank["optimizer_calls_per_step"] == 1


def test_clock_of_a_compiled_step(tmp_path):
    check(program("compiled.py", "step", "Own", "eager", "full"), tmp_path)


@pytest.mark.skipif(not os.environ.get("CXX") and not any(os.access(os.path.join(p, "g++"), os.X_OK) for p in os.environ["PATH"].split(":")), reason="inductor needs a C++ compiler")
def test_inductor(tmp_path):
    command = program("compiled.py", "step", "Own", "inductor", "full")
    plain = run(command, tmp_path)
    done, report = watched(command, tmp_path, *FEW)
    assert done.stdout.startswith(plain.stdout) and report["watched"]["ranks"][0]["steps"] == 24


def test_what_torch_cannot_compile_fails_alike(tmp_path):
    """Torch's own optimizers break their graph themselves."""
    command = program("compiled.py", "step", "AdamW", "eager", "full")
    plain = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    done = subprocess.run([HONE, "watch", "--out", "report", "--", *command], capture_output=True, text=True, cwd=tmp_path)
    assert (plain.returncode, plain.stdout) == (done.returncode, done.stdout) and plain.returncode != 0
    assert "Unsupported" in plain.stderr and "Unsupported" in done.stderr


@pytest.mark.parametrize("part,optimizer,graph", [("step", "Own", "full"), ("forward", "AdamW", "full"), ("all", "AdamW", "any")])
def test_trial(tmp_path, part, optimizer, graph):
    """Switches stay away from what is compiled, and nothing of the trial breaks a graph."""
    done, report = watched(program("compiled.py", part, optimizer, "eager", graph, "1000000"), tmp_path, *FEW, "--stop", "--try", "--switches", "foreach-optimizer,set-to-none")
    with open(str(tmp_path / "report" / "recording" / "rank0" / "watch.json")) as f:
        trial = json.load(f)["trial"]
    assert report["watched"]["ranks"][0]["finished"] and trial["status"] == "done" and trial["restored"] is True, trial
    foreach = next(s for s in trial["switches"] if s["name"] == "foreach-optimizer")
    assert (foreach["state"] == "not tried") == (part != "forward") and (part == "forward" or "compiled" in foreach["why"] or optimizer == "Own")


LOOP = """
import torch
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def train_step():
    model(torch.ones(2, 8)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()

@torch.compile(backend="eager")
def train():
    for i in range(60):
        train_step()

train()
print("done")
"""


def test_a_compiled_loop_gets_a_word(tmp_path):
    (tmp_path / "loop.py").write_text(LOOP)
    done = subprocess.run([HONE, "watch", "--out", "report", "--", sys.executable, "loop.py"], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.startswith("done\n") and (done.returncode == 0 or "--step-call" in done.stderr), done.stderr


NAMED = """
import torch
torch.manual_seed(0)
model = torch.nn.Linear(8, 8)

def body(x):
    return model(x).square().mean()

@torch.compile(backend="eager", fullgraph=True)
def loss(x):
    return body(x) * 2

def train_step(x):
    value = loss(x)
    value.backward()
    model.zero_grad()
    return value

for i in range(60):
    value = train_step(torch.ones(2, 8))
print("loss %r" % value.item())
"""


@pytest.mark.parametrize("function,found", [("train_step", True), ("body", False)])
def test_a_named_function_inside_of_a_graph(tmp_path, function, found):
    """It cannot be counted there, and must not break it."""
    (tmp_path / "named.py").write_text(NAMED)
    plain = run([sys.executable, "named.py"], tmp_path)
    done = subprocess.run([HONE, "watch", "--step-call", "__main__:" + function, "--out", "report", "--", sys.executable, "named.py"], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.startswith(plain.stdout) and (done.returncode == 0) == found, done.stderr
    assert found or "was never called" in done.stderr
