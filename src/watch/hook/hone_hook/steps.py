"""Finds the training steps of a program: calls of Optimizer.step of any optimizer of torch, or of the function that --step-call names.

The boundary stands behind the outermost step, outside of the range that torch records for it: a mark inside of it would cut it in two.
"""
import atexit
import functools
import os

from . import environment
from .cycle import Cycle
from .guard import say
from .session import Session, Taken


class Watcher:
    """All that a process knows before, while and after it has a session."""

    def __init__(self, options):
        self.options = options
        self.torch = None               # until the program has imported it
        self.session = None
        self.cycle = Cycle()
        self.depth = 0                  # of nested calls of step
        self.off = True

    def open(self, torch):
        self.torch = torch
        self.off = False
        atexit.register(self.at_exit)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.forked)

    # ---- from the program

    def optimizer_stepped(self, optimizer):
        if self.off:
            return
        try:
            known = id(optimizer) in self.cycle.known
            steps = self.cycle.steps_ended(id(optimizer))
            if self.session is None:
                self._begin(optimizer)
            if not known and not self.off:
                self.session.meet(optimizer)
            if steps and not self.off:
                self._boundary(optimizer, steps)
        except Exception as error:
            self._fail(error)

    def function_called(self):
        if self.off:
            return
        try:
            if self.session is None:
                self._begin(None)
            if not self.off:
                self._boundary(None, 1)
        except Exception as error:
            self._fail(error)

    # ---- the session

    def _begin(self, optimizer):
        try:
            self.session = Session(self.torch, self.options, optimizer)
            self.session.result["steps_by"] = self.options.get("step_call") or "Optimizer.step"
            environment.restore(self.options)
        except Taken as taken:
            self.off = True
            say("watch: another process is rank %s already; process %d is not watched" % (taken, os.getpid()))

    def _boundary(self, optimizer, steps):
        session = self.session
        session.steps += steps - 1      # those that passed before it was known what a step is
        session.result["cycle"] = self.cycle.period
        session.boundary(optimizer)
        if session.closed:
            self._close()

    def _close(self):
        self.off = True
        environment.restore(self.options, late=True)
        if self.session.result.get("stopped"):
            raise SystemExit(0)

    def _fail(self, error):
        self.off = True
        try:
            if self.session is not None:
                self.session.fail(error)
            else:
                say("watch: %s: %s; the program goes on" % (type(error).__name__, error))
        except Exception:
            pass

    def at_exit(self):
        try:
            if self.session is not None:
                self.session.leave()
        except Exception as error:
            say("watch: %s: %s" % (type(error).__name__, error))

    def forked(self):
        """In the child of a fork. Whoever is not watched yet may be the one who trains; a watched program's child is not."""
        if self.session is not None:
            self.off = True
            self.session = None


def _behind_step(watcher, step):
    """step, with the boundary behind it. An optimizer that calls another one inside of its own step counts once."""
    @functools.wraps(step)
    def call(*args, **kwargs):
        if watcher.off:
            return step(*args, **kwargs)
        watcher.depth += 1
        try:
            out = step(*args, **kwargs)
        finally:
            watcher.depth -= 1
        if watcher.depth == 0:
            watcher.optimizer_stepped(args[0])
        return out
    return call


def watch_optimizers(torch, watcher):
    """Called right behind `import torch`. Every class of optimizers passes its step through profile_hook_step when the first of them is made."""
    optimizer = torch.optim.Optimizer
    hook_step = getattr(optimizer, "profile_hook_step", None)
    if hook_step is None:
        raise RuntimeError("torch %s is not known to hone watch: Optimizer has no profile_hook_step; give --step-call MODULE:FUNCTION" % torch.__version__)
    optimizer.profile_hook_step = staticmethod(lambda step: _behind_step(watcher, hook_step(step)))
