"""How many backward passes a step makes: more than one is gradient accumulation, or several losses. Counted in some of the first steps."""
from .inplace import InPlace

ENOUGH = 5                              # steps


def _backward(*args, _hone_plain, _hone_backwards, **kwargs):
    """The code of torch.autograd.backward meanwhile."""
    _hone_backwards.now += 1
    return _hone_plain(*args, **kwargs)


class Backwards:
    def __init__(self, torch):
        self.now, self.per_step, self.guess = 0, [], None
        self.stands = InPlace(torch.autograd.backward, _backward, hidden=True, _hone_backwards=self)

    def step(self, steps, calls):
        """Behind `steps` steps of `calls` calls of optimizers each. At first it is several, until it is known what a step is, and their first call came before us: a guess."""
        if self.guess is None:
            self.guess = round(self.now / (steps - 1 / calls)) if steps * calls > 1 else 0
        elif not self.is_done():
            self.per_step.append(self.now / steps)
            if len(self.per_step) == ENOUGH:
                self.close()
        self.now = 0

    def is_done(self):
        return self.stands is None

    def close(self):
        """The usual number, of the steps that were seen whole, if any was. The function is what it was."""
        stands, self.stands = self.stands, None
        if stands is not None:
            stands.close()
        return round(sorted(self.per_step)[len(self.per_step) // 2]) if self.per_step else self.guess or 0
