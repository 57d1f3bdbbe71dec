"""The log as columns, against its lines one by one."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from made_up import step_record

from trueloop.errors import RunError
from trueloop.records import EvalRecord
from trueloop.run import MetricsLog, log_reader
from trueloop.run.log import read_metrics
from trueloop.run.log_reader import LogReader, has_lines, read_log

numbers = st.floats(allow_nan=True) | st.none() | st.sampled_from(["NaN", "Infinity"])
some_lines = st.lists(
    st.tuples(
        st.sampled_from(["update", "update", "update", "eval", "note"]),
        st.dictionaries(st.sampled_from(["loss", "grad_norm", "kl", "lr/1"]), numbers, max_size=4),
    ),
    max_size=30,
)


def same(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))


@settings(deadline=None)
@given(some_lines, st.integers(1, 400))
def test_the_columns_are_the_lines(
    tmp_path_factory: pytest.TempPathFactory, drawn: Any, chunk: int
) -> None:
    """Whatever values which lines have, and however the file falls into chunks."""
    path = tmp_path_factory.mktemp("log") / "metrics.jsonl"
    lines = [
        {"kind": kind, "epoch": 1, "update": k, "time": float(k), **values}
        for k, (kind, values) in enumerate(drawn)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_reader, "_CHUNK", chunk)
        log = read_log(path)
    expected = [line for line in read_metrics(path) if line["kind"] == "update"]
    assert len(log.updates) == len(expected)
    for name in ("update", "loss", "grad_norm", "kl", "lr/1"):
        values = [line.get(name) for line in expected]
        wanted = [math.nan if v is None else float(v) for v in values]
        assert all(map(same, log.updates.column(name), wanted))
    others = [line for line in lines if line["kind"] != "update"]
    assert [line["update"] for line in [*log.evals, *log.notes]] == [
        line["update"] for kind in ("eval", "note") for line in others if line["kind"] == kind
    ]
    before = [
        sum(line["kind"] == "update" for line in lines[:k])
        for k, line in enumerate(lines)
        if line["kind"] != "update"
    ]
    assert [count for count, _ in log.breaks] == before


def test_only_what_was_added_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a log that grows; a torn last line waits; one that is cut back is read anew."""
    path = tmp_path / "metrics.jsonl"
    reader = LogReader(path)
    assert not reader.read()
    assert not has_lines(path)
    parsed: list[int] = []
    real = LogReader._parsed
    monkeypatch.setattr(
        LogReader, "_parsed", lambda self, raw: (parsed.append(len(raw)), real(self, raw))[1]
    )
    with MetricsLog(path) as log:
        for number in range(1, 11):
            log(step_record(number))
        log.flush()
        assert reader.read()
        assert not reader.read()
        log(step_record(11))
        log(EvalRecord({"val_loss": 1.0}, 1, 0, 11))
        assert reader.read()
        assert parsed == [10, 2]
        assert list(reader.updates.column("update")) == list(range(1, 12))
        with path.open("a") as file:
            file.write('{"kind":"note","upd')
        assert not reader.read()
        log.truncate(4, 0, 4)
        assert reader.read()
    assert list(reader.updates.column("update")) == [1, 2, 3, 4]
    assert not reader.evals
    assert has_lines(path)


@pytest.mark.parametrize(
    "bad", ["{torn", "[1]", '{"update": 3}', "", '{"kind":"update","loss":"x"}', "1},{"]
)
def test_a_corrupt_line_is_named(tmp_path: Path, bad: str) -> None:
    path = tmp_path / "metrics.jsonl"
    line = '{"kind":"update","loss":0.5}'
    path.write_text(f"{line}\n{line}\n{bad}\n{line}\n")
    with pytest.raises(RunError, match="corrupt in line 3: delete that line"):
        read_log(path)


def test_columns_of_no_lines() -> None:
    log = LogReader.of([])
    assert not len(log.updates)
    assert log.updates.column("loss").dtype == np.float64
    assert (log.last_update, log.updates.last(), log.seconds) == (0, {}, 0.0)
