"""The folder of a rank, which one process has. One that ended with nothing recorded leaves it to the next: a smoke test before the training, say."""
import json
import os
import shutil

SETTINGS = "hone_settings.py", "patch.md"       # trial/settings.py; it is not imported where nothing is tried


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


def _result(folder):
    try:
        with open(os.path.join(folder, "watch.json")) as f:
            result = json.load(f)
    except (OSError, ValueError):
        result = {}
    return result if isinstance(result, dict) else {}


def _remove_settings(folder):
    """Those of a trial that was cut short there: the next one has its own. One that came to its end has found them out."""
    trial = _result(folder).get("trial") or {}
    if trial.get("settings_file") and trial.get("status") != "done":
        for name in SETTINGS:
            try:
                os.remove(os.path.join(os.path.dirname(folder), name))
            except OSError:
                pass


def _is_left(folder):
    """Its process has ended, and recorded nothing. One that is watched no more may still train, and would write here at its end."""
    pid = _owner(folder)
    return pid is not None and not _result(folder).get("recorded") and not _runs(pid)


def take(folder):
    """None, or why not. Of several that want one that was left, the first to rename it gets it."""
    another = "another process is rank %s already" % os.path.basename(folder)[len("rank"):]
    if os.path.isdir(folder) and _is_left(folder):
        aside = "%s.left-%d" % (folder, os.getpid())
        try:
            os.rename(folder, aside)
        except OSError:
            return another
        _remove_settings(aside)
        shutil.rmtree(aside, ignore_errors=True)
    try:
        os.mkdir(folder)
    except FileExistsError:
        return another
    except FileNotFoundError:           # nothing is made where hone has none: it has ended, and taken its folder away
        return "the folder '%s' is not here: hone has ended, or this is another machine, and they share no --out" % os.path.dirname(folder)
    with open(os.path.join(folder, "pid"), "w") as f:
        f.write("%d\n" % os.getpid())
    return None
