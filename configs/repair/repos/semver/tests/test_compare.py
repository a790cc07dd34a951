import unittest

from semver import newest, older


class CompareTest(unittest.TestCase):
    def test_single_digits(self):
        self.assertTrue(older("1.2.3", "1.2.4"))
        self.assertFalse(older("2.0.0", "1.9.9"))

    def test_two_digits(self):
        self.assertTrue(older("1.9.0", "1.10.0"))
        self.assertEqual(newest(["0.9.12", "0.10.2", "0.9.9"]), "0.10.2")

    def test_a_tag_comes_first(self):
        self.assertTrue(older("1.0.0-rc.1", "1.0.0"))
