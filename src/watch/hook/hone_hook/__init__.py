"""The part of `hone watch` that lives in the watched program.

It imports torch never by itself: it waits until the program does, then looks for training steps, and runs through the phases of a session
(session.py) as steps come by. Nothing is written but below the folder that hone names.
"""
import json
import os

from . import arrive, calls, environment, presence
from .steps import Watcher, watch_optimizers


def start():
    """Called by sitecustomize before the program's first line."""
    options = json.loads(os.environ["HONE_WATCH"])
    environment.restore_bytecode()
    watcher = Watcher(options)
    presence.tell(options["out"], presence.PYTHON)
    arrive.when_imported("torch", lambda torch: _torch_is_here(torch, watcher))
    if options.get("step_call"):
        calls.watch(options["step_call"], watcher)


def _torch_is_here(torch, watcher):
    presence.tell(watcher.options["out"], presence.TORCH)
    watcher.open(torch)
    if watcher.options.get("step_call"):
        calls.watch_main(watcher.options["step_call"], watcher)
    else:
        watch_optimizers(torch, watcher)
