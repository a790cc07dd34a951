import unittest
from datetime import timedelta, timezone

from utc import to_utc, written


class ToUtcTest(unittest.TestCase):
    def test_utc_stays(self):
        self.assertEqual(written(to_utc("2024-03-10T09:30:00+00:00")), "2024-03-10T09:30:00Z")
        self.assertEqual(written(to_utc("2024-03-10T09:30:00")), "2024-03-10T09:30:00Z")

    def test_another_zone(self):
        self.assertEqual(written(to_utc("2024-03-10T01:30:00+02:00")), "2024-03-09T23:30:00Z")
        self.assertEqual(written(to_utc("2024-03-10T09:30:00-05:30")), "2024-03-10T15:00:00Z")

    def test_a_default(self):
        tokyo = timezone(timedelta(hours=9))
        self.assertEqual(written(to_utc("2024-03-10T09:00:00", tokyo)), "2024-03-10T00:00:00Z")
