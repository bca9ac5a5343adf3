"""Hears of the ends of optimizers' steps, as cheaply as torch allows, and without replacing a function or a class of the program.

Torch calls a hook behind every step, inside of the range that it records for it. That is where calls are counted down that nobody needs to hear of (count.py). What is to be
heard of is told behind the range, as a mark inside would cut it in two, and outside of the loop over hooks, which does not stand one that takes itself away: the exit of ranges
has other code as long as there is something to hear (inplace.py).

A program that compiles has no hook: torch's compiler reads the list of hooks into its graphs, and breaks them where one is not its own. It takes no notice of ranges, so from
then on their exit alone is what is heard. Steps that are compiled themselves have none: compiled.py.
"""
import sys
import threading
import types

from .guard import guarded
from .inplace import InPlace


def _exit(self, exc_type, exc_value, traceback, *, _hone_plain, _hone_ended):
    """The code of a range's exit meanwhile."""
    _hone_plain(self, exc_type, exc_value, traceback)
    if exc_type is None and self.name[:15] == "Optimizer.step#":
        _hone_ended()


def _inert(optimizer, args, kwargs):
    pass


class Ends:
    """heard(optimizer, inside) is called behind a step, unless count lets it pass and the optimizer's id is in known. inside() says how many other steps it is inside of."""

    def __init__(self, torch, known, count, heard):
        register = getattr(sys.modules[torch.optim.Optimizer.__module__], "register_optimizer_step_post_hook", None)
        if register is None:
            raise RuntimeError("torch %s is not known to hone watch: optimizers have no post hooks; give --step-call MODULE:FUNCTION" % torch.__version__)
        self.count, self.heard, self.tell = count, heard, guarded(self._tell)
        self.waits = False              # a step is to be heard of whose range is about to end
        self.told, self.threads = 0, set()
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
            self.exit = InPlace(self.range.__exit__, _exit, hidden=True, _hone_ended=self._ended())

    def _leave_exit(self):
        if self.exit is not None:
            self.exit.close()
            self.exit = None

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
        if self.handle is not None:
            self._remove_hook()
