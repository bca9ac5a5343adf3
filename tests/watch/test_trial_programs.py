"""Whole programs under --try: what they print after the trial is what they would have printed without it, bit for bit."""
import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

torch = pytest.importorskip("torch")

HERE = os.path.dirname(os.path.abspath(__file__))
HOOK = os.path.join(HERE, "..", "..", "src", "watch", "hook")
TRY = {"seconds": 0, "pairs": 3, "turn_steps": 2}


def run(program, steps, *words, watch=None):
    environment = dict(os.environ, OMP_NUM_THREADS="1", KINETO_LOG_LEVEL="99")
    if watch:
        environment.update(HONE_WATCH=json.dumps(watch), PYTHONPATH=HOOK, PYTHONDONTWRITEBYTECODE="1")
    done = subprocess.run([sys.executable, os.path.join(HERE, "trained", program), str(steps)] + list(words), env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return [line.split()[2:] for line in done.stdout.splitlines() if line.startswith("loss")], done


def tried(tmp_path, program, steps, *words, **options):
    watch = {"out": str(tmp_path / "out"), "warmup": 3, "steps": 3, "stop": False, "try": dict(TRY, **options)}
    os.makedirs(watch["out"])
    losses, done = run(program, steps, *words, watch=watch)
    with open(os.path.join(watch["out"], "rank0", "watch.json")) as f:
        return losses, json.load(f), done


def check_same(plain, losses, trial):
    """Up to the trial, and from its end on: there the program is where it was when the trial began."""
    first, behind = trial["first"], trial["first"] + trial["steps"]
    assert losses[:first] == plain[:first]
    n = min(len(losses) - behind, len(plain) - first)
    assert n >= 20
    assert losses[behind:behind + n] == plain[first:first + n]


PROGRAMS = [
    ("vision.py", ["set-to-none", "channels-last", "foreach-optimizer"], []),
    ("vision.py", ["set-to-none"], ["workers"]),
    ("vision.py", ["set-to-none"], ["augment"]),
    ("nano.py", ["autocast-bf16", "fused-optimizer", "foreach-optimizer"], []),
    ("gan.py", ["autocast-bf16", "fused-optimizer"], []),
    ("lbfgs.py", ["set-to-none"], []),
]


@pytest.mark.parametrize("program,switches,words", PROGRAMS)
def test_the_program_goes_on_as_without(tmp_path, program, switches, words):
    plain, _ = run(program, 50, *words)
    losses, result, _ = tried(tmp_path, program, 130, *words, switches=switches)
    trial = result["trial"]
    assert trial["status"] == "done", trial
    assert trial["restored"] is True
    assert [e["name"] for e in trial["switches"]] == [e["name"] for e in sorted(trial["switches"], key=lambda e: e["name"] not in switches)]
    for entry in trial["switches"]:
        assert entry["state"] in ("kept", "no gain") or entry["why"] in ("another of its kind won", "AdamW does not have it", "Adam does not have it"), entry
    check_same(plain, losses, trial)


def test_evaluation_and_checkpoints_see_the_weights_from_before(tmp_path):
    """The trainer validates and saves in the middle of the trial: both find what the trial began with."""
    plain, _ = run("trainer.py", 60, str(tmp_path))
    losses, result, done = tried(tmp_path, "trainer.py", 140, str(tmp_path), switches=["fused-optimizer", "foreach-optimizer"], pairs=5)
    trial = result["trial"]
    assert trial["status"] == "done" and trial["restored"], trial
    check_same(plain, losses, trial)
    inside = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("valid")][0]
    assert inside == validated_at(trial["first"], tmp_path)


def validated_at(step, tmp_path):
    """What the program would say of its weights after so many steps."""
    code = "import sys, runpy; sys.argv = ['x', '%d', %r]; t = runpy.run_path(%r)['Trainer'](%r)\nfor _ in range(%d): t.train_step()\nprint('is', t.validate())" % (
        0, str(tmp_path), os.path.join(HERE, "trained", "trainer.py"), str(tmp_path), step)
    out = subprocess.run([sys.executable, "-c", code], env=dict(os.environ, OMP_NUM_THREADS="1"), stdout=subprocess.PIPE, universal_newlines=True)
    return [line.split()[1] for line in out.stdout.splitlines() if line.startswith("is")][0]


def test_a_program_that_ends_in_the_middle(tmp_path):
    losses, result, done = tried(tmp_path, "gan.py", 40)
    assert len(losses) == 40
    assert result["trial"]["status"] == "ended early"
    assert result["trial"]["restored"] is True
    assert not [e for e in result["trial"]["switches"] if e["state"] == "running"], result["trial"]


@pytest.mark.skipif("HONE" not in os.environ, reason="HONE names the program under test")
def test_the_command_tries_all_switches_unless_some_are_named(tmp_path):
    done = subprocess.run([os.environ["HONE"], "watch", "--try", "--warmup", "3", "--steps", "3", "--out", "w", "--", sys.executable, os.path.join(HERE, "trained", "gan.py"), "40"],
                          cwd=str(tmp_path), env=dict(os.environ, OMP_NUM_THREADS="1"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=900)
    assert done.returncode == 2 and "in the middle of the trial" in done.stderr, done.stderr
    with open(str(tmp_path / "w" / "recording" / "rank0" / "watch.json")) as f:
        assert json.load(f)["trial"]["status"] == "ended early"


@pytest.mark.skipif("HONE" not in os.environ, reason="HONE names the program under test")
def test_a_program_that_is_killed_in_the_middle(tmp_path):
    """What was being tried then is told, as cut short."""
    child = subprocess.Popen([os.environ["HONE"], "watch", "--try", "--warmup", "3", "--steps", "3", "--out", "w", "--", sys.executable,
                              os.path.join(HERE, "trained", "gan.py"), "1000000"], cwd=str(tmp_path), env=dict(os.environ, OMP_NUM_THREADS="1"),
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    told = tmp_path / "w" / "recording" / "rank0" / "watch.json"
    until = time.time() + 300
    while not (told.exists() and '"state": "running"' in told.read_text()) and time.time() < until:
        time.sleep(0.1)
    os.kill(int((told.parent / "pid").read_text()), signal.SIGKILL)
    said = child.communicate(timeout=60)[1]
    assert re.search(r"^  \S+ +cut short .* the program was gone$", said, re.M) and "in the middle of the trial" in said, said


@pytest.mark.skipif("HONE" not in os.environ, reason="HONE names the program under test")
def test_the_command_shows_what_was_tried(tmp_path):
    done = subprocess.run([os.environ["HONE"], "watch", "--try", "--switches", "foreach-optimizer,tf32", "--warmup", "3", "--steps", "3", "--stop", "--out", "w", "--",
                           sys.executable, os.path.join(HERE, "trained", "vision.py"), "100000"], cwd=str(tmp_path), env=dict(os.environ, OMP_NUM_THREADS="1"),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=900)
    assert done.returncode == 0, done.stderr
    with open(str(tmp_path / "w" / "report.json")) as f:
        report = json.load(f)
    trial = report["watched"]["trial"]
    measured = {e["rule"] for e in trial["switches"] if e["state"] in ("kept", "no gain")}
    assert all((f["predicted_speedup"] is not None) == (f["rule"] in measured) for f in report["findings"])
    assert [(e["name"], "predicted_speedup" in e) for e in trial["switches"]] == [("tf32", True), ("foreach-optimizer", True)]
    assert trial["restored"] is True and trial["switches"][1]["turns"] >= 8
    shown = done.stdout[done.stdout.index("Tried"):]
    assert "foreach-optimizer" in shown and "only GPUs have it" in shown and "bit for bit" in shown
    with open(str(tmp_path / "w" / "report.md")) as f:
        assert "## Tried in the running program" in f.read()
    assert "tried" in open(str(tmp_path / "w" / "report.html")).read()
    kept = trial["switches"][1]["state"] == "kept"
    assert os.path.exists(str(tmp_path / "w" / "recording" / "hone_settings.py")) == kept == ("torch.optim.SGD(..., foreach=True)" in shown)
