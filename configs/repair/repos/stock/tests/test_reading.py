import unittest

from stock.reading import read

HEADER = "name,price,count\n"


class ReadingTest(unittest.TestCase):
    def test_plain_lines(self):
        items = read([HEADER, "nail,0.02,1000\n", "hammer,12.50,3\n"])
        self.assertEqual([(i.name, i.price, i.count) for i in items], [("nail", 0.02, 1000), ("hammer", 12.5, 3)])

    def test_empty_lines_are_skipped(self):
        self.assertEqual(len(read([HEADER, "\n", "nail,0.02,1\n", "\n"])), 1)

    def test_a_comma_in_quotes(self):
        items = read([HEADER, '"screw, 4 mm",0.05,200\n', '"pipe 1/2"" steel",7.10,9\n'])
        self.assertEqual([item.name for item in items], ["screw, 4 mm", 'pipe 1/2" steel'])
