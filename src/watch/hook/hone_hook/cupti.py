"""CUPTI, by which the profiler hears of a GPU's work, stays in the process when a recording has ended, and every launch is slower ever after, by a
tenth of a step to a half on an H200. The profiler takes it out when TEARDOWN_CUPTI says so while it stops."""
import contextlib
import gc
import os
from time import sleep

SWITCH = "TEARDOWN_CUPTI"
CALLS, PAUSE_S = 10, 0.02


def _has_graphs(torch):
    """CUDA graphs do not stand it when CUPTI goes (torch leaves it in, too, where it makes graphs itself). isinstance would ask proxies, whose object may be gone."""
    kind = getattr(torch.cuda, "CUDAGraph", None)
    return kind is not None and any(issubclass(type(o), kind) for o in gc.get_objects())


def may_go(session):
    """Asked before a recording begins, as the look at all objects would be in it. The user's own word stands."""
    if session.device.kind != "cuda" or SWITCH in os.environ:
        return False
    if _has_graphs(session.torch):
        session.note("the program has CUDA graphs, so the profiler was left in it: steps may be slower from now on")
        return False
    return True


@contextlib.contextmanager
def letting_go(goes):
    """Around the end of the last recording: what comes back after it was taken out has crashed."""
    if goes:
        os.environ[SWITCH] = "1"
    try:
        yield
    finally:
        if goes:
            os.environ.pop(SWITCH, None)


def let_it_go(session):
    """The profiler lets go inside of the next call of CUDA's, and a thread of its own waits for that. A program that ends without one waits for that thread, for ever:
    so some calls are made. When the thread begins to wait is not told."""
    for _ in range(CALLS):
        session.device.synchronize()
        sleep(PAUSE_S)
