import unittest

from plan import plan


class PlanTest(unittest.TestCase):
    def test_lines(self):
        self.assertEqual(plan("serve: cook\ncook: shop\nshop:"), ["shop", "cook", "serve"])
