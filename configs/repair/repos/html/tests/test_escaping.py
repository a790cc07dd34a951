import unittest

from page.escaping import escaped


class EscapedTest(unittest.TestCase):
    def test_plain(self):
        self.assertEqual(escaped("nothing here"), "nothing here")

    def test_ampersand(self):
        self.assertEqual(escaped("R&D"), "R&amp;D")

    def test_brackets(self):
        self.assertEqual(escaped("<b> & <i>"), "&lt;b&gt; &amp; &lt;i&gt;")

    def test_what_is_escaped_already_is_text(self):
        self.assertEqual(escaped("&lt;"), "&amp;lt;")
