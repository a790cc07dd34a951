import unittest

from machine import Machine

FARES = [("Single", 240), ("Day", 700), ("Month", 6300)]


class MachineTest(unittest.TestCase):
    def test_the_last_button(self):
        machine = Machine(FARES)
        self.assertTrue(machine.press(3))
        self.assertEqual(machine.sold, [("Month", 6300)])

    def test_every_button(self):
        machine = Machine(FARES)
        for number in (1, 2, 3):
            machine.press(number)
        self.assertEqual(machine.sold, FARES)

    def test_no_such_button(self):
        self.assertFalse(Machine(FARES).press(4))
