"""`hone watch --try`: switches are tried in the running program, in turns, and the program is left as it was.

A turn is some steps with some switches on. Every turn begins with the same state (state.py) and the same batches (batches.py): the first step
is compared (gates.py), the last ones are timed. A switch that passes and wins stays on while the next ones are tried. The steps of a trial are
steps of the program's own loop, so its counter goes on; nothing else of it does.

The trial is written as a generator: `yield` is one step of the program.
"""
import itertools
from time import perf_counter

import torch

from ..guard import say
from . import gates, measure, settings
from .cpus import Others
from .ranks import Alone, Apart, FIRST_PATIENCE_S, LAST_PATIENCE_S, first_word, ranks_of
from .stage import Broke, GiveUp, Stage
from .state import DoesNotFit, is_sharded
from .switches import make_switches

SECONDS_EACH, SECONDS_MOST = 5.0, 300.0         # of a switch, and of all of them
LEAST_GAIN = 1.01
GATED_FROM = 3                                  # pairs of turns
NOISE_TURNS = 4
SAME = 1e-6                                     # of losses: what sums in another order may make of them
BUSY = 0.1                                      # of the CPUs: so much by others is worth a word


def _times(turns):
    return [[t.step_s for t in side] for side in turns]


class Trial:
    def __init__(self, options=None):
        options = options if isinstance(options, dict) else {}
        self.only = options.get("switches")
        self.seconds_each = options.get("seconds", SECONDS_EACH)
        self.pairs, self.turn_steps = options.get("pairs", measure.PAIRS_FEWEST), options.get("turn_steps")
        self.where = options.get("state")
        self.winners, self.entries, self.tried = [], [], []
        self.stage, self.done, self.steps = None, False, 0
        self.ranks = Alone()

    # ---- what a session calls

    def begin(self, session):
        self.session = session
        self.result = session.result["trial"] = {"status": "running", "switches": self.entries}
        self.started, self.others = perf_counter(), Others()
        self.script = self._run()
        self._go_on()

    def boundary(self, session, steps=1):
        self.steps += 1
        return self._go_on()

    def end(self, session):
        self._close()
        busy = self.others.share() if isinstance(self.ranks, Alone) else None           # other ranks are not others
        if self.entries and busy is not None and busy > BUSY:
            session.note("other programs took %.0f %% of the CPUs while switches were tried: gains are those of a machine as busy, where more workers and threads "
                         "take their share from the others" % (100 * busy))
        if self.steps:
            session.note("the trial took %d steps of the program's loop: its counter goes on from there, weights and data from where they were before it" % self.steps)

    def drop(self, session):
        """The program ends, or watch does, in the middle of it."""
        is_cut = self.result["status"] == "running"
        self._close()                   # first of all: what is written may fail
        if is_cut:
            self.result.update(status="ended early", why="the program ended")
            session.note("the program ended in the middle of the trial, which takes some hundred steps: let it take more, or leave --try out")
            self._cut_short("the program ended")

    def _go_on(self):
        """Up to the next step. True: it is done."""
        if self.done:
            return True
        self._is_inside(True)
        try:
            if self.session.several_threads:
                raise GiveUp("several threads take steps, and the state of all of them cannot be put back between two of one")
            next(self.script)
            return False
        except StopIteration:
            self.result["status"] = "done"
        except (GiveUp, DoesNotFit, Apart) as reason:
            self._end_early("not tried" if not self.entries else "ended early", str(reason), "watch: --try: %s", isinstance(reason, Apart))
        except Exception as error:
            self._end_early("ended early", "%s: %s" % (type(error).__name__, error), "watch: --try ended: %s; the program goes on as it was")
        finally:
            self._is_inside(False)
        self.done = True
        return True

    def _end_early(self, status, why, words, is_told=False):
        self.result.update(status=status, why=why)
        if not is_told:
            self.ranks.leave(why)       # first of all: others wait, and what is written may fail
        self._cut_short(why)
        self._tell_user(words % why)

    def _cut_short(self, why):
        """What was measured by then is said all the same."""
        for entry in self.entries:
            if entry["state"] == "running":
                entry.update(state="cut short", why=why)
        try:
            self._write_kept()
        except OSError as error:
            self.session.note("the settings that won could not be written: %s" % error)

    def _is_inside(self, inside):
        if self.stage is not None:
            self.stage.inside = inside

    # ---- the whole

    def _run(self):
        self.ranks = ranks_of(self.session)
        if len(set(self.ranks.gather(self.session.steps, FIRST_PATIENCE_S))) > 1:
            raise GiveUp("ranks are not in the same step")
        began = self._clock()
        if not hasattr(torch.nn.Module, "_compiled_call_impl"):
            raise GiveUp("torch %s is too old for --try: it has no Module.compile" % torch.__version__)
        yield from self._survey()
        switches = self._choose()
        reasons = self._reasons(switches)
        yield from self.stage.turn([], self._steps_of_turn())        # wakes up what a trial wakes up
        yield from self._find_noise()
        for switch in switches:
            if reasons[switch] is not None:
                self._tell(switch, "not tried", reasons[switch])
            else:
                yield from self._try(switch, self._clock() - began)
        yield from self._all_together()

    def _reasons(self, switches):
        """Why a switch is not tried: it is where it applies on all ranks."""
        told = self.ranks.gather([s.applies(self.facts) for s in switches])
        return {s: first_word(self.ranks, words) for s, words in zip(switches, zip(*told))}

    def _choose(self):
        switches = make_switches()
        unknown = [name for name in self.only or [] if name not in [s.name for s in switches]]
        if unknown:
            raise GiveUp("there is no switch '%s'; there are %s" % (unknown[0], ", ".join(s.name for s in switches)))
        return [s for s in switches if not self.only or s.name in self.only]

    def _survey(self):
        self.stage = Stage(self.session, self.ranks)
        self.facts = self.stage.facts
        if not self.facts.parameters:
            raise GiveUp("no optimizer is known, so it is not known what a step changes")
        yield from self.stage.survey()
        if any(is_sharded(m) for m in self.facts.heap.modules):
            raise GiveUp("parameters are spread over ranks (FSDP), and cannot be put back from outside")
        self.facts.step_s = max(self.ranks.gather(self.facts.step_s))
        self.steps = 0                  # those of the survey are the program's own
        self.stage.open(self.where)
        self.result.update(first=self.session.steps, state=self.stage.state.describe())

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
            turn = yield from self.stage.turn([], n)
            turns.append(turn)
        found = self.ranks.gather(gates.noise_of(turns))
        if None in found:
            raise GiveUp("losses are not finite, or steps differ in their backward passes: there is nothing to compare with")
        return tuple(max(of_ranks) for of_ranks in zip(*found))

    def _try(self, switch, spent):
        entry = self._tell(switch, "running")
        if any(w.group and w.group == switch.group for w in self.winners):
            entry.update(state="not tried", why="another of its kind won")
            return
        if spent > SECONDS_MOST:
            entry.update(state="not tried", why="the trial took %.0f s already" % SECONDS_MOST)
            return
        self.session.save()             # what was being tried when the program was killed
        try:
            yield from self._try_gated(switch, entry)
        except Broke as error:
            self._fail(entry, str(error))
        self._say(entry)
        self.session.save()

    def _try_gated(self, switch, entry):
        self.tried.append(switch)
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
        self.stage.set([])
        entry.update(state="kept", lines=switch.lines(self.facts), settings=switch.settings(self.facts))
        self.winners.append(switch)

    def _fail(self, entry, why):
        entry.update(state="failed", why=why)

    def _all_together(self):
        kept = self._kept()
        if len(self.winners) > 1:
            base = [s.counterpart for s in self.winners if s.counterpart][:1]
            try:
                total = yield from self._compare(base, self.winners, gates.widest([s.kind for s in self.winners]), self.winners[-1])
            except Broke as error:
                total = {"gates": [gates.failed("runs", None, str(error))]}
            self.result["total"] = total
            if gates.failure(total["gates"]):
                raise GiveUp("all that won, together: " + gates.failure(total["gates"]))
        elif kept:
            self.result["total"] = {k: kept[0][k] for k in ("speedup", "low", "high", "a_ms", "b_ms", "turns", "gates")}
        self.stage.set([])
        self._write_kept()
        settle = max([s.settle for s in self.tried], default=0)
        if settle:
            yield from self.stage.turn([], settle)

    def _kept(self):
        return [e for e in self.entries if e["state"] == "kept"]

    def _write_kept(self):
        """The lines of what won: also of a trial that is cut short, but not where all that won did not pass together."""
        kept, total = self._kept(), self.result.get("total")
        if kept and not (total and gates.failure(total["gates"])):
            self.result["settings_file"] = settings.write(self.session.options["out"], kept, total, self.ranks.rank)

    # ---- comparing

    def _check(self, switch):
        """Its own gates, from the saved state."""
        self.stage.rewind([])
        try:
            found = switch.check(self.facts, self.stage.state)
        except Exception as error:
            found = [{"gate": "starts", "pass": False, "value": None, "limit": None, "why": "%s: %s" % (type(error).__name__, error)}]
        return gates.worst_of(self.ranks.gather(found))

    def _compare(self, a, b, kind, switch):
        """Turns of a and of b, one after the other; who begins changes from pair to pair."""
        turns, started, n, found = ([], []), self._clock(), self._steps_of_turn(), []
        skip = max([s.skip for s in a + b], default=1)
        if switch.warm:
            yield from self.stage.turn(b, switch.warm)
        for pair in itertools.count():
            for side in ((0, 1) if pair % 2 == 0 else (1, 0)):
                turn = yield from self.stage.turn((a, b)[side], n, skip, pair)
                turns[side].append(turn)
            if pair + 1 >= GATED_FROM:
                found = gates.worst_of(self.ranks.gather(gates.judge(kind, turns[0], turns[1], self.stage.memory_total(), self.noise)))
                if gates.failure(found):
                    break
            if measure.is_enough(*_times(turns), self.pairs, self._clock() - started, self.seconds_each):
                break
        self.stage.set([])
        return self._numbers(turns, n, found)

    def _clock(self):
        """Of rank 0: what is decided by the time is decided alike."""
        return self.ranks.gather(perf_counter())[0]

    def _numbers(self, turns, n, found):
        times = _times(turns)
        value, low, high = measure.ratio(*times)
        return {"speedup": value, "low": low, "high": high, "a_ms": 1e3 * measure.median(times[0]), "b_ms": 1e3 * measure.median(times[1]),
                "turns": len(times[0]), "steps_per_turn": n, "gates": found}

    def _steps_of_turn(self):
        return self.turn_steps or measure.steps_of_turn(self.facts.step_s)

    # ---- the end

    def _close(self):
        """The program as it was, checked bit for bit. Called once or more."""
        stage, self.stage = self.stage, None
        if stage is None:
            return
        self.result.update(batches_kept=stage.facts.tapes.kept(), steps=self.steps, seconds=perf_counter() - self.started)
        try:
            equal = stage.close()
        except Exception as error:
            equal = False
            say("watch: --try: not all of the program could be put back as it was before the trial (%s: %s): start it again from its last checkpoint" % (type(error).__name__, error))
        equal = self._on_all(equal)
        if equal is not None:
            self.result["restored"] = equal

    def _on_all(self, equal):
        """Whether all ranks are what they were; where the program has ended, each of them says so for itself alone."""
        if not self.done:
            return equal
        try:
            told = [e for e in self.ranks.gather(equal, LAST_PATIENCE_S) if e is not None]
            return all(told) if told else None
        except Apart as reason:
            self.session.note("whether all ranks are what they were before the trial is not known: %s" % reason)
            return equal

    # ---- words

    def _tell(self, switch, state, why=None):
        entry = {"name": switch.name, "rule": switch.rule, "state": state, "why": why}
        self.entries.append(entry)
        return entry

    def _say(self, entry):
        gain = "x %.3f (%.3f to %.3f), " % (entry["speedup"], entry["low"], entry["high"]) if "speedup" in entry else ""
        why = ": " + entry["why"] if entry.get("why") else ""
        self._tell_user("watch: --try: %s %s%s%s" % (entry["name"], gain, entry["state"], why))

    def _tell_user(self, text):
        """Once for all ranks."""
        if self.ranks.rank == 0:
            say(text)
