import unittest

from wordcount.counting import count


class CountTest(unittest.TestCase):
    def test_case_and_signs(self):
        self.assertEqual(count("It's it, IT!"), {"it": 3, "s": 1})

    def test_letters_of_all_languages(self):
        self.assertEqual(count("Äpfel äpfel 42", least=3), {"äpfel": 2})
