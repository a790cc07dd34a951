import unittest

from order import Circle, order


class OrderTest(unittest.TestCase):
    def test_needs_come_first(self):
        self.assertEqual(order({"eat": ["bake"], "bake": ["mix", "heat"]}), ["heat", "mix", "bake", "eat"])

    def test_nothing(self):
        self.assertEqual(order({}), [])

    def test_a_circle(self):
        with self.assertRaises(Circle) as caught:
            order({"a": ["b"], "b": ["a"], "c": []})
        self.assertEqual(caught.exception.tasks, ["a", "b"])

    def test_one_that_waits_for_itself(self):
        with self.assertRaises(Circle):
            order({"a": ["a"]})
