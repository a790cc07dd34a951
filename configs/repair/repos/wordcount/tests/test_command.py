import io
import os
import tempfile
import unittest
from contextlib import redirect_stderr, redirect_stdout

from wordcount.command import main


class CommandTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = os.path.join(folder.name, "text")
        with open(self.file, "w", encoding="utf-8") as file:
            file.write("A rose is a rose is a rose.\n")

    def run_it(self, *words):
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = main(list(words))
        return code, out.getvalue(), err.getvalue()

    def test_all_words(self):
        self.assertEqual(self.run_it(self.file), (0, "     3 a\n     3 rose\n     2 is\n", ""))

    def test_long_words(self):
        self.assertEqual(self.run_it("--least", "2", self.file), (0, "     3 rose\n     2 is\n", ""))

    def test_the_most_frequent(self):
        self.assertEqual(self.run_it("--top", "1", self.file)[1], "     3 a\n")

    def test_a_file_that_is_not_there(self):
        code, out, err = self.run_it("/no/such/file", self.file)
        self.assertEqual((code, len(out.splitlines())), (2, 3))
        self.assertIn("/no/such/file", err)
