"""N micro-batches give the gradient of their union: ragged, short and weighted ones too."""

from __future__ import annotations

import copy
import gc
import itertools
import math
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor, nn

import trueloop
from trueloop import errors
from trueloop.records import LossOutput


class Stream(torch.utils.data.IterableDataset[Tensor]):
    """Ones, without a length."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __iter__(self) -> Iterator[Tensor]:
        return (torch.ones(1) for _ in range(self.size))


class Recorder(torch.optim.SGD):
    """Plain SGD that keeps a copy of the gradient of each update."""

    def __init__(self, parameters: Any, lr: float = 0.05) -> None:
        super().__init__(parameters, lr=lr)
        self.gradients: list[Tensor] = []

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        grads = [p.grad for group in self.param_groups for p in group["params"]]
        self.gradients.append(torch.cat([g.flatten().clone() for g in grads if g is not None]))
        super().step()


def make_model(dtype: torch.dtype) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 4)).to(dtype)


def union_gradients(
    model: nn.Module, criterion: nn.Module, windows: list[tuple[Tensor, Tensor]]
) -> list[Tensor]:
    """The large batch's gradient at each update, by torch alone."""
    model = copy.deepcopy(model)
    optimizer = Recorder(model.parameters())
    for inputs, targets in windows:
        optimizer.zero_grad()
        criterion(model(inputs), targets).backward()
        optimizer.step()
    return optimizer.gradients


def relative_error(a: Tensor, b: Tensor) -> float:
    return float((a - b).norm() / b.norm().clamp(min=1e-30))


@settings(max_examples=40, deadline=None)
@given(
    samples=st.integers(1, 61),
    batch=st.integers(1, 9),
    window=st.integers(1, 7),
    double=st.booleans(),
    weighted=st.booleans(),
    ignoring=st.booleans(),
    seed=st.integers(0, 10_000),
)
def test_each_update_has_the_large_batchs_gradient(
    samples: int,
    batch: int,
    window: int,
    double: bool,
    weighted: bool,
    ignoring: bool,
    seed: int,
) -> None:
    dtype = torch.float64 if double else torch.float32
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(samples, 3, generator=generator, dtype=dtype)
    targets = torch.randint(0, 4, (samples,), generator=generator)
    criterion = nn.CrossEntropyLoss(
        weight=torch.tensor([0.2, 1.0, 3.0, 0.7], dtype=dtype) if weighted else None
    )
    if ignoring:
        # At least one target per micro-batch stays: torch's mean over none is NaN.
        hidden = torch.rand(samples, generator=generator) < 0.4
        hidden[::batch] = False
        targets[hidden] = -100
    model = make_model(dtype)
    stride = batch * window
    expected = union_gradients(
        model,
        criterion,
        [(inputs[k : k + stride], targets[k : k + stride]) for k in range(0, samples, stride)],
    )
    optimizer = Recorder(model.parameters())
    step = trueloop.Step(model, optimizer, trueloop.supervised(criterion), accumulate=window)
    feed = trueloop.Feed((inputs, targets), batch)
    step.plan(epochs=1, batches=len(feed))
    closed = [step(b).updated for b in feed.epoch(0)]
    assert closed[-1], "the short last window is closed by the last batch itself"
    assert len(optimizer.gradients) == len(expected) == sum(closed)
    tolerance = 1e-12 if double else 1e-6
    scale = max(float(g.norm()) for g in expected)
    for ours, theirs in zip(optimizer.gradients, expected, strict=True):
        # Relative to the gradient; where that nearly cancels, to the largest of the run.
        assert float((ours - theirs).norm()) <= tolerance * max(float(theirs.norm()), 0.1 * scale)


def ones_step(accumulate: int, **options: Any) -> tuple[trueloop.Step, Recorder]:
    model = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(model.weight)
    optimizer = Recorder(model.parameters())
    return (
        trueloop.Step(model, optimizer, lambda m, x: m(x).mean(), accumulate=accumulate, **options),
        optimizer,
    )


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_ten_micro_batches_in_windows_of_four_give_1_1_1(precision: str) -> None:
    step, optimizer = ones_step(4, precision=precision)
    if precision == "fp16":
        # The scaler's first scale, 65536, is itself beyond float16's largest number.
        step.precision.scaler = torch.amp.GradScaler("cpu", init_scale=256.0)  # type: ignore[attr-defined]
    batches = trueloop.Feed(torch.ones(20, 1), 2).epoch(0)
    for batch in batches:
        step(batch, last=batches.last)
    step.end_epoch()
    assert [float(g) for g in optimizer.gradients] == [1.0, 1.0, 1.0]


def batches_of(kind: str) -> tuple[Any, int]:
    """Ten micro-batches of ones as a user may hand them on, and how many of them arrive."""
    feed = trueloop.Feed((torch.ones(20, 1),), 2)
    ways: dict[str, Any] = {
        "as it is": lambda: (x for (x,) in feed.epoch(0)),
        "moved": lambda: (x.to("cpu").clone() for (x,) in feed.epoch(0)),
        "repacked": lambda: [x + 0 for (x,) in feed.epoch(0)],
        "zipped": lambda: (x for (x,), _ in zip(feed.epoch(0), range(10), strict=True)),
        "limited": lambda: (x for (x,) in itertools.islice(feed.epoch(0), 6)),
        "filtered": lambda: (x for k, (x,) in enumerate(feed.epoch(0)) if k % 5),
    }
    return ways[kind](), {"limited": 6, "filtered": 8}.get(kind, 10)


KINDS = ["as it is", "moved", "repacked", "zipped", "limited", "filtered"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_planned_step_knows_its_epochs_end_however_the_batches_come(kind: str) -> None:
    """No batch is an object that anybody recognises: the step counts."""
    batches, count = batches_of(kind)
    step, optimizer = ones_step(4)
    step.plan(epochs=2, batches=count)
    closed = [step(batch).updated for batch in batches]
    assert [float(g) for g in optimizer.gradients] == [1.0] * -(-count // 4)
    assert closed == [k % 4 == 3 or k == count - 1 for k in range(count)]
    assert not step.is_accumulating
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step.end_epoch()


@pytest.mark.parametrize("kind", ["limited", "filtered", "as it is"])
def test_last_closes_the_window_where_no_plan_does(kind: str) -> None:
    batches, count = batches_of(kind)
    step, optimizer = ones_step(4)
    closed = [step(b, last=k == count - 1).updated for k, b in enumerate(batches)]
    assert closed[-1]
    assert len(optimizer.gradients) == -(-count // 4)


def test_a_step_goes_by_what_the_epoch_of_a_feed_says() -> None:
    step, optimizer = ones_step(4)
    batches = trueloop.Feed(Stream(10), 1).epoch(0)  # of unknown length
    closed = [step(batch, last=batches.last).updated for batch in batches]
    assert closed == [False, False, False, True] * 2 + [False, True]
    assert len(optimizer.gradients) == 3


def test_an_open_window_is_reported_once_where_the_end_cannot_be_known() -> None:
    batches, _ = batches_of("limited")
    step, optimizer = ones_step(4)
    step.plan(epochs=3, batches=10)
    for batch in batches:
        step(batch)
    assert step.is_accumulating
    val = trueloop.Feed(torch.ones(4, 1), 2)
    with pytest.warns(UserWarning, match=r"2 of 4 micro-batches.*evaluated without.*plan") as found:
        trueloop.evaluate(step.model, val, step.loss_fn)
    assert found[0].filename == __file__
    other = nn.Linear(1, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trueloop.evaluate(step.model, val, step.loss_fn)  # once is enough
        step.end_epoch()
        trueloop.evaluate(other, val, step.loss_fn)
    assert len(optimizer.gradients) == 2


def test_ending_an_epoch_with_an_open_window_applies_it_and_says_so_once() -> None:
    step, optimizer = ones_step(4)
    for _ in range(5):
        step(torch.ones(2, 1))
    with pytest.warns(UserWarning, match="1 of 4 micro-batches.*only now.*flush") as found:
        step.end_epoch()
    assert found[0].filename == __file__
    assert len(optimizer.gradients) == 2
    step(torch.ones(2, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step.end_epoch()
    assert len(optimizer.gradients) == 3


def test_flush_closes_the_window_without_a_word() -> None:
    step, optimizer = ones_step(4)
    for _ in range(10):
        step(torch.ones(2, 1))
    record = step.flush()
    assert record is not None
    assert (record.updated, record.samples) == (True, 4)
    assert step.flush() is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step.end_epoch()
    assert [float(g) for g in optimizer.gradients] == [1.0] * 3


def test_a_loop_without_end_epoch_is_told_so_and_its_windows_end_with_each_epoch() -> None:
    step, optimizer = ones_step(4)
    step.plan(epochs=2, batches=5)
    with pytest.warns(UserWarning, match=r"batch 6 of an epoch .* has 5.*end_epoch"):
        closed = [step(torch.ones(2, 1)).updated for _ in range(10)]
    assert closed == [False, False, False, True, True] * 2
    assert len(optimizer.gradients) == 4


def test_an_open_window_is_reported_when_its_step_goes() -> None:
    """A loop without plan, end_epoch, evaluate and flush: nobody else could say it."""
    step, _ = ones_step(4)
    for _ in range(6):
        step(torch.ones(2, 1))
    steps = [step]
    del step
    with pytest.warns(UserWarning, match="2 of 4 micro-batches, .*never applied.*flush"):
        steps.clear()


def stop_at_7(record: Any) -> None:
    if record.batch == 6:
        raise ZeroDivisionError


@pytest.mark.parametrize("closed_by", ["flush", "a full window", "a state", "an interrupted fit"])
def test_no_word_of_a_window_that_is_closed_or_kept(closed_by: str) -> None:
    step, _ = ones_step(4)
    for _ in range(8 if closed_by == "a full window" else 6):
        step(torch.ones(2, 1))
    if closed_by == "flush":
        step.flush()
    elif closed_by == "a state":
        step.state_dict()
    elif closed_by == "an interrupted fit":
        step.resumed = True  # as after `load_state_dict`
        with pytest.raises(ZeroDivisionError):
            trueloop.fit(step, trueloop.Feed(torch.ones(20, 1), 2), epochs=1, sinks=[stop_at_7])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del step
        gc.collect()


def test_fit_says_that_it_starts_without_an_open_window() -> None:
    step, optimizer = ones_step(4)
    step(torch.ones(2, 1))
    with pytest.warns(UserWarning, match="1 of 4 micro-batches: fit.. starts without it") as found:
        trueloop.fit(step, trueloop.Feed(torch.ones(20, 1), 2), epochs=1)
    assert found[0].filename == __file__
    assert [float(g) for g in optimizer.gradients] == [1.0] * 3


def test_two_passes_of_one_feed_at_once_have_an_end_each() -> None:
    """A pass over the data in the midst of another one (an evaluation, say) changes no window."""
    train = trueloop.Feed(torch.ones(20, 1), 2, fetch_ahead=True)
    step, optimizer = ones_step(4)
    closed, batches = [], train.epoch(0)
    for batch in batches:
        assert len(list(train.epoch(0))) == 10
        closed.append(step(batch, last=batches.last).updated)
    assert closed == [k in (3, 7, 9) for k in range(10)]
    assert [float(g) for g in optimizer.gradients] == [1.0] * 3


def test_two_steps_of_one_feed_each_know_the_epochs_end() -> None:
    train = trueloop.Feed(torch.ones(20, 1), 2)
    (one, first), (other, second) = ones_step(4), ones_step(3)
    for step in (one, other):
        step.plan(epochs=1, batches=len(train))
    for batch in train.epoch(0):
        one(batch)
        other(batch + 0)
    assert not one.is_accumulating
    assert not other.is_accumulating
    assert [float(g) for g in first.gradients] == [1.0] * 3
    assert [float(g) for g in second.gradients] == [1.0] * 4


@pytest.mark.parametrize("how", ["abandoned", "begun in the middle"])
def test_an_epoch_of_fewer_batches_than_planned_ends_with_a_word(how: str) -> None:
    train = trueloop.Feed(torch.ones(20, 1), 2)
    step, optimizer = ones_step(4)
    step.plan(epochs=2, batches=len(train))
    batches = train.epoch(0, start=4 if how == "begun in the middle" else 0)
    for batch in itertools.islice(batches, 6):
        step(batch)
    with pytest.warns(UserWarning, match="2 of 4 micro-batches.*only now.*flush"):
        step.end_epoch()
    closed = [step(batch).updated for batch in train.epoch(1)]
    assert closed == [k in (3, 7, 9) for k in range(10)]
    assert [float(g) for g in optimizer.gradients] == [1.0] * 5


def test_the_second_window_of_a_gan_is_not_the_models_that_is_evaluated() -> None:
    generator, critic = nn.Linear(1, 1), nn.Linear(1, 1)
    step = trueloop.Step(
        critic, torch.optim.SGD(critic.parameters()), lambda m, x: m(x).mean(), accumulate=2
    )
    step(torch.ones(2, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trueloop.evaluate(generator, trueloop.Feed(torch.ones(4, 1), 2), lambda m, x: m(x).mean())


@pytest.mark.parametrize("accumulate", [1, 3])
@pytest.mark.parametrize("nonfinite", ["stop", "skip"])
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_a_mean_over_nothing_is_not_applied(
    accumulate: int, nonfinite: str, precision: str
) -> None:
    model = nn.Linear(1, 1)
    loss_fn = lambda m, x: (m(x).mean(), torch.tensor(0))  # noqa: E731
    step = trueloop.Step(
        model,
        torch.optim.SGD(model.parameters(), lr=0.1),
        loss_fn,
        accumulate=accumulate,
        nonfinite=nonfinite,
        precision=precision,
    )
    if precision == "fp16":
        step.precision.scaler = torch.amp.GradScaler("cpu", init_scale=256.0)  # type: ignore[attr-defined]
    before = model.weight.detach().clone()
    for _ in range(accumulate - 1):
        step(torch.ones(2, 1))
    if nonfinite == "stop":
        with pytest.raises(trueloop.NonFiniteError, match="count beside the loss is 0"):
            step(torch.ones(2, 1))
    else:
        assert step(torch.ones(2, 1)).skipped
    assert torch.equal(model.weight, before)
    step.loss_fn = lambda m, x: m(x).mean()
    assert [step(torch.ones(2, 1)) for _ in range(accumulate)][-1].updated or nonfinite == "stop"


@pytest.mark.parametrize("count", [-1, -0.5, math.nan, math.inf, True, torch.tensor(-3), "4", [1]])
@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("asked", [False, True])
def test_counts_that_cannot_be(count: Any, accumulate: int, asked: bool) -> None:
    step, _ = ones_step(accumulate)
    given = (lambda: count) if asked else count
    step.loss_fn = lambda m, x: (m(x).mean(), given)
    if asked and accumulate == 1:  # nobody needs it
        assert step(torch.ones(2, 1)).updated
        return
    with pytest.raises(errors.LossError, match="count") as e:
        step(torch.ones(2, 1))
    assert "\n" not in str(e.value)


def test_a_batch_without_samples_is_refused() -> None:
    step, _ = ones_step(1)
    step(torch.ones(2, 1))
    with pytest.raises(trueloop.DataError, match="batch 2 of epoch 1 has no samples"):
        step(torch.ones(0, 1))
    step.loss_fn = lambda m, b: m(b["x"]).mean()
    # A graph without edges has samples all the same.
    assert step({"edges": torch.ones(0, 2), "x": torch.ones(3, 1)}).updated
    with pytest.raises(trueloop.DataError, match="has no samples"):
        step({"edges": torch.ones(0, 2), "x": torch.ones(0, 1)})


def test_records_describe_the_window() -> None:
    torch.manual_seed(0)
    data = torch.randn(10, 3), torch.randint(0, 4, (10,))
    model = make_model(torch.float32)
    step = trueloop.Step(
        model,
        torch.optim.SGD(model.parameters(), lr=0.0),
        trueloop.supervised(nn.CrossEntropyLoss()),
        accumulate=3,
    )
    step.plan(epochs=1, batches=3)
    records = [step(batch) for batch in trueloop.Feed(data, 4).epoch(0)]
    assert [r.updated for r in records] == [False, False, True]
    assert [r.samples for r in records] == [4, 8, 10]
    assert [r.grad_norm is None for r in records] == [True, True, False]
    whole = nn.CrossEntropyLoss()(model(data[0]), data[1])
    torch.testing.assert_close(records[-1].loss, whole.detach())


def test_tokens_count_when_the_loss_says_so() -> None:
    """Means over tokens: a micro-batch with more tokens weighs more."""
    torch.manual_seed(0)
    model = make_model(torch.float64)
    lengths = [5, 1, 3, 2, 7]
    batches = [(torch.randn(n, 3, dtype=torch.float64), torch.randint(0, 4, (n,))) for n in lengths]
    joined = [
        (torch.cat([x for x, _ in part]), torch.cat([y for _, y in part]))
        for part in (batches[:2], batches[2:4], batches[4:])
    ]
    expected = union_gradients(model, nn.CrossEntropyLoss(), joined)

    def as_tuple(model: nn.Module, batch: Any) -> Any:
        x, y = batch
        return nn.functional.cross_entropy(model(x[0]), y[0]), y.shape[1]

    def as_tensor_count(model: nn.Module, batch: Any) -> Any:
        x, y = batch
        loss = nn.functional.cross_entropy(model(x[0]), y[0])
        return LossOutput(loss, count=torch.tensor(y.shape[1]))

    for loss_fn in (as_tuple, as_tensor_count):
        twin = copy.deepcopy(model)
        optimizer = Recorder(twin.parameters())
        step = trueloop.Step(twin, optimizer, loss_fn, accumulate=2)
        step.plan(epochs=1, batches=len(batches))
        for x, y in batches:
            step((x[None], y[None]))  # each sample a sequence of its own length
        for ours, theirs in zip(optimizer.gradients, expected, strict=True):
            assert relative_error(ours, theirs) < 1e-12


@pytest.mark.parametrize("first_empty", [True, False])
def test_a_micro_batch_without_a_counted_token_weighs_nothing(first_empty: bool) -> None:
    counts = [0, 4, 4] if first_empty else [4, 0, 4]
    model = nn.Linear(1, 1, bias=False)
    optimizer = Recorder(model.parameters())

    def loss_fn(model: nn.Module, batch: Tensor) -> Any:
        n = int(batch[0, 0])
        return (model(batch).sum() * 0.0, 0) if n == 0 else (model(torch.ones(n, 1)).mean(), n)

    step = trueloop.Step(model, optimizer, loss_fn, accumulate=3)
    for n in counts:
        step(torch.full((2, 1), float(n)))
    assert [float(g) for g in optimizer.gradients] == [1.0]


def test_the_gradient_of_a_window_leaves_out_what_is_a_mean_over_nothing() -> None:
    model = nn.Linear(1, 1, bias=False)
    optimizer = Recorder(model.parameters())

    def loss_fn(model: nn.Module, batch: Tensor) -> Any:
        mask = batch > 0
        # 0 / 0 where nothing is counted, forwards and backwards.
        return (model(batch) * mask).sum() / mask.sum(), mask.sum()

    step = trueloop.Step(model, optimizer, loss_fn, accumulate=3)
    for value in (2.0, -1.0, 4.0):
        record = step(torch.full((2, 1), value))
    assert [float(g) for g in optimizer.gradients] == [3.0]
    assert torch.isfinite(record.loss)


def test_the_loss_of_a_window_leaves_out_what_is_a_mean_over_nothing() -> None:
    """Where all targets are ignored, the micro-batch's loss is NaN, but not that of its union."""
    model = nn.Linear(2, 3)
    loss_fn = trueloop.supervised(nn.CrossEntropyLoss())
    step = trueloop.Step(model, torch.optim.SGD(model.parameters(), lr=0.0), loss_fn, accumulate=2)
    inputs, targets = torch.randn(3, 2), torch.tensor([0, 1, 2])
    step((inputs, torch.full((3,), -100)))
    record = step((inputs, targets))
    torch.testing.assert_close(
        record.loss, nn.functional.cross_entropy(model(inputs), targets).detach()
    )


def test_a_loss_of_shape_1_is_a_number_like_any_other() -> None:
    torch.manual_seed(0)
    batches = [torch.randn(n, 3) for n in (4, 1, 3)]

    def run(shape: tuple[int, ...]) -> Tensor:
        torch.manual_seed(1)
        model = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        step = trueloop.Step(
            model, optimizer, lambda m, b: (m(b).mean().reshape(shape), len(b)), accumulate=3
        )
        return [step(batch) for batch in batches][-1].loss

    assert run((1,)).shape == ()
    assert torch.equal(run((1,)), run(()))


def test_the_gradients_of_a_window_are_safe_from_another_steps_backward() -> None:
    """A GAN with accumulation: the generator's loss goes back through the discriminator."""

    def train(together: bool) -> list[Tensor]:
        torch.manual_seed(0)
        generator, discriminator = nn.Linear(2, 2), nn.Linear(2, 1)
        judge = trueloop.Step(
            discriminator,
            torch.optim.SGD(discriminator.parameters(), lr=0.1),
            lambda m, x: m(x).square().mean(),
            accumulate=3,
        )
        forge = trueloop.Step(
            generator,
            torch.optim.SGD(generator.parameters(), lr=0.1),
            lambda m, x: -discriminator(m(x)).mean(),
            accumulate=2,
        )
        data = torch.Generator().manual_seed(1)
        judge.plan(epochs=1, batches=7)
        for _ in range(7):
            judge(torch.randn(4, 2, generator=data))
            if together:
                forge(torch.ones(4, 2))
        judge.end_epoch()
        return [p.detach() for p in discriminator.parameters()]

    for a, b in zip(train(together=True), train(together=False), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("size", [0, -1, 1.5, True, "4"])
def test_windows_that_cannot_be(size: Any) -> None:
    with pytest.raises(trueloop.ConfigError, match="accumulate="):
        ones_step(size)
