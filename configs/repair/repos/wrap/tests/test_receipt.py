import unittest

from receipt import receipt


class ReceiptTest(unittest.TestCase):
    def test_an_item(self):
        lines = receipt([("Bread", 320)], 20)
        self.assertEqual(lines, ["Bread           3.20"])
