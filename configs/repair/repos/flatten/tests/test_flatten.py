import unittest

from flatten import flatten


class FlattenTest(unittest.TestCase):
    def test_numbers(self):
        self.assertEqual(flatten({"a": 1, "b": {"c": 2.5, "d": {"e": None}}}), {"a": 1, "b.c": 2.5, "b.d.e": None})

    def test_lists(self):
        self.assertEqual(flatten({"ports": [80, 443]}), {"ports.0": 80, "ports.1": 443})

    def test_texts(self):
        flat = flatten({"name": "web", "tags": ["a", "bc"]})
        self.assertEqual(flat, {"name": "web", "tags.0": "a", "tags.1": "bc"})
