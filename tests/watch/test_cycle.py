"""Which call of an optimizer ends a step: cycles of calls, by letters. Needs no torch."""
import os
import random
import sys
import types
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "src", "watch", "hook"))
from hone_hook.cycle import MOST, Cycle, find_period  # noqa: E402
from hone_hook.window import Undisturbed  # noqa: E402


def ends(calls):
    """How many steps end with each call."""
    cycle = Cycle()
    return [int(cycle.steps_ended(c)) for c in calls], cycle


class Periods(unittest.TestCase):
    def test_periods(self):
        for calls, period in (("a", 0), ("aa", 0), ("aaa", 1), ("ababa", 0), ("ababab", 2), ("aab" * 3, 3), ("aab" * 3 + "a", 3), ("abac" * 3, 4)):
            self.assertEqual(find_period(calls), period, calls)

    def test_one_optimizer(self):
        steps, _ = ends("aaaaa")
        self.assertEqual(steps, [0, 0, 3, 1, 1])

    def test_two_optimizers(self):
        steps, cycle = ends("ab" * 5)
        self.assertEqual(steps, [0, 0, 0, 0, 0, 3, 0, 1, 0, 1])
        self.assertEqual(cycle.period, 2)

    def test_critic(self):
        """Five of one for each of the other: what looked like a step is told again when the other comes."""
        steps, cycle = ends(("d" * 5 + "g") * 8)
        self.assertEqual(cycle.period, 6)
        self.assertEqual(sum(steps[-12:]), 2)

    def test_a_step_inside_of_another(self):
        """One optimizer that calls another, or itself as the class it comes from: a step ends with the outer one, and is one call."""
        for inner in "ab":
            cycle = Cycle()
            steps = [cycle.steps_ended(who, lambda: inside) for who, inside in [(inner, 1), ("a", 0)] * 5]
            self.assertEqual(steps, [0, 0, 0, 0, 0, 3, 0, 1, 0, 1])
            self.assertEqual((cycle.period, cycle.outer), (2, 1))

    def test_new_optimizer(self):
        """A second training in the same process."""
        steps, cycle = ends("aaaaa" + "bbbbb")
        self.assertEqual(steps[5:], [0, 0, 3, 1, 1])

    def test_steps_before_it_is_known(self):
        for calls, steps in (("", 0), ("a", 1), ("aa", 2), ("aaa", 0), ("dgd", 1), ("dgdg", 2), ("aaaa" + "b", 1)):
            self.assertEqual(ends(calls)[1].steps_unknown(), steps, calls)

    def test_optimizers_that_come_and_go(self):
        """A new one for every task, beside one that stays: there is no cycle, and every call counts, also those before that was known."""
        cycle, ended = Cycle(), 0
        for task in range(40):
            for who in (task, "outer"):
                ended += cycle.steps_ended(who)
            cycle.forget(task)
        self.assertEqual((ended, cycle.period), (80, 1))

    def test_no_cycle(self):
        """Where there is none, the optimizer that is called the least ends a step."""
        calls, draw = [], random.Random(1)
        while len(calls) < MOST + 100:
            calls += ["a"] * draw.randint(1, 7) + ["b"]
        steps, cycle = ends(calls)
        self.assertEqual(sum(steps), calls.count("b"))


class Windows(unittest.TestCase):
    def test_several_steps_at_one_boundary(self):
        """As where it was just learned what a step is: the time is that of a step."""
        session = types.SimpleNamespace(device=types.SimpleNamespace(kind="cpu", synchronize=lambda: None), steps=10, calls=1, result={}, note=lambda text: None)
        at = iter(range(0, 10 ** 9, 10 ** 6))
        with mock.patch("hone_hook.window.perf_counter_ns", lambda: next(at) * 3):
            timed = Undisturbed(6)
            timed.begin(session)
            self.assertEqual([timed.boundary(session, n) for n in (3, 3)], [False, True])
            timed.end(session)
        self.assertEqual((session.result["undisturbed"]["steps"], session.result["undisturbed"]["step_us"]), (6, 1500.0))


if __name__ == "__main__":
    unittest.main()
