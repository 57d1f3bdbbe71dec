"""`trueloop predict RUN --data PATH --out FILE`: predictions for new data, one row each."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueloop.cli import FAILED, OK
from trueloop.errors import ConfigError, nearest
from trueloop.names import printable_line

if TYPE_CHECKING:
    from polars import DataFrame

    from trueloop.cli._session import Trained
    from trueloop.tasks import PredictInput

_WRITERS: dict[str, Callable[[DataFrame, io.BytesIO], object]] = {
    ".csv": lambda frame, file: frame.write_csv(file),
    ".parquet": lambda frame, file: frame.write_parquet(file),
    ".json": lambda frame, file: frame.write_json(file),
}


def main(argv: Sequence[str]) -> int:
    """Predict and write the file; the exit status."""
    from trueloop.cli.parser import DEVICES, Parser, path_from

    parser = Parser(
        "trueloop predict",
        usage="trueloop predict RUN --data PATH --out FILE [options]",
        description="Write the predictions of a run's best weights to a file.",
        epilog="example:\n  trueloop predict runs/houses --data new_houses.csv --out prices.csv",
    )
    parser.add_option("run", metavar="RUN", required=True, help="directory of the run")
    parser.add_option(
        "--data",
        type=path_from,
        metavar="PATH",
        required=True,
        help="file or folder to predict for",
    )
    parser.add_option(
        "--out",
        type=path_from,
        metavar="FILE",
        required=True,
        help="file to write: .csv, .parquet or .json",
    )
    parser.add_option("--force", action="store_true", help="replace FILE if it exists")
    parser.add_option(
        "--device", default="auto", metavar="NAME", choices=DEVICES, help="where the model runs"
    )
    given = parser.parse(argv)
    if given.data is None:
        raise ConfigError("nothing to predict: write --data PATH")
    check_out(given.out, force=given.force)

    from trueloop.cli._session import load_trained
    from trueloop.run import Run
    from trueloop.tasks.data_findings import skipped_samples

    rows, errors = predict(load_trained(Run(given.run), given.device), given.data, given.out)
    print(f"{rows - len(errors):,} predictions in {given.out}")
    if not errors:
        return OK
    print(
        printable_line(
            f"trueloop: {skipped_samples(errors)}; their rows have an empty prediction and the "
            "reason in the column 'error'"
        ),
        file=sys.stderr,
    )
    return FAILED


def check_out(out: Path | None, *, force: bool) -> None:
    """Refuse a place that cannot take the predictions, before they are made."""
    if out is None:
        raise ConfigError("no place for the predictions: write --out FILE.csv")
    if out.suffix.lower() not in _WRITERS:
        hint = nearest(out.suffix, _WRITERS) if out.suffix else "known: .csv, .parquet, .json"
        raise ConfigError(f"--out {out.name} has no ending that can be written: {hint}")
    if out.is_dir():
        raise ConfigError(f"--out {out} is a directory: write the name of a file")
    if out.exists() and not force:
        raise ConfigError(f"{out} exists: choose a different --out, or replace it with --force")


def predict(trained: Trained, data: Path, out: Path) -> tuple[int, dict[str, str]]:
    """Write one row per sample of `data`, whole or not at all.

    Returns how many, and those that could not be read, with the reasons.
    """
    from trueloop.checkpoint import write_atomic

    frame, unseen = predictions(trained, data)
    buffer = io.BytesIO()
    _WRITERS[out.suffix.lower()](frame, buffer)
    write_atomic(out, buffer.getvalue())
    what, names = next(iter(unseen.names.items()))
    label = "" if what == "file" else f"{what} "
    return frame.height, {f"{label}{names[k]}": why for k, why in sorted(unseen.errors.items())}


def predictions(trained: Trained, data: Any) -> tuple[DataFrame, PredictInput]:
    """One row per sample of `data`, which is a path, or what the task takes from memory."""
    import polars

    from trueloop import evaluation
    from trueloop.cli._session import make_feed
    from trueloop.tasks.base import ERROR

    task = trained.task
    if isinstance(data, (str, Path)):
        unseen = task.unseen(Path(data).expanduser())
    else:
        unseen = task.unseen_in_memory(data)
    feed = make_feed(trained.settings, trained.device, unseen.inputs)
    precision = trained.settings.recipe.precision
    outputs = evaluation.predict(trained.model, feed, task.outputs, precision=precision)
    columns = unseen.table(task.predictions(outputs))
    return polars.DataFrame(columns, schema_overrides={ERROR: polars.String}), unseen
