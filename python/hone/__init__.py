"""What bounds a training step that the PyTorch profiler recorded, and what to do about it."""
import json

from ._library import Analysis, HoneError, version

__version__ = version()
__all__ = ["analyze", "write", "Analysis", "HoneError"]


def analyze(*traces, **known):
    """The diagnosis of a trace (.json, .json.gz), a folder of ranks, or several files of one job (or a list of them), as a dict: report.json of hone.

    What is known beyond the trace, by name: step_ms (of a step without the profiler), peak_tflops and peak_gbps (of the device)."""
    with Analysis(traces[0] if len(traces) == 1 else traces, **known) as a:
        return json.loads(a.json())


def write(traces, folder, **known):
    """Writes report.html, report.md and report.json into a folder."""
    with Analysis(traces, **known) as a:
        a.write(folder)
