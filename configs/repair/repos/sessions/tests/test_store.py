import unittest

from sessions.store import Store


class StoreTest(unittest.TestCase):
    def setUp(self):
        self.now = 100.0
        self.store = Store(30, clock=lambda: self.now)

    def test_a_visit_makes_it_last(self):
        self.store.touch("ann", cart=1)
        self.now += 20
        self.store.touch("ann", page="home")
        self.now += 20
        self.assertEqual(self.store.get("ann"), {"cart": 1, "page": "home"})

    def test_it_ends(self):
        self.store.touch("ann")
        self.now += 30
        self.assertIsNone(self.store.get("ann"))

    def test_purge_with_nothing_to_do(self):
        self.store.touch("ann")
        self.assertEqual((self.store.purge(), len(self.store)), (0, 1))

    def test_purge_forgets_what_has_ended(self):
        for name in ("ann", "bob", "cyd"):
            self.store.touch(name)
            self.now += 12
        self.assertEqual(self.store.purge(), 1)
        self.now += 100
        self.assertEqual(self.store.purge(), 2)
        self.assertEqual(len(self.store), 0)
