import functools


class Parameter:
    def __init__(self):
        from . import device
        self.device = device("cpu")


class Optimizer:
    """As the real one: the first of a class passes its step through profile_hook_step."""

    def __init__(self, parameters=None):
        self.param_groups = [{"params": list(parameters or [Parameter()])}]
        if not getattr(self.__class__.step, "hooked", None):
            self.__class__.step = self.profile_hook_step(self.__class__.step)
            self.__class__.step.hooked = True

    @staticmethod
    def profile_hook_step(step):
        @functools.wraps(step)
        def wrapper(*args, **kwargs):
            return step(*args, **kwargs)
        return wrapper

    def step(self):
        raise NotImplementedError


class SGD(Optimizer):
    def step(self):
        self.taken = getattr(self, "taken", 0) + 1
