"""A profiler that the program has itself: there is room for one, and that is the program's."""
import gc

from .guard import guarded
from .inplace import InPlace

OWN = "the program has a profiler of its own at work in these steps"


def _first(self, *args, _hone_plain, _hone_begins, **kwargs):
    """The code of what a profiler begins with."""
    _hone_begins(self)
    return _hone_plain(self, *args, **kwargs)


def _is_at_work(one):
    """It has begun, and has no results yet."""
    inner = getattr(one, "profiler", None)
    return inner is not None and getattr(inner, "kineto_results", inner) is None


def check_alone(torch):
    """Also where it is only about to record: it has begun by then, and would find nothing. An object refers to its class; nobody else's objects are
    held, of which torch may just be freeing some in another thread."""
    enabled = getattr(torch.autograd, "_profiler_enabled", None)
    kind = torch.profiler.profile
    if (enabled is not None and enabled()) or any(type(o) is kind and _is_at_work(o) for o in gc.get_referrers(kind)):
        raise RuntimeError(OWN)


class Others:
    """begins() is called before another profiler than ours does, from now until close."""

    def __init__(self, torch, ours, begins):
        kind = getattr(torch.autograd.profiler, "profile", None)
        functions = [vars(kind)[name] for name in ("_prepare_trace", "_start_trace") if kind is not None and name in vars(kind)]
        self.begins, self.ours = begins, ours
        self.stands = [InPlace(f, _first, hidden=True, _hone_begins=guarded(self._begins)) for f in functions]

    def _begins(self, one):
        if one is not self.ours.profiler:
            self.begins()

    def close(self):
        stands, self.stands = self.stands, []
        for one in stands:
            one.close()
