"""The folder of a rank, which one process has. One that ended with nothing recorded leaves it to the next: a smoke test before the training, say."""
import json
import os
import shutil


def _owner(folder):
    """Of the process that has it; None: it is about to say so."""
    try:
        with open(os.path.join(folder, "pid")) as f:
            return int(f.read())
    except (OSError, ValueError):
        return None


def _runs(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass                            # it is another user's
    return True


def _is_left(folder):
    """Its process has ended, and recorded nothing. One that is watched no more may still train, and would write here at its end."""
    try:
        with open(os.path.join(folder, "watch.json")) as f:
            result = json.load(f)
    except (OSError, ValueError):
        result = {}
    pid = _owner(folder)
    return pid is not None and not result.get("recorded") and not _runs(pid)


def take(folder):
    """False: another process has it. Of several that want one that was left, the first to rename it gets it."""
    if os.path.isdir(folder) and _is_left(folder):
        aside = "%s.left-%d" % (folder, os.getpid())
        try:
            os.rename(folder, aside)
        except OSError:
            return False
        shutil.rmtree(aside, ignore_errors=True)
    try:
        os.makedirs(folder)
    except FileExistsError:
        return False
    with open(os.path.join(folder, "pid"), "w") as f:
        f.write("%d\n" % os.getpid())
    return True
