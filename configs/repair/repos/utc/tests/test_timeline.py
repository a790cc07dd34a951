import unittest

from timeline import timeline


class TimelineTest(unittest.TestCase):
    def test_the_earliest_first(self):
        entries = [("2024-03-10T09:00:00+02:00", "b"), ("2024-03-10T06:30:00+00:00", "a")]
        self.assertEqual([text for _, text in timeline(entries)], ["a", "b"])
