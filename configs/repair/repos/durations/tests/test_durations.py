import unittest

from durations import seconds


class SecondsTest(unittest.TestCase):
    def test_parts(self):
        self.assertEqual(seconds("1h30m"), 5400)
        self.assertEqual(seconds("2 d 1.5 h"), 178200)

    def test_minutes_and_seconds(self):
        self.assertEqual(seconds("5M"), 300)
        self.assertEqual(seconds("90s"), 90)

    def test_milliseconds(self):
        self.assertEqual(seconds("250ms"), 0.25)
        self.assertEqual(seconds("1m500ms"), 60.5)

    def test_nonsense(self):
        for text in ("", "fast", "5", "5x"):
            with self.assertRaises(ValueError):
                seconds(text)
