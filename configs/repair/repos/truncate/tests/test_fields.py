import unittest

from fields import field, read


class FieldTest(unittest.TestCase):
    def test_short_texts_are_filled_up(self):
        self.assertEqual(field("abc", 5), b"abc\0\0")

    def test_long_texts_are_cut(self):
        self.assertEqual(field("abcdef", 4), b"abcd")

    def test_a_field_has_its_size(self):
        for text in ("Zoë", "naïveté", "日本語", "🎈🎈"):
            for size in range(1, 9):
                self.assertEqual(len(field(text, size)), size)

    def test_no_sign_is_cut_in_two(self):
        self.assertEqual(read(field("日本語", 7)), "日本")
