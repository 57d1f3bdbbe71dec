"""Trackers, read back by the libraries that people look at the curves with."""

from __future__ import annotations

import functools
import json
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from readers import read_csv, read_jsonl, read_mlflow, read_tensorboard, read_wandb
from torch import nn

import trueloop
from trueloop.errors import ConfigError, MissingDependencyError, RunError
from trueloop.records import EvalRecord, StepRecord
from trueloop.trackers import CSV, JSONL, MLflow, TensorBoard, WandB
from trueloop.trackers.tracker import Tracker

READERS = {
    "csv": (CSV, read_csv),
    "jsonl": (JSONL, read_jsonl),
    "tensorboard": (TensorBoard, read_tensorboard),
    "mlflow": (MLflow, read_mlflow),
    "wandb": (WandB, read_wandb),
}


@pytest.fixture(scope="session")
def mlflow_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty store: its tables take seconds to make."""
    from mlflow.tracking import MlflowClient

    path = tmp_path_factory.mktemp("mlflow") / "mlflow.db"
    MlflowClient(tracking_uri=f"sqlite:///{path}").search_experiments()
    return path


@pytest.fixture(params=READERS)
def tracked(request: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A class of tracker and its reader."""
    kind, read = READERS[request.param]
    if kind.package and find_spec(kind.package) is None:
        pytest.skip(f"{kind.package} is not installed: make test-trackers installs it")
    if kind is MLflow:
        store = shutil.copy(request.getfixturevalue("mlflow_store"), tmp_path / "mlflow.db")
        kind = functools.partial(MLflow, uri=f"sqlite:///{store}")
    if kind is WandB:
        monkeypatch.setenv("WANDB_MODE", "offline")
        monkeypatch.setenv("WANDB_SILENT", "true")
    return kind, read


def update(number: int, **other: Any) -> StepRecord:
    values = {
        "epoch": (number - 1) // 4,
        "batch": (number - 1) % 4,
        "update": number,
        "loss": torch.tensor(1.0 / number),
        "grad_norm": torch.tensor(float(number)),
        "lr": 0.5**number,
        "samples": 10,
        "updated": True,
        "tokens": 30,
        "parts": {"kl": torch.tensor(float(number % 3))},
    }
    return StepRecord(**{**values, **other})


def evaluation(number: int) -> EvalRecord:
    return EvalRecord({"val_loss": 2.0 / number}, 5, epoch=(number - 1) // 4, update=number)


def send(tracker: Tracker, first: int, last: int) -> None:
    for number in range(first, last + 1):
        tracker(update(number))
        if number % 4 == 0:
            tracker(evaluation(number))


def expected() -> dict[tuple[str, int], float]:
    found = {}
    for number in range(1, 13):
        row = {
            "loss": 1 / number, "grad_norm": number, "lr": 0.5**number, "kl": number % 3,
            "epoch": (number - 1) // 4 + 1, "samples": 10 * number, "tokens": 30 * number,
        }  # fmt: skip
        found |= {(f"updates/{name}", number): float(value) for name, value in row.items()}
        if number % 4 == 0:
            found["evaluations/val_loss", number] = 2 / number
    return found


def test_a_resumed_run_goes_on_with_its_curves(tracked: Any, tmp_path: Path) -> None:
    """Stopped after update 10, resumed from a checkpoint at update 6: each point is there once."""
    kind, read = tracked
    folder = tmp_path / "curves"
    with kind(folder) as first:
        first.begin()
        send(first, 1, 10)
    with kind(folder) as second:
        second.begin(updates=6, samples=60, tokens=180, seconds=3.0)
        send(second, 7, 12)
        second.add_scores({"test_loss": 0.25}, epoch=2, update=12)
    found = read(folder)
    assert found["evaluations/test_loss", 12] == [0.25]
    for key, value in expected().items():
        assert found[key] == [pytest.approx(value, rel=1e-6)], key
    series = {name for name, _ in expected()}
    assert {key for key in found if key[0] in series} == set(expected())


def test_nan_and_a_part_that_comes_late_are_stored(tracked: Any, tmp_path: Path) -> None:
    kind, read = tracked
    with kind(tmp_path / "curves") as tracker:
        tracker(update(1, loss=torch.tensor(float("nan")), parts={}))
        tracker(update(2, parts={"late": torch.tensor(2.0)}))
        tracker(evaluation(2))
    found = read(tmp_path / "curves")
    (loss,) = found["updates/loss", 1]
    assert loss != loss
    assert found["updates/late", 2] == [2.0]


@pytest.mark.parametrize("kind", [CSV, JSONL])
def test_a_table_is_cut_back_to_the_checkpoint(kind: Any, tmp_path: Path) -> None:
    """A torn last line goes, and a resumed run that differs has its own values."""
    read = read_csv if kind is CSV else read_jsonl
    first = kind(tmp_path / "curves")
    send(first, 1, 10)
    first.flush()
    path = tmp_path / "curves" / f"updates{kind.suffix}"
    path.write_text(path.read_text() + '{"upda')
    with kind(tmp_path / "curves") as second:
        second.begin(updates=6)
        second(update(7, loss=torch.tensor(70.0)))
        second(evaluation(7))
    found = read(tmp_path / "curves")
    assert found["updates/loss", 7] == [70.0]
    assert max(number for name, number in found if name == "updates/loss") == 7
    assert {number for name, number in found if name == "evaluations/val_loss"} == {4, 7}


def tiny_fit(folder: Path, sinks: list[Any], **options: Any) -> trueloop.History:
    torch.manual_seed(0)
    model = nn.Linear(2, 1)
    x = torch.randn(24, 2, generator=torch.Generator().manual_seed(0))
    step = trueloop.Step(
        model, torch.optim.SGD(model.parameters(), lr=0.1), trueloop.supervised(nn.MSELoss())
    )
    feed = trueloop.Feed((x, x.sum(1, keepdim=True)), 4, shuffle=True)
    return trueloop.fit(step, feed, feed, sinks=sinks, **options)


def test_fit_says_where_a_resumed_run_starts(tmp_path: Path) -> None:
    """Against the log of a run that never stopped: the same losses, and all samples counted."""
    straight = trueloop.Run.create(tmp_path / "straight", config={})
    tiny_fit(tmp_path, [], epochs=3, run=straight)
    folder, saved = tmp_path / "curves", trueloop.Checkpoints(tmp_path / "saved", keep_last=9)

    def stop(record: Any) -> None:
        if isinstance(record, StepRecord) and record.update == 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), JSONL(folder) as first:
        tiny_fit(tmp_path, [first, stop], epochs=3, checkpoints=saved, save_every="4 updates")
    state = trueloop.load_checkpoint(tmp_path / "saved", which="last")
    with JSONL(folder) as second:
        tiny_fit(tmp_path, [second], epochs=3, checkpoints=saved, resume_from=state)
    found = read_jsonl(folder)
    lines = [line for line in straight.metrics() if line["kind"] == "update"]
    assert [found["updates/loss", n] for n in range(1, 19)] == [[line["loss"]] for line in lines]
    assert [found["updates/samples", n] for n in range(1, 19)] == [[4.0 * n] for n in range(1, 19)]
    assert [key[1] for key in found if key[0] == "evaluations/val_loss"] == [6, 12, 18]


def test_lines_of_the_log_replace_updates(tmp_path: Path) -> None:
    with (
        JSONL(tmp_path / "lines", by_line=True) as lines,
        CSV(tmp_path / "some", every_updates=5) as few,
    ):
        tiny_fit(tmp_path, [lines, few], epochs=2, log_every="4 updates")
    found = read_jsonl(tmp_path / "lines")
    assert [n for name, n in found if name == "updates/loss"] == [4, 8, 12]
    assert found["updates/samples", 8] == [32.0]
    assert [n for name, n in read_csv(tmp_path / "some") if name == "updates/samples"] == [1, 6, 11]


def test_new_curves_need_a_new_folder(tmp_path: Path) -> None:
    with CSV(tmp_path / "curves") as tracker:
        send(tracker, 1, 4)
    with pytest.raises(RunError, match="choose a different folder"):
        tiny_fit(tmp_path, [CSV(tmp_path / "curves")], epochs=1)
    assert len(read_csv(tmp_path / "curves")) > 20


def test_other_ranks_store_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trueloop.ranks.is_main", lambda: False)
    with JSONL(tmp_path / "curves") as tracker:
        send(tracker, 1, 4)
    assert not (tmp_path / "curves").exists()


def test_a_store_that_fails_does_not_end_the_training(tmp_path: Path) -> None:
    tracker = JSONL(tmp_path / "curves")
    tracker.begin()
    shutil.rmtree(tmp_path / "curves")
    with pytest.warns(RuntimeWarning, match="the training continues without it") as warned:
        send(tracker, 1, 12)
    tracker.close()
    assert len(warned) == 1


def test_a_missing_library_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trueloop.trackers.tracker.find_spec", lambda name: None)
    for name in ("tensorboard", "wandb", "mlflow"):
        with pytest.raises(MissingDependencyError, match=rf"pip install 'trueloop\[{name}\]'"):
            READERS[name][0]("curves")


def test_a_library_that_cannot_start_is_one_line(tmp_path: Path) -> None:
    class Broken(JSONL):
        def _open(self, updates: int) -> None:
            raise OSError("no\nnetwork")

    with pytest.raises(ConfigError, match=r"^Broken cannot start \(no network\): check the folder"):
        Broken(tmp_path / "curves").begin()


def test_losses_are_read_in_bulk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One wait for the device in 256 updates, not one in each."""
    waits = []
    real = torch.Tensor.tolist
    monkeypatch.setattr(torch.Tensor, "tolist", lambda self: (waits.append(1), real(self))[1])
    tracker = JSONL(tmp_path / "curves")
    tracker._buffer.seconds = 1e9
    tracker.begin()
    tracker._buffer.read()
    for number in range(1, 256):
        tracker(update(number))
    assert not waits
    tracker(update(256))
    assert len(waits) == 3  # losses, norms, parts
    assert json.loads((tmp_path / "curves/run.json").read_text())["update"] == 256
