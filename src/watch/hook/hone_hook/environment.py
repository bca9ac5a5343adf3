"""What hone set for the program beyond what its user did, and how that is taken back.

options["environment"] has the names that hone set, each with the value that it had before, or None. Children get them as well until the program
takes its first step: a launcher (torchrun, accelerate) hands them to the ranks, who are the ones that train.
"""
import contextlib
import os
import re
import sys

HOOK = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OURS = {"PYTHONDONTWRITEBYTECODE": "hone", "KINETO_LOG_LEVEL": "99"}    # what hone sets, and nobody else; src/cli/cmd_watch.c


def _command_line():
    """With the interpreter's own options, which sys.argv has not. Python 3.9 does not know it."""
    if hasattr(sys, "orig_argv"):
        return sys.orig_argv
    with open("/proc/self/cmdline", "rb") as f:
        return [os.fsdecode(word) for word in f.read().split(b"\0")[:-1]]


def has_option_b(words):
    """Whether -B is among the options of a Python that was started so."""
    words = iter(words[1:])
    for word in words:
        if word == "--check-hash-based-pycs":
            next(words, None)
        if not word.startswith("-") or word in ("-", "--"):
            return False                # here the program begins
        if word.startswith("--"):
            continue
        letters = re.match("[^cmWX]*", word[1:]).group()
        if "B" in letters:
            return True
        behind = word[1 + len(letters):]
        if behind[:1] in ("c", "m"):
            return False
        if len(behind) == 1:            # -W and -X have an argument, here or in the next word
            next(words, None)
    return False


def restore_bytecode():
    """PYTHONDONTWRITEBYTECODE is for the hook's own files, which stay as they are; the program's are its own matter."""
    if os.environ.get("PYTHONDONTWRITEBYTECODE") == OURS["PYTHONDONTWRITEBYTECODE"] and not has_option_b(_command_line()):
        sys.dont_write_bytecode = False


def restore(options, late=False):
    """For what the program starts from now on. The profiler reads its own settings when it is first used: late is behind that."""
    for name, before in (options.get("environment") or {}).items():
        if (name == "KINETO_LOG_LEVEL") == late:
            _put_back(name, before)
    os.environ.pop("HONE_WATCH", None)


def _put_back(name, before):
    """What the program has set itself since then stays."""
    now = os.environ.get(name)
    if now is None:
        return
    if name == "PYTHONPATH":
        rest = os.pathsep.join(folder for folder in now.split(os.pathsep) if folder != HOOK)
        _set(name, rest or before)
    elif now == OURS.get(name):
        _set(name, before)


def _set(name, value):
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


@contextlib.contextmanager
def without_bytecode():
    """For parts of the hook that are imported late."""
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before
