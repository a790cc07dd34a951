import unittest

from grid import Grid


class GridTest(unittest.TestCase):
    def test_its_size(self):
        grid = Grid(3, 2, 7)
        self.assertEqual((grid.width, grid.height, grid.cells), (3, 2, [[7, 7, 7], [7, 7, 7]]))

    def test_neighbours(self):
        self.assertEqual(list(Grid(3, 3).around(0, 0)), [(1, 0), (0, 1), (1, 1)])
        self.assertEqual(len(list(Grid(3, 3).around(1, 1))), 8)

    def test_one_cell_is_set(self):
        grid = Grid(2, 2)
        grid[0, 1] = 5
        self.assertEqual(grid.cells, [[0, 0], [5, 0]])
