"""`step.stop()` ends a fit cleanly, from a sink or a thread, and Ctrl-C leaves what was reached."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import trueloop
from bits import same
from trueloop.checkpoint import Checkpoints, load_checkpoint
from trueloop.errors import ConfigError, Interrupted
from trueloop.records import EvalRecord, StepRecord

Act = Callable[[trueloop.Step], object]
WHY = "good enough"
# Five batches an epoch and two to an update: windows end at batches 1, 3 and 4.
PLACES = {
    "the update's last micro-batch": (1, 3),
    "inside a window": (1, 2),
    "the epoch's last batch": (1, 4),
    "the first batch": (0, 0),
}
ENDS = {(1, 3): (1, 4), (1, 2): (1, 4), (1, 4): (1, 5), (0, 0): (0, 2)}
"""Where the run is then: after the update at hand."""


class At:
    """A sink that acts once, at a micro-batch, or at the evaluation after an epoch."""

    def __init__(self, epoch: int, batch: int | None, step: trueloop.Step, act: Act) -> None:
        self.place, self.step, self.act = (epoch, batch), step, act

    def __call__(self, record: StepRecord | EvalRecord) -> None:
        batch = record.batch if isinstance(record, StepRecord) else None
        if (record.epoch, batch) == self.place:
            self.act(self.step)


def make_step() -> trueloop.Step:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Dropout(0.2), nn.Linear(4, 1))
    return trueloop.Step(
        model,
        trueloop.optimizers.adam(model, 1e-2),
        trueloop.supervised(nn.MSELoss()),
        schedule=trueloop.schedules.cosine(),
        accumulate=2,
    )


def fit(step: trueloop.Step, **options: Any) -> trueloop.History:
    x = torch.randn(40, 3, generator=torch.Generator().manual_seed(1))
    feeds = (
        trueloop.Feed((x, x.sum(1, keepdim=True)), 8, shuffle=True, seed=3),
        trueloop.Feed((x[:9], x[:9].sum(1, keepdim=True)), 4),
    )
    return trueloop.fit(step, *feeds, **{"epochs": 3, **options})


def scores(history: trueloop.History) -> list[tuple[Any, ...]]:
    return [(r.epoch, r.update, r.samples, r.scores) for r in history.records]


def by_thread(step: trueloop.Step) -> None:
    thread = threading.Thread(target=step.stop, args=[WHY])
    thread.start()
    thread.join()


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("act", [lambda step: step.stop(WHY), by_thread], ids=["sink", "thread"])
def test_a_stopped_run_is_evaluated_saved_and_resumed_as_if_it_were_not(
    act: Act, place: tuple[int, int], tmp_path: Path
) -> None:
    straight, stopped, resumed = make_step(), make_step(), make_step()
    torch.manual_seed(7)
    whole = fit(straight, checkpoints=Checkpoints(tmp_path / "straight"))
    torch.manual_seed(7)
    history = fit(
        stopped, checkpoints=Checkpoints(tmp_path / "stopped"), sinks=[At(*place, stopped, act)]
    )
    assert (history.status, history.reason, history.signal) == ("stopped", WHY, None)
    assert (stopped.epoch, stopped.batch) == ENDS[place]
    assert not stopped.is_accumulating
    assert history.updates == stopped.updates == history.records[-1].update
    assert history.best_update is not None
    state = load_checkpoint(tmp_path / "stopped")
    again = fit(resumed, checkpoints=Checkpoints(tmp_path / "stopped"), resume_from=state)
    assert (again.status, again.reason) == ("finished", "")
    assert same(resumed.model, straight.model)
    assert scores(again) == scores(whole)


def test_a_stop_at_an_evaluation_adds_no_update(tmp_path: Path) -> None:
    step = make_step()
    at = At(1, None, step, lambda step: step.stop(WHY))
    history = fit(step, sinks=[at], checkpoints=Checkpoints(tmp_path))
    assert (history.status, step.epoch, step.batch) == ("stopped", 2, 0)
    assert [record.epoch for record in history.records] == [0, 1]
    inside = make_step()
    options = {"epochs": None, "updates": 9, "eval_every": "2 updates"}
    history = fit(inside, sinks=[At(0, None, inside, lambda step: step.stop())], **options)
    assert (history.status, history.updates, len(history.records)) == ("stopped", 2, 1)
    assert history.reason == "step.stop() was called"


def test_the_same_step_trains_on_after_a_stop() -> None:
    straight, step = make_step(), make_step()
    torch.manual_seed(7)
    fit(straight)
    torch.manual_seed(7)
    fit(step, sinks=[At(1, 3, step, lambda step: step.stop())])
    # A call between two runs, or before one, ends none.
    step.stop("too late")
    assert fit(step).status == "finished"
    assert same(step.model, straight.model)


def test_a_run_that_ends_anyway_was_not_stopped() -> None:
    step = make_step()
    history = fit(step, sinks=[At(2, None, step, lambda step: step.stop(WHY))])
    assert (history.updates, len(history.records)) == (9, 3)
    assert (history.status, history.reason) == ("finished", "")
    assert step.stop_reason == WHY


def test_a_loop_of_ones_own_can_ask() -> None:
    step = make_step()
    assert step.stop_reason is None
    step.stop(WHY)
    assert step.stop_reason == WHY
    for wrong in ("", 3, None):
        with pytest.raises(ConfigError, match=r"write e\.g\. reason='the loss is low enough'"):
            step.stop(wrong)  # type: ignore[arg-type]


def test_ctrl_c_goes_before_a_request() -> None:
    step = make_step()

    def both(step: trueloop.Step) -> None:
        step.stop(WHY)
        os.kill(os.getpid(), signal.SIGINT)

    history = fit(step, sinks=[At(1, 3, step, both)])
    assert (history.status, history.reason, history.signal) == ("interrupted", "", signal.SIGINT)


# ---- Ctrl-C in a notebook, whose kernel has Python's own handler of SIGINT


def test_ctrl_c_returns_the_history_and_the_next_fit_goes_on() -> None:
    straight, step = make_step(), make_step()
    torch.manual_seed(7)
    fit(straight)
    torch.manual_seed(7)
    history = fit(step, sinks=[At(1, 3, step, lambda step: os.kill(os.getpid(), signal.SIGINT))])
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert (history.status, history.signal, history.updates) == ("interrupted", signal.SIGINT, 5)
    assert [record.epoch for record in history.records] == [0]
    assert fit(step).updates == 9
    assert same(step.model, straight.model)


def test_a_second_ctrl_c_raises_with_the_history(tmp_path: Path) -> None:
    step = make_step()

    def twice(step: trueloop.Step) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt) as raised:
        fit(step, sinks=[At(1, 3, step, twice)])
    assert isinstance(raised.value, Interrupted)
    history = raised.value.history
    assert (history.status, history.updates, history.best_epoch) == ("interrupted", 5, 0)
    assert [record.epoch for record in history.records] == [0]
    # The objects are whole: the step trains on, and evaluates.
    assert step.model.training
    assert fit(step).updates == 9
    assert str(raised.value) == ""
    saved = make_step()
    with pytest.raises(Interrupted) as raised:
        fit(saved, sinks=[At(1, 3, saved, twice)], checkpoints=Checkpoints(tmp_path))
    words = str(raised.value)
    assert words == f"resume with fit(..., resume_from=trueloop.load_checkpoint('{tmp_path}'))"
    line = words.partition("resume_from=")[2].removesuffix(")")
    assert fit(make_step(), resume_from=eval(line)).updates == 9
