"""Calls of the program that nobody needs to hear of: they are counted down, and nothing else is done in them."""


class Count:
    __slots__ = ("given", "left")

    def __init__(self):
        self.given = self.left = 0

    def let_pass(self, calls):
        self.given = self.left = calls

    def passed(self):
        """How many passed since this was last asked."""
        passed, self.given = self.given - self.left, self.left
        return passed
