import unittest

from mines import drawn, field


class MinesTest(unittest.TestCase):
    def test_no_mines(self):
        self.assertEqual(drawn(field(3, 2, [])), "...\n...")

    def test_counts(self):
        self.assertEqual(drawn(field(4, 3, [(0, 0), (3, 2)])), "*1..\n1111\n..1*")
