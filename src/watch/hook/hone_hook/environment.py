"""What hone set for the program beyond what its user did, and how that is taken back.

options["environment"] has the names that hone set, each with the value that it had before, or None. Children get them as well until the program
takes its first step: a launcher (torchrun, accelerate) hands them to the ranks, who are the ones that train.
"""
import contextlib
import os
import sys


def restore_bytecode(options):
    """PYTHONDONTWRITEBYTECODE is for the hook's own files, which stay as they are; the program's are its own matter."""
    if not (options.get("environment") or {}).get("PYTHONDONTWRITEBYTECODE"):
        sys.dont_write_bytecode = False


def restore(options, late=False):
    """For what the program starts from now on. The profiler reads its own settings when it is first used: late is behind that."""
    for name, before in (options.get("environment") or {}).items():
        if (name == "KINETO_LOG_LEVEL") != late:
            continue
        if before is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = before
    os.environ.pop("HONE_WATCH", None)


@contextlib.contextmanager
def without_bytecode():
    """For parts of the hook that are imported late."""
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before
