import functools
from collections import OrderedDict

_global_optimizer_post_hooks = OrderedDict()


class RemovableHandle:
    """Of the real one as much as it takes."""

    def __init__(self, hooks):
        self.hooks_dict_ref, self.id = lambda: hooks, len(hooks)

    def remove(self):
        del self.hooks_dict_ref()[self.id]


def register_optimizer_step_post_hook(hook):
    handle = RemovableHandle(_global_optimizer_post_hooks)
    _global_optimizer_post_hooks[handle.id] = hook
    return handle


class Parameter:
    def __init__(self):
        from .. import device
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
            from ..autograd.profiler import record_function
            with record_function("Optimizer.step#" + type(args[0]).__name__):
                out = step(*args, **kwargs)
                for hook in _global_optimizer_post_hooks.values():
                    hook(args[0], args, kwargs)
                return out
        return wrapper

    def step(self):
        raise NotImplementedError


class SGD(Optimizer):
    def step(self):
        self.taken = getattr(self, "taken", 0) + 1
