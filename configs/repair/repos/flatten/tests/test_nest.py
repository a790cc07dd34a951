import unittest

from nest import nest


class NestTest(unittest.TestCase):
    def test_back(self):
        self.assertEqual(nest({"a": 1, "b.c": 2, "b.d.e": 3}), {"a": 1, "b": {"c": 2, "d": {"e": 3}}})
