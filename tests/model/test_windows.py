"""Window geometry: the notes' example, and the three ways to ask for it against equation (2)."""

from hypothesis import given
from hypothesis import strategies as st

from lol_data.model.windows import Windows


def test_the_example_of_eight_tokens_behind_the_prompt():
    windows = Windows(prompt=5, window=4, shift=2)
    aligned = [(0, 5), (5, 9), (9, 13)]
    assert windows.slices(13, 1) == aligned
    assert windows.slices(13, 2) == [(0, 5), (5, 7), (7, 11), (11, 13)]
    assert windows.slices(13, 3) == aligned
    assert [windows.index(5 + 4, depth) for depth in (1, 2, 3)] == [2, 2, 2]  # number 1 of the notes, behind window 0
    assert [windows.offset(depth) for depth in (1, 2, 3, 4)] == [0, 2, 0, 2]


def test_a_prompt_alone_is_one_window():
    assert Windows(9, 4, 2).slices(9, 2) == [(0, 9)]


@given(st.integers(1, 12), st.integers(1, 9), st.integers(0, 12), st.integers(1, 7), st.integers(0, 40))
def test_slices_index_and_starts_agree_with_equation_2(prompt, window, shift, depth, suffix):
    windows, length = Windows(prompt, window, shift), prompt + suffix
    delta = ((depth - 1) * shift) % window
    numbers = [0] * prompt + [1 + (j + delta) // window for j in range(suffix)]
    assert [windows.index(i, depth) for i in range(length)] == numbers
    assert [windows.starts(i, depth) for i in range(length)] == [
        i == 0 or numbers[i] != numbers[i - 1] for i in range(length)
    ]
    covered = [k for k, (start, end) in enumerate(windows.slices(length, depth)) for _ in range(start, end)]
    assert covered == numbers
