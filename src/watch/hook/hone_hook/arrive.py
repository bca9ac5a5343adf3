"""Calls back when the program has imported a module. It costs a comparison of strings for every import until then, and nothing after.

A program may ask where a module is long before it imports it (importlib.util.find_spec), and an import may fail and be made again: so who waits stands in sys.meta_path until
the module has run, and every answer that it passes on is one that calls back.
"""
import sys
import threading
from importlib import util

from .guard import guarded


class _Finder:
    def __init__(self, name, callback):
        self.name, self.callback = name, guarded(callback)
        self.asks = threading.local()           # now: this thread is inside of _ask_others
        self.loaders = []                       # those whose exec_module calls back

    def find_spec(self, fullname, path=None, target=None):
        if fullname != self.name or getattr(self.asks, "now", False):
            return None
        self.asks.now = True
        try:
            return self._ask_others()
        except Exception:
            return None                         # whatever it is, the program gets it from the real finders
        finally:
            self.asks.now = False

    def _ask_others(self):
        spec = util.find_spec(self.name)
        if spec is None or spec.loader is None:
            return None                         # it is not there now, but may be after a change of sys.path
        if not any(spec.loader is loader for loader in self.loaders):
            self._call_behind(spec.loader)
        return spec

    def _call_behind(self, loader):
        """Lets exec_module of this one loader, which may be one of other modules as well, call back when it is done."""
        run = loader.exec_module

        def exec_module(module):
            run(module)
            if getattr(module, "__name__", None) == self.name:
                self._arrived(module)
        loader.exec_module = exec_module
        self.loaders.append(loader)

    def _arrived(self, module):
        callback, self.callback = self.callback, None
        if callback is not None:
            self.close()
            callback(sys.modules.get(self.name, module))

    def close(self):
        """Nobody is called any more, and nothing of it is left."""
        self.callback = None
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        loaders, self.loaders = self.loaders, []
        for loader in loaders:
            vars(loader).pop("exec_module", None)


def when_imported(name, callback):
    """callback(module) right behind the import of name, or at once if it is there already. What waits for it is given back, and has close()."""
    if name in sys.modules:
        guarded(callback)(sys.modules[name])
        return None
    finder = _Finder(name, callback)
    sys.meta_path.insert(0, finder)
    return finder
