import unittest

from intervals import merged, total


class MergedTest(unittest.TestCase):
    def test_apart(self):
        self.assertEqual(merged([(50, 60), (10, 20)]), [(10, 20), (50, 60)])

    def test_overlapping(self):
        self.assertEqual(merged([(10, 30), (20, 40)]), [(10, 40)])

    def test_touching(self):
        self.assertEqual(merged([(10, 20), (20, 30)]), [(10, 30)])

    def test_one_inside_another(self):
        self.assertEqual(merged([(10, 100), (20, 30)]), [(10, 100)])
        self.assertEqual(total([(0, 60), (10, 20), (15, 25)]), 60)

    def test_nothing(self):
        self.assertEqual(merged([]), [])
