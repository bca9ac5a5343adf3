"""Steps that are left alone: those of the warm-up, and those that are timed undisturbed."""
from time import perf_counter_ns

from .backwards import Backwards

FAR, FEW = 3, 0.15                      # times the median; of the steps


class WarmUp:
    """So many steps, which are the same on all ranks: windows of ranks must be the same steps. Counts backward passes on the way. What is known is written one
    step before the end: the window behind it begins with a step that nothing was written in."""
    saves = False

    def __init__(self, steps):
        self.steps = steps

    def begin(self, session):
        self.backwards = Backwards(session.torch)

    def boundary(self, session, steps=1):
        self.backwards.step(steps, session.calls)
        if session.steps == self.steps - 1:
            session.save()
        return session.steps >= self.steps

    def idle(self, session):
        """How many of the steps to come nobody needs to hear of."""
        return max(self.steps - session.steps - 2, 0) if self.backwards.is_done() else 0

    def end(self, session):
        session.result["backwards_per_step"] = self.backwards.close()

    def drop(self, session):
        self.backwards.close()

    def forked(self):
        """In the child of a fork, which is not watched."""
        self.backwards.close()


def _median(numbers):
    ordered = sorted(numbers)
    n = len(ordered)
    return (ordered[(n - 1) // 2] + ordered[n // 2]) / 2


def _usual(each):
    """The mean without single steps that are far from all others (a checkpoint, an evaluation, a machine that was elsewhere), and how many those are.
    Recorded steps are usual ones, and are held against this."""
    odd = [t for t in each if t > FAR * _median(each)]
    if not odd or len(odd) > len(each) * FEW:
        return sum(each) / len(each), 0
    return (sum(each) - sum(odd)) / (len(each) - len(odd)), len(odd)


class Undisturbed:
    """The device is waited for at the first boundary and at the last, and nothing but the clock is read between them."""

    def __init__(self, steps):
        self.n = max(steps, 1)
        self.backwards = None           # while it is learned again what a step is

    def begin(self, session):
        session.device.synchronize()
        self.first = session.steps
        self.times, self.steps, self.seen = [perf_counter_ns()], [], 0          # steps: between two of the times; seen: all of them

    def anew(self, session):
        self._close_backwards()
        self.backwards = Backwards(session.torch)

    def _close_backwards(self):
        backwards, self.backwards = self.backwards, None
        return backwards.close() if backwards is not None else 0

    def boundary(self, session, steps=1):
        if self.backwards is not None:
            self.backwards.step(steps, session.calls)
            session.result["backwards_per_step"] = self._close_backwards()
            self.begin(session)
            return False
        self.times.append(perf_counter_ns())
        self.steps.append(steps)
        self.seen += steps
        return self.seen >= self.n

    def drop(self, session):
        self._close_backwards()

    def forked(self):
        """In the child of a fork, which is not watched."""
        self._close_backwards()

    def end(self, session):
        session.device.synchronize()
        self.times[-1] = perf_counter_ns()
        each = [(b - a) / 1e3 / n for a, b, n in zip(self.times, self.times[1:], self.steps)]
        mean = (self.times[-1] - self.times[0]) / 1e3 / self.seen
        # A host that runs ahead of its device has short steps and, where it waits, one long one: there only all of them together are true.
        usual, odd = _usual(each) if session.device.kind == "cpu" else (mean, 0)
        if odd:
            session.note("%d of %d undisturbed steps took up to %.1f ms, far more than the others; the usual one, %.2f ms, is the one that is judged"
                         % (odd, self.seen, max(each) / 1e3, usual / 1e3))
        session.result["undisturbed"] = {
            "first": self.first, "steps": self.seen, "step_us": mean, "usual_us": usual, "median_us": _median(each),
            "fastest_us": min(each), "slowest_us": max(each), "each_us": [round(t, 1) for t in each]}
