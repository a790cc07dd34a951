import unittest

from events import Bus
from events.counting import counter


class BusTest(unittest.TestCase):
    def test_listeners_are_told(self):
        heard = []
        bus = Bus("orders")
        bus.on("paid", heard.append)
        self.assertEqual(bus.emit("paid", 7), 1)
        self.assertEqual(heard, [7])

    def test_nobody_listens(self):
        self.assertEqual(Bus("orders").emit("lost"), 0)

    def test_listeners_that_are_given(self):
        heard = []
        self.assertEqual(Bus("orders", {"paid": [heard.append]}).emit("paid", 1), 1)
        self.assertEqual(heard, [1])

    def test_each_bus_has_its_own(self):
        orders, mails = Bus("orders"), Bus("mails")
        sent = counter(mails, "sent")
        orders.emit("sent")
        self.assertEqual(sent, [0])
