"""Predictions for rows of a table, with the model in this folder; needs torch and safetensors.

python predict.py rows.csv > predictions.csv

In a program: `model = TablePredictor(); model.predict([{"area": 82.5, "rooms": 3}])` returns a dict
for each row. A cell is a number, a text or None; an empty text is a missing value.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

HERE = Path(__file__).resolve().parent
DATE = re.compile(
    r"(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?))?(?:Z|[+-]\d{2}:?\d{2})?"
)
UNKNOWN, MISSING, FIRST = 0, 1, 2
"""Indices of a category: not known from training, missing, and the first known value."""
BOUND = 3.0


class TablePredictor:
    """The trained network and the preprocessing of its inputs."""

    def __init__(self, folder: Path = HERE) -> None:
        from network import TableNet  # type: ignore[import-not-found]  # beside this file
        from safetensors.torch import load_model

        self.task: dict[str, Any] = json.loads((folder / "task.json").read_text("utf-8"))
        self.network: torch.nn.Module = TableNet(**self.task["network"])
        load_model(self.network, folder / "model.safetensors")
        self.network.eval()

    def predict(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """A dict for each row: `prediction`, and of classes their probabilities, or quantiles."""
        if not rows:
            return []
        with torch.inference_mode():
            outputs = self.network(*self.encode(rows))
        return [self._named(output) for output in outputs]

    def encode(self, rows: list[dict[str, Any]]) -> tuple[Tensor, Tensor]:
        """The network's inputs: float32 (rows, numbers) and int64 (rows, categories)."""
        encoder = self.task["encoder"]
        floats, indices = [], []
        for row in rows:
            values = self._numbers(row)
            floats.append([x for column in encoder["numbers"] for x in scaled(column, values)])
            indices.append([self._category(column, row) for column in encoder["categories"]])
        numbers = torch.tensor(floats, dtype=torch.float32).reshape(len(rows), -1)
        return numbers, torch.tensor(indices, dtype=torch.int64).reshape(len(rows), -1)

    def _numbers(self, row: dict[str, Any]) -> dict[str, float]:
        values = {}
        for name, kind in self.task["kinds"].items():
            if name not in row:
                raise SystemExit(f"column {name!r} is missing, and the model needs it")
            if kind == "number":
                values[name] = number(name, self._cell(row[name]))
            elif kind == "date":
                values |= date_parts(name, self._cell(row[name]))
        return values

    def _cell(self, cell: Any) -> Any:
        """The cell; None for a missing value."""
        missing = self.task["reading"]["missing"]
        is_gap = isinstance(cell, str) and (not cell or cell.lower() in missing)
        return None if is_gap else cell

    def _category(self, column: dict[str, Any], row: dict[str, Any]) -> int:
        cell, known = row[column["name"]], column["values"]
        if cell is None or cell == "":
            return MISSING
        whole = isinstance(cell, float) and cell.is_integer() and not any("." in v for v in known)
        text = str(int(cell)) if whole else str(cell)
        if text.lower() in ("true", "false"):
            text = text.lower()
        return int(known.index(text)) + FIRST if text in known else UNKNOWN

    def _named(self, output: Tensor) -> dict[str, Any]:
        task = self.task
        if task["kind"] == "regression":
            if quantiles := task.get("quantiles"):
                named = dict(zip(quantiles, output.tolist(), strict=True))
                return {"prediction": named[nearest_to_half(quantiles)], **named}
            return {"prediction": output.item()}
        if task["kind"] == "binary":
            probability = output.sigmoid().item()
            return {
                "prediction": task["classes"][int(probability > 0.5)],
                "probability": probability,
            }
        shares = output.softmax(0).tolist()
        best = max(range(len(shares)), key=shares.__getitem__)
        named = {f"p_{name}": share for name, share in zip(task["classes"], shares, strict=True)}
        return {"prediction": task["classes"][best], "probability": shares[best], **named}


def nearest_to_half(quantiles: dict[str, float]) -> str:
    """The column of the quantile that serves as the prediction."""
    return min(quantiles, key=lambda name: abs(quantiles[name] - 0.5))


def number(name: str, cell: Any) -> float:
    """The cell as a number; NaN if it is missing."""
    if cell is None:
        return math.nan
    try:
        value = float(cell)
    except ValueError:
        raise SystemExit(f"column {name!r} contains numbers, and one is {cell!r}") from None
    return value if math.isfinite(value) else math.nan


def date_parts(name: str, cell: Any) -> dict[str, float]:
    """Days since 1970, month, weekday and hour of a date; a time zone is left aside."""
    parts = ("days", "month", "weekday", "hour")
    if cell is None:
        return {f"{name}: {part}": math.nan for part in parts}
    found = DATE.fullmatch(str(cell))
    if found is None:
        raise SystemExit(f"column {name!r} contains dates (YYYY-MM-DD), and one is {cell!r}")
    moment = datetime.fromisoformat(f"{found[1]} {found[2] or '00:00'}")
    days = (moment - datetime(1970, 1, 1)).total_seconds() / 86_400
    values = (days, moment.month, moment.isoweekday(), moment.hour)
    return {f"{name}: {part}": float(value) for part, value in zip(parts, values, strict=True)}


def scaled(column: dict[str, Any], values: dict[str, float]) -> list[float]:
    """A number as it enters the network, with a flag for a missing one where training had some."""
    value = values[column["name"]]
    gap = math.isnan(value)
    z = 0.0 if gap else (value - column["median"]) / column["scale"]
    z = min(max(z, -1e9), 1e9)
    bounded = z / math.sqrt(1.0 + (z / BOUND) ** 2)
    return [bounded, float(gap)] if column["flag"] else [bounded]


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a CSV file as training reads them: the header decides what separates the cells,
    spaces around them do not count, and blank lines are passed over."""
    try:
        text = path.read_text("utf-8-sig").lstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise SystemExit(f"{path} cannot be read: {error}") from None
    outside_quotes = "".join(text.partition("\n")[0].split('"')[::2])
    separator = max(",;\t|", key=outside_quotes.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    names = [name.strip() for name in next(reader, [])]
    rows = []
    for cells in reader:
        if not any(cells):
            continue
        if len(cells) != len(names):
            raise SystemExit(
                f"line {reader.line_num} has {len(cells)} cells, the header has {len(names)}"
            )
        rows.append(dict(zip(names, (cell.strip() for cell in cells), strict=True)))
    return rows


def main() -> None:
    """Read a CSV file, and write one with the predictions."""
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        raise SystemExit("usage: python predict.py rows.csv > predictions.csv")
    found = TablePredictor().predict(read_rows(Path(sys.argv[1])))
    if found:
        writer = csv.DictWriter(sys.stdout, list(found[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(found)


if __name__ == "__main__":
    main()
