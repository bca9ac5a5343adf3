"""Who waits for a module to be imported is called once, behind the import, whatever the program asked or tried before. Needs no torch."""
import importlib
import os
import sys
import tempfile
import unittest
from importlib import util

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "src", "watch", "hook"))
from hone_hook.arrive import when_imported  # noqa: E402


class Arrivals(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        sys.path.insert(0, self.folder.name)
        self.called, self.before = [], list(sys.meta_path)
        self.write("whole = True")
        self.finder = when_imported("awaited", lambda module: self.called.append(module.whole))

    def tearDown(self):
        self.finder.close()
        sys.modules.pop("awaited", None)
        sys.path.remove(self.folder.name)
        self.folder.cleanup()

    def write(self, text):
        with open(os.path.join(self.folder.name, "awaited.py"), "w") as f:
            f.write(text + "\n")
        importlib.invalidate_caches()

    def import_it(self):
        """It is called once, and nothing is left behind."""
        module = importlib.import_module("awaited")
        self.assertEqual((self.called, sys.meta_path), ([True], self.before))
        self.assertNotIn("exec_module", vars(module.__spec__.loader))

    def test_an_import(self):
        self.import_it()

    def test_asked_for_before(self):
        """As transformers, accelerate and datasets ask whether torch is there."""
        specs = [util.find_spec("awaited") for _ in range(2)]
        self.assertEqual(self.called, [])
        self.import_it()
        self.assertFalse([s for s in specs if "exec_module" in vars(s.loader)])

    def test_a_spec_that_is_used_later(self):
        spec = util.find_spec("awaited")
        self.import_it()
        spec.loader.exec_module(util.module_from_spec(spec))
        self.assertEqual(self.called, [True])

    def test_an_import_that_fails_first(self):
        self.write("whole = False; raise ImportError('not yet')")
        self.assertRaises(ImportError, importlib.import_module, "awaited")
        self.assertEqual(self.called, [])
        self.write("whole = True        # now")
        self.import_it()

    def test_one_that_is_not_there_first(self):
        os.remove(os.path.join(self.folder.name, "awaited.py"))
        importlib.invalidate_caches()
        self.assertIsNone(util.find_spec("awaited"))
        self.write("whole = True")
        self.import_it()

    def test_nobody_waits_any_more(self):
        spec = util.find_spec("awaited")
        self.finder.close()
        importlib.import_module("awaited")
        self.assertEqual((self.called, sys.meta_path), ([], self.before))
        self.assertNotIn("exec_module", vars(spec.loader))


if __name__ == "__main__":
    unittest.main()
