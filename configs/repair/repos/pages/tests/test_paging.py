import unittest

from pages.paging import Pages


class PagesTest(unittest.TestCase):
    def test_the_last_page_is_shorter(self):
        pages = Pages(range(25))
        self.assertEqual((pages.count, pages.page(3)), (3, [20, 21, 22, 23, 24]))

    def test_full_pages(self):
        self.assertEqual(Pages(range(20)).count, 2)
        with self.assertRaises(IndexError):
            Pages(range(20)).page(3)

    def test_nothing_found(self):
        self.assertEqual((Pages([]).count, Pages([]).page(1)), (0, []))

    def test_no_such_page(self):
        with self.assertRaises(IndexError):
            Pages(range(5)).page(0)
