import unittest

from slug import slug, unique


class SlugTest(unittest.TestCase):
    def test_words(self):
        self.assertEqual(slug("Ten Things, and 1 more!"), "ten-things-and-1-more")

    def test_accents(self):
        self.assertEqual(slug("Crème brûlée à la façon d'Émile"), "creme-brulee-a-la-facon-d-emile")

    def test_length(self):
        self.assertEqual(slug("a" * 59 + " b"), "a" * 59)

    def test_unique(self):
        self.assertEqual(unique("A b", {"a-b", "a-b-2"}), "a-b-3")
        self.assertEqual(unique("!!!", set()), "post")
