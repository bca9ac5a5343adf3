"""Not torch: as much of its surface as `hone watch` touches, so that the mechanics of watching are tested where there is no torch.

A step of a program that uses it takes as long as the program makes it. The profiler writes a small trace in the format of the real one: every
recorded step has a matrix product, and a wait for the device where FAKE_TORCH_DEVICE says that there is one.
"""
from . import autograd, cuda, optim, profiler, version  # noqa: F401

__version__ = "2.1.0+fake"


class device:
    def __init__(self, type, index=None):
        self.type, self.index = type, index


def get_num_threads():
    return 1
