import unittest
from datetime import date

from months.adding import add_months


class AddMonthsTest(unittest.TestCase):
    def test_within_a_year(self):
        self.assertEqual(add_months(date(2023, 3, 15), 2), date(2023, 5, 15))

    def test_over_new_year(self):
        self.assertEqual(add_months(date(2023, 11, 5), 3), date(2024, 2, 5))

    def test_backwards(self):
        self.assertEqual(add_months(date(2023, 1, 5), -2), date(2022, 11, 5))

    def test_a_day_that_the_month_has_not(self):
        self.assertEqual(add_months(date(2023, 1, 31), 1), date(2023, 2, 28))
        self.assertEqual(add_months(date(2024, 1, 31), 1), date(2024, 2, 29))
        self.assertEqual(add_months(date(2023, 8, 31), 1), date(2023, 9, 30))
