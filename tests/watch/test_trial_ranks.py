"""--try in programs of several ranks: all flip together and agree, and each is put back. Programs of torchrun over gloo, and ranks as threads over one store."""
import json
import os
import subprocess
import sys
import threading

import pytest

torch = pytest.importorskip("torch")

from trial_driver import Program, Session, Trial                       # noqa: E402
from hone_hook.trial import gates, ranks                               # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
HOOK = os.path.join(HERE, "..", "..", "src", "watch", "hook")


# ---- two ranks of torchrun

def run(folder, steps, *words, watch=None, **settings):
    environment = dict(os.environ, OMP_NUM_THREADS="1", KINETO_LOG_LEVEL="99", **settings)
    if watch:
        environment.update(HONE_WATCH=json.dumps(watch), PYTHONPATH=HOOK, PYTHONDONTWRITEBYTECODE="1")
    os.makedirs(str(folder))
    done = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", os.path.join(HERE, "trained", "ranks.py"),
                           str(steps), str(folder), *words], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=900)
    assert done.returncode == 0, done.stderr
    return [[line.split()[2] for line in open(os.path.join(str(folder), "losses.%d" % rank))] for rank in range(2)], done


def tried(tmp_path, steps, *words, settings={}, **options):
    watch = {"out": str(tmp_path / "out"), "warmup": 3, "steps": 3, "stop": False, "try": dict({"seconds": 0, "pairs": 3, "turn_steps": 2}, **options)}
    os.makedirs(watch["out"])
    losses, done = run(tmp_path / "tried", steps, *words, watch=watch, **settings)
    results = []
    for rank in range(2):
        with open(os.path.join(watch["out"], "rank%d" % rank, "watch.json")) as f:
            results.append(json.load(f))
    return losses, [r["trial"] for r in results], done


def check_same(plain, losses, trials):
    for before, after, trial in zip(plain, losses, trials):
        first, behind = trial["first"], trial["first"] + trial["steps"]
        n = min(len(after) - behind, len(before) - first)
        assert n >= 20 and after[:first] == before[:first] and after[behind:behind + n] == before[first:first + n]


def check_alike(trials):
    assert [t["status"] for t in trials] == ["done", "done"] and [t["restored"] for t in trials] == [True, True], trials
    assert trials[0]["switches"] == trials[1]["switches"] and trials[0]["steps"] == trials[1]["steps"]


@pytest.mark.parametrize("words", [[], ["views", "saves"]])
def test_ranks_flip_together_and_go_on_as_without(tmp_path, words):
    """A checkpoint of rank 0 alone falls into the trial of the second program."""
    plain, _ = run(tmp_path / "plain", 60, *words)
    switches = ["set-to-none", "foreach-optimizer", "ddp-large-buckets", "ddp-small-buckets"]
    losses, trials, done = tried(tmp_path, 250, *words, switches=switches)
    check_alike(trials)
    for entry in trials[0]["switches"]:
        assert entry["state"] in ("kept", "no gain") or entry["why"] == "another of its kind won", entry
    check_same(plain, losses, trials)
    assert done.stderr.count("watch: --try: set-to-none") == 1


@pytest.mark.parametrize("breaks,why", [("forward", "rank 1: RuntimeError: no kernel"), ("backward", "rank 0: RuntimeError: no kernel for gradients")])
def test_what_breaks_on_a_rank_is_taken_back_on_all(tmp_path, breaks, why):
    plain, _ = run(tmp_path / "plain", 60)
    losses, trials, _ = tried(tmp_path, 200, settings={"BREAKS": breaks}, switches=["autocast-bf16", "set-to-none"])
    check_alike(trials)
    assert trials[0]["switches"][0]["state"] == "failed" and trials[0]["switches"][0]["why"] == why
    assert trials[0]["switches"][1]["state"] in ("kept", "no gain")
    check_same(plain, losses, trials)


# ---- ranks as threads

def together(n, work):
    """work(ranks) in a thread for each of n ranks; what they returned, by rank."""
    store, found = torch.distributed.HashStore(), [None] * n

    def one(rank):
        try:
            found[rank] = work(ranks.Ranks(store, rank, n))
        except Exception as error:
            found[rank] = error
    threads = [threading.Thread(target=one, args=(rank,)) for rank in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return found


def test_all_hear_what_all_say():
    def work(mine):
        return [mine.gather([mine.rank, i]) for i in range(5)]
    found = together(3, work)
    assert found == [[[[0, i], [1, i], [2, i]] for i in range(5)]] * 3


def test_who_leaves_is_missed_in_that_round_and_meets_the_others_in_the_next():
    def work(mine):
        mine.gather(0)
        if mine.rank == 1:
            mine.leave("no memory")
        else:
            with pytest.raises(ranks.Apart, match="rank 1: no memory"):
                mine.gather(0)
        return mine.gather(mine.rank)
    assert together(2, work) == [[0, 1], [0, 1]]


def test_who_comes_late_is_told_that_nobody_waits():
    gone = threading.Event()

    def work(mine):
        if mine.rank == 0:
            with pytest.raises(ranks.Apart, match="0 s were waited"):
                mine.gather(0, 0.2)
            gone.set()
            return True
        gone.wait()
        mine.gather(0)
        with pytest.raises(ranks.Apart, match="rank 0: not all ranks come to the same step"):
            mine.gather(0)
        return True
    assert together(2, work) == [True, True]


def test_ranks_without_a_group_are_not_tried(tmp_path):
    program = Program()
    program.step()
    session, trial = Session([program.optimizer], tmp_path), Trial({})
    session.world_size = 2
    trial.begin(session)
    assert trial.boundary(session)
    trial.end(session)
    assert session.result["trial"]["status"] == "not tried" and "no process group" in session.result["trial"]["why"]


def test_the_worst_gate_of_all_ranks_stands():
    def gate(value, limit):
        return {"gate": "losses", "pass": value <= limit, "value": value, "limit": limit}
    assert gates.worst_of([[gate(1, 10)], [gate(4, 5)], [gate(2, 10)]]) == [gate(4, 5)]
    assert gates.worst_of([[gate(1, 10)], [gate(6, 5)]])[0]["pass"] is False and gates.worst_of([[], []]) == []
    assert gates.worst_of([[], [gate(6, 5)]]) == [gate(6, 5)], "a rank that could not even start"
