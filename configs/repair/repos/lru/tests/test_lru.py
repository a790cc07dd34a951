import unittest

from lru import Cache


class CacheTest(unittest.TestCase):
    def test_it_forgets_the_oldest(self):
        cache = Cache(2)
        for key in "abc":
            cache.put(key, key.upper())
        self.assertIsNone(cache.get("a"))
        self.assertEqual(cache.get("c"), "C")

    def test_reading_is_a_use(self):
        cache = Cache(2)
        cache.put("a", 1)
        cache.put("b", 2)
        cache.get("a")
        cache.put("c", 3)
        self.assertEqual(cache.get("a"), 1)
        self.assertIsNone(cache.get("b"))

    def test_writing_again_is_a_use(self):
        cache = Cache(2)
        cache.put("a", 1)
        cache.put("b", 2)
        cache.put("a", 3)
        cache.put("c", 4)
        self.assertEqual(cache.get("a"), 3)

    def test_counts(self):
        cache = Cache(1)
        cache.put("a", 1)
        cache.get("a"), cache.get("b")
        self.assertEqual((cache.hits, cache.misses, len(cache)), (1, 1, 1))
