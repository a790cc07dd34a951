import unittest

from wrap import wrap


class WrapTest(unittest.TestCase):
    def test_one_line(self):
        self.assertEqual(wrap("a short text"), ["a short text"])

    def test_several_lines(self):
        self.assertEqual(wrap("one two three four", 9), ["one two", "three", "four"])

    def test_exactly_as_wide(self):
        self.assertEqual(wrap("1234 678", 8), ["1234 678"])

    def test_a_long_word(self):
        self.assertEqual(wrap("a incomprehensible b", 6), ["a", "incomprehensible", "b"])

    def test_nothing(self):
        self.assertEqual(wrap(" \n "), [])
