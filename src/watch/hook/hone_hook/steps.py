"""Finds the training steps of a program: calls of Optimizer.step of any optimizer of torch, or of the function that --step-call names."""
import atexit
import functools
import os
import threading

from . import environment
from .compiled import Compiled
from .count import Count
from .cycle import Cycle
from .ends import Ends
from .guard import say
from .session import Session, Taken


def _of_one_thread(heard):
    """Where several threads take steps, those of the first are watched: a profiler is a thread's own."""
    @functools.wraps(heard)
    def call(watcher, *args):
        if not watcher.off and watcher.is_its_thread():
            heard(watcher, *args)
    return call


class Watcher:
    """All that a process knows before, while and after it has a session."""

    def __init__(self, options):
        self.options = options
        self.torch = None               # until the program has imported it
        self.session = None
        self.cycle = Cycle()
        self.count = Count()
        self.held = []                  # what stands in the program as long as it is watched; each has close(). None: that is over
        self.off = True
        self.lock, self.thread = threading.Lock(), None        # thread: whose steps are watched
        self.compiled = set()           # ids of optimizers whose steps are compiled

    def open(self, torch):
        self.torch = torch
        self.off = False
        atexit.register(self.at_exit)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.forked)

    def hold(self, one):
        if self.held is None:
            one.close()
        else:
            self.held.append(one)

    # ---- from the program

    def is_its_thread(self):
        me = threading.current_thread()
        if self.thread is None or not self.thread.is_alive():
            with self.lock:
                if self.thread is None or not self.thread.is_alive():
                    self.thread = me
        if self.thread is not me and self.session is not None:
            self.session.share_steps()
        return self.thread is me

    def compiled_step(self, optimizer):
        self.compiled.add(id(optimizer))
        self.optimizer_stepped(optimizer, lambda: 0)

    @_of_one_thread
    def optimizer_stepped(self, optimizer, inside):
        try:
            self._catch_up()
            known = id(optimizer) in self.cycle.known
            steps = self.cycle.steps_ended(id(optimizer), inside)
            if self.session is None:
                self._begin(optimizer)
            if not known and not self.off:
                self.session.meet(optimizer, self._forgetting(id(optimizer)))
            if steps and not self.off:
                self._boundary(steps)
        except Exception as error:
            self._fail(error)

    @_of_one_thread
    def function_called(self):
        try:
            self._catch_up()
            if self.session is None:
                self._begin(None)
            if not self.off:
                self._boundary(1)
        except Exception as error:
            self._fail(error)

    def _forgetting(self, who):
        cycle = self.cycle
        return lambda _: cycle.forget(who)

    # ---- the session

    def _begin(self, optimizer):
        try:
            self.session = Session(self.torch, self.options, optimizer)
            self.session.compiled = self.compiled
            self.session.result["steps_by"] = self.options.get("step_call") or "Optimizer.step"
            environment.restore(self.options)
        except Taken as taken:
            self._let_go()
            say("watch: %s; process %d is not watched" % (taken, os.getpid()))

    def _calls_per_step(self):
        """0: that is not known, as there is no cycle."""
        return 1 if self.options.get("step_call") else self.cycle.period

    def _catch_up(self):
        """With the steps that passed unheard."""
        passed = self.count.passed()
        if passed:
            self.session.steps += passed // self._calls_per_step()

    def _boundary(self, steps):
        session = self.session
        session.result["cycle"] = self.cycle.outer
        session.boundary(steps, max(self._calls_per_step(), 1))
        self.count.let_pass(session.idle() * self._calls_per_step())
        if session.closed:
            self._close()

    def _close(self):
        self._let_go()
        environment.restore(self.options, late=True)
        if self.session.result.get("stopped"):
            if threading.current_thread() is not threading.main_thread():
                self.session.leave()    # only the thread ends by what follows; hone ends the rest
            raise SystemExit(0)

    def _let_go(self):
        """The program has its own functions again, and nobody behind them."""
        self.off = True
        held, self.held = self.held, None
        for one in held or []:
            one.close()

    def _fail(self, error):
        try:
            self._let_go()
            if self.session is not None:
                self.session.fail(error)
            else:
                say("watch: %s: %s; the program goes on" % (type(error).__name__, error))
        except Exception:
            pass

    def at_exit(self):
        try:
            if self.session is not None:
                self._catch_up()
                self.session.steps += self.cycle.steps_unknown()
                self._explain_compiled()
                self.session.leave()
        except Exception as error:
            say("watch: %s: %s" % (type(error).__name__, error))

    def _explain_compiled(self):
        if self.compiled and not self.session.closed:
            say("watch: steps are compiled here; of a compiled function that takes several in one call the last is heard: name its step with --step-call")

    def forked(self):
        """In the child of a fork. Whoever is not watched yet may be the one who trains; a watched program's child is not."""
        self.lock, self.thread = threading.Lock(), None        # of threads that are not here
        if self.session is not None:
            self._let_go()
            self.session.forked()
            self.session = None


def watch_optimizers(torch, watcher):
    """Called right behind `import torch`."""
    ends = Ends(torch, watcher.cycle.known, watcher.count, watcher.optimizer_stepped)
    watcher.hold(ends)
    watcher.hold(Compiled(ends, watcher.count, ends.leave_hook, watcher.compiled_step))
