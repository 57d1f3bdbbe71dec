"""`trueloop evaluate RUN`: what the run's best weights score, on its own data or on other."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from trueloop.cli import FAILED, OK
from trueloop.names import printable_line

if TYPE_CHECKING:
    from trueloop.cli._session import Trained


def main(argv: Sequence[str]) -> int:
    """Evaluate and print the scores; the exit status."""
    from trueloop.cli.parser import DEVICES, Parser, path_from

    parser = Parser(
        "trueloop evaluate",
        usage="trueloop evaluate RUN [options]",
        description="Score the best weights of a run.",
        epilog="example:\n  trueloop evaluate runs/houses --data new_houses.csv",
    )
    parser.add_option("run", metavar="RUN", required=True, help="directory of the run")
    parser.add_option(
        "--data",
        type=path_from,
        metavar="PATH",
        unset="the run's own validation and test data",
        help="labelled data to score",
    )
    parser.add_option(
        "--device", default="auto", metavar="NAME", choices=DEVICES, help="where the model runs"
    )
    parser.add_option("--json", action="store_true", help="print one JSON object instead")
    given = parser.parse(argv)

    from trueloop.cli._evaluation_record import keep_evaluation
    from trueloop.cli._session import load_trained
    from trueloop.run import Run
    from trueloop.tasks.data_findings import skipped_samples

    trained = load_trained(Run(given.run), given.device)
    scores = _scores(trained, given.data)
    skipped = trained.task.skipped
    keep_evaluation(trained, "evaluate", given.data, scores=scores, skipped=skipped)
    if given.json:
        from trueloop.run.json_files import plain

        found = {"run": str(trained.run.path), "epoch": trained.epoch + 1, "scores": scores}
        if skipped:
            found["skipped"] = skipped
        print(json.dumps(plain(found, "scores"), ensure_ascii=False))
    else:
        _print_table(trained, scores)
    for note in trained.task.notes:
        print(printable_line(f"trueloop: {note}"), file=sys.stderr)
    if not skipped:
        return OK
    line = f"trueloop: {skipped_samples(skipped)}; the scores are of the others"
    print(printable_line(line), file=sys.stderr)
    return OK if given.data is None else FAILED


def _scores(trained: Trained, data: Any) -> dict[str, dict[str, float]]:
    """Scores by split; those of other data are called `data`."""
    from trueloop.cli._session import make_feed
    from trueloop.evaluation import evaluate
    from trueloop.tasks.base import refuse_changed_data

    if data is not None:
        parts = {"data": trained.task.read(data)}
    else:
        kept = trained.task.digest
        splits = trained.task.splits()
        refuse_changed_data(trained.task, kept, "to score these data, write --data PATH")
        parts = {"val": splits.val, "test": splits.test}
    return {
        name: evaluate(
            trained.model,
            make_feed(trained.settings, trained.device, part),
            trained.task.loss_fn(),
            trained.task.metrics(),
            precision=trained.settings.recipe.precision,
        ).scores
        for name, part in parts.items()
        if part is not None
    }


def _print_table(trained: Trained, scores: dict[str, dict[str, float]]) -> None:
    from rich.console import Console
    from rich.table import Table

    from trueloop.formatting import number, score_name

    heads = {"val": "validation", "test": "test", "data": "this data"}
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("score")
    for split in scores:
        table.add_column(heads[split], justify="right")
    for name in next(iter(scores.values())):
        table.add_row(score_name(name), *(number(part.get(name)) for part in scores.values()))
    console = Console(highlight=False)
    console.print(f"{trained.run.path}, best weights (epoch {trained.epoch + 1})", soft_wrap=True)
    console.print(table)
