import unittest

from bounds import first_at_least


class BoundsTest(unittest.TestCase):
    def test_one_of_them(self):
        self.assertEqual([first_at_least([2, 4, 6], wanted) for wanted in (1, 2, 3, 4, 5, 6)], [0, 0, 1, 1, 2, 2])

    def test_the_first_of_equal_ones(self):
        self.assertEqual(first_at_least([1, 5, 5, 5, 9], 5), 1)

    def test_beyond_the_last(self):
        self.assertEqual(first_at_least([2, 4, 6], 7), 3)

    def test_none_at_all(self):
        self.assertEqual(first_at_least([], 1), 0)
