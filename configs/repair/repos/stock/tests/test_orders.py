import unittest

from stock.item import Item
from stock.orders import to_order


class OrdersTest(unittest.TestCase):
    def test_what_is_low(self):
        self.assertEqual(to_order([Item("nail", 0.02, 3), Item("saw", 20.0, 5)]), {"nail": 2})
