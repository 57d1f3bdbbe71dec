import json
import math
import time
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings, strategies as st
from made_up import step_record

from trueloop.checkpoint import WriteError
from trueloop.errors import ConfigError, RunError
from trueloop.records import EvalRecord
from trueloop.run import MetricsLog
from trueloop.run.log import read_metrics


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "metrics.jsonl"


def stable(path: Path) -> list[dict[str, object]]:
    """The lines without their times."""
    return [{k: v for k, v in line.items() if k != "time"} for line in read_metrics(path)]


def test_lines_are_those_of_the_records(path: Path) -> None:
    with MetricsLog(path) as log:
        log(step_record(1, batch=31, loss=torch.tensor(0.7), grad_norm=torch.tensor(1.5), lr=1e-3))
        log(EvalRecord({"train_loss": 0.5, "val_ä": 0.25}, 100, 0, 1, 0.125))
    assert stable(path) == [
        {"kind": "update", "epoch": 1, "batch": 31, "update": 1, "samples": 64, "lr": 1e-3,
         "loss": torch.tensor(0.7).item(), "grad_norm": 1.5, "skipped": False},
        {"kind": "eval", "epoch": 1, "update": 1, "train_loss": 0.5, "val_ä": 0.25,
         "seconds": 0.125},
    ]  # fmt: skip
    times = [line["time"] for line in read_metrics(path)]
    assert 0 <= times[0] <= times[1] < 60


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(width=32), min_size=1, max_size=20), st.floats(), st.floats())
def test_every_float_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, losses: list[float], score: float, lr: float
) -> None:
    path = tmp_path_factory.mktemp("log") / "m.jsonl"
    with MetricsLog(path) as log:
        for k, loss in enumerate(losses, 1):
            log(step_record(k, loss=torch.tensor(loss), lr=lr))
        log(EvalRecord({"val_loss": score}, 1, 0, 1))
    *updates, last = read_metrics(path)

    def same(a: object, b: float) -> bool:
        return isinstance(a, float) and (a == b or (math.isnan(a) and math.isnan(b)))

    assert all(same(line["loss"], loss) for line, loss in zip(updates, losses, strict=True))
    assert all(same(line["lr"], lr) for line in updates)
    assert same(last["val_loss"], score)
    for raw in path.read_text().splitlines():  # no bare NaN: strict readers must take it
        json.loads(raw, parse_constant=lambda text: pytest.fail(f"bare {text}"))


def test_only_windows_that_ended_are_logged_and_skipped_ones_always(path: Path) -> None:
    nan = torch.tensor(float("nan"))
    with MetricsLog(path, every_updates=10) as log:
        for update in range(1, 32):
            log(step_record(update, updated=False, grad_norm=None))
            log(step_record(update))
        log(step_record(31, skipped=True, loss=nan, grad_norm=nan))
    lines = read_metrics(path)
    assert [(line["update"], line["skipped"]) for line in lines] == [
        (1, False), (11, False), (21, False), (31, False), (31, True)
    ]  # fmt: skip
    assert math.isnan(lines[-1]["loss"])


def test_tensors_are_read_many_at_a_time(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = []
    original = torch.Tensor.tolist

    def counted(tensor: torch.Tensor) -> object:
        reads.append(len(tensor))
        return original(tensor)

    monkeypatch.setattr(torch.Tensor, "tolist", counted)
    with MetricsLog(path, flush_seconds=1e9) as log:
        for update in range(1, 601):
            log(step_record(update))
        assert reads == [256, 256, 256, 256]  # losses and norms, twice
        assert len(read_metrics(path)) == 512
        log(EvalRecord({"val_loss": 1.0}, 1, 0, 600))
        assert reads[4:] == [88, 88]
        assert len(read_metrics(path)) == 601


def test_what_waits_is_written_after_a_while(path: Path) -> None:
    with MetricsLog(path, flush_seconds=0.05) as log:
        log(step_record(1))
        assert read_metrics(path) == []
        time.sleep(0.06)
        log(step_record(2))
        assert len(read_metrics(path)) == 2
        log(step_record(3))
        size = log.length()
        assert size == path.stat().st_size
        assert len(read_metrics(path)) == 3


def test_a_torn_last_line_is_left_out_and_mended(path: Path) -> None:
    with MetricsLog(path) as log:
        log(step_record(1))
        log(step_record(2))
    whole = path.read_bytes()
    for cut in (1, 30, 100):
        path.write_bytes(whole[:-cut])
        assert [line["update"] for line in read_metrics(path)] == [1]
        with MetricsLog(path) as log:
            log(step_record(2))
        assert [line["update"] for line in read_metrics(path)] == [1, 2]


@pytest.mark.parametrize("bad", ["{torn", "[1]", '{"update": 3}', ""])
def test_a_corrupt_line_elsewhere_is_named(path: Path, bad: str) -> None:
    with MetricsLog(path) as log:
        log(step_record(1))
        log(step_record(2))
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], bad, lines[1], ""]))
    with pytest.raises(RunError, match="line 2"):
        read_metrics(path)


def log_run(path: Path, epochs: int, batches: int, *, stop: tuple[int, int] | None = None) -> None:
    """A run whose every third window is skipped, from the log's end on or up to `stop`."""
    with MetricsLog(path) as log:
        update = 0
        for epoch in range(epochs):
            for batch in range(batches):
                if stop == (epoch, batch):
                    return
                skipped = (epoch * batches + batch) % 3 == 2
                update += not skipped
                log(step_record(update, epoch=epoch, batch=batch, skipped=skipped))
            log(EvalRecord({"val_loss": 1 / (epoch + 1)}, 1, epoch, update))


@pytest.mark.parametrize(
    ("update", "epoch", "batch"), [(0, 0, 0), (1, 0, 1), (2, 0, 3), (3, 0, 4), (4, 1, 0), (6, 1, 4)]
)
def test_a_truncated_log_is_that_of_a_run_stopped_there(
    tmp_path: Path, update: int, epoch: int, batch: int
) -> None:
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    log_run(whole, 3, 5)
    log_run(stopped, 3, 5, stop=(epoch, batch))
    if batch == 0 and epoch:
        assert stable(stopped)[-1]["kind"] == "eval"
    log = MetricsLog(whole)
    log.truncate(update, epoch, batch)
    log.close()
    assert stable(whole) == stable(stopped)


def test_a_resumed_log_goes_on_in_time(path: Path) -> None:
    with MetricsLog(path) as log:
        log(step_record(1))
        time.sleep(0.05)
        log(step_record(2))
    with MetricsLog(path) as log:
        log.truncate(2, 0)
        log(step_record(3))
    times = [line["time"] for line in read_metrics(path)]
    assert times == sorted(times)
    assert 0.05 <= times[1] <= times[2] < times[1] + 5


def test_closing_twice_and_bad_arguments(path: Path, tmp_path: Path) -> None:
    log = MetricsLog(path)
    log.close()
    log.close()
    with pytest.raises(ConfigError, match="every_updates is 0"):
        MetricsLog(path, every_updates=0)
    with pytest.raises(RunError, match="cannot write"):
        MetricsLog(tmp_path / "absent" / "m.jsonl")
    assert read_metrics(tmp_path / "absent.jsonl") == []


def test_a_full_disk_is_said(path: Path) -> None:
    log = MetricsLog(path)
    log._file.close()
    log._file = Path("/dev/full").open("ab", buffering=0)  # noqa: SIM115 - the log closes it
    log(step_record(1))
    with pytest.raises(RunError, match="No space left on device"):
        log.flush()


def test_a_log_that_goes_on_keeps_its_lines_until_the_disk_takes_them(tmp_path: Path) -> None:
    """Half a line was written when the disk was full: the rest of it follows."""
    log = MetricsLog(tmp_path / "m.jsonl", on_error="continue", flush_seconds=0)
    log(step_record(1))
    log._file = disk = Tight(log._file)  # type: ignore[assignment]
    disk.room = 50
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for k in range(2, 10):
            log(step_record(k))
        with pytest.raises(WriteError, match="No space left"):
            log.flush()  # a checkpoint has to know
        assert len(said) == 1
        assert "No space left" in str(said[0].message)
        assert "keeps its log lines in memory" in str(said[0].message)
        disk.room = 10**6
        log(step_record(10))
        assert "written again: every waiting line" in str(said[1].message)
        disk.room = 0
        log(step_record(11))
        log.close()
        assert "the last 1 lines of" in str(said[3].message)
    assert [line["update"] for line in read_metrics(tmp_path / "m.jsonl")] == list(range(1, 11))


class Tight:
    """A file on a disk with so much room."""

    def __init__(self, file: Any) -> None:
        self.file, self.room = file, 0
        self.closed = False

    def write(self, data: Any) -> int:
        if not self.room:
            raise OSError(28, "No space left on device")
        count = self.file.write(bytes(data[: self.room]))
        self.room -= count
        return count

    def close(self) -> None:
        self.closed = True
        self.file.close()
