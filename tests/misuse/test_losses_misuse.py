"""Wrong calls of `supervised` and `losses`, and outputs and targets that do not fit."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from wrong_calls import Wrong, check

from trueloop import losses, metrics, optimizers, supervised
from trueloop.errors import ConfigError, DataError, LossError

NAN = float("nan")
LINEAR = nn.Linear(3, 4)


def r(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def on(criterion: Any, outputs: Any, targets: Any, model: Any = None) -> Callable[[], Any]:
    """The loss of a model that returns `outputs`."""
    return lambda: supervised(criterion)(model or nn.Identity(), (outputs, targets))


def batch(given: Any, model: Any = LINEAR) -> Callable[[], Any]:
    return lambda: supervised(nn.MSELoss())(model, given)


def task(name: Any, **options: Any) -> Callable[[], Any]:
    return lambda: losses.for_task(name, **options)


def scores(name: Any, **options: Any) -> Callable[[], Any]:
    return lambda: metrics.for_task(name, **options)


class OwnSum(nn.Module):
    def forward(self, outputs: Any, targets: Any) -> Any:
        return (outputs - targets).abs()


CE, NLL, MSE = nn.CrossEntropyLoss(), nn.NLLLoss(), nn.MSELoss()
BCE, BCEL = nn.BCELoss(), nn.BCEWithLogitsLoss()
INDICES = torch.tensor([0, 1, 2, 0])

CRITERIA: dict[str, Wrong] = {
    "class": Wrong(lambda: supervised(nn.CrossEntropyLoss), LossError, "the class Cross", "()"),
    "None": Wrong(lambda: supervised(None), LossError, "not None", "supervised(nn."),
    "name": Wrong(lambda: supervised("mse"), LossError, "'mse'", "supervised(nn."),
    "list": Wrong(lambda: supervised([MSE]), LossError, "[an MSELoss]", "supervised(nn."),
    "dict": Wrong(lambda: supervised({"a": MSE}), LossError, "a dict", "supervised(nn."),
    "model": Wrong(lambda: supervised(LINEAR), LossError, "Linear does not take", "loss_fn(model"),
    "optimizer": Wrong(
        lambda: supervised(optimizers.sgd(LINEAR)), LossError, "not an SGD", "supervised(nn."
    ),
    "metrics": Wrong(
        lambda: supervised(metrics.for_task("binary")), LossError, "a Binary", "supervised(nn."
    ),
    "twice": Wrong(lambda: supervised(supervised(MSE)), LossError, "already", "to Step directly"),
    "loss_fn": Wrong(
        lambda: supervised(lambda model, batch: 0), LossError, "already", "to Step directly"
    ),
    "sum": Wrong(
        lambda: supervised(nn.MSELoss(reduction="sum")), LossError, "'sum'", 'reduction="mean"'
    ),
    "none": Wrong(
        lambda: supervised(nn.MSELoss(reduction="none")), LossError, "'none'", 'reduction="mean"'
    ),
    "partial sum": Wrong(
        lambda: supervised(partial(F.mse_loss, reduction="sum")), LossError, "'sum'", "mean"
    ),
    "of one": Wrong(
        lambda: supervised(lambda outputs: outputs.mean()), LossError, "does not take", "loss_fn"
    ),
    "of three": Wrong(lambda: supervised(nn.CTCLoss()), LossError, "CTCLoss does not", "loss_fn"),
    "of triplets": Wrong(
        lambda: supervised(nn.TripletMarginLoss()), LossError, "TripletMarginLoss", "loss_fn(model"
    ),
    "of variances": Wrong(
        lambda: supervised(nn.GaussianNLLLoss()), LossError, "GaussianNLLLoss", "loss_fn(model"
    ),
    "returns a list": Wrong(on(lambda o, t: [1], r(4), r(4)), LossError, "[1]", "the mean"),
    "returns a number": Wrong(on(lambda o, t: 0.5, r(4), r(4)), LossError, "0.5", "the mean"),
    "returns None": Wrong(on(lambda o, t: None, r(4), r(4)), LossError, "None", "the mean"),
    "returns a vector": Wrong(on(OwnSum(), r(4), r(4)), LossError, "shape (4,)", "the mean"),
    "batch of three": Wrong(batch((1, 2, 3)), LossError, "a tuple of 3", "loss_fn(model, batch)"),
    "batch of one": Wrong(batch((r(2, 3),)), LossError, "a tuple of 1", "loss_fn(model, batch)"),
    "tensor as batch": Wrong(batch(r(2, 3)), LossError, "a Tensor", "loss_fn(model, batch)"),
    "dict as batch": Wrong(batch({"x": r(2, 3)}), LossError, "a dict", "loss_fn(model, batch)"),
    "None as batch": Wrong(batch(None), LossError, "None", "loss_fn(model, batch)"),
    "model and batch swapped": Wrong(
        lambda: supervised(MSE)((r(2, 3), r(2, 4)), LINEAR), LossError, "a Linear", "loss_fn(model"
    ),
    "named inputs": Wrong(
        batch(({"x": r(2, 3)}, r(2, 4))), LossError, "keyword arguments x", "(model, batch)"
    ),
    "two inputs": Wrong(
        batch(((r(2, 3), r(2, 3)), r(2, 4))), LossError, "2 arguments", "(model, batch)"
    ),
    "float64 inputs": Wrong(
        batch((r(2, 3).double(), r(2, 4))), DataError, "torch.float64", "inputs.to(torch.float32)"
    ),
    "float16 inputs": Wrong(
        batch((r(2, 3).half(), r(2, 4))), DataError, "torch.float16", "inputs.to(torch.float32)"
    ),
}  # fmt: skip

FITS: dict[str, Wrong] = {
    "CE float targets": Wrong(on(CE, r(4, 3), r(4)), LossError, "are torch.float32", ".long()"),
    "CE double targets": Wrong(
        on(CE, r(4, 3), r(4).double()), LossError, "are torch.float64", "targets.long()"
    ),
    "CE int outputs": Wrong(
        on(CE, INDICES[:, None].repeat(1, 3), INDICES), LossError, "torch.int64", "logits"
    ),
    "CE complex outputs": Wrong(on(CE, r(4, 3) + 1j, INDICES), LossError, "complex", "logits"),
    "CE column targets": Wrong(
        on(CE, r(4, 3), INDICES[:, None]), LossError, "(4, 3) against targets (4, 1)", "squeeze(1)"
    ),
    "CE index C": Wrong(
        on(CE, r(4, 3), torch.tensor([0, 1, 2, 3])), LossError, "target 3 of sample 3", "labels"
    ),
    "CE indices from 1": Wrong(
        on(CE, r(3, 3), torch.tensor([1, 2, 3])), LossError, "outside the classes 0 to 2", "- 1"
    ),
    "CE index -1": Wrong(
        on(CE, r(2, 3), torch.tensor([0, -1])), LossError, "target -1", "ignore_index=-1"
    ),
    "CE other length": Wrong(
        on(CE, r(4, 3), torch.zeros(5).long()), LossError, "targets (5,)", "the shape (4,)"
    ),
    "CE one-hot": Wrong(
        on(CE, r(4, 3), torch.eye(3)[INDICES].long()), LossError, "one-hot", "targets.argmax(1)"
    ),
    "CE soft of other classes": Wrong(
        on(CE, r(4, 3), torch.rand(4, 4)), LossError, "the model knows 3", "4 outputs"
    ),
    "CE without classes": Wrong(on(CE, r(4), INDICES), LossError, "(4,)", "BCEWithLogitsLoss()"),
    "CE of one class": Wrong(
        on(CE, r(4, 1), torch.zeros(4).long()), LossError, "fewer than two classes", "last layer"
    ),
    "CE classes last": Wrong(
        on(CE, r(4, 7, 3), torch.zeros(4, 7).long()), LossError, "(4, 7, 3)", "movedim(-1, 1)"
    ),
    "CE int32": Wrong(on(CE, r(4, 3), INDICES.int()), LossError, "torch.int32", "targets.long()"),
    "CE bool": Wrong(on(CE, r(4, 3), INDICES.bool()), LossError, "torch.bool", "targets.long()"),
    "CE list": Wrong(on(CE, r(2, 3), [0, 1]), LossError, "targets are a list", "loss_fn(model"),
    "CE texts": Wrong(on(CE, r(2, 3), ["a", "b"]), LossError, "targets are a list", "loss_fn"),
    "CE array": Wrong(on(CE, r(2, 3), np.zeros(2)), LossError, "a ndarray", "loss_fn(model"),
    "CE None": Wrong(on(CE, r(2, 3), None), LossError, "the targets are None", "loss_fn(model"),
    "CE dict of outputs": Wrong(
        on(CE, r(4, 3), INDICES, lambda x: {"logits": x}), LossError, "returned a dict", "loss_fn"
    ),
    "CE tuple of outputs": Wrong(
        on(CE, r(4, 3), INDICES, lambda x: (x, x)), LossError, "returned a tuple", "loss_fn"
    ),
    "CE no outputs": Wrong(
        on(CE, r(4, 3), INDICES, lambda x: None), LossError, "the model returned None", "loss_fn"
    ),
    "CE weights": Wrong(
        on(nn.CrossEntropyLoss(torch.ones(2)), r(4, 3), INDICES), LossError, "2 class", "one"
    ),
    "CE weights, soft": Wrong(
        on(nn.CrossEntropyLoss(torch.ones(2)), r(4, 3), torch.rand(4, 3)),
        LossError, "2 class weights for 3", "one weight per class",
    ),
    "cross_entropy float targets": Wrong(
        on(F.cross_entropy, r(4, 3), r(4)), LossError, "cross_entropy", "targets.long()"
    ),
    "cross_entropy index C": Wrong(
        on(partial(F.cross_entropy, ignore_index=9), r(4, 3), torch.tensor([9, 0, 0, 3])),
        LossError, "target 3 of sample 3", "correct the labels",
    ),
    "NLL float targets": Wrong(on(NLL, r(4, 3), r(4)), LossError, "NLLLoss", "targets.long()"),
    "NLL index C": Wrong(
        on(NLL, r(2, 3), torch.tensor([0, 3])), LossError, "target 3 of sample 1", "labels"
    ),
    "margin float targets": Wrong(
        on(nn.MultiMarginLoss(), r(4, 3), r(4)), LossError, "MultiMarginLoss", "targets.long()"
    ),
    "margin index C": Wrong(
        on(nn.MultiMarginLoss(), r(2, 3), torch.tensor([0, 3])), LossError, "target 3", "labels"
    ),
    "BCE ints": Wrong(
        on(BCE, torch.rand(4), torch.zeros(4).long()), LossError, "torch.int64", "targets.float()"
    ),
    "BCE of logits": Wrong(
        on(BCE, r(4) * 9, torch.zeros(4)), LossError, "not a probability", "BCEWithLogitsLoss()"
    ),
    "BCE targets of 2": Wrong(
        on(BCE, torch.rand(4), torch.full((4,), 2.0)), LossError, "target 2.0", "0 and 1"
    ),
    "BCE logits ints": Wrong(
        on(BCEL, r(4), torch.zeros(4).long()), LossError, "torch.int64", "targets.float()"
    ),
    "BCE logits bools": Wrong(
        on(BCEL, r(4), torch.zeros(4).bool()), LossError, "torch.bool", "targets.float()"
    ),
    "BCE logits shape": Wrong(
        on(BCEL, r(4, 1), torch.zeros(4)), LossError, "(4, 1) against targets (4,)", "squeeze(1)"
    ),
    "BCE logits targets of 5": Wrong(
        on(BCEL, r(4), torch.full((4,), 5.0)), LossError, "target 5.0", "targets of 0 and 1"
    ),
    "BCE logits targets of -1": Wrong(
        on(BCEL, r(2), torch.tensor([-1.0, 1.0])), LossError, "target -1.0", "(targets + 1) / 2"
    ),
    "BCE logits weights": Wrong(
        on(nn.BCEWithLogitsLoss(pos_weight=torch.ones(3)), r(4, 2), torch.zeros(4, 2)),
        LossError, "(4, 2) float32 with targets (4, 2)", "torch documents",
    ),
    "BCE function shape": Wrong(
        on(F.binary_cross_entropy_with_logits, r(4, 1), torch.zeros(4)),
        LossError, "binary_cross_entropy_with_logits", "squeeze(1)",
    ),
    "MSE shape": Wrong(on(MSE, r(4, 1), r(4)), LossError, "(4, 1) against", "squeeze(1)"),
    "MSE function shape": Wrong(on(F.mse_loss, r(4, 1), r(4)), LossError, "mse_loss", "squeeze(1)"),
    "MSE partial shape": Wrong(
        on(partial(F.mse_loss, reduction="mean"), r(4), r(4, 1)), LossError, "mse_loss", "squeeze"
    ),
    "MSE list": Wrong(on(MSE, r(2), [1, 2]), LossError, "targets are a list", "loss_fn(model"),
    "MSE number": Wrong(on(MSE, r(2), 1.0), LossError, "the targets are a float", "loss_fn"),
    "MSE complex": Wrong(on(MSE, r(4) + 1j, r(4) + 1j), LossError, "complex64", "logits"),
    "L1 shape": Wrong(on(nn.L1Loss(), r(4), r(4, 1)), LossError, "L1Loss", "squeeze(1)"),
    "Huber shape": Wrong(on(nn.HuberLoss(), r(4), r(4, 1)), LossError, "HuberLoss", "squeeze(1)"),
    "KL shape": Wrong(
        on(nn.KLDivLoss(reduction="batchmean"), r(4, 3), r(4, 4)), LossError, "KLDivLoss", "shape"
    ),
    "Poisson shape": Wrong(
        on(nn.PoissonNLLLoss(), r(4), r(5)), LossError, "PoissonNLLLoss", "the same shape"
    ),
    "soft margin shape": Wrong(
        on(nn.SoftMarginLoss(), r(4, 1), r(4)), LossError, "SoftMarginLoss", "squeeze(1)"
    ),
    "hinge shape": Wrong(
        on(nn.HingeEmbeddingLoss(), r(4, 1), r(4)), LossError, "HingeEmbeddingLoss", "squeeze(1)"
    ),
    "multilabel shape": Wrong(
        on(nn.MultiLabelSoftMarginLoss(), r(4, 3), r(4)), LossError, "(4, 3)", "CrossEntropyLoss()"
    ),
    "task float targets": Wrong(
        on(losses.for_task("multiclass"), r(4, 3), r(4)), LossError, "multiclass loss", ".long()"
    ),
}  # fmt: skip

TASKS: dict[str, Wrong] = {
    "typo": Wrong(task("multiclas"), ConfigError, "'multiclas'", "did you mean 'multiclass'"),
    "None": Wrong(task(None), ConfigError, "None", "known"),
    "list": Wrong(task(["binary"]), ConfigError, "['binary']", "known"),
    "other's option": Wrong(task("binary", margin=1), ConfigError, "'margin'", "pos_weight"),
    "one class": Wrong(task("multiclass", classes=1), ConfigError, "classes=1", "at least 2"),
    "3.0 classes": Wrong(task("multiclass", classes=3.0), ConfigError, "classes=3.0", "integer"),
    "names as classes": Wrong(
        task("multiclass", classes=["a", "b"]), ConfigError, "classes=['a', 'b']", "an integer"
    ),
    "too few weights": Wrong(
        task("multiclass", classes=3, class_weights=[1, 2]), ConfigError, "2 entries", "one weight"
    ),
    "negative weight": Wrong(
        task("multiclass", class_weights=[1, -2]), ConfigError, "class_weights=-2", "=1.0"
    ),
    "weight of NaN": Wrong(
        task("multiclass", class_weights=[1, NAN]), ConfigError, "class_weights=nan", "=1.0"
    ),
    "one weight": Wrong(
        task("multiclass", class_weights=1.0), ConfigError, "class_weights=1.0", "per class"
    ),
    "balanced": Wrong(
        task("multiclass", class_weights="balanced"), ConfigError, "'balanced'", "=1.0"
    ),
    "smoothing of 1": Wrong(
        task("multiclass", label_smoothing=1.0), ConfigError, "label_smoothing=1.0", "=0.1"
    ),
    "smoothing of -0.1": Wrong(
        task("multiclass", label_smoothing=-0.1), ConfigError, "label_smoothing=-0.1", "=0.1"
    ),
    "ignore_index='x'": Wrong(
        task("multiclass", ignore_index="x"), ConfigError, "ignore_index='x'", "=255"
    ),
    "pos_weight=-1": Wrong(task("binary", pos_weight=-1), ConfigError, "pos_weight=-1", "=1.0"),
    "unknown method": Wrong(
        task("regression", method="rmse"), ConfigError, "method='rmse'", "method='mse'"
    ),
    "method=None": Wrong(
        task("regression", method=None), ConfigError, "method=None", "method='mse'"
    ),
    "delta=0": Wrong(task("robust", delta=0), ConfigError, "delta=0", "delta=1.0"),
    "temperature=0": Wrong(
        task("distillation", temperature=0), ConfigError, "temperature=0", "temperature=1.0"
    ),
    "alpha=2": Wrong(task("distillation", alpha=2), ConfigError, "alpha=2", "alpha=0.1"),
    "margin=nan": Wrong(task("ranking", margin=NAN), ConfigError, "margin=nan", "margin=1.0"),
    "smooth=-1": Wrong(task("segmentation", smooth=-1), ConfigError, "smooth=-1", "smooth=1.0"),
    "weights of 0": Wrong(
        task("segmentation", weights=(0, 0)), ConfigError, "weights=(0, 0)", "(1.0, 1.0)"
    ),
    "classes of regression": Wrong(
        task("regression", classes=3), ConfigError, "classes=3", "leave classes out"
    ),
}  # fmt: skip

METRICS: dict[str, Wrong] = {
    "typo": Wrong(scores("multiclas"), ConfigError, "'multiclas'", "did you mean 'multiclass'"),
    "list": Wrong(scores(["binary"]), ConfigError, "['binary']", "known"),
    "no classes": Wrong(scores("multiclass"), ConfigError, "number of classes", "classes=2"),
    "one class": Wrong(scores("multiclass", classes=1), ConfigError, "classes=1", "classes=10"),
    "3.0 classes": Wrong(scores("multiclass", classes=3.0), ConfigError, "=3.0", "classes=10"),
    "'3' classes": Wrong(scores("segmentation", classes="3"), ConfigError, "='3'", "classes=10"),
    "True classes": Wrong(scores("multilabel", classes=True), ConfigError, "=True", "classes=10"),
    "names as classes": Wrong(
        scores("multiclass", classes=["a", "b"]), ConfigError, "classes=['a', 'b']", "classes=10"
    ),
    "binary of 3": Wrong(scores("binary", classes=3), ConfigError, "classes=3", "'multiclass'"),
    "top_k of all": Wrong(
        scores("multiclass", classes=3, top_k=3), ConfigError, "top_k=3", "from 2 to"
    ),
    "top_k=2.5": Wrong(
        scores("multiclass", classes=9, top_k=2.5), ConfigError, "top_k=2.5", "top_k=5"
    ),
    "average": Wrong(
        scores("multiclass", classes=3, average="mean"), ConfigError, "'mean'", "average='macro'"
    ),
    "thresholds=1": Wrong(scores("binary", thresholds=1), ConfigError, "thresholds=1", "=1000"),
    "thresholds='x'": Wrong(scores("binary", thresholds="x"), ConfigError, "='x'", "=1000"),
    "ignore_index='x'": Wrong(
        scores("multiclass", classes=3, ignore_index="x"), ConfigError, "ignore_index='x'", "=255"
    ),
    "other's option": Wrong(scores("binary", top_k=3), ConfigError, "top_k", "thresholds"),
    **{
        f"wrap {name}": Wrong(
            lambda given=given: metrics.wrap(given), ConfigError, cause, "metrics.for_task(...)"
        )
        for name, given, cause in (
            ("a name", "accuracy", "'accuracy'"),
            ("a list of names", ["accuracy"], "'accuracy'"),
            ("a function", len, "the function len"),
            ("an empty dict", {}, "a dict"),
            ("a dict of numbers", {"a": 1}, "a dict"),
            ("a class", metrics.MetricSet, "the class MetricSet"),
            ("True", True, "True"),
            ("a loss", MSE, "an MSELoss"),
            ("our set in a dict", {"a": metrics.for_task("binary")}, "a dict"),
        )
    },
}  # fmt: skip

TABLE = {
    f"{table}: {name}": row
    for table, rows in (
        ("criterion", CRITERIA), ("fit", FITS), ("task", TASKS), ("metrics", METRICS)
    )
    for name, row in rows.items()
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_a_wrong_call_is_answered_in_one_line(name: str) -> None:
    check(TABLE[name])


def test_what_looks_odd_and_works_as_documented() -> None:
    assert on(CE, r(4, 3), INDICES.byte())().loss.isfinite(), "torch takes bytes as classes"
    assert on(MSE, r(4), torch.ones(4).long())().loss.isfinite(), "integers as targets"
    assert on(BCEL, r(4), torch.rand(4).double())().loss.dtype == torch.float64


def test_an_error_of_the_users_own_criterion_or_model_is_raised_as_it_is() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        on(lambda outputs, targets: outputs.nonsense, r(4), r(4))()
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        batch((r(2, 5), r(2, 4)))()


def test_running_out_of_memory_stays_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def out_of_memory(*_: Any, **__: Any) -> Any:
        raise torch.OutOfMemoryError("planted")

    monkeypatch.setattr(F, "mse_loss", out_of_memory)
    with pytest.raises(torch.OutOfMemoryError, match="planted"):
        on(MSE, r(4), r(4))()
    with pytest.raises(torch.OutOfMemoryError, match="planted"):
        on(MSE, r(4), r(4), out_of_memory)()
