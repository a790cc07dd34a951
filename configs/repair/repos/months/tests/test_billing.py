import unittest
from datetime import date

from months.billing import due_dates


class BillingTest(unittest.TestCase):
    def test_in_the_middle_of_the_month(self):
        self.assertEqual(due_dates(date(2023, 12, 15), 2), [date(2024, 1, 15), date(2024, 2, 15)])

    def test_at_its_end(self):
        due = due_dates(date(2023, 10, 31), 3)
        self.assertEqual(due, [date(2023, 11, 30), date(2023, 12, 31), date(2024, 1, 31)])
