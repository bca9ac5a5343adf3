"""Runs at the start of every Python that `hone watch` started: Python imports this file by itself, as it stands first on PYTHONPATH.

It takes its own folder off the search path again, runs the sitecustomize that the program would have had without it, and leaves a hook behind
that waits for `import torch`. Whatever goes wrong in here is a line on stderr and never the program's problem.
"""
import sys


def _say(error):
    try:
        sys.stderr.write("hone: watch is off: %s: %s\n" % (type(error).__name__, error))
    except Exception:
        pass                            # stderr is closed


def _load_hook(folder):
    """The package hone_hook, found without the search path."""
    from importlib import util
    import os
    package = os.path.join(folder, "hone_hook")
    spec = util.spec_from_file_location("hone_hook", os.path.join(package, "__init__.py"), submodule_search_locations=[package])
    module = util.module_from_spec(spec)
    sys.modules["hone_hook"] = module
    spec.loader.exec_module(module)
    return module


def _start():
    import os
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [p for p in sys.path if not p or os.path.abspath(p) != folder]
    if os.environ.get("HONE_WATCH"):
        _load_hook(folder).start()


def _run_the_programs_own():
    """What `import sitecustomize` finds now that our folder is off the path; its errors are its own, as they would be without us."""
    from importlib import machinery, util
    spec = machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


try:
    _start()
except Exception as error:
    _say(error)
_run_the_programs_own()
