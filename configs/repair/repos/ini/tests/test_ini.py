import unittest

from ini import BadLine, parse


class ParseTest(unittest.TestCase):
    def test_sections(self):
        text = "a = 1\n\n[disk]\npath = /srv\n# all of it\nkeep=7\n"
        self.assertEqual(parse(text), {"": {"a": "1"}, "disk": {"path": "/srv", "keep": "7"}})

    def test_a_value_with_an_equals_sign(self):
        self.assertEqual(parse("key = a=b==\n"), {"": {"key": "a=b=="}})

    def test_a_line_that_is_none(self):
        with self.assertRaisesRegex(BadLine, "line 2"):
            parse("a = 1\nhello\n")
