import unittest

from calendar_day import free


class FreeTest(unittest.TestCase):
    def test_between_two_meetings(self):
        self.assertEqual(free([(540, 600), (660, 720)], (480, 780)), [(480, 540), (600, 660), (720, 780)])

    def test_a_whole_day(self):
        self.assertEqual(free([]), [(0, 1440)])
