"""The metrics that `evaluate` computes beside the loss: one set per task.

================  ==================================================  =======================
kind              scores                                              options
================  ==================================================  =======================
``multiclass``    accuracy, top{k}, precision, recall, f1, auroc      classes, top_k, average,
                                                                      thresholds, ignore_index
``binary``        accuracy, precision, recall, f1 (of the positive    thresholds
                  class), auroc
``multilabel``    accuracy (of labels), subset_accuracy (of whole     classes, average,
                  samples), precision, recall, f1, auroc              thresholds
``regression``,   mae, rmse, r2
``robust``
``quantile``      mae, rmse, r2 of the quantile nearest to 0.5;       quantiles
                  coverage and width of the outer interval
``segmentation``  accuracy (of pixels), iou, dice                     classes, ignore_index
``ranking``       accuracy (of pairs; a tie is half right)
``distillation``  as multiclass, on the labels                        as multiclass
================  ==================================================  =======================

Accuracy counts samples. Precision, recall and F1 are averaged over the classes that occur in
targets or predictions, AUROC (each class against the rest) over those that occur in the targets
together with others; likewise iou and dice (with one output channel, those of the foreground) and,
over several outputs, rmse and r2. NaN where nothing is defined.

A set takes the model's raw outputs (logits) batch by batch and keeps sums on their device; nothing
is averaged before `compute`, so that uneven batches do not matter. Accuracy, precision, recall, F1
and the confusion matrix all come from one matrix of counts.

On several ranks every one must call `compute` and `details`, and each gets the scores of all ranks'
batches, which `over_ranks` brings together: counts are exact, and floating-point sums are added up
in the feed's order, so that the scores are those of one process. A set of your own says how its
attributes are reduced: `MetricSet.reductions`.

Whatever a user brings comes from torchmetrics. The counts, AUROC and the regression sums are our
own, exact in int64 and float64: torchmetrics' confusion matrix needs batch · C² numbers of memory
per update in deterministic mode, and its R² is wrong for targets that are small (it takes a sum of
squares below 1e-4 for zero) or far from zero (float32 sums of squares cancel).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import nn

from trueloop import _options
from trueloop.errors import ConfigError
from trueloop.metrics import _sets
from trueloop.metrics._base import MetricSet, over_ranks
from trueloop.metrics._functions import Combined, Functions, Transformed
from trueloop.metrics._quantiles import QuantileScores
from trueloop.metrics._wrapped import Wrapped, snake_case

__all__ = ["MetricSet", "for_task", "over_ranks", "transformed", "wrap"]


def for_task(
    kind: str,
    *,
    classes: int | None = None,
    top_k: int | None = None,
    average: str | None = None,
    thresholds: int | None = None,
    ignore_index: int | None = None,
    quantiles: Sequence[float] | None = None,
) -> MetricSet:
    """The metrics of a task: see the table at the top of this module.

    Args:
        kind: a name of that table.
        classes: how many; required for multiclass, multilabel and distillation, and for
            segmentation with more than two.
        top_k: also count the target among the k highest logits, 2 <= k < classes; by default 5
            from 10 classes on.
        average: ``"macro"`` (the default), ``"weighted"`` by the class's samples, or for
            multilabel ``"micro"`` (AUROC then is macro).
        thresholds: None computes AUROC exactly and keeps every score until `compute`: 8 bytes per
            sample and class (80 MB per million samples of 10 classes). A number sorts the
            probabilities into that many equal bins instead, in constant memory; beyond some ten
            million scores, write thresholds=1000.
        ignore_index: the target value to ignore; -100 by default, as in the loss.
        quantiles: of the outputs' columns, as in the loss: two or more.

    Returns:
        The metrics, to give to `evaluate` or `fit`.

    Raises:
        ConfigError: an unknown kind, or an option that is missing, out of range or not for it.
    """
    _options.by_name("task of metrics", kind, _OPTIONS)
    options = {
        "top_k": top_k, "average": average, "thresholds": thresholds, "ignore_index": ignore_index,
        "quantiles": quantiles,
    }  # fmt: skip
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    for name in given:
        if name not in _OPTIONS[kind]:
            known = ", ".join(("classes", *_OPTIONS[kind]))
            raise ConfigError(
                f"the metrics of task {kind!r} take no {name}: their options: {known}"
            )
    _check_options(kind, classes, given)
    return _set_of(kind, classes, given)


def _set_of(kind: str, classes: int | None, given: dict[str, Any]) -> MetricSet:
    if kind == "quantile":
        return QuantileScores(given.get("quantiles", (0.05, 0.5, 0.95)))
    if kind in ("regression", "robust"):
        return _sets.Regression()
    if kind == "ranking":
        return _sets.Ranking()
    if kind == "binary":
        return _sets.Binary(**given)
    if kind == "segmentation":
        return _sets.Segmentation(max(classes or 2, 2), **given)
    assert classes is not None
    if kind == "multilabel":
        return _sets.Multilabel(classes, **given)
    return (_sets.Multiclass if kind == "multiclass" else _sets.Distillation)(classes, **given)


_OPTIONS: dict[str, tuple[str, ...]] = {
    "multiclass": ("top_k", "average", "thresholds", "ignore_index"),
    "distillation": ("top_k", "average", "thresholds", "ignore_index"),
    "binary": ("thresholds",),
    "multilabel": ("average", "thresholds"),
    "segmentation": ("ignore_index",),
    "regression": (),
    "robust": (),
    "quantile": ("quantiles",),
    "ranking": (),
}


def _check_options(kind: str, classes: int | None, given: dict[str, Any]) -> None:
    _check_classes(kind, classes)
    for name, least, example in (("top_k", 2, 5), ("thresholds", 2, 1000)):
        if name in given:
            _options.whole(name, given[name], least, example)
    if not _options.is_integer(index := given.get("ignore_index", -100)):
        raise ConfigError(
            f"ignore_index={_options.shown(index)} is not a class index: write e.g. "
            "ignore_index=255"
        )
    top_k = given.get("top_k")
    if top_k is not None and not (classes is not None and 2 <= top_k < classes):
        raise ConfigError(
            f"top_k={top_k} of {classes} classes: write a number from 2 to below that"
        )
    averages = ("macro", "weighted", "micro") if kind == "multilabel" else ("macro", "weighted")
    _options.choice("average", given.get("average", "macro"), averages)


def _check_classes(kind: str, classes: int | None) -> None:
    least = {"multiclass": 2, "distillation": 2, "multilabel": 1}.get(kind)
    if classes is None and least is not None:
        raise ConfigError(
            f"the metrics of task {kind!r} need the number of classes: write classes={least} or "
            "more"
        )
    if classes is not None:
        _options.whole("classes", classes, least or 1, 10)
    if classes is not None and kind in ("regression", "robust", "quantile", "ranking"):
        raise ConfigError(f"task {kind!r} has no classes: leave classes out")
    if classes is not None and kind == "binary" and classes > 2:
        raise ConfigError(
            f"task 'binary' cannot have classes={classes}: write the task 'multiclass'"
        )


def wrap(metrics: Any) -> MetricSet | None:
    """The metrics that a user gives to `evaluate`, as a `MetricSet`.

    A function of (outputs, targets) returns one value per sample, shape (B,), or the batch's mean,
    a scalar, which is weighted by its B samples. Its score is the mean over all samples: exact for
    what is a mean (absolute error, accuracy), and not for what is not (a root, a quotient, F1).

    Args:
        metrics: a `MetricSet`, a torchmetrics `Metric` or `MetricCollection`, a dict of names to
            functions or `Metric`s, a list of any of these, or None. A metric without a name is
            called after its class in snake case: `MulticlassAccuracy` is `multiclass_accuracy`.

    Returns:
        The set; None for None.

    Raises:
        ConfigError: it is none of these, or two have the same name.
    """
    if metrics is None or isinstance(metrics, MetricSet):
        return metrics
    if isinstance(metrics, list) and metrics:
        return Combined([_as_set(one) for one in metrics])
    return _as_set(metrics)


def _as_set(metrics: Any) -> MetricSet:
    """Anything but None and a list as a set."""
    if isinstance(metrics, MetricSet):
        return metrics
    named = dict(metrics) if isinstance(metrics, Mapping) else {}
    functions = {str(name): one for name, one in named.items() if _is_function(one)}
    if named and len(functions) == len(named):  # torchmetrics takes long to import
        return Functions(functions)
    from torchmetrics import Metric, MetricCollection

    if isinstance(metrics, MetricCollection):
        return Wrapped([(None, metrics)])
    if isinstance(metrics, Metric):
        return Wrapped([(snake_case(type(metrics).__name__), metrics)])
    others = [(str(name), one) for name, one in named.items() if not _is_function(one)]
    if named and all(isinstance(one, Metric) for _, one in others):
        wrapped = Wrapped(list(others))
        return Combined([wrapped, Functions(functions)]) if functions else wrapped
    raise ConfigError(
        f"metrics={_options.shown(metrics)} cannot be measured with: write metrics.for_task(...), "
        "a torchmetrics Metric or MetricCollection, a dict of names to Metrics or to functions of "
        "(outputs, targets), a list of these, or an instance of a subclass of metrics.MetricSet"
    )


def _is_function(one: Any) -> bool:
    """A plain function, or an object with `__call__`; a torchmetrics metric is a module."""
    return callable(one) and not isinstance(one, (type, MetricSet)) and not _is_metric(one)


def _is_metric(one: Any) -> bool:
    return isinstance(one, nn.Module) and callable(getattr(one, "compute", None))


def transformed(metrics: Any, inverse: Callable[[Any], Any]) -> MetricSet:
    """Metrics in the target's own unit, of a model that is trained on a transformed target.

    `inverse` is applied to outputs and targets of each batch before the metrics see them; the loss
    is that of the transformed target. scikit-learn's `TransformedTargetRegressor` does the same:
    `evaluate(..., metrics.transformed(metrics.for_task("regression"), torch.expm1))` for a target
    that is log1p of the price.

    Args:
        metrics: as for `evaluate`.
        inverse: takes outputs or targets as the loss gets them, and returns them in the own unit.

    Returns:
        The metrics, to give to `evaluate` or `fit`.

    Raises:
        ConfigError: `metrics` cannot be measured with; `inverse` does not take one argument.
    """
    inner = wrap(metrics)
    if inner is None:
        raise ConfigError("metrics=None has nothing to measure: write metrics.for_task(...)")
    _options.function("inverse", inverse, "values", "inverse=torch.expm1")
    return Transformed(inner, inverse)
