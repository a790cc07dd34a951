import unittest

from memo import memo


class MemoTest(unittest.TestCase):
    def test_it_is_called_once(self):
        calls = []

        @memo(8)
        def square(n):
            calls.append(n)
            return n * n

        self.assertEqual([square(3), square(3), square(4)], [9, 9, 16])
        self.assertEqual(calls, [3, 4])
