"""Hears of the ends of optimizers' steps, as cheaply as torch allows: by a post hook of all optimizers, which is torch's own means, and which counts
down the calls that nobody needs to hear of (count.py). No function or class of the program is replaced.

A call that is to be heard of is told behind the range that torch records for it, as a mark inside would cut it in two, and outside of the loop over
hooks, which does not stand one that takes itself away. So the exit of such ranges is caught while there is something to hear; Python looks for it when a
range begins, so one call before. Where it never comes, as a step is compiled, the hook itself tells.
"""
import sys

RANGE = "Optimizer.step#"


def _inert(optimizer, args, kwargs):
    pass


class Ends:
    """heard(optimizer) is called behind a step, unless count lets it pass and the optimizer's id is in known."""

    def __init__(self, torch, known, count, heard):
        register = getattr(sys.modules[torch.optim.Optimizer.__module__], "register_optimizer_step_post_hook", None)
        if register is None:
            raise RuntimeError("torch %s is not known to hone watch: optimizers have no post hooks; give --step-call MODULE:FUNCTION" % torch.__version__)
        self.count, self.heard = count, heard
        self.waits = None               # the optimizer whose range is about to end
        self.has_ranges = True          # as far as is known
        self.in_loop = False            # over hooks
        self.range = torch.autograd.profiler.record_function
        self.exit = None                # the range's own, while ours stands in for it
        self._catch_exit()
        self.handle = register(self._hook(known))

    def _hook(self, known):
        ends, count = self, self.count

        def stepped(optimizer, args, kwargs):
            if count.left > 1 and id(optimizer) in known:
                count.left -= 1
            else:
                ends._stepped(optimizer, count.left and id(optimizer) in known)
        stepped._torchdynamo_disable = True     # a compiled step calls it, and does not look inside
        return stepped

    def _stepped(self, optimizer, passes):
        if passes:                              # the last one that does
            self.count.left -= 1
            if self.has_ranges:
                self._catch_exit()
        elif self.exit is None or self.waits is not None:
            self._hear_in_loop(optimizer)
        else:
            self.waits = optimizer

    def _hear_in_loop(self, optimizer):
        self.in_loop = True
        if self.waits is not None:              # its exit did not come, and will not
            late, self.waits, self.has_ranges = self.waits, None, False
            self._leave_exit()
            self._hear(late)
        self._hear(optimizer)
        self.in_loop = False

    def _hear(self, optimizer):
        if self.handle is not None:
            self.heard(optimizer)
        if self.count.left:
            self._leave_exit()

    def _catch_exit(self):
        ends, plain = self, self.range.__dict__["__exit__"]

        def __exit__(range_, *why):
            out = plain(range_, *why)
            if ends.waits is not None and range_.name.startswith(RANGE):
                optimizer, ends.waits = ends.waits, None
                ends._hear(optimizer)
            return out
        self.range.__exit__ = self.ours = __exit__
        self.exit = plain

    def _leave_exit(self):
        if self.exit is not None and self.range.__dict__["__exit__"] is self.ours:
            self.range.__exit__, self.exit = self.exit, None

    def close(self):
        """Nothing of it is left in torch; where steps are compiled, a hook that does nothing."""
        handle, self.handle = self.handle, None
        self._leave_exit()
        if handle is not None and self.in_loop:
            handle.hooks_dict_ref()[handle.id] = _inert
        elif handle is not None:
            handle.remove()
