class Grid:
    """Cells in rows, each with a value."""

    def __init__(self, width, height, value=0):
        self.width, self.height = width, height
        self.cells = [[value] * width] * height

    def __getitem__(self, at):
        x, y = at
        return self.cells[y][x]

    def __setitem__(self, at, value):
        x, y = at
        self.cells[y][x] = value

    def around(self, x, y):
        """The cells next to one, up to eight."""
        for row in range(y - 1, y + 2):
            for column in range(x - 1, x + 2):
                inside = 0 <= column < self.width and 0 <= row < self.height
                if inside and (column, row) != (x, y):
                    yield column, row
