"""`fit` on several ranks: one history, whoever looks at it."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
import torch
from torch import nn

import trueloop
from documents import blocks
from on_ranks import on_ranks
from trueloop import ranks
from trueloop.errors import ConfigError
from trueloop.records import EvalRecord, StepRecord

SAMPLES = 67  # a prime: no batch size and no number of ranks divides it


def _data() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(1)
    x = torch.randn(SAMPLES, 4, dtype=torch.float64)
    return x, x.sum(dim=1, keepdim=True).tanh()


def _parts(**options: Any) -> tuple[trueloop.Step, trueloop.Feed, trueloop.Feed]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).double()
    step = trueloop.Step(
        model,
        torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
        trueloop.supervised(nn.MSELoss()),
        parallel="ddp",
        clip_norm=0.5,
        **options,
    )
    x, y = _data()
    train = trueloop.Feed((x, y), batch_size=16, shuffle=True, seed=3)
    return step, train, trueloop.Feed((x[:23], y[:23]), batch_size=7)


def _numbers(step: trueloop.Step) -> list[float]:
    """All weights, as what can go from process to process."""
    return torch.cat([p.detach().flatten() for p in step.model.parameters()]).tolist()


def _fit(accumulate: int, **options: Any) -> dict[str, Any]:
    step, train, val = _parts(accumulate=accumulate)
    seen: list[Any] = []
    history = trueloop.fit(step, train, val, epochs=3, sinks=[seen.append], **options)
    updates = [r for r in seen if isinstance(r, StepRecord) and r.updated]
    return {
        "losses": [float(r.loss) for r in updates],
        "norms": [float(r.grad_norm) for r in updates if r.grad_norm is not None],
        "samples": [r.samples for r in updates],
        "scores": [r.scores for r in seen if isinstance(r, EvalRecord)],
        "history": (history.best_epoch, history.best, history.status, history.updates),
        "seconds": history.seconds,
        "weights": _numbers(step),
        "phase": ranks.here.phase,
        "update": ranks.here.update,
    }


@pytest.fixture(scope="module")
def alone() -> dict[int, dict[str, Any]]:
    """The run in one process, by how many micro-batches make an update."""
    return {accumulate: on_ranks(1, _fit, accumulate)[0] for accumulate in (1, 3)}


@pytest.mark.parametrize("accumulate", [1, 3])
@pytest.mark.parametrize("count", [2, 3])
def test_every_rank_has_the_history_of_one_process(
    alone: dict[int, dict[str, Any]], count: int, accumulate: int
) -> None:
    one = alone[accumulate]
    for found in on_ranks(count, _fit, accumulate):
        assert found["samples"] == one["samples"]
        for name in ("losses", "norms"):
            assert found[name] == pytest.approx(one[name], rel=1e-12), name
        for there, here in zip(found["scores"], one["scores"], strict=True):
            assert there == pytest.approx(here, rel=1e-12)
        assert found["history"][0] == one["history"][0]
        assert found["history"][2:] == one["history"][2:] == ("finished", len(one["losses"]))
        assert found["update"] == len(one["losses"])
        assert found["weights"] == pytest.approx(one["weights"], rel=1e-11, abs=1e-13)


def test_all_ranks_measure_the_same_time() -> None:
    found = on_ranks(2, _fit, 1)
    assert found[0]["seconds"] == found[1]["seconds"] > 0
    assert found[0]["scores"] == found[1]["scores"]
    assert found[0]["history"] == found[1]["history"]


def _stop_by(how: str) -> tuple[str, int | None, int, bool]:
    step, train, _ = _parts(accumulate=2)

    def interrupt(record: Any) -> None:
        if ranks.rank() == 1 and isinstance(record, StepRecord) and record.batch == 0:
            if how == "request":
                step.stop("enough")
            else:
                os.kill(os.getpid(), signal.SIGTERM)

    options: dict[str, Any] = {"max_seconds": 0.3} if how == "clock" else {"sinks": [interrupt]}
    history = trueloop.fit(step, train, epochs=100_000, **options)
    assert history.reason == ("enough" if how == "request" else "")
    return history.status, history.signal, step.updates, step.is_accumulating


@pytest.mark.parametrize("how", ["signal", "clock", "request"])
def test_all_ranks_end_after_the_same_update(how: str) -> None:
    found = on_ranks(2, _stop_by, how)
    assert found[0] == found[1]
    status, number, updates, is_open = found[0]
    ends = {"signal": ("interrupted", signal.SIGTERM), "clock": ("out of time", None)}
    assert (status, number) == ends.get(how, ("stopped", None))
    assert updates > 0
    assert not is_open


def _early_stop() -> tuple[str, int, int | None, list[float]]:
    step, train, val = _parts()
    stopping = trueloop.EarlyStopping("val_loss", patience=2, min_delta=10.0)
    history = trueloop.fit(step, train, val, epochs=50, early_stop=stopping)
    return history.status, len(history.records), history.best_epoch, _numbers(step)


def test_early_stopping_stops_all_ranks() -> None:
    (status, epochs, best, weights), other = on_ranks(2, _early_stop)
    assert (status, epochs, best) == other[:3] == ("stopped early", 3, 2)
    assert weights == other[3]


def _unlike(what: str) -> str:
    step, train, val = _parts()
    mine = ranks.rank() == 1
    options: dict[str, Any] = {"epochs": 3 if what == "epochs" and mine else 2}
    if what == "val" and mine:
        val = None  # type: ignore[assignment]
    if what == "train" and mine:
        x, y = _data()
        train = trueloop.Feed((x[:40], y[:40]), batch_size=16, shuffle=True, seed=3)
    if what == "early_stop" and mine:
        options["early_stop"] = trueloop.EarlyStopping(patience=3)
    try:
        trueloop.fit(step, train, val, **options)
    except ConfigError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("epochs", "the length of the run is '2 epochs' on rank 0 and '3 epochs' on rank 1"),
        ("val", "val is True on rank 0 and False on rank 1"),
        ("train", "the number of samples in train is 67 on rank 0 and 40 on rank 1"),
        ("early_stop", r"early_stop is None on rank 0 and \('val_loss', 3\) on rank 1"),
    ],
)
def test_ranks_that_are_given_different_things_do_not_wait_for_ever(what: str, said: str) -> None:
    for found in on_ranks(2, _unlike, what):
        assert found.endswith("call fit with the same arguments on every rank")
        assert said.replace("\\", "") in found


def _interrupted_evaluation(folder: str) -> dict[str, Any]:
    """A run whose second evaluation gets a signal on one rank, and the rest of it."""

    def parts() -> tuple[Any, ...]:
        x, y = _data()
        return *_parts()[:2], trueloop.Feed((x[:23], y[:23]), batch_size=1)

    step, train, val = parts()
    loss_fn, evaluated = step.loss_fn, []

    def signalling(model: Any, batch: Any) -> Any:
        if not torch.is_grad_enabled():
            evaluated.append(1)
            if len(evaluated) == 15 and ranks.rank() == ranks.world_size() - 1:
                os.kill(os.getpid(), signal.SIGTERM)
        return loss_fn(model, batch)

    step.loss_fn = signalling
    ranks.Agreement.most_calls = 1
    checkpoints = trueloop.Checkpoints(folder)
    first = trueloop.fit(step, train, val, epochs=3, checkpoints=checkpoints)
    place, heard = (step.epoch, step.batch, step.updates), ranks.stop_signal()
    step, train, val = parts()
    rest = trueloop.fit(
        step,
        train,
        val,
        epochs=3,
        checkpoints=trueloop.Checkpoints(folder),
        resume_from=trueloop.load_checkpoint(folder),
    )
    return {
        "first": (first.status, first.signal, len(first.records)),
        "place": place,
        "heard": heard,
        "rest": (rest.status, [record.scores for record in rest.records]),
        "weights": _numbers(step),
    }


@pytest.mark.parametrize("count", [1, 2])
def test_a_signal_ends_an_evaluation_which_is_made_again(
    tmp_path: Any, alone: dict[int, dict[str, Any]], count: int
) -> None:
    for found in on_ranks(count, _interrupted_evaluation, str(tmp_path)):
        status, number, epochs = found["first"]
        assert (status, number) == ("interrupted", signal.SIGTERM)
        assert found["heard"] is None  # the signal ends that one run alone
        assert (epochs, found["place"]) == ((0, (0, 5, 5)) if count == 1 else (1, (1, 5, 10)))
        whole = on_ranks(count, _fit, 1)[0]
        assert found["rest"][0] == "finished"
        for there, here in zip(found["rest"][1], whole["scores"], strict=True):
            assert there["train_loss"] == here["train_loss"]
        assert found["weights"] == whole["weights"]


def _documented(folder: str) -> dict[str, float]:
    """The loop of docs/many-ranks.md."""
    (program,) = [b for b in blocks("docs/many-ranks.md") if "def train(" in b.text]
    names: dict[str, Any] = {}
    exec(program.text, names)
    x = torch.randn(203, 2, generator=torch.Generator().manual_seed(0))
    y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
    found: dict[str, float] = names["train"](x, y, 2, folder)
    return found


@pytest.mark.parametrize("count", [1, 2])
def test_the_loop_of_the_documents_trains(tmp_path: Any, count: int) -> None:
    first, *others = on_ranks(count, _documented, str(tmp_path))
    assert first["loss"] < 1.05
    assert all(other == first for other in others)
    assert trueloop.load_checkpoint(tmp_path)["step"]["counters"][0] == 2
