"""Data without targets, and the table of their predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trueloop.errors import ConfigError
from trueloop.tasks.option_docs import documented

ERROR = "error"
"""The column of a prediction file that says why a row could not be read."""


@documented
@dataclass(kw_only=True)
class PredictInput:
    """Data without targets, to predict: `inputs` for `Feed`, and what names each row in the output.

    Inputs and names are in the same order.
    """

    inputs: Any
    """Anything that `Feed` takes and yields a batch of model inputs."""
    names: Mapping[str, Sequence[Any]]
    """Columns that identify the rows, in order: {"row": [1, 2, …]} or {"file": […]}."""
    errors: dict[int, str] = field(default_factory=dict)
    """Rows of `names`, by their indices from 0, that could not be read and that `inputs` omits, and
    why. Their predictions are empty, and the column `error` gives the reason."""

    columns: Mapping[str, Any] = field(default_factory=dict)
    """Columns of the data, in the order of `names`, that `--keep` may ask for."""

    def table(self, predictions: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
        """The columns of the prediction file.

        Args:
            predictions: columns, for the rows of `inputs`.

        Returns:
            The names, the predictions (None where a row could not be read), and `error` (None where
            it could).

        Raises:
            ConfigError: the task's own predictions have a column called `error`.
        """
        if ERROR in predictions:
            raise ConfigError(
                f"predictions() returns a column {ERROR!r}, which is reserved for the reason why a "
                "row could not be read: rename it"
            )
        count = len(next(iter(self.names.values())))
        columns: dict[str, Sequence[Any]] = dict(self.names)
        if not self.errors:
            return columns | dict(predictions) | {ERROR: [None] * count}
        rows = np.delete(np.arange(count), list(self.errors))
        for name, values in predictions.items():
            columns[name] = _placed(values, rows, count)
        reasons = list(self.errors.values())
        columns[ERROR] = _placed(reasons, np.fromiter(self.errors, np.int64), count)
        return columns


def _placed(values: Sequence[Any], rows: np.ndarray, count: int) -> list[Any]:
    """A list of `count` with the values at these rows, and None elsewhere."""
    column = np.full(count, None, dtype=object)
    column[rows] = np.fromiter(values, dtype=object, count=len(values))
    placed: list[Any] = column.tolist()
    return placed
