"""The gates of a switch: from the same state and on the same batch, losses and gradients as without it, within what its kind of numbers allows.

All turns begin with the same weights and batch, and the two of a pair with the same random numbers, so the first step of each can be compared. Where a
program draws its batches by a counter of its own, its models get the same inputs in that step; what turns without any switch still differ by makes
the limit wider (noise_of). Where dropout takes its numbers in another order, pairs differ by chance: so does what the mean of their differences may be off.
"""
from itertools import zip_longest
from math import isfinite, sqrt

#           losses, gradients, relative to those without the switch
LIMITS = {
    "exact": (1e-5, 1e-4),              # the same sums in another order
    "tf32":  (1e-3, 1e-2),              # operands of 10 bits
    "f16":   (2e-3, 1e-2),              # operands, and what ops hand on, of 11 bits
    "bf16":  (1e-2, 5e-2),              # operands of 8 bits
}
MEMORY_MORE = 1.1                       # times as much as without the switch, or
MEMORY_SHARE = 0.8                      # so much of the device
NOISES = 2                              # of noise_of
SPREADS = 3                             # standard errors


def widest(kinds):
    order = list(LIMITS)
    return max(kinds, key=order.index, default="exact")


def _norm(v):
    return sqrt(sum(x * x for x in v))


def _mean(vectors):
    return [sum(column) / len(vectors) for column in zip(*vectors)]


def _spread(vectors, mean):
    """The standard error of the mean, as a length."""
    n = len(vectors)
    return sqrt(sum(_norm([x - m for x, m in zip(v, mean)]) ** 2 for v in vectors) / (n - 1) / n) if n > 1 else 0.0


def failed(name, limit, why):
    return {"gate": name, "pass": False, "value": None, "limit": limit, "why": why}


def _relative(a, b):
    return _norm([x - y for x, y in zip(a, b)]) / max(_norm(a), 1e-30)


def noise_of(turns):
    """The most that two turns without any switch differ by: (losses, gradients). None: their losses are not finite, or not as many."""
    found = []
    for vectors in ([t.losses for t in turns], [t.norms for t in turns]):
        if len({len(v) for v in vectors}) != 1 or not vectors[0] or not all(isfinite(_norm(v)) for v in vectors):
            return None
        found.append(max(_relative(a, b) for a in vectors for b in vectors))
    return tuple(found)


def _compare(name, a, b, limit):
    """a, b: vectors of equal length, of as many turns without the switch as with it; a pair has the same random numbers."""
    if len({len(v) for v in a + b}) != 1 or not a[0]:
        return failed(name, limit, "steps differ in the number of backward passes")
    differences = [[y - x for x, y in zip(u, v)] for u, v in zip(a, b)]
    size, off = _norm(_mean(a)), _mean(differences)
    if not isfinite(size) or not isfinite(_norm(off)):
        return failed(name, limit, "%s are not finite" % name)
    error, noise = _norm(off) / max(size, 1e-30), SPREADS * _spread(differences, off) / max(size, 1e-30)
    gate = {"gate": name, "pass": error <= limit + noise, "value": error, "limit": limit + noise}
    if not gate["pass"]:
        gate["why"] = "%s differ by %.2g, and may by %.2g" % (name, error, limit + noise)
    return gate


def _memory(a, b, total):
    a, b = max(a), max(b)
    most = max(MEMORY_MORE * a, MEMORY_SHARE * total)
    gate = {"gate": "memory", "pass": b <= most, "value": b, "limit": most}
    if not gate["pass"]:
        gate["why"] = "it takes %.2f GB at most, instead of %.2f, and may take %.2f" % (b / 1e9, a / 1e9, most / 1e9)
    return gate


def judge(kind, a, b, memory_total, noise=(0.0, 0.0)):
    """a, b: turns without and with the switch, each with losses, norms and peak_bytes."""
    losses, gradients = (limit + NOISES * more for limit, more in zip(LIMITS[kind], noise))
    gates = [_compare("losses", [t.losses for t in a], [t.losses for t in b], losses),
             _compare("gradients", [t.norms for t in a], [t.norms for t in b], gradients)]
    if memory_total:
        gates.append(_memory([t.peak_bytes for t in a], [t.peak_bytes for t in b], memory_total))
    return gates


def worst_of(by_rank):
    """The gates of all ranks as one list: of each gate the one that failed, else the one that is nearest to it."""
    def badness(gate):
        return (not gate["pass"], (gate["value"] or 0) / gate["limit"] if gate["limit"] else 0)
    return [max((gate for gate in same if gate is not None), key=badness) for same in zip_longest(*by_rank)]


def failure(gates):
    return next((g["why"] for g in gates if not g["pass"]), None)
