import unittest

from page.element import element


class ElementTest(unittest.TestCase):
    def test_nested(self):
        self.assertEqual(element("p", "a", element("b", "c"), class_="x"), ['<p class="x">a<b>c</b></p>'])

    def test_attributes(self):
        self.assertEqual(element("a", href='?a=1&b="2"'), ['<a href="?a=1&amp;b=&quot;2&quot;"></a>'])
