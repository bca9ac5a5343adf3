"""A session: the phases that a watched program goes through, one boundary per training step.

A phase has begin(session), boundary(session, steps), which says whether it is done, and end(session). All three run between two steps of the program. A boundary is behind
one step, or behind several where it was just learned what a step is. A phase that measures has anew(session): an optimizer was met in it, and it begins at the next boundary.
What a phase may use: torch, options, device, optimizers, out, result, note().
"""
import os
import weakref

from . import presence
from .device import Device
from .environment import without_bytecode
from .finish import Finish
from .guard import say
from .record import Record
from .result import new_result, write_result
from .seat import take
from .window import Undisturbed, WarmUp

SHAPES_STEPS, STACKS_STEPS = 4, 3
ANEW_MOST = 2


def _number(name, otherwise):
    """A number that a launcher left in the environment; what is none there is nobody's rank."""
    text = os.environ.get(name, "")
    return int(text) if text.isascii() and text.isdigit() else otherwise


def _rank(torch):
    """Who this process is among the ranks of a job: what torch.distributed says, else the launcher, which says how many are on this machine as well. A WORLD_SIZE alone may be
    of anything: hone would wait for ranks that never come."""
    distributed = getattr(torch, "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return _number("RANK", 0), _number("WORLD_SIZE", 1) if _number("LOCAL_WORLD_SIZE", 0) else 1


def _phases(options):
    """A trial comes before anything is recorded: a process in which the profiler has once run launches kernels more slowly ever after."""
    phases = [WarmUp(options["warmup"]), Undisturbed(options["steps"])]
    if options.get("try") is not None:          # {}: all switches
        with without_bytecode():
            from .trial import Trial
        phases.append(Trial(options["try"]))
    return phases + [Record("shapes", SHAPES_STEPS), Record("stacks", STACKS_STEPS, stacks=True, last=True), Finish(options["stop"])]


class Taken(Exception):
    """Why this process has no folder to record into."""


class Session:
    def __init__(self, torch, options, optimizer):
        self.torch, self.options = torch, options
        self.rank, self.world_size = _rank(torch)
        self.out = os.path.join(options["out"], "rank%d" % self.rank)
        self._take()
        self.device = Device(torch, optimizer)
        self.result = new_result(torch, self.rank, self.world_size, self.device)
        self.steps = 0                  # so far
        self.calls = 1                  # of optimizers, or of the function that is named, in a step
        self.compiled = set()           # ids of optimizers whose steps are compiled
        self.several_threads = False    # take steps
        self._optimizers = []
        self.anew = 0                   # windows that began anew
        self._inside = False
        self.closed = False
        self.phases = _phases(options)
        self._at = 0
        self.phase = self.phases[0]
        self.phase.begin(self)

    def _take(self):
        why = take(self.out)
        if why:
            raise Taken(why)
        presence.tell(self.options["out"], presence.STEP)

    # ---- what phases use

    @property
    def optimizers(self):
        """Those that took a step and are still there, in the order of their first step."""
        return [o for o in (r() for r in self._optimizers) if o is not None]

    def note(self, text):
        """A sentence for the report."""
        if text not in self.result["notes"]:
            self.result["notes"].append(text)

    def save(self):
        self.result["steps"] = self.steps
        write_result(self.out, self.result)

    # ---- what steps.py calls

    def meet(self, optimizer, gone=None):
        """An optimizer that was not seen before. gone(...) is called when it is."""
        self._optimizers.append(weakref.ref(optimizer, gone))
        if self._at > 0 and not self.closed:
            self._met_in_window()

    def _met_in_window(self):
        """What was a step is none any more, so the window begins anew; but not for ever."""
        anew = getattr(self.phase, "anew", None)
        if anew is not None and self.anew == ANEW_MOST:
            self.note("optimizers are made anew again and again, so what a step is and how long it takes is not to be trusted: name its function with --step-call MODULE:FUNCTION")
            return
        self.note("an optimizer took its first step in the middle of a window (step %d)%s" % (self.steps, ", which began anew" if anew else ""))
        if anew is not None:
            self.anew += 1
            anew(self)

    def share_steps(self):
        """Another thread took one."""
        self.several_threads = True
        self.note("several threads take steps; those of the first that took one are timed and recorded")

    def boundary(self, steps, calls):
        """Between two steps of the program: so many have ended, of so many calls each. What a phase does itself (steps of a trial) is none of the program's."""
        if self._inside or self.closed:
            return
        self._inside = True
        try:
            self.steps += steps
            self.calls = calls
            if self.phase.boundary(self, steps):
                self._advance()
        finally:
            self._inside = False

    def idle(self):
        """How many steps from now on nobody needs to hear of."""
        idle = getattr(self.phase, "idle", None)
        return idle(self) if idle and not self.closed else 0

    def _advance(self):
        self.phase.end(self)
        if getattr(self.phase, "saves", True):
            self.save()
        self._at += 1
        if self._at == len(self.phases):
            self.closed = True
            return
        self.phase = self.phases[self._at]
        self.phase.begin(self)
        if getattr(self.phase, "at_once", False):
            self._advance()

    def forked(self):
        """In the child of a fork: nothing is written here, and nothing of the profiler touched, which is the parent's."""
        forked = getattr(self.phase, "forked", None)
        if forked:
            forked()

    def fail(self, error):
        """An exception in a phase: what it holds is let go, and nothing more is done in this program."""
        say("watch: %s: %s; the program goes on" % (type(error).__name__, error))
        self.result["failure"] = "%s: %s" % (type(error).__name__, error)
        self.note("watching ended after %d steps: %s" % (self.steps, self.result["failure"]))
        self.leave()

    def leave(self):
        """The program ends. A phase that is still open has no result; how many steps there were is said."""
        self.result["ended"] = True
        try:
            if not self.closed:
                self._drop()
        finally:
            self.save()

    def _drop(self):
        """It is open until then: another thread may have to end what it began."""
        drop = getattr(self.phase, "drop", None)
        try:
            if drop:
                drop(self)
        finally:
            self.closed = True
