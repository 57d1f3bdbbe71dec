"""`Table.splits` for Parquet that is read block by block."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from trueloop import cache, files, ranks
from trueloop.atomic import WriteError, write_atomic
from trueloop.errors import ConfigError, DataError, nearest
from trueloop.tasks.base import PredictInput, Splits
from trueloop.tasks.data_findings import DataFinding
from trueloop.tasks.progress_bar import progress_bar
from trueloop.tasks.table.checked_options import (
    check_classification,
    check_columns,
    check_parts,
    check_rows,
    inputs_of,
)
from trueloop.tasks.table.checks import TableChecks
from trueloop.tasks.table.column_encoding import check_columns_there, read_columns
from trueloop.tasks.table.dependent import dependent_rows
from trueloop.tasks.table.description import table_facts
from trueloop.tasks.table.on_disk import RowReader, is_streamed, sources_of
from trueloop.tasks.table.ordered_split import SplitOption
from trueloop.tasks.table.row_groups import LazyColumns, RowGroups
from trueloop.tasks.table.row_split import PARTS, Division
from trueloop.tasks.table.table_statistics import (
    Surveyor,
    TableSource,
    TableStatistics,
    Target,
    bytes_of,
    pieces,
)
from trueloop.tasks.table.targets import ClassTarget, encode_target
from trueloop.tasks.table.used_columns import used_columns

if TYPE_CHECKING:
    from trueloop.tasks.table.base import TableBase

_VERSION = 1
_MOST_CACHE = 1_000_000_000
_PASSES = 3
"""Over the data, most often, until their statistics are known."""
_SAMPLED_BLOCKS = 16
_SAMPLED_ROWS = 2_048
"""Consecutive rows of each of these blocks."""


def large_splits(task: TableBase, blocks: list[RowGroups]) -> Splits:
    """Fit `task` to the rows in `blocks` (those of --data first), and give its parts: in memory, or
    read from disk when needed."""
    options = task.options
    check_columns(options, list(blocks[0].schema), task.data)
    task.reading = task.settings_of_reading()
    division = _division(task)
    given = [("val", options.val_data), ("test", options.test_data)]
    own = [part for part, path in given if path is not None]
    sources = sources_of(blocks, own, division)
    task.digest, task.in_blocks = _digest(blocks, division, own), True
    survey = ranks.on_main(lambda: _surveyed(task, sources), "the statistics of the table")
    _take(task, survey)
    rows = {part: survey.count(part) for part in PARTS if part == "train" or _is_asked(task, part)}
    _check(task, survey, rows)
    reader = _reader(task, sources, task.target)
    streamed = is_streamed(reader.row_size, sum(rows.values()), options.streaming)
    sizes = {part: [count for source in survey.rows[part] for count in source] for part in rows}
    parts = _rows(reader, sizes, streamed, task.seed)
    facts = table_facts(
        options,
        task.data,
        task.encoder,
        rows=rows,
        gaps=survey.gaps,
        without=survey.without,
        classes=task.classes,
        class_rows=survey.class_rows,
    )
    task.note_without_target(survey.without, survey.without + sum(rows.values()))
    facts["rows are kept"] = "on disk" if streamed else "in memory"
    return Splits(
        train=parts["train"],
        val=parts["val"],
        test=parts.get("test"),
        facts=facts,
        findings=_findings(task, survey, sources[0]),
    )


def _division(task: TableBase) -> Division:
    options, split = task.options, SplitOption.parse(task.options.split)
    if split.by == "time":
        raise ConfigError(
            f"--split {options.split} needs all rows in memory at once, and {task.data} is read "
            "block by block: save the latest rows in separate files, and write --val-data FILE "
            "--test-data FILE"
        )
    shares = {
        part: share
        for part, share, path in (
            ("val", options.val_share, options.val_data),
            ("test", options.test_share, options.test_data),
        )
        if path is None and share
    }
    if not shares:
        return Division(all_to="train")
    return Division(seed=task.seed, shares=shares, group=split.column or None, fold=task.fold)


def _is_asked(task: TableBase, part: str) -> bool:
    options = task.options
    return part == "val" or bool(options.test_share) or options.test_data is not None


def _digest(blocks: Sequence[RowGroups], division: Division, own: Sequence[str]) -> str:
    """Of the data and how they are divided."""
    facts = ([each.digest for each in blocks], division.facts(), list(own))
    return hashlib.sha256(repr(facts).encode()).hexdigest()


def _surveyed(task: TableBase, sources: list[TableSource]) -> TableStatistics:
    """The content of the tables: as it was found before, where files and options are the same."""
    options = task.options
    chosen = {
        name: getattr(options, name)
        for name in ("target", "kind", "drop", "categorical", "missing", "nan", "log_target")
    }
    stats = [(path.resolve(), path.stat()) for each in sources for path in each.blocks.paths]
    named = [(str(path), stat.st_size, stat.st_mtime_ns) for path, stat in stats]
    divisions = [source.division.facts() for source in sources]
    key = hashlib.sha256(repr((_VERSION, chosen, named, divisions)).encode()).hexdigest()[:32]
    with suppress(OSError, ValueError, KeyError, TypeError):  # absent, or not whole
        path = cache.directory("tables") / f"{key}.json"
        return TableStatistics.from_state(json.loads(files.read_text(path, _MOST_CACHE)))
    with progress_bar("statistics", _PASSES * bytes_of(sources), task.quiet) as advance:
        survey = Surveyor(
            sources=sources,
            target=options.target,
            task_kind=options.kind,
            log=options.log_target,
            reading=task.reading,
            inputs=inputs_of(options, list(sources[0].blocks.schema)),
            advance=advance,
        ).survey()
    with suppress(WriteError, OSError):  # a run without a cache is only slower to begin
        path = cache.directory("tables") / f"{key}.json"
        write_atomic(path, json.dumps(survey.state()).encode())
    return survey


def _take(task: TableBase, survey: TableStatistics) -> None:
    """Fit the task to what was found."""
    task.kind, task.target, task.kinds = survey.kind, survey.target, survey.kinds
    task.classes = None
    if isinstance(survey.target, ClassTarget):
        check_classification(task.options)
        task.classes = survey.target.classes
    task.encoder = survey.encoder
    task.encoder.dropped |= dict.fromkeys(survey.empty, "empty in every row")
    task.suit(survey.count("train"))


def _check(task: TableBase, survey: TableStatistics, rows: dict[str, int]) -> None:
    check_rows(sum(rows.values()), task.data)
    classes = None
    if survey.kind != "regression":
        classes = sum(count > 0 for count in survey.train_class_rows)
    check_parts(rows, classes, task.options.target)
    task.check_encoder()


def _reader(task: TableBase, sources: list[TableSource], target: Target | None) -> RowReader:
    return RowReader(
        sources=sources,
        kinds=task.kinds,
        reading=task.reading,
        encoder=task.encoder,
        target=target,
    )


def labelled_rows(task: TableBase, blocks: RowGroups) -> Any:
    """All rows of other data that have a target, for `Splits` and `Feed`. Raises `DataError`."""
    reader = _other_data(task, blocks, task.target)
    source, sizes = reader.sources[0], []
    for number in range(len(blocks.groups)):
        frame = blocks.read(number, [task.target.name])
        found = pieces(source, number, frame, task.target, task.reading)
        sizes.append(sum(piece[0].height for piece in found))
    if not any(sizes):
        raise DataError(f"{blocks.path} has no target in any row: use `trueloop predict` instead")
    task.note_without_target(blocks.height - sum(sizes), blocks.height)
    streamed = is_streamed(reader.row_size, sum(sizes), task.options.streaming)
    return _rows(reader, {"val": sizes}, streamed)["val"]


def unseen_rows(task: TableBase, blocks: RowGroups) -> PredictInput:
    """All rows of other data, to predict. Raises `DataError` for a cell that cannot be read."""
    reader = _other_data(task, blocks, None)
    sizes = [group.rows for group in blocks.groups]
    streamed = is_streamed(reader.row_size, sum(sizes), task.options.streaming)
    if streamed:
        inputs: Any = reader.stream("val", sizes)
    else:
        inputs = reader.whole({"val": sizes})["val"][:2]
    rows = range(1, blocks.height + 1)
    return PredictInput(inputs=inputs, names={"row": rows}, columns=LazyColumns(blocks))


def _other_data(task: TableBase, blocks: RowGroups, target: Target | None) -> RowReader:
    """A reader of all rows of other data."""
    reader = _reader(task, [TableSource(blocks, Division(all_to="val"))], target)
    if target is not None and target.name not in blocks.schema:
        raise DataError(
            f"{blocks.path} has no column {target.name!r}, the target: "
            f"{nearest(target.name, list(blocks.schema))}"
        )
    check_columns_there(used_columns(task.encoder, task.kinds), blocks.schema)
    return reader


def _rows(
    reader: RowReader, sizes: dict[str, list[int]], streamed: bool, seed: int = 0
) -> dict[str, Any]:
    """Rows with their targets of each part, for `Splits`: data sets, or (inputs, targets) in
    memory; `sizes` are those of each block."""
    if streamed:
        return {
            part: reader.stream(part, counts, shuffle=part == "train", seed=seed)
            for part, counts in sizes.items()
        }
    return {part: (rows[:2], rows[2]) for part, rows in reader.whole(sizes).items()}


def _findings(task: TableBase, survey: TableStatistics, source: TableSource) -> list[DataFinding]:
    """Those on a sample of the rows: some consecutive ones of blocks from all over the file."""
    import polars as pl

    blocks = np.linspace(0, len(source.blocks.groups) - 1, _SAMPLED_BLOCKS).round().astype(int)
    names = list(source.blocks.schema)
    frames, train, targets = [], [], []
    for block in dict.fromkeys(blocks.tolist()):
        frame = source.blocks.read(block, names, _SAMPLED_ROWS)
        for piece in pieces(source, block, frame, survey.target, task.reading):
            frames.append(piece[0])
            train.append(piece[1] == 0)
            targets.append(encode_target(survey.target, piece[2], np.arange(piece[0].height)))
    frame = pl.concat(frames, how="vertical_relaxed")
    raw = read_columns(frame, survey.kinds, task.reading, whole=task.encoder.whole)
    chosen = np.flatnonzero(np.concatenate(train))
    checked = TableChecks(
        target=task.options.target,
        kinds=survey.kinds | dict.fromkeys(survey.empty, "empty"),
        raw=raw,
        encoder=task.encoder,
        parts={"train": chosen},
        targets=np.concatenate(targets),
        classes=task.classes,
        class_rows=survey.train_class_rows,
        dependent=dependent_rows(frame, task.options.target, task.reading, survey.kinds)
        if task.options.split == "random" and task.options.val_data is None
        else [],
    )
    return checked.findings()
