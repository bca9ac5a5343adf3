from . import profiler  # noqa: F401


def backward(tensors):
    pass
