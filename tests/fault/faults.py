"""Places faults in runs of hone and looks at what is left: faults.py PLACE LIBRARY HONE TRACE [options] [SCENARIO...]

For each scenario a folder is prepared once, and a run without a fault counts the calls of each kind by the path on which they come
(place.c). Then the command runs on a copy of the folder once for each place, where that call fails. Places are the first, a middle
and the last call of every path; with --every, the Nth call for every N. The following must hold:
 - it ends by an exit code that is documented, 3 where it fails, because it was the machine; never by a signal but the placed SIGKILL;
 - where it fails it says so in one line;
 - what was there before can still be used, and what is there now is whole (the scenario's `after`);
 - no temporary file stays, after a kill or a fault in cleaning up itself: once the same has run again.

A run that depends on time does not take the same paths every time: a place that it did not come to is counted as not reached.
"""
import argparse
import concurrent.futures
import copy
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True          # not among the sources
from scenarios import CONFIG, SCENARIOS, Broken, Tools, leftovers, require

DEAR_KINDS = ["malloc", "heap", "full", "rename", "kill"]
KINDS = ["malloc", "heap", "abort", "write", "full", "short", "fsync", "rename", "mmap", "open", "read", "mkdir", "remove", "lock",
         "thread", "kill"]
CLEANS_UP = {"malloc", "heap", "open", "mmap", "read", "remove"}    # kinds that can hit the removal of a temporary folder itself
BUSY, TRIES = "other work on this machine decides", 3
STANDARD_OUTPUT = "cannot write to the standard output"     # on a full disk, beside what else failed


# ---- one case

def judge(t, s, folder, kind, result, said, whole):
    s = copy.copy(s)
    s.kind = kind
    require(not result["late"], "it hangs")
    killed = kind == "kill" and result["hit"]
    require(result["signal"] == (9 if killed else 0), "ended by signal %d: %s" % (result["signal"], said.strip()))
    code = None if killed else result["exit"]
    if not killed:
        require(code in (s.codes if kind != "abort" else {3}), "exit code %d: %s" % (code, said.strip()))
        lines = [line for line in said.splitlines() if line.startswith("hone: ") and line != "hone: " + STANDARD_OUTPUT]
        require(code != 3 or len(lines) == 1 or STANDARD_OUTPUT in said, "exit code 3, and it says: %r" % said)
        require(kind in CLEANS_UP or not leftovers(folder, s.root), "left behind: %s" % leftovers(folder, s.root))
    s.after(t, folder, code, whole)
    if leftovers(folder, s.root):
        s.again(t, folder)
        require(not leftovers(folder, s.root), "left behind for good: %s" % leftovers(folder, s.root))


def one_case(t, s, base, work, kind, which, whole):
    """As try_case. Where hone says that other work on the machine decides, the machine is asked again: what a fault does it does every time."""
    for _ in range(TRIES):
        done = try_case(t, s, base, work, kind, which, whole)
        if not done[2] or BUSY not in done[2]:
            break
    return done


def try_case(t, s, base, work, kind, which, whole):
    """Returns (kind, whether the place was reached, None or what is wrong)."""
    folder = os.path.join(work, "%s-%s-%s" % (s.name, kind, which.replace(":", "-")))
    shutil.copytree(base, folder)
    hit = True
    try:
        result, said = t.place_fault(folder, kind, which, s.command)
        hit = result["hit"]
        if hit:
            judge(t, s, folder, kind, result, said, whole)
        return kind, hit, None
    except (Broken, subprocess.TimeoutExpired) as e:
        return kind, hit, "%s: %s %s: %s" % (s.name, kind, which, e)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def places(kind, counts, every):
    """Where a fault of the kind can be: numbers of calls, or PATH:K. A heap has no paths, and path 0 is any that is not known."""
    if every or kind == "heap":
        return [str(n + 1) for n in range(counts[kind])]
    return ["%s:%d" % (path, k) for of, path, calls in sorted(counts["paths"]) if of == kind
            for k in (range(1, calls + 1) if path == "0" else sorted({1, (calls + 1) // 2, calls}))]


def choose(found, cases, first):
    """All (None), or some, spread evenly from the first on."""
    if cases is None or cases >= len(found):
        return found
    return [found[i] for i in sorted({(first + i * len(found) // cases) % len(found) for i in range(cases)})]


def part_of(cases, part):
    """Every Nth of them from the Kth on, for K/N: a long run in several."""
    k, n = part
    return cases[k - 1::n]


def how_many(s, kind, options):
    if not options.cases:
        return None
    if s.dear:
        return 1 if kind in DEAR_KINDS else 0
    return options.cases * (4 if kind == "malloc" else 1)


def raise_peaks(cache):
    """What was measured on a busy machine a step may prove wrong, and then every run would measure it again, for seconds."""
    path = os.path.join(cache, "hone/peaks.json")
    if not os.path.exists(path):
        return
    with open(path) as f:
        peaks = json.load(f)
    for entry in peaks["entries"]:
        for key in ("gemm_gflops", "bf16_gflops"):
            entry[key] *= 10
        entry["copy_gb_per_s"] = [10 * x for x in entry["copy_gb_per_s"]]
    with open(path, "w") as f:
        json.dump(peaks, f)


def prepare(t, s, base):
    os.mkdir(base)
    with open(os.path.join(base, "tiny.yaml"), "w") as f:
        f.write(CONFIG)
    shutil.copy(t.trace, os.path.join(base, "trace.json"))
    s.prepare(t, base)
    if s.name != "cache":           # what a first run remembers, kernels above all, is there: bits depend on it
        warm = base + ".warm"
        raise_peaks(os.path.join(base, "cache"))
        shutil.copytree(base, warm)
        t.run(warm, *s.command)
        shutil.rmtree(os.path.join(base, "cache"), ignore_errors=True)
        if os.path.isdir(os.path.join(warm, "cache")):
            shutil.copytree(os.path.join(warm, "cache"), os.path.join(base, "cache"))
        shutil.rmtree(os.path.join(base, "run"), ignore_errors=True)
        s.prepare(t, base)
        shutil.rmtree(warm)


def tell(s, kinds, counts, done):
    for kind in kinds:
        paths = [path for of, path, _ in counts["paths"] if of == kind]
        of_kind = [d for d in done if d[0] == kind]
        print("%-9s %-7s %6d calls %5d paths %6d placed %4d not reached %4d broken"
              % (s.name, kind, counts[kind], len(paths), sum(bool(hit) for _, hit, _ in of_kind),
                 sum(not hit for _, hit, _ in of_kind), sum(bool(b) for _, _, b in of_kind)))


def scenario(t, s, work, options, pool):
    base = os.path.join(work, s.name)
    if s.longer and not options.cases:
        s.command = s.longer
    prepare(t, s, base)
    plain = base + ".plain"
    shutil.copytree(base, plain)
    counts, said = t.place_fault(plain, "none", "0", s.command)
    require(counts["exit"] in s.codes - {3} and not counts["signal"], "%s without a fault: %s %s" % (s.name, counts, said))
    whole = s.remember(plain)
    kinds = [kind for kind in options.kinds if not s.kinds or kind in s.kinds]
    cases = [(kind, which) for kind in kinds
             for which in choose(places(kind, counts, options.every), how_many(s, kind, options), options.first)]
    cases = part_of(cases, options.part)
    started = time.monotonic()
    done, broken = [], 0
    for d in pool.map(lambda c: one_case(t, s, base, work, c[0], c[1], whole), cases):
        done.append(d)
        broken += bool(d[2])
        if d[2] and broken <= options.show:
            print("  " + d[2], flush=True)
    tell(s, kinds, counts, done)
    print("%-9s %.0f s" % (s.name, time.monotonic() - started))
    sys.stdout.flush()
    shutil.rmtree(base)
    shutil.rmtree(plain)
    return broken


def main():
    parser = argparse.ArgumentParser()
    for name in ("place", "library", "hone", "trace"):
        parser.add_argument(name)
    parser.add_argument("scenarios", nargs="*", help="default: all")
    parser.add_argument("--cases", type=int, default=0, help="a sample: so many of each kind, spread evenly; 0: all")
    parser.add_argument("--every", action="store_true", help="the Nth call for every N, not calls by their paths")
    parser.add_argument("--first", type=int, default=0, help="shifts which ones")
    parser.add_argument("--part", type=lambda text: [int(x) for x in text.split("/")], default=[1, 1], help="K/N: every Nth place from the Kth on")
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=KINDS)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--show", type=int, default=20, help="how many of the broken cases are told")
    options = parser.parse_intermixed_args()
    t = Tools(options.place, options.library, options.hone, options.trace)
    work = tempfile.mkdtemp(prefix="hone-faults-")
    try:
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            broken = sum(scenario(t, s(), work, options, pool) for s in SCENARIOS
                         if not options.scenarios or s.name in options.scenarios)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
