"""A training loop that does as its arguments say: STEPS [WORD...]. It needs no torch but what `import torch` finds."""
import atexit
import os
import signal
import sys
import threading
import time

if "linger" in sys.argv:
    atexit.register(time.sleep, 1000)           # before torch is here, so it is the last to run

if "deaf" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "thread" in sys.argv:
    threading.Thread(target=time.sleep, args=(1000,)).start()           # Python waits for it before anything else

import torch  # noqa: E402


def main():
    steps, words = int(sys.argv[1]), sys.argv[2:]
    optimizer = torch.optim.SGD()
    if "slow" in words:
        print("pid", os.getpid(), flush=True)
    own = (lambda *event: None) if "profiled" in words else None
    sys.setprofile(own)
    for i in range(steps):
        time.sleep(0.05 if "slow" in words else 0.002)
        if "swallow" in words:
            skip_bad(optimizer.step)
            continue
        torch.autograd.backward(None)
        if "accumulate" in words:
            torch.autograd.backward(None)
            torch.autograd.backward(None)
        optimizer.step()
        if "die" in words and i == steps // 2:
            sys.exit(7)
        if "raise" in words and i == steps // 2:
            raise ValueError("as asked")
        if "kill" in words and i == steps // 2:
            os.kill(os.getpid(), 9)
        if "fork" in words and i == 5:
            fork(optimizer)
    print("steps", optimizer.taken, "input", sys.stdin.read().strip() if "input" in words else "-")
    print("its profile function is there:", sys.getprofile() is own, file=sys.stderr)
    print("pythonpath", os.environ.get("PYTHONPATH", "-"), "watch", os.environ.get("HONE_WATCH", "-"), file=sys.stderr)


def fork(optimizer):
    """A child that takes steps of its own, which are not the program's."""
    child = os.fork()
    if child == 0:
        for _ in range(100):
            optimizer.step()
        os._exit(0)
    os.waitpid(child, 0)


def skip_bad(batch):
    """As loops do that are not to end by one bad batch."""
    try:
        batch()
    except:  # noqa: E722
        print("skipped", flush=True)


if "catch" in sys.argv:
    try:
        main()
    except BaseException as error:
        print("crashed:", repr(error))
        sys.exit(3)
else:
    main()
