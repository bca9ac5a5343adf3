"""How many backward passes a step makes: more than one is gradient accumulation, or several losses. Counted while the program warms up."""


class Backwards:
    def __init__(self, torch):
        self.module = torch.autograd
        self.run = torch.autograd.backward
        self.now, self.per_step = 0, []
        self.module.backward = self.counting()

    def counting(self):
        run = self.run

        def backward(*args, **kwargs):
            self.now += 1
            return run(*args, **kwargs)
        return backward

    def step(self):
        self.per_step.append(self.now)
        self.now = 0

    def close(self):
        """The usual number, of the steps that were seen whole. The function that counted is taken away."""
        if self.run is not None:
            self.module.backward = self.run
            self.run = None
        return sorted(self.per_step)[len(self.per_step) // 2] if self.per_step else 0
