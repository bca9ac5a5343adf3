"""How many backward passes a step makes: more than one is gradient accumulation, or several losses. Counted in some of the first steps."""

ENOUGH = 5                              # steps


class Backwards:
    def __init__(self, torch):
        self.module = torch.autograd
        self.run = torch.autograd.backward
        self.now, self.per_step = 0, []
        self.module.backward = self.ours = self.counting()

    def counting(self):
        run = self.run

        def backward(*args, **kwargs):
            self.now += 1
            return run(*args, **kwargs)
        return backward

    def step(self):
        if not self.is_done():
            self.per_step.append(self.now)
            self.now = 0
            if len(self.per_step) == ENOUGH:
                self.close()

    def is_done(self):
        return self.run is None

    def close(self):
        """The usual number, of the steps that were seen whole. The function that counted is taken away, unless the program has put one of its own around it."""
        if self.run is not None and self.module.backward is self.ours:
            self.module.backward = self.run
        self.run = None
        return sorted(self.per_step)[len(self.per_step) // 2] if self.per_step else 0
