"""Whether code runs, or is read by torch's compiler into a graph."""
import sys


def _never():
    return False


def compiling():
    """A function of torch's that says so, which the compiler knows; one that says no where torch is not here."""
    torch = sys.modules.get("torch")
    known = getattr(torch, "compiler", None), getattr(torch, "_utils", None)
    return next((home.is_compiling for home in known if hasattr(home, "is_compiling")), _never)
