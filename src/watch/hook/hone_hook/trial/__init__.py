"""`hone watch --try`: a phase of a session that tries switches in the running program (run.py). Imported when torch is there."""
from .run import Trial

__all__ = ["Trial"]
