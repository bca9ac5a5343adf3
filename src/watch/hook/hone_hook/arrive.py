"""Calls back when the program has imported a module. It costs a comparison of strings for every import until then, and nothing after."""
import sys
from importlib import util

from .guard import guarded


class _Finder:
    def __init__(self, name, callback):
        self.name, self.callback = name, guarded(callback)

    def find_spec(self, fullname, path=None, target=None):
        if fullname != self.name:
            return None
        try:
            sys.meta_path.remove(self)          # the real finders answer, and nobody asks us again
            spec = util.find_spec(fullname)
            if spec is not None and spec.loader is not None:
                _call_behind(spec.loader, self)
                return spec
        except Exception:
            pass                                # whatever it is, the program gets it from the real finders
        sys.meta_path.insert(0, self)           # it is not there now, but may be after a change of sys.path
        return None


def _call_behind(loader, finder):
    """Lets exec_module of this one loader call back when it is done."""
    run = loader.exec_module

    def exec_module(module):
        del loader.exec_module
        try:
            run(module)
        except BaseException:
            sys.meta_path.insert(0, finder)     # the import failed; the next try may not
            raise
        finder.callback(sys.modules.get(finder.name, module))
    loader.exec_module = exec_module


def when_imported(name, callback):
    """callback(module) right behind the import of name, or at once if it is there already. What waits for it stands in sys.meta_path, and is given back."""
    if name in sys.modules:
        guarded(callback)(sys.modules[name])
        return None
    finder = _Finder(name, callback)
    sys.meta_path.insert(0, finder)
    return finder
