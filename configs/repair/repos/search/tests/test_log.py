import unittest

from log import Log


class LogTest(unittest.TestCase):
    def setUp(self):
        self.log = Log([(3, "c"), (1, "a"), (2, "b"), (9, "d")])

    def test_in_the_middle(self):
        self.assertEqual(self.log.between(2, 9), ["b", "c"])

    def test_up_to_the_end(self):
        self.assertEqual(self.log.between(3, 100), ["c", "d"])
