from grid import Grid


def field(width, height, mines):
    """How many mines are around each cell; -1 where one is."""
    grid = Grid(width, height)
    for mine in mines:
        grid[mine] = -1
    for y in range(height):
        for x in range(width):
            if grid[x, y] != -1:
                grid[x, y] = sum(grid[each] == -1 for each in grid.around(x, y))
    return grid


def drawn(grid):
    """The field as text."""
    return "\n".join("".join("*" if cell == -1 else str(cell or ".") for cell in row) for row in grid.cells)
