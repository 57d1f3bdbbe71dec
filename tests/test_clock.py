"""One clock: evaluations, saves and lines of the log fall exactly where asked, over epochs, streams
and accumulation; a run that is stopped anywhere goes on with the same log."""

from __future__ import annotations

import itertools
import json
import signal
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import IterableDataset

import trueloop
from on_ranks import on_ranks
from trueloop import schedules
from trueloop.checkpoint import Checkpoints, load_checkpoint
from trueloop.errors import ConfigError, RunError, ScheduleError
from trueloop.lengths import Interval
from trueloop.loop.clock import EVALUATION, LINE, SAVE, RunClock, updates_of_tokens
from trueloop.records import EvalRecord, StepRecord
from trueloop.run import Run
from trueloop.step import global_window

CONTEXT, VOCABULARY = 5, 7


class Tiny(nn.Module):
    """Next-token logits; with dropout, so that a resume must bring the generator back."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, 4)
        self.drop = nn.Dropout(0.2)
        self.head = nn.Linear(4, VOCABULARY)

    def forward(self, tokens: Tensor) -> Tensor:
        logits: Tensor = self.head(self.drop(self.embed(tokens)))
        return logits


def loss_fn(model: nn.Module, tokens: Tensor) -> Tensor:
    logits = model(tokens[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


def tokens_of(samples: int) -> Tensor:
    generator = torch.Generator().manual_seed(samples)
    return torch.randint(VOCABULARY, (samples, CONTEXT), generator=generator)


class Stream(IterableDataset[Tensor]):
    """Samples whose number nobody knows beforehand, with a place to go on from."""

    def __init__(self, samples: int) -> None:
        self.data, self.place = tokens_of(samples), 0

    def __iter__(self) -> Iterator[Tensor]:
        while self.place < len(self.data):
            self.place += 1
            yield self.data[self.place - 1]
        self.place = 0

    def state_dict(self) -> dict[str, int]:
        return {"place": self.place}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.place = state["place"]


def make_step(**options: Any) -> trueloop.Step:
    torch.manual_seed(0)
    model = Tiny()
    return trueloop.Step(model, torch.optim.SGD(model.parameters(), lr=0.5), loss_fn, **options)


def make_feeds(samples: int = 22, batch_size: int = 4, *, stream: bool = False) -> tuple[Any, Any]:
    data = Stream(samples) if stream else tokens_of(samples)
    train = trueloop.Feed(data, batch_size, shuffle=not stream, seed=2)
    return train, trueloop.Feed(tokens_of(9), 4)


def lines_of(run: Run) -> list[dict[str, Any]]:
    """The log without its clocks."""
    return [
        {k: v for k, v in json.loads(line).items() if k not in ("time", "seconds")}
        for line in (run.path / "metrics.jsonl").read_text().splitlines()
    ]


def saves_of(folder: Path) -> list[int]:
    return sorted(int(path.name.rpartition("u")[2]) for path in folder.glob("e*-b*-u*"))


UNITS = st.sampled_from(["updates", "samples", "tokens", "epochs"])
EVERY = st.tuples(st.integers(1, 9), UNITS).map(
    lambda pair: (pair[0] * {"samples": 5, "tokens": 23}.get(pair[1], 1), pair[1])
)


def expected(records: list[StepRecord], every: tuple[int, str], stop: int | None) -> list[int]:
    """By brute force: the updates with which a total first reaches each multiple."""
    amount, unit = every
    if unit == "epochs":
        ends = {record.epoch: record.update for record in records}
        last = records[-1].epoch
        over = set(ends) if stop is None else set(ends) - {last}
        return [ends[epoch] for epoch in sorted(over) if (epoch + 1) % amount == 0]
    found, total = [], 0
    for record in records:
        before, total = (
            total,
            total + {"updates": 1, "samples": record.samples}.get(unit, record.tokens),
        )
        if total // amount > before // amount:
            found.append(record.update)
    return found


@settings(max_examples=15, deadline=None)
@given(
    evaluate=EVERY,
    log=EVERY,
    save=EVERY,
    length=st.tuples(st.integers(1, 40), st.sampled_from(["updates", "epochs", "tokens"])),
    accumulate=st.integers(1, 3),
    stream=st.booleans(),
)
def test_all_falls_where_asked(
    tmp_path_factory: pytest.TempPathFactory,
    evaluate: tuple[int, str],
    log: tuple[int, str],
    save: tuple[int, str],
    length: tuple[int, str],
    accumulate: int,
    stream: bool,
) -> None:
    folder = tmp_path_factory.mktemp("clock")
    train, val = make_feeds(stream=stream)
    step, told = make_step(accumulate=accumulate), []
    amount, unit = length
    amount = {"updates": amount, "epochs": 1 + amount % 4, "tokens": 17 * amount}[unit]
    run = Run.create(folder / "run", config={})

    def sink(record: StepRecord | EvalRecord) -> None:
        assert isinstance(record, StepRecord) or not step.is_accumulating
        told.append(record)

    saved = Checkpoints(folder / "saved", keep_last=1000, keep_best=None, asynchronous=False)
    every = [f"{number} {name}" for number, name in (evaluate, log, save)]
    history = trueloop.fit(
        step, train, val, **{unit: amount}, eval_every=every[0], log_every=every[1],
        save_every=every[2], run=run, sinks=[sink],
        checkpoints=saved,
    )  # fmt: skip
    records = [r for r in told if isinstance(r, StepRecord) and r.updated]
    last, done = records[-1].update, {"updates": len(records), "epochs": step.epoch}
    tokens = [r.tokens for r in records]
    assert history.tokens == sum(tokens)
    assert history.samples == sum(r.samples for r in records)
    if unit == "tokens":
        assert sum(tokens[:-1]) < amount <= sum(tokens)
    else:
        assert done[unit] == amount
    inside = last if step.batch else None  # the run ends inside an epoch
    due = expected(records, evaluate, inside)
    places = [r.update for r in told if isinstance(r, EvalRecord)]
    assert places == due + [last] * (due[-1:] != [last]), "and once at the very end"
    assert set(saves_of(folder / "saved")) == {*expected(records, save, inside), last}
    lines = [line for line in lines_of(run) if line["kind"] == "update"]
    assert [line["update"] for line in lines] == expected(records, log, inside)
    before = 0
    for line in lines:
        part = records[before : line["update"]]
        samples = sum(r.samples for r in part)
        mean = sum(float(r.loss) * r.samples for r in part) / samples
        assert line["loss"] == pytest.approx(mean, rel=1e-9)
        assert (line["samples"], line["tokens"]) == (samples, sum(r.tokens for r in part))
        assert line.get("updates", 1) == len(part)
        assert line["grad_norm"] == pytest.approx(float(part[-1].grad_norm or 0))
        before = line["update"]


def test_the_train_loss_of_an_evaluation_is_since_the_last_one() -> None:
    train, val = make_feeds()
    told: list[Any] = []
    history = trueloop.fit(
        make_step(), train, val, updates=17, eval_every="5 updates", sinks=[told.append]
    )
    records = [r for r in told if isinstance(r, StepRecord)]
    for first, last, record in zip([0, 5, 10, 15], [5, 10, 15, 17], history.records, strict=True):
        part = records[first:last]
        mean = sum(float(r.loss) * r.samples for r in part) / sum(r.samples for r in part)
        assert record["train_loss"] == pytest.approx(mean, rel=1e-9)
        assert (record.epoch, record.update) == ((last - 1) // 6, last)
    best = min(history.records, key=lambda record: record["val_loss"])
    assert (history.best_update, history.best_epoch) == (best.update, best.epoch)


# -- what goes by evaluations -----------------------------------------------------------------


def test_patience_counts_evaluations_and_ends_the_run_inside_an_epoch() -> None:
    train, val = make_feeds(200)
    step = make_step()
    step.optimizer.param_groups[0]["lr"] = 0.0
    stop = trueloop.EarlyStopping(patience=3)
    history = trueloop.fit(step, train, val, epochs=9, eval_every="4 updates", early_stop=stop)
    assert (history.status, history.updates) == ("stopped early", 16)
    assert (step.epoch, step.batch) == (0, 16)


def test_a_plateau_ticks_with_each_evaluation_and_an_epoch_schedule_at_epoch_ends() -> None:
    train, val = make_feeds(24)  # six updates in an epoch
    lrs: list[float] = []

    def sink(record: Any) -> None:
        if isinstance(record, StepRecord):
            lrs.append(record.lr)

    falling = schedules.plateau(mode="max", factor=0.5, patience=0)  # of a loss that falls
    step = make_step(schedule=falling)
    trueloop.fit(step, train, val, updates=8, eval_every="2 updates", sinks=[sink])
    assert lrs == [0.5] * 4 + [0.25] * 2 + [0.125] * 2
    lrs.clear()
    by_epoch = schedules.step_decay(1, gamma=0.5)
    trueloop.fit(
        make_step(schedule=by_epoch), train, val, updates=13, eval_every="5 updates", sinks=[sink]
    )
    assert lrs == [0.5] * 6 + [0.25] * 6 + [0.125]


@pytest.mark.parametrize("stream", [False, True])
def test_a_schedule_is_as_long_as_the_runs_updates(stream: bool) -> None:
    train, val = make_feeds(stream=stream)
    told: list[Any] = []
    step = make_step(schedule=schedules.warmup_cosine("20%"))
    trueloop.fit(step, train, val, updates=20, sinks=[told.append])
    lrs = [r.lr for r in told if isinstance(r, StepRecord)]
    assert len(lrs) == 20
    assert lrs.index(max(lrs)) == 4
    assert step.optimizer.param_groups[0]["lr"] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    ("samples", "batch_size", "accumulate"), [(22, 4, 1), (23, 4, 2), (9, 9, 3)]
)
def test_a_run_in_tokens_knows_its_updates(samples: int, batch_size: int, accumulate: int) -> None:
    for tokens in (1, 19, 20, 21, 109, 110, 111, 300):
        train, _ = make_feeds(samples, batch_size)
        step = make_step(schedule=schedules.cosine(), accumulate=accumulate)
        history = trueloop.fit(step, train, tokens=tokens)
        assert history.updates == updates_of_tokens(train, accumulate, tokens)
        assert step.optimizer.param_groups[0]["lr"] == pytest.approx(0.0, abs=1e-12)


def test_a_run_in_tokens_over_a_stream_needs_a_schedule_in_updates() -> None:
    train, val = make_feeds(stream=True)
    with pytest.raises(ScheduleError, match=r"in tokens.*length in updates, e\.g\. cosine\(10_000"):
        trueloop.fit(make_step(schedule=schedules.cosine()), train, val, tokens=300)
    step = make_step(schedule=schedules.cosine(16))
    assert trueloop.fit(step, train, val, tokens=300).updates == 16


# -- a run that is stopped and goes on --------------------------------------------------------


def longest(folder: Path, stop_at: Callable[[Any], bool] | None, *, resume: bool = False) -> Any:
    """A run with all that a clock counts, stopped at the first record that `stop_at` picks."""
    seen = []

    def sink(record: StepRecord | EvalRecord) -> None:
        seen.append(record)
        if stop_at is not None and stop_at(record):
            signal.raise_signal(signal.SIGINT)

    run = Run(folder) if resume else Run.create(folder, config={})
    train, val = make_feeds(stream=True)
    step = make_step(accumulate=2, schedule=schedules.plateau(factor=0.9, patience=0))
    if resume:
        torch.manual_seed(99)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        history = trueloop.fit(
            step, train, val, updates=14, eval_every="22 samples", log_every="90 tokens",
            save_every="3 updates", run=run, sinks=[sink],
            early_stop=trueloop.EarlyStopping(patience=20),
            checkpoints=Checkpoints(run.checkpoints, asynchronous=False),
            resume_from=load_checkpoint(run.checkpoints) if resume else None,
        )  # fmt: skip
    scores = [(r.epoch, r.update, r.scores) for r in history.records]
    weights = [p.tolist() for p in step.model.parameters()]
    mark = run.checkpoints / "best.json"
    best = json.loads(mark.read_text()) if mark.exists() else {}
    best.pop("name", None)  # it may be saved before its evaluation, or after it
    totals = (history.samples, history.tokens, history.best_update)
    return seen, (scores, weights, best, totals, lines_of(run)), history.status


def test_stopped_at_any_record_the_run_goes_on_with_the_same_log(tmp_path: Path) -> None:
    """By a signal in the sink: after a micro-batch, an update or an evaluation."""
    seen, straight, status = longest(tmp_path / "straight", None)
    assert status == "finished"
    for number in range(2, len(seen), 3):
        count = itertools.count(1)
        folder = tmp_path / f"at-{number}"
        _, _, status = longest(folder, lambda record, n=number, c=count: next(c) == n)
        _, resumed, again = longest(folder, None, resume=True)
        assert again == "finished"
        assert resumed == straight, f"stopped at record {number} ({status})"


def test_an_evaluation_that_a_signal_has_ended_is_made_again(tmp_path: Path) -> None:
    def run(folder: Path, batch: int | None) -> Any:
        step, (train, _) = make_step(), make_feeds()
        calls = itertools.count()

        def interrupting(model: nn.Module, tokens: Tensor) -> Tensor:
            if not torch.is_grad_enabled() and next(calls) == batch:
                signal.raise_signal(signal.SIGINT)
            return loss_fn(model, tokens)

        step.loss_fn = interrupting
        kept = Run(folder) if folder.exists() else Run.create(folder, config={})
        state = load_checkpoint(kept.checkpoints) if kept.checkpoints.exists() else None
        history = trueloop.fit(
            step, train, trueloop.Feed(tokens_of(9), 3), updates=9, eval_every="4 updates",
            run=kept, checkpoints=Checkpoints(kept.checkpoints), resume_from=state,
        )  # fmt: skip
        return history.status, lines_of(kept)

    _, straight = run(tmp_path / "straight", None)
    for batch in range(9):  # of three evaluations
        status, lines = run(tmp_path / f"at-{batch}", batch)
        if status == "interrupted":
            assert lines != straight
            status, lines = run(tmp_path / f"at-{batch}", None)
        assert (status, lines) == ("finished", straight), batch


def test_the_time_is_up_only_after_a_whole_update() -> None:
    train, val = make_feeds()
    step = make_step(accumulate=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of a model that is evaluated without its update
        history = trueloop.fit(step, train, val, updates=50, max_seconds=1e-9)
    assert (history.status, history.updates) == ("out of time", 1)
    assert not step.is_accumulating
    assert [record.update for record in history.records] == [1]


def test_a_run_is_prolonged_as_if_it_had_been_as_long(tmp_path: Path) -> None:
    def run(folder: Path, updates: int) -> Any:
        step, (train, val) = (
            make_step(schedule=schedules.step_decay(5, tick="update")),
            make_feeds(),
        )
        saved = Checkpoints(folder)
        state = load_checkpoint(folder) if folder.exists() else None
        history = trueloop.fit(
            step, train, val, updates=updates, eval_every="4 updates", checkpoints=saved,
            resume_from=state,
        )  # fmt: skip
        return history.updates, [p.tolist() for p in step.model.parameters()]

    run(tmp_path / "two", 9)
    assert run(tmp_path / "two", 20) == run(tmp_path / "one", 20)


# -- minutes ----------------------------------------------------------------------------------


def record(update: int) -> StepRecord:
    return StepRecord(0, update - 1, update, torch.tensor(0.0), None, 0.1, 4, True)


def test_minutes_are_multiples_of_the_training_time_which_a_resume_continues() -> None:
    times = [0.0]
    minute = {EVALUATION: Interval(1, "minutes"), SAVE: Interval(2.5, "minutes"), LINE: None}

    def clock() -> RunClock:
        return RunClock(minute, lambda: times[-1], Interval(100, "updates"))

    ticking, found = clock(), {}
    ticking.start(make_step())
    for update, seconds in enumerate([50, 61, 100, 119, 200, 230, 302, 305], start=1):
        times.append(seconds)
        found[update] = set(ticking.tick(record(update), last=False))
        if update == 4:  # killed here, and resumed much later
            state = ticking.state_dict()
            ticking = clock()
            ticking.load_state_dict(state)
            ticking.start(make_step())
    due = {update: what for update, what in found.items() if what}
    assert due == {2: {EVALUATION}, 5: {EVALUATION, SAVE}, 7: {EVALUATION, SAVE}}


# -- many ranks -------------------------------------------------------------------------------


def _told(eval_every: str) -> Any:
    train, val = make_feeds()
    step, told = make_step(parallel="ddp", accumulate=2), []
    history = trueloop.fit(
        step, train, val, tokens=400, eval_every=eval_every, log_every="17 samples",
        sinks=[told.append],
    )  # fmt: skip
    tokens = [r.tokens for r in told if isinstance(r, StepRecord) and r.updated]
    return [r.update for r in history.records], tokens, history.tokens, history.samples


def _on_a_rank() -> Any:
    on_the_host = _told("33 tokens")
    minutes = _told("0.0000001 minutes")
    # What a rank does on an accelerator: counts come from the hosts, and no tensor is read.
    global_window.is_immediate = lambda device: False  # type: ignore[attr-defined]
    return on_the_host, _told("33 tokens"), minutes


def test_many_ranks_decide_alike() -> None:
    first, second = on_ranks(2, _on_a_rank)
    assert first == second
    assert first[0] == first[1] == _told("33 tokens")
    assert len(first[2][0]) > 1


# -- mistakes ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "how long the run is to be is not said: write epochs=10, updates=10_000"),
        ({"epochs": 2, "updates": 5}, "epochs=2 and updates=5 each set the length of the run"),
        ({"updates": 0}, "updates=0 is not an integer of at least 1"),
        ({"tokens": 1.5}, "tokens=1.5 is not an integer"),
        ({"epochs": 2, "eval_every": 100}, "eval_every=100: 100 of what?"),
        ({"epochs": 2, "log_every": "often"}, "log_every='often' is not understood"),
        ({"epochs": 2, "save_every": "2 epochs"}, "save_every='2 epochs' is given without check"),
    ],
)
def test_mistakes(options: dict[str, Any], message: str) -> None:
    train, val = make_feeds()
    with pytest.raises(ConfigError, match=message.replace("?", r"\?")):
        trueloop.fit(make_step(), train, val, **options)


def test_more_mistakes(tmp_path: Path) -> None:
    train, val = make_feeds()
    saved = Checkpoints(tmp_path, every="3 updates")
    with pytest.raises(ConfigError, match="both say how often to save"):
        trueloop.fit(make_step(), train, val, epochs=1, save_every="2 updates", checkpoints=saved)
    model = nn.Linear(2, 1)
    loss = trueloop.supervised(nn.MSELoss())
    step = trueloop.Step(model, torch.optim.SGD(model.parameters(), 0.1), loss)
    data = trueloop.Feed((torch.randn(8, 2), torch.randn(8, 1)), 4)
    with pytest.raises(ConfigError, match="a batch has none: its first tensor is not one"):
        trueloop.fit(step, data, tokens=100)
    step = make_step()
    trueloop.fit(step, train, val, updates=3)
    with pytest.raises(ConfigError, match=r"3 updates already.*write updates=5 to train 2"):
        trueloop.fit(step, train, val, updates=2)
    by_tokens = Checkpoints(tmp_path / "own", every="9 tokens")
    with pytest.raises(ConfigError, match="every='9 tokens' only works in fit"):
        by_tokens.keep(step, train)


def test_a_run_that_can_make_no_update_ends() -> None:
    train, _ = make_feeds()
    step = make_step(nonfinite="skip")
    with torch.no_grad():
        step.model.head.weight.fill_(torch.nan)
    with pytest.raises(RunError, match="2 epochs had no update that could be applied"):
        trueloop.fit(step, train, updates=5)
