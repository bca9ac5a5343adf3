"""`hone watch --try`: switches are tried in the running program, in turns, and the program is left as it was.

A turn is some steps with some switches on. Every turn begins with the same state (state.py) and the same batches (batches.py): the first step
is compared (gates.py), the last ones are timed. A switch that passes and wins stays on while the next ones are tried. The steps of a trial are
steps of the program's own loop, so its counter goes on; nothing else of it does.

The trial is written as a generator: `yield` is one step of the program.
"""
import itertools
from time import perf_counter

import torch

from . import gates, measure, settings
from .evidence import Evidence
from ..guard import say
from .looks import Looks
from .state import DoesNotFit, State
from .survey import STEPS, Facts
from .switches import make_switches

SECONDS_EACH, SECONDS_MOST = 5.0, 300.0         # of a switch, and of all of them
LEAST_GAIN = 1.01
GATED_FROM = 3                                  # pairs of turns
LOOKS_MOST = 8
NOISE_TURNS = 4
SAME = 1e-6                                     # of losses: what sums in another order may make of them


class GiveUp(Exception):
    """No (further) trial, and why."""


class Broke(Exception):
    """The program's step failed under a switch."""


class Looked(Exception):
    """The program evaluated or saved: the turn is void."""


class Turn:
    def __init__(self, step_s, losses, norms, peak_bytes):
        self.step_s, self.losses, self.norms, self.peak_bytes = step_s, losses, norms, peak_bytes


def _times(turns):
    return [[t.step_s for t in side] for side in turns]


class Trial:
    def __init__(self, options=None):
        options = options if isinstance(options, dict) else {}
        self.only = options.get("switches")
        self.seconds_each = options.get("seconds", SECONDS_EACH)
        self.pairs, self.turn_steps = options.get("pairs", measure.PAIRS_FEWEST), options.get("turn_steps")
        self.where = options.get("state")
        self.state, self.facts, self.evidence, self.looks = None, None, None, None
        self.on, self.winners, self.entries = [], [], []
        self.failure, self.looked, self.look_count = None, False, 0
        self.running, self.inside, self.done, self.closed, self.steps = False, False, False, False, 0

    # ---- what a session calls

    def begin(self, session):
        self.session = session
        self.result = session.result["trial"] = {"status": "running", "switches": self.entries}
        self.started = perf_counter()
        self.script = self._run()
        self._go_on()

    def boundary(self, session):
        self.steps += 1
        return self._go_on()

    def end(self, session):
        self._close()
        if self.steps:
            session.note("the trial took %d steps of the program's loop: its counter goes on from there, weights and data from where they were before it" % self.steps)

    def drop(self, session):
        """The program ends, or watch does, in the middle of it."""
        if self.result["status"] == "running":
            self.result.update(status="ended early", why="the program ended")
            session.note("the program ended in the middle of the trial, which takes some hundred steps: let it take more, or leave --try out")
        self._close()

    def _go_on(self):
        """Up to the next step. True: it is done."""
        if self.done:
            return True
        self.inside = True
        try:
            next(self.script)
            return False
        except StopIteration:
            self.result["status"] = "done"
        except (GiveUp, DoesNotFit) as reason:
            self.result.update(status="not tried" if not self.entries else "ended early", why=str(reason))
            say("watch: --try: %s" % reason)
        except Exception as error:
            self.result.update(status="ended early", why="%s: %s" % (type(error).__name__, error))
            say("watch: --try ended: %s: %s; the program goes on as it was" % (type(error).__name__, error))
        finally:
            self.inside = False
        self.done = True
        return True

    # ---- the whole

    def _run(self):
        if self.session.world_size > 1:
            raise GiveUp("nothing is tried in a program of several ranks")
        if not hasattr(torch.nn.Module, "_compiled_call_impl"):
            raise GiveUp("torch %s is too old for --try: it has no Module.compile" % torch.__version__)
        yield from self._survey()
        self.running = True
        switches = self._choose()
        reasons = {s: s.applies(self.facts) for s in switches}
        yield from self._turn([], self._steps_of_turn())        # wakes up what a trial wakes up
        yield from self._find_noise()
        for switch in switches:
            if reasons[switch] is not None:
                self._tell(switch, "not tried", reasons[switch])
            else:
                yield from self._try(switch)
        yield from self._all_together()

    def _choose(self):
        switches = make_switches()
        unknown = [name for name in self.only or [] if name not in [s.name for s in switches]]
        if unknown:
            raise GiveUp("there is no switch '%s'; there are %s" % (unknown[0], ", ".join(s.name for s in switches)))
        return [s for s in switches if not self.only or s.name in self.only]

    def _survey(self):
        self.facts = Facts(self.session, self._broke)
        if not self.facts.parameters:
            raise GiveUp("no optimizer is known, so it is not known what a step changes")
        self.facts.begin()
        for _ in range(STEPS):
            yield
            self.facts.step()
        self.facts.end()
        self.evidence = Evidence(self.facts.parameters, self._broke)
        self.evidence.install()
        self.looks = Looks(self.facts.parameters, self._look)
        self.looks.install()
        for root in self.facts.roots:
            root.install(self._broke)
        self.steps = 0                  # those of the survey are the program's own
        self.state = State(self.facts.optimizers, self.facts.heap, self.facts.others, self.where)
        self.result.update(first=self.session.steps, state=self.state.describe())

    def _find_noise(self):
        """Whether turns without any switch are equal; where not, models get the same inputs in the step that is compared."""
        self.noise = yield from self._noise()
        if self.noise[0] > SAME:
            for root in self.facts.roots:
                root.kept = []
            self.noise = yield from self._noise()
        self.result.update(same_batches="by inputs" if any(r.kept for r in self.facts.roots) else "yes", noise={"losses": self.noise[0], "gradients": self.noise[1]})

    def _noise(self):
        """Of turns of all lengths, so that a counter of the program stands everywhere."""
        turns = []
        for n in range(1, NOISE_TURNS + 1):
            turn = yield from self._turn([], n)
            turns.append(turn)
        noise = gates.noise_of(turns)
        if noise is None:
            raise GiveUp("losses are not finite, or steps differ in their backward passes: there is nothing to compare with")
        return noise

    def _try(self, switch):
        entry = self._tell(switch, "running")
        if any(w.group and w.group == switch.group for w in self.winners):
            entry.update(state="not tried", why="another of its kind won")
            return
        if perf_counter() - self.started > SECONDS_MOST:
            entry.update(state="not tried", why="the trial took %.0f s already" % SECONDS_MOST)
            return
        try:
            yield from self._try_gated(switch, entry)
        except Broke as error:
            self._fail(entry, str(error))
        self._say(entry)
        self.session.save()

    def _try_gated(self, switch, entry):
        entry["gates"] = self._check(switch)
        if gates.failure(entry["gates"]):
            self._fail(entry, gates.failure(entry["gates"]))
            return
        base = self.winners + ([switch.counterpart] if switch.counterpart else [])
        found = yield from self._compare(base, self.winners + [switch], switch.kind, switch)
        entry["gates"] += found.pop("gates")
        entry.update(found)
        failure = gates.failure(entry["gates"])
        if failure:
            self._fail(entry, failure)
        elif entry["low"] > 1 and entry["speedup"] >= LEAST_GAIN:
            self._keep(switch, entry)
        else:
            entry.update(state="no gain", why="it wins nothing that can be told from chance" if entry["high"] > 1 else "it is slower")

    def _keep(self, switch, entry):
        self._set([])
        entry.update(state="kept", lines=switch.lines(self.facts), settings=switch.settings(self.facts))
        self.winners.append(switch)

    def _fail(self, entry, why):
        entry.update(state="failed", why=why)

    def _all_together(self):
        kept = [e for e in self.entries if e["state"] == "kept"]
        if len(self.winners) > 1:
            base = [s.counterpart for s in self.winners if s.counterpart][:1]
            total = yield from self._compare(base, self.winners, gates.widest([s.kind for s in self.winners]), self.winners[-1])
            self.result["total"] = total
            if gates.failure(total["gates"]):
                raise GiveUp("all that won, together: " + gates.failure(total["gates"]))
        elif kept:
            self.result["total"] = {k: kept[0][k] for k in ("speedup", "low", "high", "a_ms", "b_ms", "turns", "gates")}
        self._set([])
        if kept:
            self.result["settings_file"] = settings.write(self.session.options["out"], kept, self.result["total"])

    # ---- comparing

    def _check(self, switch):
        """Its own gates, from the saved state."""
        self._rewind([])
        try:
            return switch.check(self.facts, self.state)
        except Exception as error:
            return [{"gate": "starts", "pass": False, "value": None, "limit": None, "why": "%s: %s" % (type(error).__name__, error)}]

    def _compare(self, a, b, kind, switch):
        """Turns of a and of b, one after the other; who begins changes from pair to pair."""
        turns, started, n, found = ([], []), perf_counter(), self._steps_of_turn(), []
        skip = max([s.skip for s in a + b], default=1)
        if switch.warm:
            yield from self._turn(b, switch.warm)
        for pair in itertools.count():
            for side in ((0, 1) if pair % 2 == 0 else (1, 0)):
                turn = yield from self._turn((a, b)[side], n, skip, pair)
                turns[side].append(turn)
            if pair + 1 >= GATED_FROM:
                found = gates.judge(kind, turns[0], turns[1], self._memory_total(), self.noise)
                if gates.failure(found):
                    break
            if measure.is_enough(*_times(turns), self.pairs, perf_counter() - started, self.seconds_each):
                break
        self._set([])
        return self._numbers(turns, n, found)

    def _numbers(self, turns, n, found):
        times = _times(turns)
        value, low, high = measure.ratio(*times)
        return {"speedup": value, "low": low, "high": high, "a_ms": 1e3 * measure.median(times[0]), "b_ms": 1e3 * measure.median(times[1]),
                "turns": len(times[0]), "steps_per_turn": n, "gates": found}

    def _steps_of_turn(self):
        return self.turn_steps or measure.steps_of_turn(self.facts.step_s)

    def _turn(self, arm, n, skip=1, seed=0):
        while True:
            try:
                return (yield from self._one_turn(arm, n, skip, seed))
            except Looked:
                self.look_count += 1
                if self.look_count > LOOKS_MOST:
                    raise GiveUp("the program evaluates or saves its weights too often")

    def _one_turn(self, arm, n, skip, seed):
        self._rewind(arm, seed)
        self._compare_next(True)
        yield from self._step()
        self._compare_next(False)
        losses, norms = self.evidence.seen()
        self.facts.tapes.live = True
        for _ in range(skip - 1 + self.facts.loaders.loaded_ahead()):
            yield from self._step()
        self.session.device.synchronize()
        start = perf_counter()
        for left in range(n, 0, -1):
            if left == 1:
                self.facts.tapes.close_turn()
            yield from self._step()
        self.session.device.synchronize()
        return Turn((perf_counter() - start) / n, losses, norms, self._peak())

    def _compare_next(self, is_compared):
        """The step that comes is looked at, or is one of the others."""
        self.evidence.start() if is_compared else self.evidence.pause()
        for root in self.facts.roots:
            root.calls = 0 if is_compared else None

    def _step(self):
        yield
        if self.failure is not None:
            error, self.failure = self.failure, None
            raise Broke("%s: %s" % (type(error).__name__, str(error).split("\n")[0]))
        if self.looked:
            raise Looked()

    # ---- the program's state

    def _rewind(self, arm, seed=0):
        self._set([])
        self.state.restore()
        self.facts.tapes.rewind()
        self.failure, self.looked = None, False
        self._compare_next(False)
        if seed:
            torch.manual_seed(seed)     # dropout may draw its numbers in another order under a switch: pairs differ, and so does what it does to the loss
        if self.session.device.kind == "cuda":
            torch.cuda.reset_peak_memory_stats(self.session.device.device)
        self._set(arm)

    def _set(self, arm):
        """These switches on, in this order, and no others."""
        for switch in reversed(self.on):
            switch.off(self.facts)
        self.on = []
        for switch in arm:
            self.on.append(switch)
            switch.on(self.facts)

    def _broke(self, error):
        """An exception in the program's step. Ours if something is on: it is taken off, and the turn is void."""
        if not self.running or not self.on:
            return False
        self.failure = error
        self._set([])
        return True

    def _look(self):
        if self.running and not self.inside and not self.looked:
            self._set([])
            self.state.restore()
            self.looked = True

    def _close(self):
        """The program as it was, checked bit for bit. Called once or more."""
        facts = self.facts
        if facts is None or self.closed:
            return
        self.closed = True
        facts.end()
        self._set([])
        self.running = False
        if self.state is not None:
            self.state.restore()
            self.result["restored"] = self.state.equal()
            self.state = None
        self._let_go(facts)
        self.result.update(steps=self.steps, seconds=perf_counter() - self.started)

    def _let_go(self, facts):
        for held in [self.evidence, self.looks] + facts.roots:
            if held is not None:
                held.remove()
        facts.loaders.close()
        self.result["batches_kept"] = facts.tapes.kept()
        facts.tapes.begin_drain()

    # ---- memory, words

    def _memory_total(self):
        device = self.session.device
        return torch.cuda.get_device_properties(device.device).total_memory if device.kind == "cuda" else 0

    def _peak(self):
        device = self.session.device
        return torch.cuda.max_memory_allocated(device.device) if device.kind == "cuda" else 0

    def _tell(self, switch, state, why=None):
        entry = {"name": switch.name, "rule": switch.rule, "state": state, "why": why}
        self.entries.append(entry)
        return entry

    def _say(self, entry):
        gain = "x %.3f (%.3f to %.3f), " % (entry["speedup"], entry["low"], entry["high"]) if "speedup" in entry else ""
        why = ": " + entry["why"] if entry.get("why") else ""
        say("watch: --try: %s %s%s%s" % (entry["name"], gain, entry["state"], why))
