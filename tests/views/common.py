"""Pictures to draw: a literal maze of nine cells, and generated ones."""

import numpy as np
from hypothesis import strategies as st

from lol_data.generators.maze import MazeSettings, generate_mazes
from lol_data.mazes import MAX_SIZE, MIN_SIZE
from lol_data.views.maze_picture import MazePicture, picture_of

# 0-1-2
#   |
# 3-4-5
#   | |
# 6-7 8
NINE = MazePicture(
    id=7,
    size=3,
    openings=(2, 14, 8, 2, 15, 12, 2, 9, 1),
    start=0,
    goal=8,
    answer=(0, 1, 4, 5, 8),
    traces={
        "bfs": (0, 1, 2, 4, 5, 7, 3, 8),
        "dfs": (0, 1, 2, 1, 4, 5, 8),
        "astar": (0, 1, 4, 5, 8),
        "bidirectional": (0, 8, 1, 5),
        "dead_end_filling": (2, 3, 6, 7),
    },
)


def generated(size: int, seed: int) -> MazePicture:
    return picture_of(generate_mazes(MazeSettings(size), seed, 0, 1), 0)


pictures = st.builds(generated, st.integers(MIN_SIZE, MAX_SIZE), st.integers(0, 2**32))


def shut_edges(picture: MazePicture) -> set[tuple[str, int, int]]:
    """Walls by the openings of the cells on both of their sides: ("-", x, y) above and ("|", x, y) left of a place."""
    n, edges = picture.size, set()
    cells = np.array(picture.openings).reshape(n, n)
    for y in range(n):
        for x in range(n):
            sides = {1: ("-", x, y), 2: ("|", x + 1, y), 4: ("-", x, y + 1), 8: ("|", x, y)}
            edges |= {edge for bit, edge in sides.items() if not cells[y, x] & bit}
    return edges
