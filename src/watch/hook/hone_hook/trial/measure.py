"""Times of turns, and the interval of a ratio of medians by resampling pairs of turns: as `hone verify` does it (src/prove/bootstrap.c)."""
import random
from math import ceil

TURN_SECONDS, STEPS_FEWEST, STEPS_MOST = 0.1, 5, 64
PAIRS_FEWEST, PAIRS_MOST = 8, 100
SETTLED = 0.03                          # the width of an interval that needs no more turns
PATIENCE = 3                            # times as long as asked for, where it is wider
RESAMPLES, CONFIDENCE = 2000, 0.9
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


def ratio(a, b, seed=1):
    """How much faster b is: (value, low, high), the interval of 90 %."""
    n, rng = len(a), random.Random(seed)
    found = []
    for _ in range(RESAMPLES):
        drawn = [rng.randrange(n) for _ in range(n)]
        found.append(median([a[i] for i in drawn]) / median([b[i] for i in drawn]))
    found.sort()
    at = (1 - CONFIDENCE) / 2
    return median(a) / median(b), found[int(at * (RESAMPLES - 1))], found[int((1 - at) * (RESAMPLES - 1))]
