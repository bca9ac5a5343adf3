"""Looks whether anything of the hook still stands in it when it has taken its steps."""
import gc
import sys
import types
import warnings

import torch
from torch.optim.lr_scheduler import LambdaLR


def is_hone(function):
    """Of the hook, or with other code that is."""
    return type(function) is types.FunctionType and ("hone_hook" in function.__code__.co_filename or any("_hone" in name for name in function.__kwdefaults__ or ()))


def is_other(holder):
    return type(holder) is types.ModuleType and not holder.__name__.startswith("hone_hook") or isinstance(holder, type) and not str(holder.__module__).startswith("hone_hook")


def standing():
    """Where a function of the hook stands in for one of the program's, or waits to be called by it."""
    found = ["hook %s" % hook for hook in sys.modules[torch.optim.Optimizer.__module__]._global_optimizer_post_hooks.values()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")                         # some of what is looked at is deprecated, and says so
        holders = list(filter(is_other, gc.get_objects()))
    for holder in holders:
        found += ["%s.%s" % (holder.__name__, name) for name, value in list(vars(holder).items()) if is_hone(value)]
    compiler = [sys.modules["torch._dynamo.eval_frame"].OptimizeContext.__init__] if "torch._dynamo.eval_frame" in sys.modules else []
    found += ["%s" % f for f in [torch.autograd.backward, torch.autograd.profiler.record_function.__exit__] + compiler if is_hone(f)]
    return found + ["%s" % finder for finder in sys.meta_path if type(finder).__module__.startswith("hone_hook")]


def train_step(batch, *, scale=1.0):
    (model(batch).sum() * scale).backward()
    optimizer.step()
    scheduler.step()
    optimizer.zero_grad(set_to_none=False)


torch.manual_seed(0)
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
bound, code = torch.optim.Adam.step, torch.optim.Adam.step.__code__
scheduler = LambdaLR(optimizer, lambda n: 0.99 ** n)            # holds the step of its optimizer
loader = torch.utils.data.DataLoader(torch.randn(64, 8), batch_size=4, shuffle=True)
whole = train_step.__code__, train_step.__kwdefaults__
for epoch in range(int(sys.argv[1])):
    for batch in loader:
        train_step(batch)
    if epoch == 0:
        assert standing() or train_step.__code__ is not whole[0], "nothing to take off"
assert bound is torch.optim.Adam.step and code is bound.__code__
assert (train_step.__code__, train_step.__kwdefaults__) == whole and not hasattr(train_step, "__wrapped__")
print("left:", standing())
