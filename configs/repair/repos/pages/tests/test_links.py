import unittest

from pages.links import links
from pages.paging import Pages


class LinksTest(unittest.TestCase):
    def test_gaps(self):
        self.assertEqual(links(Pages(range(95)), 5), [1, None, 4, 5, 6, None, 10])
