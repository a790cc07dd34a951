import unittest

from jobs import jobs


class JobsTest(unittest.TestCase):
    def test_those_with_a_command(self):
        text = "[a]\ncommand = tar\n[b]\npath = /\n"
        self.assertEqual(jobs(text), {"a": "tar"})

    def test_options(self):
        self.assertEqual(jobs("[a]\ncommand = tar --level=9 --out=x\n"), {"a": "tar --level=9 --out=x"})
