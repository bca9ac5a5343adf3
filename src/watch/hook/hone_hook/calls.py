"""--step-call MODULE:FUNCTION: calls back behind every call of a function that the program names as its step.

A function of a module that is imported is replaced right behind the import. One of the script itself (`__main__`) is not there yet when torch
is imported: the first call of it is caught by a profile function, which is then taken away.
"""
import functools
import sys

from .arrive import when_imported
from .guard import say


def _behind(function, callback):
    @functools.wraps(function)
    def call(*args, **kwargs):
        out = function(*args, **kwargs)
        callback()
        return out
    return call


def _find(start, names):
    """The object that holds the last of names, or None."""
    for name in names[:-1]:
        start = start.get(name) if isinstance(start, dict) else getattr(start, name, None)
        if start is None:
            return None
    return start


def _replace(globals_, names, callback):
    """True if it is there and was replaced. A class takes its method as it stands in it."""
    holder = _find(globals_, names)
    if isinstance(holder, dict):
        function = holder.get(names[-1])
        if callable(function):
            holder[names[-1]] = _behind(function, callback)
    else:
        function = getattr(holder, names[-1], None)
        if callable(function):
            setattr(holder, names[-1], _behind(function, callback))
    return callable(function)


def _catch_in_main(names, callback):
    def profile(frame, event, argument):
        if event != "return" or frame.f_code.co_name != names[-1] or frame.f_globals.get("__name__") != "__main__":
            return
        sys.setprofile(None)
        if _replace(frame.f_globals, names, callback):
            callback()
        else:
            say("watch: --step-call: '%s' is not at the top level of the script; it takes FUNCTION or CLASS.METHOD" % ".".join(names))
    sys.setprofile(profile)


def _split(step_call):
    module, _, function = step_call.partition(":")
    return module, function.split(".")


def watch(step_call, callback):
    """Called at the start: the module may be the one that imports torch."""
    module, names = _split(step_call)

    def arrived(found):
        if not _replace(vars(found), names, callback):
            say("watch: --step-call: module '%s' has no function '%s'" % (module, ".".join(names)))
    if module != "__main__":
        when_imported(module, arrived)


def watch_main(step_call, callback):
    """Called when torch is there: no step comes before, and looking at every call costs time."""
    module, names = _split(step_call)
    if module == "__main__":
        _catch_in_main(names, callback)
