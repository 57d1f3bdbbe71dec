"""Metric sets against scikit-learn, and where they are undefined."""

from __future__ import annotations

import math
import sys
import warnings

import numpy as np
import pytest
import torch
import torchmetrics
from sklearn import metrics as sk
from torch import Tensor, nn

import warm_python
from trueloop import metrics
from trueloop.errors import ConfigError, LossError
from trueloop.metrics._wrapped import snake_case

SIZES = [7, 64, 1, 33, 95]
N = sum(SIZES)


@pytest.fixture(autouse=True)
def _no_warning_leaks():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def indices(classes: int, *shape: int, seed: int = 1) -> Tensor:
    return torch.randint(classes, shape, generator=torch.Generator().manual_seed(seed))


def fed(found: metrics.MetricSet, outputs: Tensor, targets: Tensor) -> metrics.MetricSet:
    """The set after uneven batches."""
    for x, y in zip(outputs.split(SIZES), targets.split(SIZES), strict=True):
        found.update(x, y)
    return found


def averages(truth: np.ndarray, predicted: np.ndarray, average: str) -> dict[str, float]:
    names = ("precision", "recall", "f1")
    values = sk.precision_recall_fscore_support(
        truth, predicted, average=average, zero_division=0.0
    )
    return dict(zip(names, values[:3], strict=True))


# --- against scikit-learn -----------------------------------------------------------------------


@pytest.mark.parametrize("average", ["macro", "weighted"])
@pytest.mark.parametrize("classes", [2, 3, 12])
def test_multiclass(classes, average):
    x, y = 2 * drawn(N, classes), indices(classes, N)
    x[torch.arange(N), y] += 1.0
    found = fed(metrics.for_task("multiclass", classes=classes, average=average), x, y)
    p = x.double().softmax(1).numpy()
    if classes == 2:
        # scikit-learn takes one score for two classes; the other class's area is the same.
        auroc = sk.roc_auc_score(y, p[:, 1])
    else:
        auroc = sk.roc_auc_score(y, p, multi_class="ovr", average=average)
    expected = {
        "accuracy": sk.accuracy_score(y, x.argmax(1)),
        "auroc": auroc,
        **averages(y.numpy(), x.argmax(1).numpy(), average),
    }
    if classes == 12:
        expected["top5"] = sk.top_k_accuracy_score(y, x, k=5)
    assert found.compute() == pytest.approx(expected, abs=1e-6)
    assert found.details()["confusion"] == sk.confusion_matrix(y, x.argmax(1)).tolist()


def test_per_class_scores():
    x, y = drawn(N, 4), indices(4, N)
    rows = fed(metrics.for_task("multiclass", classes=4), x, y).details()["per_class"]
    expected = sk.precision_recall_fscore_support(y, x.argmax(1))
    for k, row in enumerate(rows):
        assert row == pytest.approx(
            {
                "index": k,
                "precision": expected[0][k],
                "recall": expected[1][k],
                "f1": expected[2][k],
                "support": expected[3][k],
            }
        )
        assert type(row["support"]) is int


@pytest.mark.parametrize("shape", [(N,), (N, 1)], ids=str)
@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.float32], ids=str)
def test_binary(shape, dtype):
    x, y = drawn(*shape), indices(2, *shape)
    found = fed(metrics.for_task("binary"), x, y.to(dtype))
    truth, predicted = y.flatten().numpy(), (x > 0).flatten().numpy()
    expected = {
        "accuracy": sk.accuracy_score(truth, predicted),
        "auroc": sk.roc_auc_score(truth, x.flatten().numpy()),
        **averages(truth, predicted, "binary"),
    }
    assert found.compute() == pytest.approx(expected, abs=1e-6)
    assert found.details()["confusion"] == sk.confusion_matrix(truth, predicted).tolist()


def test_columns_of_logits_against_flat_targets():
    x, y = drawn(N), indices(2, N)
    flat = fed(metrics.for_task("binary"), x, y).compute()
    assert fed(metrics.for_task("binary"), x[:, None], y).compute() == flat
    flat = fed(metrics.for_task("regression"), x, y).compute()
    assert fed(metrics.for_task("regression"), x[:, None], y).compute() == flat


@pytest.mark.parametrize("average", ["macro", "weighted", "micro"])
def test_multilabel(average):
    x, y = drawn(N, 5), indices(2, N, 5)
    found = fed(metrics.for_task("multilabel", classes=5, average=average), x, y)
    truth, predicted = y.numpy(), (x > 0).numpy()
    across = "macro" if average == "micro" else average
    expected = {
        "accuracy": (truth == predicted).mean(),
        "subset_accuracy": sk.accuracy_score(truth, predicted),
        "auroc": sk.roc_auc_score(truth, x.numpy(), average=across),
        **averages(truth, predicted, average),
    }
    assert found.compute() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("kind", ["regression", "robust"])
@pytest.mark.parametrize("outputs", [None, 1, 3])
@pytest.mark.parametrize(("centre", "scale"), [(0, 1), (1e5, 3.0), (0, 1e-5)])
def test_regression(kind, outputs, centre, scale):
    shape = (N,) if outputs is None else (N, outputs)
    y = (centre + scale * drawn(*shape)).float()
    x = y + 0.3 * scale * drawn(*shape, seed=2)
    found = fed(metrics.for_task(kind), x, y).compute()
    expected = {
        "mae": sk.mean_absolute_error(y.double(), x.double()),
        "rmse": sk.root_mean_squared_error(y.double(), x.double()),
        "r2": sk.r2_score(y.double(), x.double()),
    }
    assert found == pytest.approx(expected, rel=1e-6)


def test_segmentation_of_many_classes():
    x, y = drawn(N, 3, 4, 2), indices(3, N, 4, 2)
    y[:, 0, 0] = 255
    found = fed(metrics.for_task("segmentation", classes=3, ignore_index=255), x, y)
    kept = (y != 255).flatten().numpy()
    truth, predicted = y.flatten().numpy()[kept], x.argmax(1).flatten().numpy()[kept]
    expected = {
        "accuracy": sk.accuracy_score(truth, predicted),
        "iou": sk.jaccard_score(truth, predicted, average="macro"),
        "dice": sk.f1_score(truth, predicted, average="macro"),
    }
    assert found.compute() == pytest.approx(expected, abs=1e-6)
    rows = found.details()["per_class"]
    assert [row["iou"] for row in rows] == pytest.approx(
        sk.jaccard_score(truth, predicted, average=None).tolist()
    )


def test_segmentation_of_one_class_measures_the_foreground():
    x, y = drawn(N, 1, 4, 2), indices(2, N, 1, 4, 2)
    found = fed(metrics.for_task("segmentation"), x, y)
    truth, predicted = y.flatten().numpy(), (x > 0).flatten().numpy()
    expected = {
        "accuracy": sk.accuracy_score(truth, predicted),
        "iou": sk.jaccard_score(truth, predicted),
        "dice": sk.f1_score(truth, predicted),
    }
    assert found.compute() == pytest.approx(expected, abs=1e-6)


def test_ranking_counts_a_tie_as_half():
    scores = torch.tensor([[2.0, 1.0], [0.0, 1.0], [3.0, 1.0], [1.0, 1.0]])
    y = torch.tensor([1, -1, -1, 1])
    for outputs in (scores, scores.unbind(1)):
        found = metrics.for_task("ranking")
        found.update(outputs, y)
        assert found.compute() == {"accuracy": 2.5 / 4}


def test_distillation_is_measured_on_the_labels():
    x, y = drawn(N, 3), indices(3, N)
    found = metrics.for_task("distillation", classes=3)
    found.update(x, (y, drawn(N, 3, seed=4)))
    assert found.compute() == fed(metrics.for_task("multiclass", classes=3), x, y).compute()


def test_targets_of_more_dimensions_soft_targets_and_ignored_ones():
    x, y = drawn(N, 3, 5), indices(3, N, 5)
    rows = x.movedim(1, -1).reshape(-1, 3)
    flat = metrics.for_task("multiclass", classes=3)
    flat.update(rows, y.flatten())
    assert fed(metrics.for_task("multiclass", classes=3), x, y).compute() == flat.compute()

    soft = metrics.for_task("multiclass", classes=3)
    soft.update(rows, torch.nn.functional.one_hot(y.flatten(), 3) * 0.8 + 0.1)
    assert soft.compute() == flat.compute()

    y[drawn(N, 5, seed=9) > 0] = -100
    kept = y.flatten() != -100
    some = metrics.for_task("multiclass", classes=3, top_k=2)
    some.update(rows[kept], y.flatten()[kept])
    for thresholds in (None, 5000):
        all_of_them = metrics.for_task("multiclass", classes=3, top_k=2, thresholds=thresholds)
        scores = fed(all_of_them, x, y).compute()
        assert scores == pytest.approx(some.compute(), abs=1e-3 if thresholds else 0)


@pytest.mark.parametrize("kind", ["multiclass", "binary", "multilabel"])
def test_binned_auroc_is_exact_for_scores_on_the_grid_and_close_for_others(kind):
    classes = None if kind == "binary" else 3
    shape = (N,) if kind == "binary" else (N, 3)
    x, y = drawn(*shape), indices(2, *shape)
    if kind == "multiclass":
        y = indices(3, N)
    exact = fed(metrics.for_task(kind, classes=classes), x, y).compute()
    fine = fed(metrics.for_task(kind, classes=classes, thresholds=100_000), x, y).compute()
    coarse = fed(metrics.for_task(kind, classes=classes, thresholds=50), x, y).compute()
    assert fine == pytest.approx(exact, abs=1e-4)
    assert coarse == pytest.approx(exact, abs=0.02)
    if kind == "binary":
        p = (x.sigmoid() * 50).long().clamp(max=49)
        assert coarse["auroc"] == pytest.approx(sk.roc_auc_score(y, p), abs=1e-12)


def test_logits_of_a_batch_within_0_and_1_are_still_logits():
    # torchmetrics takes such a batch for probabilities, and mixes the two.
    x, y = torch.cat([drawn(N - 95) * 4, drawn(95).abs().clamp(max=1)]), indices(2, N)
    found = fed(metrics.for_task("binary"), x, y).compute()
    assert found["auroc"] == pytest.approx(sk.roc_auc_score(y, x), abs=1e-6)


def test_confident_logits_do_not_become_ties():
    # In float32 every sigmoid above 17 is 1.
    x, y = 20 + 10 * torch.rand(N, generator=torch.Generator().manual_seed(0)), indices(2, N)
    found = fed(metrics.for_task("binary"), x, y).compute()
    assert found["auroc"] == pytest.approx(sk.roc_auc_score(y, x), abs=1e-6)


# --- where something is undefined ---------------------------------------------------------------


@pytest.mark.parametrize("thresholds", [None, 1000])
def test_auroc_leaves_absent_classes_out(thresholds):
    x, y = drawn(N, 4), indices(2, N) * 2  # classes 1 and 3 do not occur
    found = fed(metrics.for_task("multiclass", classes=4, thresholds=thresholds), x, y)
    p = x.double().softmax(1).numpy()
    areas = [sk.roc_auc_score(y == k, p[:, k]) for k in (0, 2)]
    assert found.compute()["auroc"] == pytest.approx(np.mean(areas), abs=1e-3)
    assert found.compute() == pytest.approx(
        {**found.compute(), **averages(y.numpy(), x.argmax(1).numpy(), "macro")}
    )


@pytest.mark.parametrize(
    ("kind", "outputs", "targets"),
    [
        ("multiclass", drawn(5, 3), torch.ones(5).long()),
        ("binary", drawn(5), torch.zeros(5)),
        ("binary", drawn(5), torch.ones(5)),
        ("multilabel", drawn(5, 3), torch.zeros(5, 3)),
    ],
)
def test_auroc_of_one_side_alone_is_nan(kind, outputs, targets):
    classes = None if kind == "binary" else 3
    found = metrics.for_task(kind, classes=classes)
    found.update(outputs, targets)
    scores = found.compute()
    assert math.isnan(scores["auroc"])
    assert not math.isnan(scores["accuracy"])


def test_nan_outputs_give_a_nan_and_no_crash():
    for kind, shape, targets in (
        ("multiclass", (6, 3), indices(3, 6)),
        ("binary", (6,), torch.tensor([0, 1, 0, 1, 1, 0])),
        ("regression", (6,), drawn(6)),
    ):
        for thresholds in (None,) if kind == "regression" else (None, 10):
            found = metrics.for_task(
                kind, classes=3 if kind == "multiclass" else None, thresholds=thresholds
            )
            found.update(torch.full(shape, math.nan), targets)
            assert math.isnan(found.compute()["r2" if kind == "regression" else "auroc"])


def test_r2_is_nan_for_one_sample_and_for_constant_targets():
    found = metrics.for_task("regression")
    found.update(torch.tensor([1.5]), torch.tensor([1.0]))
    scores = found.compute()
    assert (scores["mae"], scores["rmse"]) == (0.5, 0.5)
    assert math.isnan(scores["r2"])
    found = fed(metrics.for_task("regression"), drawn(N), torch.full((N,), 0.1))
    assert math.isnan(found.compute()["r2"])


@pytest.mark.parametrize(
    ("kind", "classes"),
    [("multiclass", 3), ("binary", None), ("multilabel", 3), ("regression", None),
     ("quantile", None), ("segmentation", 3), ("ranking", None)],
)  # fmt: skip
def test_a_set_without_a_batch_is_nan_all_over(kind, classes):
    found = metrics.for_task(kind, classes=classes)
    scores = found.compute()
    assert scores
    assert all(math.isnan(value) for value in scores.values())
    found.details()


@pytest.mark.parametrize("wide", [False, True])
def test_quantiles_are_those_of_a_regression_with_an_interval(wide):
    quantiles = (0.1, 0.4, 0.7, 0.9)
    outputs, targets = drawn(N, 4).sort(dim=1).values, drawn(N, seed=3)
    low, high = outputs[:, 0], outputs[:, 3]
    targets[:3] = torch.stack([low[0], high[1], high[2] + 1e-3])
    found = metrics.for_task("quantile", quantiles=quantiles)
    scores = fed(found, outputs, targets[:, None] if wide else targets).compute()
    rows = zip(low.tolist(), targets.tolist(), high.tolist(), strict=True)
    inside = [a <= y <= b for a, y, b in rows]
    assert inside[:3] == [True, True, False]
    assert scores["coverage"] == pytest.approx(sum(inside) / N, rel=1e-12)
    assert scores["width"] == pytest.approx(float((high.double() - low.double()).mean()), rel=1e-12)
    point = outputs[:, 1].numpy()
    assert scores["mae"] == pytest.approx(sk.mean_absolute_error(targets.numpy(), point))
    assert scores["r2"] == pytest.approx(sk.r2_score(targets.numpy(), point))
    again = metrics.for_task("quantile", quantiles=quantiles)
    again.load_state_dict(found.state_dict())
    assert again.compute() == scores


# --- life of a set ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "outputs", "targets"),
    [
        ("multiclass", drawn(N, 12), indices(12, N)),
        ("binary", drawn(N), indices(2, N)),
        ("multilabel", drawn(N, 12), indices(2, N, 12)),
        ("regression", drawn(N), drawn(N, seed=3)),
        ("segmentation", drawn(N, 12, 2, 2), indices(12, N, 2, 2)),
    ],
)
def test_reset_forgets_and_batches_do_not_matter(kind, outputs, targets):
    classes = 12 if outputs.ndim > 1 else None
    found = metrics.for_task(kind, classes=classes)
    with torch.inference_mode():
        found.reset()
        found.update(drawn(*outputs.shape, seed=8), targets)
        found.compute()
    found.reset()
    whole = metrics.for_task(kind, classes=classes)
    whole.update(outputs, targets)
    scores = fed(found, outputs.requires_grad_(), targets).compute()
    assert scores == pytest.approx(whole.compute(), rel=1e-12)
    assert all(type(value) is float for value in scores.values())
    assert found.to("cpu") is found


def test_deterministic_mode_costs_no_memory():
    torch.use_deterministic_algorithms(True)
    try:
        # torchmetrics' own matrix would need 4096 * 10**6 * 8 bytes here.
        x, y = drawn(4096, 1000), indices(1000, 4096)
        found = metrics.for_task("multiclass", classes=1000, thresholds=10)
        found.update(x, y)
        assert found.compute()["accuracy"] == (x.argmax(1) == y).double().mean()
    finally:
        torch.use_deterministic_algorithms(False)


def test_importing_the_module_does_not_import_torchmetrics():
    code = "import sys, trueloop.metrics; sys.exit('torchmetrics' in sys.modules)"
    done = warm_python.run([sys.executable, "-c", code], start=warm_python.Bare)
    assert (done.returncode, done.stderr) == (0, b"")


# --- what cannot work ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("multiclas", {}, "did you mean 'multiclass'"),
        ("multiclass", {}, "write classes=2 or more"),
        ("multilabel", {"classes": 0}, "not an integer of at least 1"),
        ("multiclass", {"classes": 3, "top_k": 3}, "write a number from 2 to below that"),
        (
            "multiclass",
            {"classes": 3, "average": "micro"},
            "write average='macro' or average='weighted'",
        ),
        ("multiclass", {"classes": 3, "thresholds": 1}, "write e.g. thresholds=1000"),
        ("regression", {"top_k": 5}, "take no top_k"),
        ("regression", {"quantiles": (0.1, 0.9)}, "take no quantiles"),
        ("quantile", {"quantiles": (0.5,)}, "must be 2 or more numbers between 0 and 1"),
        ("quantile", {"quantiles": (0.9, 0.1)}, "that ascend"),
        ("quantile", {"classes": 3}, "has no classes"),
        ("regression", {"classes": 5}, "has no classes"),
        ("binary", {"average": "macro"}, "take no average: their options: classes, thresholds"),
        ("binary", {"classes": 3}, "write the task 'multiclass'"),
    ],
)
def test_options_that_cannot_work_are_refused(kind, options, message):
    with pytest.raises(ConfigError, match=message):
        metrics.for_task(kind, **options)


@pytest.mark.parametrize(
    ("kind", "classes", "outputs", "targets", "message"),
    [
        ("multiclass", 3, drawn(4, 4), indices(3, 4), "give the model 3 outputs"),
        ("multiclass", 3, drawn(4, 3), torch.tensor([0, 1, 3, 2]), "the target 3 is outside"),
        ("multiclass", 3, drawn(4, 3), torch.tensor([0, 1, -1, 2]), "the target -1 is outside"),
        ("multiclass", 3, drawn(4, 3), indices(3, 5), "4 rows of outputs against 5 targets"),
        ("segmentation", 4, drawn(4, 1, 2, 2), indices(3, 4, 2, 2), "give the model 4 outputs"),
        ("binary", None, drawn(4, 2), indices(2, 4), "one value each"),
        ("multilabel", 3, drawn(4, 3), indices(2, 4), "one value each"),
        ("regression", None, drawn(4, 1), drawn(3), "one value each"),
        ("quantile", None, drawn(4, 2), drawn(4), r"must be \(N, 3\) and \(N,\)"),
        ("quantile", None, drawn(4, 3), drawn(4, 3), r"must be \(N, 3\) and \(N,\)"),
    ],
)
def test_batches_that_do_not_fit_are_refused(kind, classes, outputs, targets, message):
    with pytest.raises(LossError, match=message):
        metrics.for_task(kind, classes=classes).update(outputs, targets)


# --- what users bring ---------------------------------------------------------------------------


def test_wrap_leaves_sets_and_none_alone():
    assert metrics.wrap(None) is None
    found = metrics.for_task("regression")
    assert metrics.wrap(found) is found


def test_wrap_takes_torchmetrics_in_every_form():
    from torchmetrics.classification import MulticlassAccuracy, MulticlassConfusionMatrix

    x, y = drawn(N, 3), indices(3, N)
    accuracy = MulticlassAccuracy(3, average="micro")
    matrix = MulticlassConfusionMatrix(3)
    right = pytest.approx((x.argmax(1) == y).double().mean().item())
    confusion = sk.confusion_matrix(y, x.argmax(1)).tolist()

    single = fed(metrics.wrap(accuracy), x, y)
    assert single.compute() == {"multiclass_accuracy": right}
    assert single.details() == {}
    single.reset()

    named = fed(metrics.wrap({"hits": accuracy, "matrix": matrix}), x, y)
    assert named.compute() == {"hits": right}
    assert named.details() == {"matrix": confusion}
    named.reset()

    for collection, name in (
        (torchmetrics.MetricCollection([accuracy, matrix]), "multiclass_accuracy"),
        (torchmetrics.MetricCollection({"Hits": accuracy}), "Hits"),
        (torchmetrics.MetricCollection([accuracy], prefix="my_"), "my_multiclass_accuracy"),
    ):
        assert fed(metrics.wrap(collection), x, y).compute()[name] == right


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("R2Score", "r2_score"),
        ("BinaryAUROC", "binary_auroc"),
        ("MeanSquaredError", "mean_squared_error"),
        ("F1Score", "f1_score"),
    ],
)
def test_metrics_are_named_after_their_class(name, expected):
    assert snake_case(name) == expected


def test_functions_are_means_over_samples():
    """Per-sample values and a batch's mean alike, whatever the sizes of the batches."""
    x, y = drawn(N, 2), drawn(N, 2, seed=1)
    functions = {
        "mae": lambda x, y: (x - y).abs().mean(1),
        "mse": nn.MSELoss(),
        "near": lambda x, y: ((x - y).norm(dim=1) < 1)[:, None],
        "mse in numpy": lambda x, y: sk.mean_squared_error(y.numpy(), x.numpy()),
    }
    found = fed(metrics.wrap(functions), x, y)
    expected = {
        "mae": sk.mean_absolute_error(y, x),
        "mse": sk.mean_squared_error(y, x),
        "near": np.mean(np.linalg.norm((x - y).numpy(), axis=1) < 1),
        "mse in numpy": sk.mean_squared_error(y, x),
    }
    assert found.compute() == pytest.approx(expected, rel=1e-6)
    again = metrics.wrap(functions)
    again.load_state_dict(found.state_dict())
    assert again.compute() == found.compute()
    found.reset()
    assert all(math.isnan(value) for value in found.compute().values())


def test_functions_metrics_and_sets_go_together():
    x, y = drawn(N, 3), indices(3, N)
    right = pytest.approx((x.argmax(1) == y).double().mean().item())
    accuracy = torchmetrics.classification.MulticlassAccuracy(3, average="micro")
    hits = {"hits": lambda x, y: x.argmax(1) == y}
    mixed = fed(metrics.wrap({"theirs": accuracy, **hits}), x, y)
    assert mixed.compute() == {"theirs": right, "hits": right}
    ours = metrics.for_task("multiclass", classes=3)
    found = fed(metrics.wrap([ours, hits]), x, y)
    assert found.compute() == {**ours.compute(), "hits": right}
    assert found.details() == ours.details()
    assert found.is_resumable
    again = metrics.wrap([metrics.for_task("multiclass", classes=3), hits])
    again.load_state_dict(found.state_dict())
    assert again.compute() == found.compute()
    with pytest.raises(ConfigError, match="two metrics have the name 'hits'"):
        fed(metrics.wrap([hits, hits]), x, y).compute()


def test_transformed_metrics_are_in_the_target_s_own_unit():
    prices = drawn(N).exp() * 1000
    outputs = prices.log1p() + 0.1 * drawn(N, seed=1)
    found = fed(
        metrics.transformed(metrics.for_task("regression"), torch.expm1), outputs, prices.log1p()
    )
    back = outputs.double().expm1()
    expected = {
        "mae": sk.mean_absolute_error(prices, back),
        "rmse": sk.root_mean_squared_error(prices, back),
        "r2": sk.r2_score(prices, back),
    }
    assert found.compute() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (torch.ones(7, 2), r"tensor of shape \(7, 2\) for 7 samples: return one value per sample"),
        (torch.ones(2), r"tensor of shape \(2,\) for 7 samples"),
        ("0.5", "metric 'mine' returned a str"),
        (None, "metric 'mine' returned"),
    ],
)
def test_functions_that_return_anything_else_are_refused(value, said):
    found = metrics.wrap({"mine": lambda x, y: value})
    with pytest.raises(ConfigError, match=said):
        found.update(torch.ones(7, 3), torch.ones(7))


def test_a_function_of_other_arguments_is_refused():
    with pytest.raises(ConfigError, match=r"metrics\['mine'\] is called with \(outputs, targets\)"):
        metrics.wrap({"mine": lambda x: x})
    with pytest.raises(ConfigError, match="inverse is called with"):
        metrics.transformed(metrics.for_task("regression"), lambda x, y: x)


@pytest.mark.parametrize("given", ["accuracy", [], {"a": "b"}, {}, lambda x, y: 0.0])
def test_wrap_refuses_anything_else(given):
    with pytest.raises(ConfigError, match=r"write metrics\.for_task"):
        metrics.wrap(given)
