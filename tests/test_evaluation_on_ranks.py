"""evaluate and predict on several ranks: the figures of one process, bit for bit."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor, nn
from torch.utils.data import Dataset, IterableDataset

import trueloop
from on_ranks import on_ranks
from trueloop import metrics, ranks
from trueloop.evaluation.scores import EvaluationStopped, _BatchMeans, _means, scored
from trueloop.metrics import MetricSet
from trueloop.records import LossOutput

COUNTS = (1, 2, 4)
CLASSES = 3


def rows(size: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(size, 4, generator=generator), torch.randint(
        0, CLASSES, (size,), generator=generator
    )


class Rows(Dataset[Any]):
    def __init__(self, size: int) -> None:
        self.x, self.y = rows(size)

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.x[index], self.y[index]


class Lines(IterableDataset[Any]):
    def __init__(self, size: int) -> None:
        self.rows = Rows(size)

    def __iter__(self) -> Iterator[Any]:
        return (self.rows[index] for index in range(len(self.rows)))


def make_model(outputs: int = CLASSES) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Dropout(), nn.Linear(16, outputs))


def with_parts(model: nn.Module, batch: Any) -> LossOutput:
    """Weighted by a count of its own, with a part that only some batches have."""
    x, y = batch
    outputs = model(x)
    loss = nn.functional.cross_entropy(outputs, y)
    tokens = (y > 0).sum()
    parts = {"size": outputs.square().mean()}
    if int(tokens) % 2:
        parts["odd"] = loss * 3
    return LossOutput(loss, tokens, outputs, y, parts)


class Counted(MetricSet):
    """A set of the user's own, each attribute with a reduction of its own."""

    reductions: ClassVar[Mapping[str, Any]] = {
        "right": "sum", "worst": "max", "least": "min", "rows": "gather", "calls": "sum",
    }  # fmt: skip

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.right = torch.zeros((), dtype=torch.int64)
        self.worst, self.least, self.calls = torch.tensor(-math.inf), math.inf, 0
        self.rows: list[float] = []

    def update(self, outputs: Tensor, targets: Tensor) -> None:
        self.right += (outputs.argmax(1) == targets).sum()
        self.worst = torch.maximum(self.worst, outputs.max())
        self.least = min(self.least, float(outputs.min()))
        self.rows.append(float(outputs.sum()))
        self.calls += 1

    def compute(self) -> dict[str, float]:
        return {
            "right": float(self.right), "worst": float(self.worst), "least": self.least,
            "calls": float(self.calls), "in_order": sum(w * r for w, r in enumerate(self.rows)),
        }  # fmt: skip


class Silent(Counted):
    reductions: ClassVar[Mapping[str, Any] | None] = None  # type: ignore[assignment]


def _exact(record: Any) -> Any:
    """What must be equal on any number of ranks, NaN included."""
    return repr((record.scores, record.samples, record.details))


def _evaluations(size: int, batch_size: int) -> list[str]:
    import torchmetrics
    from torchmetrics import classification

    model = make_model()
    x, y = rows(size)
    supervised = trueloop.supervised(nn.CrossEntropyLoss())
    feed = trueloop.Feed((x, y), batch_size)
    found = [
        trueloop.evaluate(
            model, source, with_parts, metrics.for_task("multiclass", classes=CLASSES)
        )
        for source in (
            feed,
            trueloop.Feed((x, y), batch_size, shuffle=True),
            trueloop.Feed(Rows(size), batch_size),
            trueloop.Feed(Lines(size), batch_size),
        )
    ]
    sets: list[Any] = [
        metrics.for_task("multiclass", classes=CLASSES, thresholds=50),
        metrics.for_task("distillation", classes=CLASSES),
        Counted(),
        torchmetrics.MetricCollection(
            classification.MulticlassAccuracy(CLASSES),
            classification.MulticlassF1Score(CLASSES),
            classification.MulticlassConfusionMatrix(CLASSES),
        ),
        {"auroc": classification.MulticlassAUROC(CLASSES)},
        {"f1": classification.MulticlassF1Score(CLASSES), "entropy": _entropies},
        [Counted(), {"entropy": lambda outputs, targets: _entropies(outputs, targets).mean()}],
    ]
    for each in sets:
        loss_fn = _distilled if isinstance(each, metrics._sets.Distillation) else supervised
        found += [trueloop.evaluate(model, feed, loss_fn, each) for _ in range(2)]
    found.append(trueloop.evaluate(model, feed, with_parts, collect=True, precision="bf16"))
    one, wide = make_model(1), make_model(2)
    single: list[tuple[nn.Module, Any]] = [
        (one, metrics.for_task("binary")),
        (wide, metrics.for_task("multilabel", classes=2)),
        (wide, metrics.for_task("regression")),
        (one, metrics.for_task("robust")),
        (one, torchmetrics.MeanSquaredError()),
        (wide, metrics.transformed(metrics.for_task("regression"), torch.expm1)),
        (one, {"mean": torchmetrics.MeanAbsoluteError(), "r2": torchmetrics.R2Score()}),
    ]
    found += [trueloop.evaluate(each, feed, _regressed, meter) for each, meter in single]
    found.append(trueloop.evaluate(wide, feed, _ranked, metrics.for_task("ranking")))
    images = trueloop.Feed((torch.randn(size, 4, generator=torch.Generator().manual_seed(1)), y), 5)
    found.append(
        trueloop.evaluate(model, images, with_parts, metrics.for_task("segmentation", classes=3))
    )
    predicted = trueloop.predict(model, trueloop.Feed(x, batch_size))
    return [_exact(record) for record in found] + [repr(predicted.tolist())]


def _entropies(outputs: Tensor, _: Tensor) -> Tensor:
    return nn.functional.cross_entropy(outputs, outputs.softmax(1), reduction="none")


def _distilled(model: nn.Module, batch: Any) -> LossOutput:
    x, y = batch
    outputs = model(x)
    return LossOutput(outputs.square().mean(), None, outputs, (y, outputs))


def _ranked(model: nn.Module, batch: Any) -> LossOutput:
    x, y = batch
    outputs = model(x)
    return LossOutput(outputs.square().mean(), None, outputs, (y > 0) * 2 - 1)


def _regressed(model: nn.Module, batch: Any) -> LossOutput:
    x, y = batch
    outputs = model(x)
    width = outputs.shape[1]
    if width == 1:
        return LossOutput(outputs.square().mean(), None, outputs[:, 0], (y > 0).float())
    return LossOutput(outputs.square().mean(), None, outputs, x[:, :2].sign())


def _all_evaluations() -> list[str]:
    sizes = ((31, 4), (13, 64), (3, 1))
    return [each for size, batch_size in sizes for each in _evaluations(size, batch_size)]


def test_the_figures_are_those_of_one_process() -> None:
    (alone,) = on_ranks(1, _all_evaluations)
    for count in COUNTS[1:]:
        for found in on_ranks(count, _all_evaluations):
            for mine, expected in zip(found, alone, strict=True):
                assert mine == expected


def _refused() -> str:
    feed = trueloop.Feed(rows(8), 4)
    try:
        trueloop.evaluate(make_model(), feed, with_parts, Silent())
    except trueloop.ConfigError as error:
        return str(error)
    return ""


def test_a_set_that_does_not_say_how_it_is_reduced_is_refused() -> None:
    assert on_ranks(1, _refused) == [""]
    for message in on_ranks(2, _refused):
        assert message == (
            "Silent does not say how it adds up over 2 ranks, and would give those of one: write "
            "in the class Silent, for each attribute that update changes, e.g. reductions = "
            "{'total': 'sum'}"
        )


class _Last(nn.Module):
    """Draws in every forward, in eval mode too."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = make_model()

    def forward(self, x: Tensor) -> Tensor:
        outputs: Tensor = self.inner(x)
        return outputs + torch.rand(())


def _stopped() -> dict[str, Any]:
    model, feed = _Last().train(), trueloop.Feed(rows(40), 4)
    agreement = ranks.Agreement(seconds=0.0)
    generator = torch.get_rng_state()
    asked = 0

    def should_stop() -> bool:
        nonlocal asked
        asked += 1
        return agreement.ask(ranks.rank() == ranks.world_size() - 1 and asked >= 2)

    try:
        scored(model, feed, with_parts, should_stop=should_stop)
    except EvaluationStopped:
        stopped = True
    else:
        stopped = False
    return {
        "stopped": stopped,
        "asked": asked,
        "training": all(module.training for module in model.modules()),
        "same": torch.equal(torch.get_rng_state(), generator),
        "phase": ranks.here.phase,
        "again": _exact(trueloop.evaluate(model.inner, feed, with_parts)),
    }


def test_an_evaluation_stops_on_all_ranks_at_once_and_can_be_made_again() -> None:
    one, each = on_ranks(1, _stopped), on_ranks(2, _stopped)
    assert all(found["stopped"] and found["training"] and found["same"] for found in one + each)
    assert {found["asked"] for found in each} == {each[0]["asked"]}
    assert {found["phase"] for found in one + each} == {"starting"}
    assert {found["again"] for found in one + each} == {one[0]["again"]}


def _train_metrics_of_a_stopped_epoch() -> list[tuple[bytes, Any]]:
    """The state of training metrics in the midst of an epoch, and what they come to."""
    loss_fn = trueloop.supervised(nn.CrossEntropyLoss())
    model = make_model()
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    step = trueloop.Step(model, sgd, loss_fn, parallel="ddp")
    from trueloop.evaluation import EpochScores

    found: list[tuple[bytes, Any]] = []
    x, y = rows(24)
    for meter in (metrics.for_task("multiclass", classes=CLASSES), metrics.for_task("regression")):
        scores = EpochScores(step, None, None, meter, False)
        mine = range(ranks.rank(), 24, ranks.world_size())
        for index in mine:
            part = slice(index, index + 1)
            if isinstance(meter, metrics._sets.Regression):
                meter.update(x[part, :1], y[part, None].float())
            else:
                meter.update(x[part, :CLASSES], y[part])
        state = io.BytesIO()
        torch.save(scores.state_dict(), state)
        found.append((state.getvalue(), scores.evaluate(0).scores))
    return found


def _train_metrics_resumed(states: list[bytes]) -> list[Any]:
    from trueloop.evaluation import EpochScores

    model = make_model()
    loss_fn = trueloop.supervised(nn.CrossEntropyLoss())
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    step = trueloop.Step(model, sgd, loss_fn, parallel="ddp")
    found = []
    for meter, state in zip(
        (metrics.for_task("multiclass", classes=CLASSES), metrics.for_task("regression")),
        states,
        strict=True,
    ):
        scores = EpochScores(step, None, None, meter, False)
        scores.load_state_dict(torch.load(io.BytesIO(state)))
        found.append(scores.evaluate(0).scores)
    return found


@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 1), (2, 2), (4, 2)])
def test_training_metrics_go_on_on_another_number_of_ranks(before: int, after: int) -> None:
    saved = on_ranks(before, _train_metrics_of_a_stopped_epoch)
    states = [state for state, _ in saved[0]]
    assert [state for state, _ in saved[-1]] == states, "the state is the same on every rank"
    expected = [scores for _, scores in saved[0]]
    for found in on_ranks(after, _train_metrics_resumed, states):
        for mine, whole in zip(found, expected, strict=True):
            assert mine == pytest.approx(whole, rel=1e-12, nan_ok=True)
            assert before != after or repr(mine) == repr(whole)


def _scored_between_updates(wrapped: str) -> list[Any]:
    """Scores of a model that trains on: a pass must leave nothing behind that stops it."""
    from torch.distributed.fsdp import fully_shard

    inner = make_model().double()
    inner.insert(1, nn.BatchNorm1d(16).double())  # whose buffers DDP sends in each forward
    model: nn.Module = inner
    if wrapped == "fsdp" and ranks.is_distributed():
        fully_shard(inner[0])
        fully_shard(inner)
    if wrapped == "ddp" and ranks.is_distributed():
        model = nn.parallel.DistributedDataParallel(inner)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss_fn = trueloop.supervised(nn.CrossEntropyLoss())
    x, y = rows(13)
    # 13 in batches of 5: an odd number of whole batches, so that some rank runs a stand-in.
    val = trueloop.Feed((x.double(), y), 5)
    found = []
    for _ in range(2):
        found.append(_exact(trueloop.evaluate(model, val, loss_fn)))
        model.train()
        nn.functional.cross_entropy(model(x.double()), y).backward()
        optimizer.step()
        optimizer.zero_grad()
    return found


@pytest.mark.parametrize("wrapped", ["ddp", "fsdp"])
def test_a_model_is_scored_between_updates(wrapped: str) -> None:
    (alone,) = on_ranks(1, _scored_between_updates, wrapped)
    one, other = on_ranks(2, _scored_between_updates, wrapped)
    assert one == other
    assert one[0] == alone[0], "bit for bit, with the same weights"


def _as_the_page_has_them(folder: str) -> tuple[list[Any], dict[str, float]]:
    from documents import ROOT

    page = (ROOT / "docs" / "many-ranks.md").read_text("utf-8")
    names: dict[str, Any] = {}
    for title in ("class Tokens", "class Pace"):
        (block,) = (text for text in page.split("```python\n")[1:] if title in text)
        exec(block.partition("```")[0], names)
    feed = trueloop.Feed(names["Tokens"](f"{folder}/tokens"), 3)
    batches = [batch[:, 0].tolist() for batch in feed.epoch(0)]
    scored = trueloop.evaluate(make_model(), trueloop.Feed(rows(9), 2), with_parts, names["Pace"]())
    return batches, scored.scores


def test_the_page_on_many_ranks_shows_what_works(tmp_path: Path) -> None:
    (np.arange(7 * 1024) // 1024).astype(np.uint16).tofile(tmp_path / "tokens")
    (one, other), (scores, same) = zip(
        *on_ranks(2, _as_the_page_has_them, str(tmp_path)), strict=True
    )
    assert one == [[0, 1], [3, 4], [6]]
    assert other == [[2], [5], [6]], "the last one a stand-in"
    assert scores == same
    assert scores["samples"] == 9
    assert scores["slowest_seconds"] > 0


def _fitted(parallel: str | None) -> list[dict[str, float]]:
    model = make_model().double()
    model[2].p = 0.0  # the masks of dropout are each rank's own
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    loss_fn = trueloop.supervised(nn.CrossEntropyLoss())
    step = trueloop.Step(model, sgd, loss_fn, accumulate=2, parallel=parallel)
    x, y = rows(26)
    train = trueloop.Feed((x.double(), y), 6, shuffle=True)
    val = trueloop.Feed((x.double(), y), 10)
    meters = [metrics.for_task("multiclass", classes=CLASSES) for _ in range(2)]
    history = trueloop.fit(step, train, val, epochs=2, metrics=meters[0], train_metrics=meters[1])
    return [record.scores | {"samples": record.samples} for record in history.records]


def test_fit_scores_on_ranks_as_in_one_process() -> None:
    """26 samples in batches of 6: of the last one, of 2, two of four ranks have none."""
    (alone,) = on_ranks(1, _fitted, None)
    for count in (2, 4):
        each = on_ranks(count, _fitted, "ddp")
        assert each == [each[0]] * count
        for mine, expected in zip(each[0], alone, strict=True):
            assert mine == pytest.approx(expected, rel=1e-12)
            for name in ("train_accuracy", "val_accuracy", "train_auroc", "val_f1", "samples"):
                assert mine[name] == expected[name]


class _Part:
    """The metrics' question about the ranks, answered as on several, without any."""

    @staticmethod
    def is_distributed() -> bool:
        return True


SETS: dict[str, Any] = {
    "multiclass": lambda: metrics.for_task("multiclass", classes=CLASSES),
    "binned": lambda: metrics.for_task("multiclass", classes=CLASSES, thresholds=20),
    "regression": lambda: metrics.for_task("regression"),
    "mse": lambda: metrics.wrap({"mse": _torchmetrics().MeanSquaredError(), "r2": _r2()}),
    "classwise": lambda: metrics.wrap({"each": _classwise()}),
    "own": Counted,
}


def _torchmetrics() -> Any:
    import torchmetrics

    return torchmetrics


def _r2() -> Any:
    return _torchmetrics().R2Score()


def _classwise() -> Any:
    accuracy = _torchmetrics().classification.MulticlassAccuracy(CLASSES, average=None)
    return _torchmetrics().wrappers.ClasswiseWrapper(accuracy)


@pytest.mark.parametrize("kind", SETS)
@settings(max_examples=15, deadline=None)
@given(
    sizes=st.lists(st.integers(2, 9), min_size=1, max_size=12),
    count=st.integers(2, 5),
    seed=st.integers(0, 9),
)
def test_sets_add_up_in_the_feeds_order(kind: str, sizes: list[int], count: int, seed: int) -> None:
    """As over real ranks, of which each has the batches of its turn."""
    from trueloop.metrics import _sets, _wrapped

    x, y = rows(sum(sizes), seed)
    pieces = zip(x.split(sizes), y.split(sizes), strict=True)
    is_numeric = kind in ("regression", "mse")
    batches = [(a[:, 0], a[:, 1]) if is_numeric else (a[:, :CLASSES], b) for a, b in pieces]
    alone, whole = SETS[kind](), SETS[kind]()
    for batch in batches:
        alone.update(*batch)
    before = _sets.ranks
    each = [SETS[kind]() for _ in range(count)]
    try:
        _sets.ranks = _wrapped.ranks = _Part  # type: ignore[assignment]
        for number, batch in enumerate(batches):
            each[number % count].update(*batch)
    finally:
        _sets.ranks = _wrapped.ranks = before
    whole._load_local(whole._merged([meter._local() for meter in each]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of classes that do not occur, by torchmetrics
        assert repr(whole.compute()) == repr(alone.compute())


@given(
    st.lists(
        st.tuples(st.floats(-1e6, 1e6), st.integers(0, 50), st.booleans()),
        min_size=1,
        max_size=600,
    ),
    st.integers(1, 5),
)
@settings(max_examples=20, deadline=None)
def test_means_add_up_in_the_feeds_order(batches: list[Any], count: int) -> None:
    def tables(of: int) -> list[dict[str, Any]]:
        each = [{"loss": _BatchMeans(), "part": _BatchMeans()} for _ in range(of)]
        for number, (value, weight, has_part) in enumerate(batches):
            series = each[number % of]
            loss = torch.tensor(value)
            series["loss"].add(number, loss, weight if number % 3 else torch.tensor(weight))
            if has_part:
                series["part"].add(number, loss / 3, weight)
        return [{name: one.table() for name, one in series.items()} for series in each]

    assert repr(_means(tables(count))) == repr(_means(tables(1)))
    total = sum(weight for _, weight, _ in batches)
    exact = math.fsum(float(torch.tensor(v)) * w for v, w, _ in batches) / total if total else None
    if exact is not None:
        assert _means(tables(1))["loss"] == pytest.approx(exact, rel=1e-9, abs=1e-6)


def test_what_metrics_are_made_of_is_saved_too() -> None:
    saved, loaded = metrics.wrap(_classwise()), metrics.wrap(_classwise())
    assert saved is not None
    assert loaded is not None
    x, y = rows(30)
    saved.update(x[:, :CLASSES], y)
    loaded.load_state_dict(saved.state_dict())
    assert loaded.compute() == saved.compute()
