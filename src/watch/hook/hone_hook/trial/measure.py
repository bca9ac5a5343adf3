"""Times of turns, and how much faster one side is.

The two turns of a pair stand side by side, so what else the machine does slows both: a pair is one reading, the logarithm of the ratio of its times. Some readings are far
off, where it slowed one alone. So the gain is the median of the means of any two readings, and its interval is Wilcoxon's: it asks nothing of the noise but that it strikes both
sides alike, and who begins changes. bench/watch-itself counts how often it does not hold the truth.
"""
from functools import lru_cache
from math import ceil, exp, log

TURN_SECONDS, STEPS_FEWEST, STEPS_MOST = 0.1, 5, 64
PAIRS_FEWEST, PAIRS_MOST = 8, 100
SETTLED = 0.03                          # the width of an interval that needs no more turns
PATIENCE = 3                            # times as long as asked for, where it is wider
CONFIDENCE = 0.9
SLOW_STEP = 0.25                        # of seconds: fewer steps in a turn, which is long enough then


def steps_of_turn(step_s):
    if step_s >= SLOW_STEP:
        return 2
    return min(max(ceil(TURN_SECONDS / max(step_s, 1e-6)), STEPS_FEWEST), STEPS_MOST)


def median(values):
    ordered = sorted(values)
    n = len(ordered)
    return (ordered[(n - 1) // 2] + ordered[n // 2]) / 2


def is_enough(a, b, fewest, spent, seconds):
    """After len(a) pairs that took so long."""
    if len(a) < fewest or spent < seconds:
        return False
    if spent >= PATIENCE * seconds or len(a) >= PAIRS_MOST:
        return True
    _, low, high = ratio(a, b)
    return high - low < SETTLED


@lru_cache(maxsize=None)
def _rank(n):
    """Which of the means of any two of n readings, counted from either end, bounds the interval."""
    chances = [1.0]                     # of a sum of ranks 1 to n, each of which is in it or not
    for rank in range(1, n + 1):
        none = [0.0] * rank
        chances = [(without + having) / 2 for without, having in zip(chances + none, none + chances)]
    below, k = chances[0], 0
    while below <= (1 - CONFIDENCE) / 2:
        k += 1
        below += chances[k]
    return max(k, 1)


def ratio(a, b):
    """How much faster b is: (value, low, high), the interval of 90 %. Of fewer than 5 pairs it is all that there is, and holds less."""
    readings = [log(x / y) for x, y in zip(a, b)]
    n = len(readings)
    means = sorted((readings[i] + readings[j]) / 2 for i in range(n) for j in range(i, n))
    return exp(median(means)), exp(means[_rank(n) - 1]), exp(means[-_rank(n)])
