"""The program as a trial has it in its hand: a state to go back to, switches that are on, and turns of steps from there.

`yield` is one step of the program, whose own code runs in between: what it does there that concerns us comes in through `broke` and `look`.
"""
from time import perf_counter
from traceback import clear_frames

import torch

from . import buckets
from .evidence import Evidence
from .looks import Looks
from .ranks import first_word
from .state import State
from .survey import STEPS, Facts

LOOKS_MOST = 8


class GiveUp(Exception):
    """No (further) trial, and why."""


class Broke(Exception):
    """The program's step failed under a switch."""


class Looked(Exception):
    """The program evaluated or saved: the turn is void."""


class Turn:
    def __init__(self, step_s, losses, norms, peak_bytes):
        self.step_s, self.losses, self.norms, self.peak_bytes = step_s, losses, norms, peak_bytes


def _first_line(error):
    return "%s: %s" % (type(error).__name__, str(error).split("\n")[0])


class Stage:
    def __init__(self, session, ranks):
        self.session, self.device, self.ranks = session, session.device, ranks
        self.facts = Facts(session, self.broke)
        self.evidence = self.facts.evidence = Evidence(self.facts.parameters, self.broke, self._mend)
        self.looks = Looks(self.facts.parameters, self.look)
        self.state, self.on = None, []
        self.failure, self.looked, self.look_count = None, False, 0
        self.inside = True              # between two steps, where nothing of the program runs

    # ---- begin and end

    def survey(self):
        """Some steps of the program's own."""
        self.facts.begin()
        for _ in range(STEPS):
            yield
            self.facts.step()
        self.facts.end()

    def open(self, where):
        """The state is that of now."""
        for held in [self.evidence, self.looks]:
            held.install()
        for root in self.facts.roots:
            root.install(self.broke)
        self.state = State(self.facts.optimizers, self.facts.heap, self.facts.others, where)

    def close(self):
        """The program as it was. True: every byte is; None: there was nothing to put back. Whatever fails on the way, nothing of the trial stays in the program."""
        state, self.state = self.state, None
        equal, failures = [], []

        def put_back():
            if state is not None:
                state.restore()
                equal.append(state.equal())
        parts = [self.facts.end, lambda: self.set([]), put_back, self.evidence.remove, self.looks.remove] + [root.remove for root in self.facts.roots]
        for part in parts + [self.facts.loaders.close, self.facts.tapes.begin_drain]:
            try:
                part()
            except Exception as error:
                failures.append(error)
        if failures:
            raise failures[0]
        return equal[0] if equal else None

    # ---- what is on

    def set(self, arm):
        """These switches on, in this order, and no others."""
        while self.on:
            self.on.pop().off(self.facts)
        for switch in arm:
            self.on.append(switch)
            try:
                switch.on(self.facts)
            except Exception as error:
                self._take_off_half()
                raise Broke(_first_line(error))

    def _take_off(self):
        """In the middle of a turn, which is void then."""
        for switch in [s for s in reversed(self.on) if self.ranks.is_alone or not s.shared]:
            self.on.remove(switch)
            switch.off(self.facts)

    def _take_off_half(self):
        """The last switch did not go on: whatever of it did comes off, as far as it knows itself what that is."""
        try:
            self.on.pop().off(self.facts)
        except Exception:
            pass

    def rewind(self, arm, seed=0):
        self.set([])
        self.state.restore()
        self.facts.tapes.rewind()
        self.failure, self.looked = None, False
        self._compare_next(False)
        if seed:
            torch.manual_seed(seed)     # dropout may draw its numbers in another order under a switch: pairs differ, and so does what it does to the loss
        if self.device.kind == "cuda":
            torch.cuda.reset_peak_memory_stats(self.device.device)
        self.set(arm)

    # ---- from the program

    def broke(self, error):
        """An exception in the program's step. Ours if something is on: it is taken off, and the turn is void."""
        if self.state is None or not self.on:
            return False
        self.failure = _first_line(error)
        clear_frames(error.__traceback__)       # they hold what the call had computed, and it is made again
        self._take_off()
        return True

    def _mend(self):
        """Behind half a backward pass: reducers of DistributedDataParallel would wait for the other half."""
        for model in buckets.models_of(self.facts.heap):
            buckets.build(model)

    def look(self):
        """Before weights are evaluated or saved: they are what they were before the trial."""
        if self.state is not None and not self.inside and not self.looked:
            self._take_off()
            self.state.restore()
            self.looked = True

    # ---- turns

    def turn(self, arm, n, skip=1, seed=0):
        """A step that is compared, skip - 1 and what loaders have loaded ahead that are not timed, n that are."""
        while True:
            try:
                return (yield from self._turn(arm, n, skip, seed))
            except Looked:
                self.look_count += 1
                if self.look_count > LOOKS_MOST:
                    raise GiveUp("the program evaluates or saves its weights too often")

    def _turn(self, arm, n, skip, seed):
        ahead = self._begin_turn(arm, seed)
        self._compare_next(True)
        yield from self._step()
        self._compare_next(False)
        losses, norms = self.evidence.seen()
        self.facts.tapes.live = True
        for _ in range(skip - 1 + ahead):
            yield from self._step()
        self.device.synchronize()
        start = perf_counter()
        for left in range(n, 0, -1):
            if left == 1:
                self.facts.tapes.close_turn()
            yield from self._step()
        self.device.synchronize()
        return self._end_turn((perf_counter() - start) / n, losses, norms)

    def _begin_turn(self, arm, seed):
        """How many steps loaders have loaded ahead. Where a rank cannot begin, none does."""
        ahead, failure = 0, None
        try:
            self.rewind(arm, seed)
            ahead = self.facts.loaders.loaded_ahead()
        except Broke as error:
            failure = str(error)
        told = self.ranks.gather([ahead, failure])
        self._raise(told, 1)
        return max(ahead for ahead, _ in told)

    def _end_turn(self, step_s, losses, norms):
        """The time of the slowest rank. Losses and gradients are this rank's own."""
        told = self.ranks.gather([step_s, self._peak_bytes(), self.failure, self.looked])
        self._raise(told, 2)
        if any(looked for _, _, _, looked in told):
            raise Looked()
        return Turn(max(t[0] for t in told), losses, norms, max(t[1] for t in told))

    def _raise(self, told, at):
        failure = first_word(self.ranks, [t[at] for t in told])
        if failure is not None:
            raise Broke(failure)

    def _compare_next(self, is_compared):
        """The step that comes is looked at, or is one of the others."""
        self.evidence.start() if is_compared else self.evidence.pause()
        for root in self.facts.roots:
            root.calls = 0 if is_compared else None

    def _step(self):
        yield
        if not self.ranks.is_alone:
            return                      # ranks end a turn together
        if self.failure is not None:
            raise Broke(self.failure)
        if self.looked:
            raise Looked()

    # ---- memory

    def _peak_bytes(self):
        return torch.cuda.max_memory_allocated(self.device.device) if self.device.kind == "cuda" else 0

    def memory_total(self):
        return torch.cuda.get_device_properties(self.device.device).total_memory if self.device.kind == "cuda" else 0
