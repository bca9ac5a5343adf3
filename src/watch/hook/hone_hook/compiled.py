"""Steps of optimizers that torch's compiler has made part of a graph: no hook and no range is left of them. They are found from outside.

Whoever calls something that was compiled goes through a context of the compiler's, which calls back when it is entered and when it is left. A step was taken in between if
tensors of an optimizer that the compiler has looked at were written. Nothing of it is seen by the compiler: no graph is another one, none is broken.
"""
import functools
import sys
import weakref

from .arrive import when_imported
from .guard import guarded


class _Seen:
    """An optimizer that the compiler has looked at, and how often its tensors were written. One that is written is enough to ask."""

    def __init__(self, optimizer):
        self.optimizer = weakref.ref(optimizer)
        self.asked = None               # once it is known that it is written
        self.look(optimizer)

    def _all(self, optimizer):
        """Not parameters alone: fused kernels write them without a word."""
        state = [v for entry in optimizer.state.values() for v in entry.values()]
        return [t for t in [p for group in optimizer.param_groups for p in group["params"]] + state if hasattr(t, "_version")]

    def look(self, optimizer):
        self.versions = [t._version for t in self._all(optimizer)] if self.asked is None else self.asked._version

    def was_written(self, optimizer):
        if self.asked is not None:
            return self.asked._version != self.versions
        now = self._all(optimizer)
        self.asked = next((t for t, version in zip(now, self.versions) if t._version != version), None)
        return self.asked is not None or len(now) != len(self.versions)


class _Both:
    """Of older versions of torch, whose contexts have one place for others."""

    def __init__(self, plain, compiled):
        self.plain, self.compiled = plain, compiled

    def __enter__(self):
        self.leave = self.compiled.enter()
        return self.plain.__enter__()

    def __exit__(self, *why):
        try:
            return self.plain.__exit__(*why)
        finally:
            self.leave()


class Compiled:
    """begins() is called when the program first compiles something; stepped(optimizer) behind a compiled step."""

    def __init__(self, ends, count, begins, stepped):
        self.ends, self.count, self.begins, self.stepped = ends, count, begins, stepped
        self.look, self.left = guarded(self._look), guarded(self._left)
        self.enter = self._entering()
        self.seen = {}                  # by id
        self.before = None              # of what is heard otherwise, when a compiled call began
        self.replaced, self.contexts, self.closed, self.has_begun = [], [], False, False
        self.finder = when_imported("torch._dynamo.eval_frame", self._arrived)

    # ---- what is put into the compiler

    def _replace(self, kind, behind):
        plain, behind = kind.__init__, guarded(behind)

        @functools.wraps(plain)
        def __init__(one, *args, **kwargs):
            plain(one, *args, **kwargs)
            behind(one)
        kind.__init__ = __init__
        self.replaced.append((kind, plain, __init__))

    def _arrived(self, module):
        if not self.closed:
            self._replace(module.OptimizeContext, self._met_context)

    def _begin(self):
        """Its own frames are none of the compiler's."""
        self.has_begun = True
        self.begins()
        dynamo = sys.modules["torch._dynamo"]
        (getattr(dynamo, "trace_rules", None) or dynamo.skipfiles).add(__package__)
        self._replace(sys.modules["torch._dynamo.variables.optimizer"].OptimizerVariable, self._met_optimizer)

    def _met_context(self, context):
        if not self.has_begun:
            self._begin()
        hooks = getattr(context, "enter_exit_hooks", None)
        if hooks is not None:
            hooks.append(self.enter)
            self.contexts.append(weakref.ref(context))
        else:
            plain = context.extra_ctx_ctor
            context.extra_ctx_ctor = lambda: _Both(plain(), self)

    def _met_optimizer(self, variable):
        optimizer = variable.value
        if id(optimizer) not in self.seen:
            self.seen[id(optimizer)] = _Seen(optimizer)

    # ---- a call of something compiled

    def _entering(self):
        """A function and no method: whoever copies a compiled model copies its context, and this must not be copied with it."""
        def leave():
            if self.seen and not self.closed:
                self.left(sys._getframe(1))

        def enter():
            if self.seen:
                self.look()
            return leave
        return enter

    def _look(self):
        self.before = self.count.left, self.ends.told
        for key, seen in list(self.seen.items()):
            optimizer = seen.optimizer()
            if optimizer is None:
                del self.seen[key]
            else:
                seen.look(optimizer)

    def _left(self, frame):
        """Steps that were heard of in between, or are about to be, are not compiled."""
        others = self.before not in (None, (self.count.left, self.ends.told)) or self.ends.depth(frame)
        written = [o for o, seen in [(s.optimizer(), s) for s in list(self.seen.values())] if o is not None and seen.was_written(o)]
        self._look()
        for optimizer in [] if others else written:
            self._tell(optimizer)

    def _tell(self, optimizer):
        if self.count.left:
            self.count.left -= 1
        else:
            self.stepped(optimizer)

    def close(self):
        self.closed = True
        if self.finder is not None:
            self.finder.close()
        for kind, plain, ours in self.replaced:
            if kind.__dict__.get("__init__") is ours:
                kind.__init__ = plain
        for context in filter(None, (c() for c in self.contexts)):
            if self.enter in context.enter_exit_hooks:
                context.enter_exit_hooks.remove(self.enter)
        self.seen, self.contexts = {}, []
