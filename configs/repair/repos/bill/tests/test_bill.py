import unittest

from bill import shares
from money import cents


class SharesTest(unittest.TestCase):
    def test_even(self):
        self.assertEqual(shares("30.00", 3), ["10.00", "10.00", "10.00"])

    def test_uneven(self):
        self.assertEqual(shares("10.00", 3), ["3.34", "3.33", "3.33"])

    def test_they_add_up(self):
        for total in ("0.05", "99.99", "100.01"):
            for people in (1, 2, 3, 7):
                self.assertEqual(sum(map(cents, shares(total, people))), cents(total))

    def test_nobody(self):
        with self.assertRaises(ValueError):
            shares("1.00", 0)
