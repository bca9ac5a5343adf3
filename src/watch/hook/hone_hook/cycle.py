"""Which call of an optimizer ends a training step, where there are several optimizers (a GAN, one per part of a model, one inside of another).

Calls come in cycles: D G D G, or D D D G. A cycle is known when it has come three times; its last call ends a step. Where optimizers come and go there is none: every call
ends one then.
"""

TURNS, MOST, GONE_MOST = 3, 256, 8


def find_period(calls):
    """The shortest cycle that the whole list repeats, TURNS times at least; 0: none yet."""
    n = len(calls)
    for period in range(1, n // TURNS + 1):
        if all(calls[i] == calls[i - period] for i in range(period, n)):
            return period
    return 0


class Cycle:
    def __init__(self):
        self.calls = []                 # (id of optimizer, how many steps it is inside of), until the period is known
        self.period = 0
        self.outer = 0                  # calls of a period that are inside of no other
        self.last = None                # where no cycle is found: the optimizer that is called the least ends a step
        self.at = 0                     # calls since the last end of a step
        self.known, self.gone = set(), 0

    def steps_ended(self, who, inside=lambda: 0):
        """How many steps end with this call of the optimizer with id who: 0 or 1, and more when it is first known what a step is.
        inside() says how many steps it is inside of; a call is asked for it as long as that may matter."""
        if who not in self.known:
            self.known.add(who)
            if self.gone >= GONE_MOST:
                return self._give_up()
            if self.period or self.last is not None:
                self.calls, self.period, self.last = [], 0, None    # one more optimizer: what was a cycle is none
        if self.last is not None:
            return (who, inside()) == self.last
        if self.period == 0:
            return self._learn((who, inside()))
        self.at += 1
        if self.at < self.period:
            return 0
        self.at = 0
        return 1

    def steps_unknown(self):
        """Steps that were taken and not told, as it was not known yet what one is: as many as the optimizer has taken that was called the least."""
        if self.period or self.last is not None:
            return 0
        outer = [who for who, inside in self.calls if inside == 0]
        return min((outer.count(who) for who in outer), default=0)

    def forget(self, who):
        """It is gone, and the next one may have its id."""
        self.known.discard(who)
        self.gone += 1

    def _give_up(self):
        ended = len(self.calls) + 1 if self.period == 0 and self.last is None else 1
        self.calls, self.period, self.outer, self.at, self.last = [], 1, 1, 0, None
        return ended

    def _learn(self, call):
        self.calls.append(call)
        self.period = find_period(self.calls)
        if self.period:
            self.outer = sum(inside == 0 for _, inside in self.calls[:self.period])
            self.at = len(self.calls) % self.period
            return len(self.calls) // self.period if self.at == 0 else 0
        if len(self.calls) == MOST:
            self.last = min(set(self.calls), key=self.calls.count)
            return self.calls.count(self.last)
        return 0
