"""--step-call MODULE:FUNCTION: calls back behind every call of a function that the program names as its step.

A function gets other code for as long as it is watched (inplace.py). What is no plain function is replaced where it stands. One of a module that is imported is met right behind the import. One of the script itself (`__main__`) is not there yet when torch is imported: the first
call of it is caught by a profile function, which is then taken away. It costs every call of a function until then.
"""
import functools
import inspect
import sys
import types

from .arrive import when_imported
from .compiling import compiling
from .guard import say
from .inplace import InPlace


def _stand_in(*args, _hone_plain, _hone_called, _hone_compiling, **kwargs):
    """The code of a watched function. In a graph of torch's compiler it is what it was, or the graph would break here."""
    out = _hone_plain(*args, **kwargs)
    if not _hone_compiling():
        _hone_called()
    return out


class _Replaced:
    """holder: a class, or what else has attributes."""

    def __init__(self, holder, name, called):
        self.holder, self.name, self.before = holder, name, inspect.getattr_static(holder, name)
        function = getattr(holder, name)

        @functools.wraps(function)
        def call(*args, **kwargs):
            out = function(*args, **kwargs)
            called()
            return out
        setattr(holder, name, call)

    def close(self):
        setattr(self.holder, self.name, self.before)


def _is_plain(function):
    return isinstance(function, types.FunctionType) and not function.__code__.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR)


def _watched(module, names, called):
    """What stands in it from now on, or None: it is not there."""
    holder = module
    for name in names[:-1]:
        holder = getattr(holder, name, None)
    function = getattr(holder, names[-1], None)
    if not callable(function):
        return None
    plain = getattr(function, "__func__", function)     # of a class method
    return InPlace(plain, _stand_in, _hone_called=called, _hone_compiling=compiling()) if _is_plain(plain) else _Replaced(holder, names[-1], called)


def _counting(watcher):
    """Behind every call; most of the time nobody needs to hear of it."""
    count = watcher.count

    def called():
        if count.left:
            count.left -= 1
        else:
            watcher.function_called()
    called._torchdynamo_disable = True                  # a compiled step calls it, and does not look inside
    return called


def _meet(watcher, module, names):
    """True: it is there."""
    found = _watched(module, names, _counting(watcher))
    if found is not None:
        watcher.hold(found)
    return found is not None


class _Script:
    """What runs as __main__. Its names are those of its frames, and not of sys.modules, where a launcher may stand that runs it (cProfile, runpy)."""

    def __init__(self, names):
        self.__dict__ = names


def _catch_in_main(watcher, names):
    if sys.getprofile() is not None:
        say("watch: --step-call: the program has a profile function of its own, so that no function of __main__ can be found; name one of a module")
        return

    def profile(frame, event, argument):
        if event != "return" or frame.f_code.co_name != names[-1] or frame.f_globals.get("__name__") != "__main__":
            return
        sys.setprofile(None)
        if _meet(watcher, _Script(frame.f_globals), names):
            watcher.function_called()
        else:
            say("watch: --step-call: '%s' is not at the top level of the script; it takes FUNCTION or CLASS.METHOD" % ".".join(names))
    sys.setprofile(profile)


def _split(step_call):
    module, _, function = step_call.partition(":")
    return module, function.split(".")


def watch(step_call, watcher):
    """Called at the start: the module may be the one that imports torch."""
    module, names = _split(step_call)

    def arrived(found):
        if not _meet(watcher, found, names):
            say("watch: --step-call: module '%s' has no function '%s'" % (module, ".".join(names)))
    if module != "__main__":
        when_imported(module, arrived)


def watch_main(step_call, watcher):
    """Called when torch is there: no step comes before, and looking at every call costs time."""
    module, names = _split(step_call)
    if module == "__main__":
        _catch_in_main(watcher, names)
