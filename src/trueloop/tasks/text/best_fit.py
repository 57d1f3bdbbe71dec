"""Pieces of any lengths in as few rows of one length as can be had quickly."""

from __future__ import annotations

import bisect

import numpy as np
import numpy.typing as npt


def best_fit(lengths: npt.NDArray[np.integer], room: int) -> list[list[int]]:
    """Rows with room for so many, and which of the pieces of these lengths go into each of them.

    The longest piece comes first, and each goes where the least room is left after it (best-fit
    decreasing; of training data: Ding et al., "Fewer truncations improve language modeling", ICML
    2024). No length is more than `room`. In time O(pieces · log(room)); the same lengths give the
    same rows.
    """
    rows: list[list[int]] = []
    by_room: dict[int, list[int]] = {}
    rooms: list[int] = []
    """The free space of some row, ascending, each number once: the keys of `by_room`."""
    for piece in np.argsort(-lengths, kind="stable").tolist():
        length = int(lengths[piece])
        at = bisect.bisect_left(rooms, length)
        if at == len(rooms):
            row, left = len(rows), room
            rows.append([])
        else:
            left = rooms[at]
            row = by_room[left].pop()
            if not by_room[left]:
                del by_room[left], rooms[at]
        rows[row].append(piece)
        left -= length
        if left:
            if left not in by_room:
                by_room[left] = []
                bisect.insort(rooms, left)
            by_room[left].append(row)
    return rows
