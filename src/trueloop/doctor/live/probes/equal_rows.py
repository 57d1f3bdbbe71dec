"""Rows of two tables of tensors that are equal, and not by accident."""

from __future__ import annotations

import torch
from torch.utils.data import Dataset, TensorDataset

from trueloop.doctor.live.objects import inspection

_ROWS = 50_000
_NUMBERS = 4_000_000
"""Sizes of a table that is compared."""
_WIDTH = 3
"""Columns with many values that equal rows must have."""
_SHARE = 0.05
_FEWEST = 5
"""Rows that are equal, as a share and in all."""


def equal_rows(
    data: Dataset[object], samples: frozenset[int],
    other: Dataset[object] | None, others: frozenset[int],
) -> int:  # fmt: skip
    """How many of one table's samples have an equal row among those of a second one; 0 where equal
    rows come about by themselves: few columns, or few values in them."""
    rows, theirs = _rows(data, samples), _rows(other, others)
    if rows is None or theirs is None or rows.shape[1] != theirs.shape[1]:
        return 0
    if rows.dtype != theirs.dtype:
        return 0
    known = {row.tobytes() for row in theirs.numpy()}
    # As often as the second table repeats its own rows, one from the first may.
    distinct = [len(column.unique()) for column in theirs.T[:64]]
    if sum(count * 2 > len(known) for count in distinct) < _WIDTH:
        return 0
    common = sum(row.tobytes() in known for row in rows.numpy())
    return common if common >= max(_FEWEST, _SHARE * len(rows)) else 0


def _rows(data: Dataset[object] | None, samples: frozenset[int]) -> torch.Tensor | None:
    if type(data) is not TensorDataset or not data.tensors or len(samples) > _ROWS:
        return None
    first = data.tensors[0]
    if not inspection.is_tensor(first) or first.dim() < 2 or not first.is_floating_point():
        return None
    if first.device.type != "cpu" or first.dtype == torch.bfloat16:
        return None
    width = first[:1].numel()
    if width < _WIDTH or width * len(samples) > _NUMBERS:
        return None
    # The samples of a contiguous table are counted from the beginning of its storage.
    begin = first.storage_offset() if first.is_contiguous() else 0
    offset = 0 if begin % width else begin // width
    rows = sorted(each - offset for each in samples)
    if not rows or rows[0] < 0 or rows[-1] >= len(first):
        return None
    chosen = first.detach()[rows]
    return chosen.reshape(len(samples), -1).contiguous()
