"""Hears of the ends of optimizers' steps, as cheaply as torch allows, and without replacing a function or a class of the program.

Torch calls a hook behind every step, inside of the range that it records for it. That is where calls are counted down that nobody needs to hear of (count.py). What is to be
heard of is told behind the range, as a mark inside would cut it in two, and outside of the loop over hooks, which does not stand one that takes itself away: the exit of ranges
has other code as long as there is something to hear (inplace.py).

A program that compiles has no hook: torch's compiler reads the list of hooks into its graphs, and breaks them where one is not its own. It takes no notice of ranges, so from
then on their exit alone is what is heard. Steps that are compiled themselves have none: compiled.py.
"""
import contextlib
import sys
import threading
import types

from .compiling import compiling
from .guard import guarded
from .inplace import InPlace


def _exit(self, exc_type, exc_value, traceback, *, _hone_plain, _hone_ended):
    """The code of a range's exit meanwhile."""
    _hone_plain(self, exc_type, exc_value, traceback)
    if exc_type is None and self.name[:15] == "Optimizer.step#":
        _hone_ended()


def _step(*args, _hone_plain, _hone_stepped, _hone_compiling, **kwargs):
    """The code of a step that has no range around it. In a graph of torch's compiler it is what it was."""
    out = _hone_plain(*args, **kwargs)
    if not _hone_compiling():
        _hone_stepped(args[0])
    return out


def _inert(optimizer, args, kwargs):
    pass


class Ends:
    """heard(optimizer, inside) is called behind a step, unless count lets it pass and the optimizer's id is in known. inside() says how many other steps it is inside of."""

    def __init__(self, torch, known, count, heard):
        register = getattr(sys.modules[torch.optim.Optimizer.__module__], "register_optimizer_step_post_hook", None)
        if register is None:
            raise RuntimeError("torch %s is not known to hone watch: optimizers have no post hooks; give --step-call MODULE:FUNCTION" % torch.__version__)
        self.count, self.heard = count, heard
        self.tell, self.tell_bare = guarded(self._tell), guarded(self._tell_bare)
        self.optim, self.bare = torch.optim, []         # steps without a range
        self.waits = False              # a step is to be heard of whose range is about to end
        self.told, self.threads = 0, set()
        self.lock = threading.Lock()
        self.telling = 0                # 1: in the exit of a step's range, which has gone through the hooks
        self.range = torch.autograd.profiler.record_function
        self.exit = None                # what stands in for the range's own
        wrapper = torch.optim.Optimizer.profile_hook_step.__code__.co_consts
        self.code = next((c for c in wrapper if isinstance(c, types.CodeType)), None)   # of what torch wraps every step with
        self.handle = register(self._hook(known))

    # ---- the hook

    def _hook(self, known):
        ends, count = self, self.count

        def stepped(optimizer, args, kwargs):
            if count.left and id(optimizer) in known:
                count.left -= 1
            else:
                ends.waits = True
                ends._catch_exit()
        stepped._torchdynamo_disable = True     # if ever a compiled step meets it
        return stepped

    def leave_hook(self):
        """A program begins to compile."""
        if self.handle is not None:
            self._remove_hook()
            self._catch_exit()
            self._catch_bare_steps()

    def _catch_bare_steps(self):
        """Older versions of torch take the range and the hooks off their own optimizers when a program begins to compile."""
        steps = {id(s): s for s in (vars(kind).get("step") for kind in vars(self.optim).values() if isinstance(kind, type)) if isinstance(s, types.FunctionType)}
        for step in steps.values():
            if getattr(step, "hooked", False) and step.__code__ is not self.code and step.__code__.co_freevars == ("func",):
                self.bare.append(InPlace(step, _step, hidden=True, _hone_stepped=self._bare_stepped(), _hone_compiling=compiling()))

    def _bare_stepped(self):
        ends, count = self, self.count

        def stepped(optimizer):
            if count.left:
                count.left -= 1
            else:
                ends.tell_bare(optimizer, sys._getframe(2))
        return stepped

    def _tell_bare(self, optimizer, frame):
        self.told += 1
        self.heard(optimizer, lambda: self.depth(frame))

    def _remove_hook(self):
        """Who goes through the hooks just now would not stand that one is missing."""
        handle, self.handle = self.handle, None
        if self.depth(sys._getframe()) > self.telling or len(self.threads) > 1:
            handle.hooks_dict_ref()[handle.id] = _inert
        else:
            handle.remove()

    # ---- the exit

    def _catch_exit(self):
        if self.exit is None:
            with self._alone():
                if self.exit is None:
                    self.exit = InPlace(self.range.__exit__, _exit, hidden=True, _hone_ended=self._ended())

    def _leave_exit(self):
        with self._alone():
            if self.exit is not None:
                self.exit.close()
                self.exit = None

    @contextlib.contextmanager
    def _alone(self):
        """Among threads. A fork may have left the lock to nobody."""
        locked = self.lock.acquire(timeout=0.1)
        try:
            yield
        finally:
            if locked:
                self.lock.release()

    def _ended(self):
        ends, count = self, self.count

        def ended():
            if count.left and not ends.waits:
                count.left -= 1
            else:
                ends.waits = False
                ends.tell(sys._getframe(2))
        return ended

    def _tell(self, frame):
        if frame.f_code is not self.code:
            return                      # a range of the program's own that is called so
        self.told += 1
        self.threads.add(threading.get_ident())
        self.telling = 1
        try:
            self.heard(frame.f_locals["args"][0], lambda: self.depth(frame.f_back))
        finally:
            self.telling = 0
        if self.count.left and self.handle is not None:
            self._leave_exit()

    # ---- where we are

    def depth(self, frame):
        """How many steps of optimizers this is inside of."""
        found = 0
        while frame is not None:
            found += frame.f_code is self.code
            frame = frame.f_back
        return found

    def close(self):
        """Nothing of it is left in torch; where steps are taken by several threads, or inside of one another by hooks, a hook that does nothing."""
        self._leave_exit()
        for one in self.bare:
            one.close()
        self.bare = []
        if self.handle is not None:
            self._remove_hook()
