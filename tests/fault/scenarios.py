"""What is run with faults, and what must hold after it: one class for each scenario (see faults.py)."""
import os
import re
import shutil
import subprocess
import sys

CONFIG = """\
model: {arch: gpt, dim: 16, layers: 1, heads: 2, seq: 8}
data: {chars: 4000, workers: 0}
train: {batch_size: 2, steps: 4, lr: 1.0e-3, warmup: 1}
eval: {every: 2, batches: 1}
checkpoint: {every: 2, keep: 1}
log: {every: 1}
verify: {steps: 2, seconds: 0.005, min_gain: -1}
threads: 2
"""
LEFTOVER = re.compile(r"tmp|\.old|\.hone-new|~$|^\.[a-z]+\.json\.")
IN_THE_MIDST = {"rename", "remove", "kill"}     # kinds that can hit between the names of two files of a report
MACHINE_SAYS = {0, 3}


class Broken(Exception):
    pass


def require(condition, words):
    if not condition:
        raise Broken(words)


def files(folder):
    """The contents of all files below a folder, by relative path."""
    found = {}
    for root, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(root, name)
            with open(path, "rb") as f:
                found[os.path.relpath(path, folder)] = f.read()
    return found


def fixture(name):
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fixtures", name)


def leftovers(folder, root=""):
    folder = os.path.join(folder, root)
    return [os.path.relpath(os.path.join(root, name), folder)
            for root, folders, names in os.walk(folder) for name in folders + names if LEFTOVER.search(name)]


class Tools:
    def __init__(self, place, library, hone, trace):
        self.place, self.library, self.hone, self.trace = map(os.path.abspath, (place, library, hone, trace))

    def run(self, folder, *command):
        """Runs hone in a folder, with the cache that is in it; returns its exit code and what it said on standard error."""
        done = subprocess.run([self.hone, *command], cwd=folder, env=self.environment(folder), stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=300)
        return done.returncode, done.stderr.decode(errors="replace")

    def must(self, folder, *command):
        code, said = self.run(folder, *command)
        require(code == 0, "afterwards `hone %s` ends with %d: %s" % (" ".join(command), code, said.strip()))

    @staticmethod
    def environment(folder):
        return {**os.environ, "LC_ALL": "C", "XDG_CACHE_HOME": os.path.join(folder, "cache")}

    def place_fault(self, folder, kind, which, command):
        """The same with a fault; returns what place says, as a dictionary in which "paths" is a list of (kind, path, calls), and
        standard error."""
        result = folder + ".result"
        done = subprocess.run([self.place, kind, which, self.library, result, self.hone, *command], cwd=folder,
                              env=self.environment(folder), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, timeout=300)
        if done.returncode == 77:
            print("skipped: tracing a process is not allowed here")
            sys.exit(77)
        require(done.returncode == 0, "the driver failed: %s" % done.stderr.decode(errors="replace"))
        with open(result) as f:
            words = f.readline().split()
            paths = [(kind, path, int(calls)) for kind, path, calls in map(str.split, f)]
        os.remove(result)
        return {**dict(zip(words[::2], map(int, words[1::2]))), "paths": paths}, done.stderr.decode(errors="replace")


# ---- scenarios

class Scenario:
    """prepare fills the folder; command is what runs with the fault; after looks at what it left, given the exit code and the files
    of a run without a fault (`whole`)."""
    codes = MACHINE_SAYS
    dear = False                # takes long: fewer cases in a sample
    kinds = None                # not None: these alone
    longer = None               # not None: the command where all faults are placed, and not a sample
    root = ""                   # the part of the folder where nothing temporary may stay

    def prepare(self, t, folder):
        pass

    def again(self, t, folder):
        """Runs once more without a fault, as a user would who met one."""
        t.must(folder, *self.command)


def final_state(folder):
    return {name: data for name, data in files(os.path.join(folder, "run/checkpoints/step-00000004")).items()
            if name.endswith(".safetensors")}


def has_checkpoint(folder):
    path = os.path.join(folder, "run/checkpoints")
    return os.path.isdir(path) and any(name.startswith("step-") for name in os.listdir(path))


class Train(Scenario):
    """A new run: two saves, the second removes the first. Kernels are chosen by rule: which one is faster the machine decides, and a run that
    cannot read what was chosen before (Cache) may end with other bits."""
    name = "train"
    command = ["train", "tiny.yaml", "--out", "run", "--set", "optimize.autotune=off"]

    def after(self, t, folder, code, whole):
        if code == 0:
            require(final_state(folder) == whole, "ended with 0, and the last checkpoint is not that of a run without the fault")
        if has_checkpoint(folder):
            t.must(folder, "generate", "run", "--tokens", "2")
            self.again(t, folder)

    def again(self, t, folder):
        if not has_checkpoint(folder):
            shutil.rmtree(os.path.join(folder, "run"), ignore_errors=True)
            return
        t.must(folder, *self.command, *([] if "--resume" in self.command else ["--resume"]))
        require(final_state(folder) == self.whole(folder), "resumed, it does not end as a run without the fault")

    def whole(self, folder):
        return self.reference

    def remember(self, folder):
        self.reference = final_state(folder)
        return self.reference


class Resume(Train):
    """Goes on from a checkpoint, which must stay loadable whatever happens."""
    name = "resume"
    command = [*Train.command, "--resume"]

    def prepare(self, t, folder):
        t.must(folder, *Train.command, "--steps", "2")

    def after(self, t, folder, code, whole):
        require(has_checkpoint(folder), "the checkpoint that was there is gone")
        super().after(t, folder, code, whole)


class Products(Train):
    """Products that the BLAS library makes. Where it finds no memory it aborts."""
    name = "products"
    command = ["train", "tiny.yaml", "--out", "run", "--set", "model.dim=64", "--set", "model.seq=64", "--set",
               "train.batch_size=8", "--set", "optimize.autotune=off"]
    kinds = ["malloc", "heap", "abort"]


class Report(Scenario):
    """A command that writes a folder where a report was: afterwards it is the old one or a new one, and every file is whole."""
    out = "report"
    other = ["--steps", "3"]            # makes the old report another one than the new

    def prepare(self, t, folder):
        t.run(folder, *self.command, *self.other)
        self.old = self.read(folder)

    def read(self, folder):
        """Names without the time and the machine in them; of two files of events the newer."""
        return {re.sub(r"tfevents.*", "tfevents", name): data for name, data in sorted(files(os.path.join(folder, self.out)).items())}

    def events(self, folder):
        return [name for name in files(os.path.join(folder, self.out)) if "tfevents" in name and not LEFTOVER.search(name)]

    def remember(self, folder):
        new = self.read(folder)
        differ = {name for name in new if new[name] != self.old.get(name)}
        require(differ, "the old report and the new one are the same: nothing can be told")
        return {"names": set(new), "differ": differ}

    def after(self, t, folder, code, whole):
        now = {name: data for name, data in self.read(folder).items() if not LEFTOVER.search(name)}
        require(set(now) == whole["names"], "the files of the report are %s, expected %s" % (sorted(now), sorted(whole["names"])))
        changed = {name for name in now if now[name] != self.old.get(name)}
        require(not changed or changed >= whole["differ"] or self.kind in IN_THE_MIDST,
                "some files of the report are old and some are new: %s" % sorted(changed))
        require(code not in (0, 1) or changed, "ended with %s, and the report is the old one" % code)
        for name, data in now.items():
            require(not name.endswith(".html") or b"</html>" in data[-16:], "%s is not whole" % name)
            require(not name.endswith(".json") or data.strip()[-1:] in (b"}", b"]"), "%s is not whole" % name)
        if len(self.events(folder)) > 1:        # the old one could not be looked at or removed: the next report does it
            self.again(t, folder)
            require(len(self.events(folder)) == 1, "an old file of events stays for good: %s" % self.events(folder))


class Analyze(Report):
    name = "analyze"
    command = ["analyze", "trace.json", "--out", "report"]
    other = ["--step-ms", "0.5"]


class Profile(Report):
    name = "profile"
    command = ["profile", "tiny.yaml", "--out", "report", "--set", "eval.batches=2", "--steps", "2", "--json"]


class Simulate(Report):
    """Many ranks, from what was measured on one."""
    name = "simulate"
    command = ["simulate", "--from", "measured.json", "--net", "5,100", "--intra", "3,400", "--ranks", "2,4", "--out", "report", "--json"]
    other = ["--gpus-per-node", "2"]

    def prepare(self, t, folder):
        shutil.copy(fixture("simulate/report.json"), os.path.join(folder, "measured.json"))
        super().prepare(t, folder)


class Tune(Report):
    name = "tune"
    command = ["tune", "tiny.yaml", "--budget", "0.3", "--out", "report"]
    longer = ["tune", "tiny.yaml", "--budget", "0.5", "--out", "report"]    # moves are tried, unless the machine is very busy
    other = ["--set", "verify.regression=0.06"]             # the same config, by other words for its judge
    dear = True


class Verify(Report):
    name = "verify"
    command = ["verify", "tiny.yaml", "tiny.yaml", "--out", "report"]
    codes = {0, 1, 3}

    def again(self, t, folder):
        code, said = t.run(folder, *self.command)
        require(code in (0, 1), "afterwards verify ends with %d: %s" % (code, said))


class Compare(Scenario):
    """Two reports are compared, which says the same as without a fault or nothing."""
    name = "compare"
    command = ["verify", "before.json", "after.json"]
    codes = {0, 1, 3}

    def prepare(self, t, folder):
        for name in ("before.json", "after.json"):
            shutil.copy(os.path.join(os.path.dirname(__file__), "../fuzz/seeds/reports/whole.json"), os.path.join(folder, name))

    def remember(self, folder):
        return files(folder)

    def after(self, t, folder, code, whole):
        require(code != 1, "a report is slower than itself")
        require(files(folder) == whole, "comparing changed a folder")


class Generate(Scenario):
    name = "generate"
    command = ["generate", "run", "--tokens", "3"]

    def prepare(self, t, folder):
        t.must(folder, "train", "tiny.yaml", "--steps", "2", "--out", "run")

    def remember(self, folder):
        return files(os.path.join(folder, "run"))

    def after(self, t, folder, code, whole):
        require(files(os.path.join(folder, "run")) == whole, "generating changed the folder of the run")


class Eval(Generate):
    name = "eval"
    command = ["eval", "run", "--json"]


class Show(Compare):
    """The whole of a config."""
    name = "config"
    command = ["config", "tiny.yaml", "--set", "model.layers=2"]

    def prepare(self, t, folder):
        pass


class Made(Scenario):
    """A command that makes a file or a folder out of others: all of it is there afterwards or, where it fails, nothing. After a kill what has a name is
    whole, and unless all was in place the same command succeeds again."""
    out = "made"

    def prepare(self, t, folder):
        self.inputs(t, folder)
        self.before = self.given(folder)

    def given(self, folder):
        """What a command must leave alone."""
        return {name: data for name, data in files(folder).items() if name.split("/")[0] not in (self.out, "cache", "." + self.out + ".hone-tmp")}

    def made(self, folder):
        """Without what is not seen: locks, and what is on its way."""
        path = os.path.join(folder, self.out)
        if os.path.isfile(path):
            with open(path, "rb") as f:
                return {"": f.read()}
        return {name: data for name, data in files(path).items() if not any(part.startswith(".") for part in name.split("/"))}

    def remember(self, folder):
        require(self.made(folder), "nothing was made")
        return self.made(folder)

    def after(self, t, folder, code, whole):
        now = self.made(folder)
        require(self.given(folder) == self.before, "what was given is changed: %s" % sorted(set(self.given(folder)) ^ set(self.before)))
        require(code != 0 or now == whole, "ended with 0, and %s is not that of a run without the fault" % self.out)
        require(code != 3 or now in ({}, whole), "ended with 3, and there is %s" % sorted(now))     # whole: it could not be told
        require(all(whole.get(name) == data for name, data in now.items()), "not whole: %s" % sorted(n for n in now if whole.get(n) != now[n]))
        if not now:
            self.again(t, folder)
            require(self.made(folder) == whole, "made again, it is another one")

    def again(self, t, folder):
        if self.made(folder):               # whole files that a kill left between two names: a user looks, and clears them away
            shutil.rmtree(os.path.join(folder, self.out))
        t.must(folder, *self.command)


class Export(Made):
    """Weights for others, with a tokenizer."""
    name = "export"
    command = ["export", "imported", "--to", "hf", "--out", "made"]

    def inputs(self, t, folder):
        model = os.path.join(folder, "model")
        for name in ("model", "imported"):
            shutil.rmtree(os.path.join(folder, name), ignore_errors=True)
        shutil.copytree(fixture("hf/gpt2"), model)
        shutil.copy(fixture("bpe/gpt2.json"), os.path.join(model, "tokenizer.json"))
        t.must(folder, "import", "model", "--out", "imported")


class ExportTorch(Export):
    name = "torch"
    command = ["export", "imported", "--to", "torch", "--out", "made"]


class Import(Export):
    """Weights and a tokenizer of others."""
    name = "import"
    command = ["import", "model", "--out", "made"]

    def made(self, folder):
        """A manifest has the checksums of its files, and the time."""
        return {name: data for name, data in super().made(folder).items() if not name.endswith("manifest.json")}

    def after(self, t, folder, code, whole):
        if self.made(folder):
            t.must(folder, "generate", "made", "--tokens", "2")
        super().after(t, folder, code, whole)


class Tokenize(Made):
    """Several shards, and the tokenizer beside them."""
    name = "tokenize"
    command = ["tokenize", "text.txt", "--tokenizer", "tokenizer.json", "--out", "made", "--shard", "1000", "--threads", "2"]

    def inputs(self, t, folder):
        shutil.copy(fixture("bpe/text.txt"), os.path.join(folder, "text.txt"))
        shutil.copy(fixture("bpe/gpt2.json"), os.path.join(folder, "tokenizer.json"))


class Tokenizer(Tokenize):
    """A tokenizer that is made from text."""
    name = "tokenizer"
    command = ["tokenizer", "train", "text.txt", "--vocab", "300", "--out", "made", "--threads", "2"]


class Cache(Scenario):
    """Kernels are timed and remembered for the first time. What was remembered is a hint: failing to keep it is no failure."""
    name = "cache"
    command = ["train", "tiny.yaml", "--out", "run", "--set", "model.dim=8"]
    dear = True
    root = "cache"

    def remember(self, folder):
        return None

    def after(self, t, folder, code, whole):
        pass

    def again(self, t, folder):
        t.must(folder, "train", "tiny.yaml", "--set", "model.dim=24", "--out", "other")


SCENARIOS = [Train, Resume, Products, Generate, Analyze, Profile, Verify, Compare, Simulate, Eval, Show, Import, Export, ExportTorch, Tokenize, Tokenizer, Tune, Cache]
