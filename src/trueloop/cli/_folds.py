"""`trueloop train --folds K` and `--repeats N`: several runs of one command, and their summary."""

from __future__ import annotations

import dataclasses
import shlex
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from trueloop import folds, ranks
from trueloop.checkpoint import LOCK
from trueloop.cli import OK
from trueloop.cli._one_run import check_free, new_path, train_one
from trueloop.cli._training import headline, shown
from trueloop.cli._values import OVER
from trueloop.cli.options import Settings, settings_from
from trueloop.errors import ConfigError, Interrupted, RunError, UserError
from trueloop.formatting import capital, score_name
from trueloop.run import Run, compare
from trueloop.run.folder import claimed_by_main, is_run, make_folder, remove
from trueloop.run.json_files import read_json, write_json

SUMMARY = "folds.json"
"""The file that makes a folder one of several trainings: the options that were given, and, as they
are finished, the scores of each run, their mean and their standard deviation."""


def train_all(settings: Settings) -> int:
    """Train all that `--folds` and `--repeats` ask for, or resume it; the exit status."""
    path = ranks.on_main(lambda: _place(settings), "the choice of the directory")
    return _train(path, settings)


def resume_all(path: Path, *, quiet: bool) -> int:
    """Go on with the trainings in the folder; the exit status."""
    given = _read(path)["options"]
    settings = settings_from(given["task"], [], file=given, source=str(path / SUMMARY))
    changed = dataclasses.replace(settings.run, run=path, quiet=quiet)
    return _train(path, dataclasses.replace(settings, run=changed))


def report_all(path: Path) -> Path:
    """Write the summary and the report of the trainings in the folder; the page's path."""
    given = _read(path)["options"]
    settings = settings_from(given["task"], [], file=given, source=str(path / SUMMARY))
    return _summarize(path, settings)[1]


def _place(settings: Settings) -> Path:
    """The folder of all: a new one, or one that was begun with the same options."""
    path = settings.run.run or new_path(settings.task, settings.task_class.__name__)
    if not (path / SUMMARY).is_file():
        check_free(path)
        make_folder(path)
        write_json(path / SUMMARY, {"options": _stated(settings)})
        return path
    if settings.run.resume != "auto":
        raise RunError(
            f"{path} has folds or repeats already: choose a different --run, or resume them: "
            f"trueloop resume {shlex.quote(str(path))}"
        )
    there, here = _read(path)["options"], _stated(settings)
    for name in there | here:
        if there.get(name) != here.get(name):
            option = "--" + name.replace("_", "-")
            raise ConfigError(
                f"{option} is {here.get(name)!r}, and the trainings in {path} were started with "
                f"{there.get(name)!r}: write the same options, or choose a different --run"
            )
    return path


def _stated(settings: Settings) -> dict[str, Any]:
    """The options that the user gave, as a configuration file: the others go by the data."""
    config = settings.config()
    return {name: config[name] for name in config if name == "task" or name in settings.stated}


def _read(path: Path) -> dict[str, Any]:
    content = read_json(path / SUMMARY)
    if not isinstance(content.get("options"), dict) or "task" not in content["options"]:
        raise RunError(f"{path / SUMMARY} is corrupt (it has no options): train again")
    return content


def _train(path: Path, settings: Settings) -> int:
    with claimed_by_main(path):
        members = list(_members(path, settings))
        for name, member in members:
            if ranks.on_main(partial(_is_done, member), "the state of the run"):
                continue
            if not settings.run.quiet:
                print(name.replace("-", " ", 1).replace("-fold-", ", fold "))
            try:
                status = train_one(member)
            except UserError:
                ranks.on_main(lambda: _remove_empty(path), "the folder of the runs")
                raise
            except KeyboardInterrupt as stop:
                number = getattr(stop, "signal", signal.SIGINT)
                raise Interrupted(number, _how_to_go_on(path)) from None
            if status != OK:
                print(f"of all {len(members)}, {_how_to_go_on(path)}")
                return status
        ranks.on_main(lambda: _print(*_summarize(path, settings), path), "the summary")
    return OK


def _remove_empty(path: Path) -> None:
    """Remove the folder if no run was made in it: it would say nothing to anybody."""
    if all(entry.name in (SUMMARY, LOCK) for entry in path.iterdir()):
        remove(path)


def _members(path: Path, settings: Settings) -> Iterator[tuple[str, Settings]]:
    """Each run: its name, and its settings."""
    run = settings.run
    for repeat in range(run.repeats or 1):
        for fold in range(1, run.folds + 1) if run.folds else (None,):
            parts = [f"repeat-{repeat + 1}"] if run.repeats else []
            name = "-".join(parts + [f"fold-{fold}"] * (fold is not None))
            own = dataclasses.replace(
                run,
                run=path / name,
                fold=fold,
                repeats=None,
                seed=run.seed + repeat,
                resume="auto",
            )
            yield name, dataclasses.replace(settings, run=own)


def _is_done(member: Settings) -> bool:
    assert member.run.run is not None
    return is_run(member.run.run) and Run(member.run.run).status in OVER


def _how_to_go_on(path: Path) -> str:
    return f"resume with: trueloop resume {shlex.quote(shown(path))}"


def _summarize(path: Path, settings: Settings) -> tuple[dict[str, Any], Path]:
    """Write the scores of the runs that are finished, and the page; what was written."""
    members = [(n, Run(path / n)) for n, member in _members(path, settings) if _is_done(member)]
    if not members:
        raise RunError(f"none of the trainings in {path} has finished: {_how_to_go_on(path)}")
    rows: list[dict[str, Any]] = []
    for name, run in members:
        scores = dict(run.results["scores"])
        for key, value in (run.results["test_scores"] or {}).items():
            scores[f"test_{key.removeprefix('test_')}"] = value
        rows.append({"run": name, "scores": scores})
    common = [key for key in rows[0]["scores"] if all(key in row["scores"] for row in rows)]
    columns = {key: [float(row["scores"][key]) for row in rows] for key in common}
    content = {
        "options": _stated(settings),
        "monitor": members[0][1].results["monitor"],
        "runs": rows,
        "mean": {key: sum(values) / len(values) for key, values in columns.items()},
        "std": {key: folds.spread(values) for key, values in columns.items()},
    }
    write_json(path / SUMMARY, content)
    kept = [key for key in columns if not key.startswith("train_")]
    page = compare(
        [run for _, run in members],
        path / "report.html",
        title=f"{path.resolve().name}: {_count(settings, len(rows))}",
        summary=[(capital(score_name(key)), folds.plus_minus(columns[key])) for key in kept],
    )
    return {"columns": columns, "count": _count(settings, len(rows)), **content}, page


def _count(settings: Settings, finished: int) -> str:
    """ "5 folds", "3 repeats", "3 of 5 folds"."""
    run = settings.run
    wanted = (run.folds or 1) * (run.repeats or 1)
    many = folds.how_many(run.folds, run.repeats or 1)
    return many if finished == wanted else f"{finished} trainings of {many}"


def _print(summary: dict[str, Any], page: Path, path: Path) -> None:
    """The last lines on the terminal: the result first, then where everything is."""
    columns, monitor = summary["columns"], summary["monitor"]
    for split in ("val_", "test_"):
        bare = {n.removeprefix(split): 0.0 for n in columns if n.startswith(split)}
        if bare:
            key = split + headline(bare, monitor.removeprefix("val_"))
            count = f" ({summary['count']})"
            print(f"{score_name(key)} {folds.plus_minus(columns[key])}{count}")
    print(f"folder  {shown(path)}")
    print(f"report  {shown(page)}")
