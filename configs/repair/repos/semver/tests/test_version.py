import unittest

from semver import Version


class VersionTest(unittest.TestCase):
    def test_it_is_written_as_it_was_read(self):
        for text in ("1.2.3", "0.10.0", "1.0.0-rc.1"):
            self.assertEqual(str(Version.parse(text)), text)

    def test_a_v_is_dropped(self):
        self.assertEqual(str(Version.parse("v1.2.3")), "1.2.3")

    def test_nonsense(self):
        with self.assertRaises(ValueError):
            Version.parse("one.two")
