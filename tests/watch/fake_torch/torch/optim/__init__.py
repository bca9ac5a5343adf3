from . import optimizer  # noqa: F401
from .optimizer import SGD, Optimizer, Parameter  # noqa: F401
