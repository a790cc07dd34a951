import unittest

from menu import shown


class ShownTest(unittest.TestCase):
    def test_lines(self):
        self.assertEqual(shown([("Single", 240), ("Day", 700)])[1], "2  Day           7.00")
