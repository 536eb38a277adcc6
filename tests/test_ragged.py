"""Rows of different lengths: against plain Python lists."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lol_data.ragged import Ragged

rows_of_bytes = st.lists(st.lists(st.integers(0, 255), max_size=6), max_size=8)


@given(rows_of_bytes)
def test_rows_come_back_as_they_went_in(rows):
    ragged = Ragged.from_rows(rows)
    assert len(ragged) == len(rows)
    assert [row.tolist() for row in ragged] == rows
    assert ragged.lengths.tolist() == [len(row) for row in rows]
    assert (ragged.values.dtype, ragged.offsets.dtype) == (np.uint8, np.int64)


@given(rows_of_bytes.filter(bool), st.data())
def test_take_picks_any_rows_in_any_order(rows, data):
    picked = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=10))
    taken = Ragged.from_rows(rows).take(np.array(picked, np.int64))
    assert [row.tolist() for row in taken] == [rows[k] for k in picked]


def test_indexing_counts_from_either_end_and_refuses_what_is_outside():
    ragged = Ragged.from_rows([[1], [], [2, 3]], np.int16)
    assert ragged[-1].tolist() == [2, 3]
    assert ragged[-3].tolist() == [1]
    for row in (3, -4):
        with pytest.raises(IndexError, match="of 3"):
            ragged[row]


def test_nothing_at_all_keeps_its_type():
    empty = Ragged.from_rows([], np.int32)
    assert len(empty) == 0
    assert empty.values.dtype == np.int32
    assert len(empty.take(np.empty(0, np.int64))) == 0
