"""What a loss_fn says beside its loss, and what an evaluation can score: parts, training metrics,
losses that differentiate, predictions."""

from __future__ import annotations

import copy
import json
import math
import signal
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import trueloop
from trueloop import errors
from trueloop.metrics import MetricSet
from trueloop.records import LossOutput

CLASSES = 3


def data(n: int = 22, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, 4, generator=generator), torch.randint(
        0, CLASSES, (n,), generator=generator
    )


def make_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, CLASSES)).double()


def with_parts(model: nn.Module, batch: Any) -> LossOutput:
    x, y = batch
    outputs = model(x.double())
    fit, size = nn.functional.cross_entropy(outputs, y), outputs.square().mean()
    return LossOutput(
        fit + 0.1 * size,
        len(x),
        outputs,
        y,
        parts={"fit": fit, "size": size, "constant": 2.5},
    )


def make_step(loss_fn: Any = with_parts, lr: float = 0.1, **options: Any) -> trueloop.Step:
    model = make_model()
    return trueloop.Step(model, torch.optim.SGD(model.parameters(), lr=lr), loss_fn, **options)


# Parts of a loss -------------------------------------------------------------------------------


@pytest.mark.parametrize("accumulate", [1, 2, 3])
def test_parts_are_means_over_the_union_of_the_window(accumulate: int) -> None:
    step = make_step(accumulate=accumulate, lr=0.0)
    x, y = data()
    step.plan(epochs=1, batches=5)
    start = 0
    for k, batch in enumerate(trueloop.Feed((x, y), 5).epoch(0)):
        record = step(batch)
        end = min(5 * (k + 1), 22)
        whole = with_parts(step.model, (x[start:end], y[start:end]))
        for name in ("fit", "size", "constant"):
            expected = torch.as_tensor(whole.parts[name]).double()
            torch.testing.assert_close(record.parts[name].double(), expected, rtol=1e-12, atol=0)
            assert not record.parts[name].requires_grad
        if record.updated:
            start = end


@pytest.mark.parametrize(
    "form",
    [
        lambda loss, n, parts: (loss, parts),
        lambda loss, n, parts: (loss, n, parts),
        lambda loss, n, parts: LossOutput(loss, n, parts=parts),
    ],
)
def test_every_form_of_parts(form: Callable[..., Any]) -> None:
    def loss_fn(model: nn.Module, batch: Any) -> Any:
        output = with_parts(model, batch)
        return form(output.loss, output.count, output.parts)

    step, plain = make_step(loss_fn), make_step(lambda m, b: with_parts(m, b).loss)
    batch = data()
    record = step(batch)
    assert list(record.parts) == ["fit", "size", "constant"]
    assert torch.equal(record.loss, plain(batch).loss)
    for a, b in zip(step.model.parameters(), plain.model.parameters(), strict=True):
        assert torch.equal(a, b), "parts train nothing"


def test_a_part_that_only_some_batches_have_is_their_mean() -> None:
    def loss_fn(model: nn.Module, batch: Tensor) -> Any:
        loss = model(batch.double()).mean()
        return (loss, {"rare": 4.0}) if batch[0, 0] > 0 else loss

    step = make_step(loss_fn, accumulate=2)
    assert dict(step(torch.full((2, 4), -1.0)).parts) == {}
    assert float(step(torch.full((3, 4), 1.0)).parts["rare"]) == 4.0


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"kl": torch.ones(3)}, r"shape \(3,\) as the part 'kl'"),
        ({"kl": "high"}, "a str as the part 'kl'"),
        ({"kl": None}, "None as the part 'kl'"),
        ({1: 0.5}, "part named 1"),
        ({"": 0.5}, "part named ''"),
        ({"loss": 0.5}, "part named 'loss'"),
        ({"lr": 0.5}, "part named 'lr'"),
    ],
)
def test_parts_that_cannot_be_logged(parts: Any, message: str) -> None:
    step = make_step(lambda m, b: (m(b[0].double()).mean(), parts))
    with pytest.raises(errors.LossError, match=message) as e:
        step(data())
    assert "\n" not in str(e.value)


def test_parts_stand_in_the_log_the_scores_and_the_state(tmp_path: Path) -> None:
    x, y = data(20)
    run = trueloop.Run.create(tmp_path / "run", config={})
    step = make_step(lr=0.0)
    history = trueloop.fit(
        step, trueloop.Feed((x, y), 5), trueloop.Feed((x, y), 8), epochs=2, run=run
    )
    whole = with_parts(step.model, (x, y))
    for record in history.records:
        for split in ("train", "val"):
            for name in ("fit", "size"):
                expected = pytest.approx(float(whole.parts[name]), rel=1e-12)
                assert record.scores[f"{split}_{name}"] == expected
    lines = [json.loads(line) for line in (run.path / "metrics.jsonl").read_text().splitlines()]
    assert lines[0]["constant"] == 2.5
    assert lines[-1]["val_fit"] == pytest.approx(float(whole.parts["fit"]))


def test_a_metric_and_a_part_of_one_name_are_refused() -> None:
    def loss_fn(model: nn.Module, batch: Any) -> LossOutput:
        output = with_parts(model, batch)
        output.parts = {"accuracy": 0.5}
        return output

    feed = trueloop.Feed(data(), 8)
    with pytest.raises(errors.ConfigError, match="'accuracy' is a metric and a part"):
        trueloop.evaluate(make_model(), feed, loss_fn, metric())


# Metrics of the training -----------------------------------------------------------------------


def metric() -> MetricSet:
    return trueloop.metrics.for_task("multiclass", classes=CLASSES)


def torch_metrics() -> Any:
    from torchmetrics import MetricCollection, classification

    return MetricCollection(
        [
            classification.MulticlassAccuracy(CLASSES),
            classification.MulticlassPrecision(CLASSES),
            classification.MulticlassAUROC(CLASSES),
        ]
    )


class Plain(MetricSet):
    def reset(self) -> None: ...

    def update(self, outputs: Any, targets: Any) -> None: ...

    def compute(self) -> dict[str, float]:
        return {}


def test_training_metrics_are_of_the_trainings_own_forward() -> None:
    """With lr=0 and no dropout they are those of an evaluation; no forward is made for them."""
    x, y = data()
    step = make_step(lr=0.0, accumulate=2)
    calls = []
    step.model.register_forward_hook(lambda *_: calls.append(1))
    feed = trueloop.Feed((x, y), 5)
    history = trueloop.fit(step, feed, epochs=2, train_metrics=metric())
    assert len(calls) == 10
    expected = trueloop.evaluate(step.model, feed, with_parts, metric())
    for record in history.records:
        for name, value in expected.scores.items():
            assert record.scores[f"train_{name}"] == pytest.approx(value, rel=1e-9)
    assert step.on_outputs is None


@pytest.mark.parametrize("make", [metric, torch_metrics])
def test_training_metrics_of_a_resumed_epoch_are_those_of_one_never_stopped(
    make: Callable[[], Any], tmp_path: Path
) -> None:
    x, y = data(40)

    def run(stop_at: int | None, **more: Any) -> list[dict[str, float]]:
        step = make_step()

        def stop(record: Any) -> None:
            if getattr(record, "update", None) == stop_at and hasattr(record, "updated"):
                signal.raise_signal(signal.SIGINT)

        history = trueloop.fit(
            step,
            trueloop.Feed((x, y), 5, shuffle=True),
            epochs=2,
            train_metrics=make(),
            checkpoints=trueloop.Checkpoints(tmp_path / "saved", keep_best=None),
            sinks=[stop],
            **more,
        )
        return [record.scores for record in history.records]

    straight = run(None)
    (tmp_path / "saved").rename(tmp_path / "straight")
    run(11)
    state = trueloop.load_checkpoint(tmp_path / "saved")
    assert run(None, resume_from=state) == straight


def test_training_metrics_that_cannot_be(tmp_path: Path) -> None:
    feed = trueloop.Feed(data(), 8)
    saved = trueloop.Checkpoints(tmp_path, keep_best=None)
    with pytest.raises(errors.ConfigError, match=r"Plain cannot be saved.*state_dict"):
        trueloop.fit(make_step(), feed, epochs=1, train_metrics=Plain(), checkpoints=saved)
    without_outputs = make_step(lambda m, b: with_parts(m, b).loss)
    with pytest.raises(errors.ConfigError, match="metrics need the model's outputs"):
        trueloop.fit(without_outputs, feed, epochs=1, train_metrics=metric())


# Learning rates of all groups --------------------------------------------------------------------


def test_every_groups_learning_rate_is_recorded_by_name(tmp_path: Path) -> None:
    model = make_model()
    groups = [
        {"params": model[0].parameters(), "lr": 0.1},  # type: ignore[index]
        {"params": model[2].parameters(), "lr": 0.4, "name": "head"},  # type: ignore[index]
    ]
    step = trueloop.Step(
        model, torch.optim.SGD(groups), with_parts, schedule=trueloop.schedules.cosine()
    )
    run, seen = trueloop.Run.create(tmp_path / "run", config={}), []
    trueloop.fit(
        step,
        trueloop.Feed(data(20), 5),
        epochs=1,
        run=run,
        sinks=[lambda r: seen.append(getattr(r, "lrs", None))],
    )
    lines = [json.loads(line) for line in (run.path / "metrics.jsonl").read_text().splitlines()]
    for k in range(4):
        half = (1 + math.cos(math.pi * k / 4)) / 2
        assert seen[k] == pytest.approx({"0": 0.1 * half, "head": 0.4 * half})
        assert lines[k]["lr"] == pytest.approx(0.1 * half)
        assert lines[k]["lr/head"] == pytest.approx(0.4 * half)
        assert "lr/0" not in lines[k]


# Losses that differentiate -----------------------------------------------------------------------


def forces(model: nn.Module, batch: Any) -> Tensor:
    """An energy model: the loss is of the gradient with respect to the inputs."""
    x = batch[0].double().requires_grad_(True)
    (force,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
    return (force - 1).square().mean()


def by_hand(model: nn.Module, x: Tensor) -> float:
    return float(forces(copy.deepcopy(model), (x,)))


def test_a_loss_of_gradients_is_scored_with_gradients() -> None:
    model, (x, y) = make_model(), data()
    feed = trueloop.Feed((x, y), 8)
    record = trueloop.evaluate(model, feed, forces, gradients=True)
    assert record["loss"] == pytest.approx(by_hand(model, x), rel=1e-12)
    assert all(p.grad is None for p in model.parameters())
    with pytest.raises(errors.LossError, match=r"evaluate\(\.\.\., gradients=True\)"):
        trueloop.evaluate(model, feed, forces)


def test_fit_goes_on_where_val_needs_gradients() -> None:
    x, y = data()
    train, val = trueloop.Feed((x, y), 8), trueloop.Feed((x, y), 11)
    step = make_step(forces)
    with pytest.warns(UserWarning, match=r"fit\(\.\.\., gradients=True\)"):
        history = trueloop.fit(step, train, val, epochs=3)
    told = make_step(forces)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same = trueloop.fit(told, train, val, epochs=3, gradients=True)
    assert [r.scores for r in history.records] == [r.scores for r in same.records]
    assert history.records[-1]["val_loss"] == pytest.approx(by_hand(step.model, x), rel=1e-12)
    assert step.model.training


def test_another_error_of_the_loss_stays_what_it_is() -> None:
    def fail(model: nn.Module, batch: Any) -> Tensor:
        raise RuntimeError("size mismatch")

    with pytest.raises(RuntimeError, match="size mismatch"):
        trueloop.evaluate(make_model(), trueloop.Feed(data(), 8), fail)


# Predictions -------------------------------------------------------------------------------------


class Named(nn.Module):
    """Takes inputs by name, gives a dict, and has two modes."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.drop = nn.Linear(4, 2), nn.Dropout(0.5)

    def forward(self, *, x: Tensor, scale: Tensor) -> dict[str, Tensor]:
        out = self.drop(self.body(x)) * scale[:, None]
        return {"out": out, "row": out.sum(1)}


def test_predict_is_the_forward_over_all_data_in_eval_mode() -> None:
    model, (x, _) = make_model(), data()
    expected = model(x.double()).detach()
    got = trueloop.predict(model, trueloop.Feed(x.double(), 5))
    assert torch.equal(got, trueloop.predict(model, trueloop.Feed((x.double(),), 5)))
    torch.testing.assert_close(got, expected)
    pairs = trueloop.Feed((x.double(), data()[1]), 5)
    again = trueloop.predict(model, pairs, lambda model, batch: model(batch[0]))
    assert torch.equal(got, again)
    named = Named()
    named.drop.train()
    out = trueloop.predict(named, trueloop.Feed({"x": x, "scale": torch.ones(22)}, 7))
    assert named.drop.training
    torch.testing.assert_close(out["out"], named.body(x).detach())
    assert out["row"].shape == (22,)
    half = trueloop.predict(make_model().float(), trueloop.Feed(x, 5), precision="bf16")
    assert half.dtype == torch.float32


def test_predict_of_nothing() -> None:
    class Nothing(torch.utils.data.IterableDataset[Tensor]):
        def __iter__(self) -> Any:
            return iter(())

    with pytest.raises(errors.DataError):
        trueloop.predict(make_model(), trueloop.Feed(Nothing(), 2))


# Where fit begins ------------------------------------------------------------------------------


@pytest.mark.parametrize("trials", [1, 2, 12])
@pytest.mark.parametrize("accumulate", [1, 4])
def test_trial_calls_before_fit_do_not_move_its_first_epoch(trials: int, accumulate: int) -> None:
    feed, seen = trueloop.Feed(data(), 5), []
    step = make_step(accumulate=accumulate)
    for _ in range(trials):
        step(next(iter(feed)))
    trueloop.fit(step, feed, epochs=1, sinks=[lambda r: seen.append(getattr(r, "batch", None))])
    assert seen == [0, 1, 2, 3, 4, None]


def test_a_step_that_loaded_a_state_goes_on_from_there() -> None:
    feed, seen = trueloop.Feed(data(), 5), []
    first = make_step()
    for batch in list(feed.epoch(0))[:2]:
        first(batch)
    step = make_step()
    step.load_state_dict(first.state_dict())
    trueloop.fit(step, feed, epochs=1, sinks=[lambda r: seen.append(getattr(r, "batch", None))])
    assert seen == [2, 3, 4, None]


def test_a_wrong_model_is_named_also_while_a_window_is_open() -> None:
    step, (x, y) = make_step(accumulate=2), data()
    step((x[:4], y[:4]))
    with pytest.raises(errors.ConfigError, match="not None"):
        trueloop.evaluate(None, trueloop.Feed((x, y), 4), with_parts)  # type: ignore[arg-type]
    step.flush()
