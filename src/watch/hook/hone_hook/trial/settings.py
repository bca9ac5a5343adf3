"""What won, for people: OUT/hone_settings.py, which does it when it is imported, and the lines for their own script."""
import inspect
import os

from . import settings_parts

HEAD = '''"""Written by hone watch: the settings that won in a trial of this program.

Import it in the first line of the script, before models, optimizers and loaders are built:

    import hone_settings

Delete a line at the end of this file to leave a setting out.
"""
import functools
import inspect
import os
import re

import torch
'''

NEEDS = {                               # which functions a function of settings_parts calls
    "use_autocast": ["to_float", "with_autocast", "when_first_called"],
    "use_autocast_f16": ["to_float", "with_autocast", "when_first_called", "Scaler"],
    "use_channels_last": ["with_channels_last", "when_first_called"],
    "use_compile": ["when_first_called"],
    "use_optimizer": ["with_settings"],
    "use_loader": ["with_settings"],
    "use_ddp_buckets": ["with_settings"],
    "use_expandable_segments": ["allocator_settings"],
}


def _source(calls):
    names = []
    for call in calls:
        name = call.partition("(")[0]
        names.extend(n for n in NEEDS.get(name, []) + [name] if n not in names)
    return [inspect.getsource(getattr(settings_parts, n)) for n in names]


def settings_text(kept):
    """kept: entries of switches that won, each with settings and gain, in the order in which they were tried; compile goes innermost, so first."""
    ordered = sorted(kept, key=lambda entry: entry["name"] != "compile")
    calls = [entry["settings"] for entry in ordered]
    lines = ["%s        # %s: x %.3f" % (e["settings"], e["name"], e["speedup"]) for e in ordered]
    return HEAD + "".join("\n\n" + text for text in _source(calls)) + "\n\n" + "\n".join(lines) + "\n"


def patch_text(kept, total):
    """Lines to paste, in order, with the gain of each over those above it. total: of all together, or None where the trial was cut short."""
    together = "together x %.3f (%.3f to %.3f)" % (total["speedup"], total["low"], total["high"]) if total else "the trial was cut short before all were tried together"
    text = "# What won in the trial\n\nEach gain is over the lines above it, measured in turns; %s.\n" % together
    for i, e in enumerate(kept, 1):
        text += "\n%d. **%s**, x %.3f (%.3f to %.3f)\n\n```python\n%s\n```\n" % (i, e["name"], e["speedup"], e["low"], e["high"], "\n".join(e["lines"]))
    return text + "\nOr put `hone_settings.py` beside the script and `import hone_settings` in its first line.\n"


def write(folder, kept, total, rank=0):
    """The path of hone_settings.py; patch.md stands beside it. Of several ranks, for which they are the same, each writes them whole."""
    files = {"hone_settings.py": settings_text(kept), "patch.md": patch_text(kept, total)}
    for name, text in files.items():
        new = os.path.join(folder, "%s.%d" % (name, rank))
        with open(new, "w") as f:
            f.write(text)
        os.replace(new, os.path.join(folder, name))
    return os.path.join(folder, "hone_settings.py")
