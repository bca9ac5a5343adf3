"""What hone set in the environment is taken back, and what the program set since then stays. Needs no torch."""
import os
import sys
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "src", "watch", "hook"))
from hone_hook import environment  # noqa: E402

NOTHING = {"PYTHONPATH": None, "PYTHONDONTWRITEBYTECODE": None, "KINETO_LOG_LEVEL": None}


def restored(before, **now):
    """The environment when all is over."""
    with mock.patch.dict(os.environ, dict(now, HONE_WATCH="{}"), clear=True):
        environment.restore({"environment": dict(NOTHING, **before)})
        environment.restore({"environment": dict(NOTHING, **before)}, late=True)
        return dict(os.environ)


class Restored(unittest.TestCase):
    def test_as_hone_set_it(self):
        self.assertEqual(restored({}, PYTHONPATH=environment.HOOK, **environment.OURS), {})
        self.assertEqual(restored({"PYTHONPATH": ""}, PYTHONPATH=environment.HOOK), {"PYTHONPATH": ""})
        self.assertEqual(restored({"PYTHONPATH": "a::b"}, PYTHONPATH=environment.HOOK + ":a::b"), {"PYTHONPATH": "a::b"})

    def test_the_program_put_a_folder_before_it(self):
        self.assertEqual(restored({"PYTHONPATH": "a"}, PYTHONPATH="own:" + environment.HOOK + ":a:more"), {"PYTHONPATH": "own:a:more"})

    def test_the_program_set_it_anew(self):
        now = {"PYTHONPATH": "own", "PYTHONDONTWRITEBYTECODE": "2", "KINETO_LOG_LEVEL": "3"}
        self.assertEqual(restored({}, **now), now)

    def test_the_program_took_it_away(self):
        self.assertEqual(restored({"PYTHONPATH": "a", "KINETO_LOG_LEVEL": "5"}), {})

    def test_what_hone_left_as_it_was(self):
        self.assertEqual(restored({"KINETO_LOG_LEVEL": "5"}, KINETO_LOG_LEVEL="5"), {"KINETO_LOG_LEVEL": "5"})


class Bytecode(unittest.TestCase):
    def test_the_option(self):
        for line, given in (("python3 x.py", False), ("python3 -B x.py", True), ("python3 -uB x.py", True), ("python3 -u x.py -B", False), ("python3 -m B", False),
                            ("python3 -mB", False), ("python3 -W B -B x.py", True), ("python3 -W B x.py", False), ("python3 -WB x.py", False),
                            ("python3 -X dev -c B", False), ("python3 --check-hash-based-pycs never -B x.py", True), ("python3 - -B", False), ("python3", False)):
            self.assertEqual(environment.has_option_b(line.split()), given, line)


if __name__ == "__main__":
    unittest.main()
