import unittest

from limits import limits


class LimitsTest(unittest.TestCase):
    def test_given_ones_win(self):
        self.assertEqual(limits({"timeout": "1m"})["timeout"], 60)
