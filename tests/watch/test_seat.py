"""The folder of a rank: who has it, who gets it next, and what of the one before goes. Needs no torch."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "src", "watch", "hook"))
from hone_hook import presence, seat  # noqa: E402


class Seat(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.out = self.folder.name
        self.rank = os.path.join(self.out, "rank0")

    def tearDown(self):
        self.folder.cleanup()

    def write(self, name, text):
        with open(os.path.join(self.out, name), "w") as f:
            f.write(text)

    def leave(self, result):
        """As a process that has ended left it."""
        child = subprocess.Popen([sys.executable, "-c", ""])
        child.wait()
        os.mkdir(self.rank)
        self.write("rank0/pid", "%d\n" % child.pid)
        self.write("rank0/watch.json", json.dumps(result))

    def test_one_has_it(self):
        self.assertIsNone(seat.take(self.rank))
        self.assertEqual(seat.take(self.rank), "another process is rank 0 already")         # this one, which runs

    def test_what_was_recorded_stays(self):
        self.leave({"recorded": [{"kind": "shapes"}]})
        self.assertEqual(seat.take(self.rank), "another process is rank 0 already")

    def test_settings_of_a_trial_that_was_cut_short_go_with_it(self):
        kept = ["hone_settings.py", "patch.md", "rank0"]
        of = {"settings_file": "hone_settings.py"}
        for trial, left in ((None, kept), (dict(of, status="done"), kept), (dict(of, status="ended early"), ["rank0"]), (dict(of, status="running"), ["rank0"])):
            for name in seat.SETTINGS:
                self.write(name, "x")
            self.leave({"trial": trial})
            self.assertIsNone(seat.take(self.rank))
            self.assertEqual(sorted(os.listdir(self.out)), left)
            os.remove(os.path.join(self.rank, "pid"))
            os.rmdir(self.rank)

    def test_a_folder_that_hone_has_taken_away_is_not_made_anew(self):
        gone = os.path.join(self.out, "gone")
        presence.tell(gone, presence.PYTHON)
        self.assertIn("is not here: hone has ended, or this is another machine", seat.take(os.path.join(gone, "rank0")))
        self.assertFalse(os.path.exists(gone))
        presence.tell(self.out, presence.PYTHON)
        presence.tell(self.out, presence.STEP)
        self.assertEqual(os.listdir(os.path.join(self.out, "processes")), [str(os.getpid())])


if __name__ == "__main__":
    unittest.main()
