"""`trueloop predict RUN --data PATH --out FILE`: predictions for new data, one row each."""

from __future__ import annotations

import io
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from trueloop.cli import FAILED, OK
from trueloop.cli._out_folder import check_out_folder
from trueloop.errors import ConfigError, nearest
from trueloop.names import printable_line

if TYPE_CHECKING:
    from polars import DataFrame

    from trueloop.cli._session import Trained
    from trueloop.cli.parser import Parser
    from trueloop.tasks import PredictInput

_WRITERS: dict[str, Callable[[DataFrame, io.BytesIO], object]] = {
    ".csv": lambda frame, file: frame.write_csv(file),
    ".parquet": lambda frame, file: frame.write_parquet(file),
    ".json": lambda frame, file: frame.write_json(file),
}


def main(argv: Sequence[str]) -> int:
    """Predict and write the file; the exit status."""
    given = _parser().parse(argv)
    if given.data is None:
        raise ConfigError("nothing to predict: write --data PATH")
    check_out(given.out, force=given.force)

    from trueloop.cli._evaluation_record import keep_evaluation
    from trueloop.cli._session import load_trained
    from trueloop.cli.parser import words_of
    from trueloop.run import Run
    from trueloop.run.data_digest import data_facts
    from trueloop.tasks.data_findings import skipped_samples

    trained = load_trained(Run(given.run), given.device)
    asked = {
        "calibrated": given.calibrated,
        "threshold": given.threshold,
        "keep": [] if given.keep is None else words_of(given.keep),
    }
    rows, errors = predict(trained, given.data, given.out, **asked)
    print(f"{rows - len(errors):,} predictions in {given.out}")
    keep_evaluation(
        trained,
        "predict",
        given.data,
        rows=rows,
        skipped=errors,
        out=data_facts(given.out),
        **asked,
    )
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


def _parser() -> Parser:
    from trueloop.cli._help import LIST
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
    parser.add_option(
        "--calibrated",
        action="store_true",
        help="divide logits by the temperature that was fitted to the run's validation samples",
    )
    parser.add_option(
        "--threshold",
        metavar="X",
        help="probability above which the second of two classes is predicted: a number, or the "
        "best one of the validation samples for f1, accuracy or balanced_accuracy (default: 0.5)",
    )
    parser.add_option(
        "--keep",
        metavar=LIST,
        help="columns of a table that FILE has too, in front of the predictions: --keep id,name",
    )
    parser.add_option("--force", action="store_true", help="replace FILE if it exists")
    parser.add_option(
        "--device", default="auto", metavar="NAME", choices=DEVICES, help="where the model runs"
    )
    return parser


def check_out(out: Path | None, *, force: bool) -> None:
    """Refuse a place that cannot take the predictions, before they are made."""
    if out is None:
        raise ConfigError("no place for the predictions: write --out FILE.csv")
    if out.suffix.lower() not in _WRITERS:
        hint = nearest(out.suffix, _WRITERS) if out.suffix else "known: .csv, .parquet, .json"
        raise ConfigError(f"--out {out.name} has no ending that can be written: {hint}")
    if out.is_dir():
        raise ConfigError(f"--out {out} is a directory: write the name of a file")
    check_out_folder(out)
    if out.exists() and not force:
        raise ConfigError(f"{out} exists: choose a different --out, or replace it with --force")


def predict(trained: Trained, data: Path, out: Path, **asked: Any) -> tuple[int, dict[str, str]]:
    """Write one row per sample of `data`, whole or not at all.

    Returns how many, and those that could not be read, with the reasons.
    """
    from trueloop.checkpoint import write_atomic

    frame, unseen = predictions(trained, data, **asked)
    buffer = io.BytesIO()
    _WRITERS[out.suffix.lower()](frame, buffer)
    write_atomic(out, buffer.getvalue())
    what, names = next(iter(unseen.names.items()))
    label = "" if what == "file" else f"{what} "
    return frame.height, {f"{label}{names[k]}": why for k, why in sorted(unseen.errors.items())}


def predictions(
    trained: Trained,
    data: Any,
    *,
    calibrated: bool = False,
    threshold: float | str | None = None,
    keep: Sequence[str] | str = (),
) -> tuple[DataFrame, PredictInput]:
    """One row per sample of `data`, which is a path, or what the task takes from memory."""
    import polars

    from trueloop import evaluation
    from trueloop.cli._session import make_feed
    from trueloop.cli.parser import words_of
    from trueloop.tasks.base import ERROR

    task = trained.task
    temperature = _temperature(trained) if calibrated else 1.0
    above = None if threshold is None else _threshold(trained, threshold, temperature)
    if isinstance(data, (str, Path)):
        unseen = task.unseen(Path(data).expanduser())
    else:
        unseen = task.unseen_in_memory(data)
    kept = words_of(keep)
    _keep(unseen, kept)
    feed = make_feed(trained.settings, trained.device, unseen.inputs)
    precision = trained.settings.recipe.precision
    outputs = evaluation.predict(trained.model, feed, task.outputs, precision=precision)
    named = task.predictions(outputs / temperature if calibrated else outputs)
    if above is not None:
        pair = np.array(task.classes, dtype=object)
        named["prediction"] = pair[(np.asarray(named["probability"]) > above).astype(np.int64)]
    if clashing := [name for name in kept if name in named]:
        raise _clash(clashing[0])
    columns = unseen.table(named)
    return polars.DataFrame(columns, schema_overrides={ERROR: polars.String}), unseen


def _keep(unseen: PredictInput, names: Sequence[str]) -> None:
    """Put these columns of the data after what names the rows; the others are let go."""
    from trueloop.tasks.base import ERROR

    for name in names:
        if not unseen.columns:
            raise ConfigError("--keep is for the columns of a table, and these data have none: "
                              "leave it out")  # fmt: skip
        if name not in unseen.columns:
            raise ConfigError(f"--keep: no column {name!r}: {nearest(name, unseen.columns)}")
        if name in (*unseen.names, ERROR):
            raise _clash(name)
    unseen.names = {**unseen.names, **{name: unseen.columns[name] for name in names}}
    unseen.columns = {}


def _clash(name: str) -> ConfigError:
    return ConfigError(
        f"--keep {name}: the predictions have a column {name!r} too: rename it in the data"
    )


def _calibration(trained: Trained, option: str) -> dict[str, Any]:
    found = trained.run.results.get("calibration")
    if not isinstance(found, dict):
        raise ConfigError(
            f"{option} needs a classifier whose run has ended, and {trained.run.path} has no "
            f"calibration in its results: leave it out, or train again"
        )
    return found


def _temperature(trained: Trained) -> float:
    return float(_calibration(trained, "--calibrated")["temperature"])


def _threshold(trained: Trained, given: float | str, temperature: float) -> float:
    """The probability that was asked for, by number or by metric; of calibrated probabilities, the
    same samples are above it."""
    if trained.task.kind != "binary" or not trained.task.classes:
        raise ConfigError(
            f"--threshold {given} is for two classes, and this run is a {trained.task.kind}: leave "
            "it out"
        )
    try:
        above = float(given)
    except ValueError:
        best = _calibration(trained, "--threshold").get("thresholds") or {}
        if given not in best:
            raise ConfigError(
                f"--threshold {given} is neither a number nor a metric: {nearest(str(given), best)}"
            ) from None
        share = min(max(float(best[str(given)]["threshold"]), 1e-15), 1 - 1e-15)
        return 1 / (1 + math.exp(-math.log(share / (1 - share)) / temperature))
    if not 0 <= above <= 1:
        raise ConfigError(f"--threshold {given} is not a probability: write e.g. --threshold 0.3")
    return above
