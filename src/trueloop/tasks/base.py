"""A task: data, model, loss, metrics and pictures under one roof, and how it trains."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from trueloop import losses, metrics
from trueloop.errors import ConfigError, DataError, nearest
from trueloop.folds import FoldNumber
from trueloop.losses import apply_model
from trueloop.records import EvalRecord, LossOutput
from trueloop.run import Figures
from trueloop.tasks.data_findings import DataFinding
from trueloop.tasks.option_docs import documented
from trueloop.tasks.predict_input import ERROR as ERROR, PredictInput as PredictInput
from trueloop.tasks.random_split import stratified_split
from trueloop.tasks.recipe import Recipe
from trueloop.tasks.standalone import tensors

LossFn = Callable[[nn.Module, Any], LossOutput | Tensor]
KINDS = ("multiclass", "binary", "multilabel", "regression")
"""The kinds of tasks, for their losses and metrics."""


@documented
@dataclass(kw_only=True)
class Splits:
    """The data of a run. Each split is anything that `Feed` takes and yields (inputs, targets)."""

    train: Any
    """The data that the model is trained on."""
    val: Any
    """The data that decides: the best weights, early stopping."""
    test: Any | None = None
    """Held out from every choice; scored once, at the end."""
    augment: Callable[[Any, Any], Any] | None = None
    """`Feed`'s `transform` for the training split: (batch, draws) -> batch."""
    facts: dict[str, Any] = field(default_factory=dict)
    """Plain data about the data, for the report: sizes, classes, columns, omissions."""
    findings: list[DataFinding] = field(default_factory=list)
    """The findings that make scores on these data doubtful: printed before the training, and in the
    report."""

    def __post_init__(self) -> None:
        for name in ("train", "val"):
            if getattr(self, name) is None:
                raise ConfigError(
                    f"Splits({name}=None) has no data: give tensors, (inputs, targets), or a "
                    "Dataset"
                )
        if not isinstance(self.facts, Mapping):
            raise ConfigError(
                f"Splits(facts={type(self.facts).__name__}) is not a dict: write "
                "facts={'samples': 100}"
            )
        if not all(isinstance(finding, DataFinding) for finding in self.findings):
            raise ConfigError("Splits(findings=…) takes instances of DataFinding: leave it out")


def refuse_changed_data(task: Task, kept: str | None, remedy: str) -> None:
    """Raise `DataError` where the data that `task` has read are not those of the digest `kept`."""
    if kept is not None and task.digest is not None and task.digest != kept:
        raise DataError(
            f"{task.data} has changed since the run began, so the split would change: restore the "
            f"data, or {remedy}"
        )


class Task:
    """A ready-made or user's own task. Subclass it and define `splits` and `model`.

    `kind` chooses loss and metrics: multiclass, binary, multilabel or regression. A subclass may
    set it in `splits`, once the data are known. The life of a task: constructed with its options,
    `splits()` once, then `model()`, `loss_fn()`, `metrics()`; or, for a trained run, `restore()`
    instead of `splits()`, then `model()`, and `read()` or `unseen()` for other data.

    Args:
        options: an instance of the class's `Options`; None for their defaults.
        data: the path of the data; None for a task that needs none.
        seed: of the data's division, and of what the task draws itself.
    """

    kind: str = "multiclass"
    recipe: Recipe = Recipe()
    """The class's own is the default; `splits` may set one for the instance that suits the data,
    over which the user's own choices then go."""
    threads: int | None = None
    """CPU threads to compute on; None takes as many as the work of an update calls for."""
    smaller: str = "--batch-size"
    """The options that make a training take less memory, in words."""
    random_weights: bool = False
    """Whether `model` starts from random weights only, of which a part cannot stay frozen at first
    (--unfreeze)."""
    classes: list[str] | None = None
    """Names of the classes in the order of the model's outputs; None for regression."""

    @dataclass(kw_only=True)
    class Options:
        """Options of only this task; each field becomes an option of the command line."""

    def __init__(self, options: Any = None, *, data: Path | None = None, seed: int = 0) -> None:
        self.options = self.Options() if options is None else options
        self.data = data
        self.seed = seed
        self.skipped: dict[str, str] = {}
        """The samples that `splits` or `read` skipped because they could not be read, by name, and
        why."""
        self.notes: list[str] = []
        """Lines about other samples that `splits` or `read` skipped, which the command prints."""
        self.digest: str | None = None
        """Of the data and their split; None if unknown. A run can only be resumed with data of the
        same digest."""
        self.resumed: dict[str, Any] | None = None
        """The result of `state` at the run's start, for `splits` of a resumed run; else None."""
        self._fold: FoldNumber | None = None
        self.reads_fold = False
        """Whether `splits` has asked for the fold."""
        self.quiet = False
        """Whether the user asked for no progress while the data are read."""

    @property
    def fold(self) -> FoldNumber | None:
        """The fold that validates, (number, count), number from 1; None without `--folds`.

        `splits` reads it where the task can be cross-validated: see `divide`.
        """
        self.reads_fold = True
        return self._fold

    @fold.setter
    def fold(self, fold: FoldNumber | None) -> None:
        self._fold = fold

    def divide(self, labels: Any, *shares: float) -> list[np.ndarray]:
        """Divide samples at random into a training part and others, as seed and fold say.

        Args:
            labels: a class index for each sample, of which each part has its share; or the number
                of samples.
            shares: of the samples, for each further part; the last is the validation part. With
                `--folds`, that is the fold instead.

        Returns:
            The indices of the training samples, then those of each part, int64, ascending.
        """
        rows = np.zeros(labels) if isinstance(labels, int) else np.asarray(labels)
        return stratified_split(rows.astype(np.int64), list(shares), self.seed, self.fold)

    def splits(self) -> Splits:
        """Read or make the data; fit whatever is fitted on the training part only."""
        raise NotImplementedError  # `check_class` refuses a task without it

    def settle(self, recipe: Recipe) -> Recipe:
        """The recipe as it will train, for choices that follow from several of its fields.

        Called after `splits`.

        Args:
            recipe: `self.recipe`, with the user's own choices over it.

        Returns:
            The recipe to train with.

        Raises:
            ConfigError: choices that cannot work together.
        """
        return recipe

    def model(self) -> nn.Module:
        """A freshly initialised model for the data that `splits` or `restore` described."""
        raise NotImplementedError  # `check_class` refuses a task without it

    def inference_model(self, model: nn.Module) -> nn.Module:
        """The trained model for inference, if that is a different one: with LoRA merged, say.

        Used by `Run.model`, `trueloop generate` and `trueloop export`.

        Args:
            model: what `model()` made, with the trained weights.

        Returns:
            The model to use.
        """
        return model

    def export(self, model: nn.Module, folder: Path, *, dtype: str) -> None:
        """Write the trained model in the form in which such models are shared: `trueloop export`.

        Args:
            model: what `inference_model` returned.
            folder: where to; made if it is not there.
            dtype: of the weights: `fp32`, `bf16` or `fp16`.

        Raises:
            ConfigError: the task has no such form.
        """
        raise ConfigError(
            f"task {type(self).__name__} has no form that transformers loads: write --format "
            "python, torch or onnx"
        )

    def standalone(self) -> dict[str, Path]:
        """The sources of a program that predicts without Trueloop: `trueloop export`.

        Returns:
            By the names that they take in the folder: `predict.py`, and `network.py` with the
            model's class where the program builds it from `task.json` and `model.safetensors`.
        """
        return {"predict.py": Path(tensors.__file__)}

    def example_inputs(self, samples: int) -> tuple[Tensor, ...] | None:
        """Inputs of `model()` of the right shapes and dtypes, to estimate its memory and work from.

        Args:
            samples: how many samples they have.

        Returns:
            Positional arguments of any values; None where they are not known.
        """
        return None

    def loss_fn(self) -> LossFn:
        """The loss, chosen by `kind`.

        Returns:
            A function of (model, batch), as `Step` takes it.
        """
        self._check_kind(classes=False)
        return losses.supervised(losses.for_task(self.kind, classes=self.n_classes))

    def metrics(self) -> Any:
        """The metrics, chosen by `kind`.

        Returns:
            What `evaluate` takes as `metrics`.
        """
        self._check_kind(classes=True)
        return metrics.for_task(self.kind, classes=self.n_classes)

    def _check_kind(self, *, classes: bool) -> None:
        """Raise `ConfigError` where loss or metrics cannot be chosen by the kind (and classes)."""
        name = type(self).__name__
        if self.kind not in KINDS:
            raise ConfigError(
                f"{name}.kind is {self.kind!r}: {nearest(str(self.kind), KINDS)}; or define "
                "loss_fn() and metrics()"
            )
        if classes and self.kind == "multiclass" and not self.classes:
            raise ConfigError(
                f"{name} names neither its kind nor its classes: write kind = 'regression' "
                "('binary', 'multilabel') in the class, or for several classes classes = ['a', "
                "'b', 'c']"
            )

    @property
    def n_classes(self) -> int | None:
        """The number of classes; None for regression."""
        return None if self.classes is None else len(self.classes)

    def state(self) -> dict[str, Any]:
        """Return plain data (JSON's) from which `restore` rebuilds this task without its data."""
        return {"kind": self.kind, "classes": self.classes}

    def restore(self, state: dict[str, Any]) -> None:
        """Load what `state` returned.

        Args:
            state: what it returned.
        """
        self.kind = state["kind"]
        self.classes = state["classes"]

    def read(self, path: Path) -> Any:
        """Labelled data, prepared as in training, for `trueloop evaluate --data`.

        Samples that cannot be read go into `skipped`.

        Args:
            path: as the user gives it.

        Returns:
            Data that `Feed` takes.

        Raises:
            ConfigError: the task cannot read other data.
            DataError: they cannot be used.
        """
        raise ConfigError(
            f"task {type(self).__name__} cannot read other data: leave out --data, or define "
            "read() in your own task"
        )

    def unseen(self, path: Path) -> PredictInput:
        """Unlabelled data, prepared as in training, for `trueloop predict`.

        Args:
            path: as the user gives it.

        Returns:
            The model's inputs, and what names each row.

        Raises:
            ConfigError: the task cannot predict from a file.
            DataError: they cannot be used.
        """
        raise ConfigError(
            f"task {type(self).__name__} cannot predict from a file: define unseen() in your own "
            "task"
        )

    def unseen_in_memory(self, data: Any) -> PredictInput:
        """Unlabelled data in the program's memory, for `Run.predict`.

        Args:
            data: here: the model's inputs, as a tensor, a numpy array or a list of rows (floats
                become float32), or a data set that `Feed` takes.

        Returns:
            The inputs; rows are numbered from 1.

        Raises:
            DataError: it is none of these, or has no rows.
        """
        if isinstance(data, (list, np.ndarray)):
            try:
                data = torch.from_numpy(np.array(data))
            except (TypeError, ValueError) as error:
                raise DataError(
                    f"these rows are not an array of numbers ({error}): give rows of one length"
                ) from None
        if isinstance(data, Tensor) and data.is_floating_point():
            data = data.float()
        if not hasattr(data, "__len__") or isinstance(data, (str, bytes, Mapping)):
            raise DataError(
                f"the data to predict is a {type(data).__name__}: give a tensor, an array, a data "
                "set with a length, or a path"
            )
        count = len(data[0]) if isinstance(data, tuple) else len(data)
        if not count:
            raise DataError("there is nothing to predict: give at least one row")
        return PredictInput(inputs=data, names={"row": list(range(1, count + 1))})

    def outputs(self, model: nn.Module, batch: Any) -> Any:
        """The result that `trueloop predict` keeps of a batch, in eval mode: the model's outputs.

        Args:
            model: the trained model.
            batch: a batch of `PredictInput.inputs`.

        Returns:
            Tensors for `predictions`, in the tuples and dicts that they come in.
        """
        return apply_model(model, batch)

    def point_outputs(self, outputs: Tensor) -> Tensor:
        """Of a regression, the outputs that the report compares with the targets.

        Args:
            outputs: the model's, (N, ...).

        Returns:
            One value per target: here the outputs as they are.
        """
        return outputs

    def interval(self, outputs: Tensor) -> tuple[Tensor, Tensor, float] | None:
        """Of a regression that predicts intervals, their ends.

        Args:
            outputs: the model's, (N, ...).

        Returns:
            The lower and upper ends, (N,) each, and the share of targets that should be between
            them; None without intervals.
        """
        return None

    def predictions(self, outputs: Tensor) -> dict[str, Any]:
        """The columns of the prediction file.

        Args:
            outputs: the model's for all rows, (N, ...).

        Returns:
            For each column a list or array of N values: here `prediction`, with `probability` and
            `p_CLASS` for classes; of several labels, `prediction` names those above 0.5.
        """
        outputs = outputs.float()
        if self.kind == "multiclass":
            probabilities = torch.softmax(outputs, dim=-1)
            best = probabilities.max(dim=-1)
            names = self.classes or [str(k) for k in range(outputs.shape[-1])]
            columns = {
                "prediction": np.array(names, dtype=object)[best.indices.numpy(force=True)],
                "probability": best.values.numpy(force=True),
            }
            for k, name in enumerate(names):
                columns[f"p_{name}"] = probabilities[:, k].numpy(force=True)
            return columns
        if self.kind == "binary":
            probability = torch.sigmoid(outputs).flatten().numpy(force=True)
            pair = np.array(self.classes or ["0", "1"], dtype=object)
            return {
                "prediction": pair[(probability > 0.5).astype(np.int64)],
                "probability": probability,
            }
        if self.kind == "multilabel":
            likely = torch.sigmoid(outputs).numpy(force=True)
            names = self.classes or [str(k) for k in range(outputs.shape[-1])]
            found = [
                ", ".join(n for n, p in zip(names, row, strict=True) if p > 0.5) for row in likely
            ]
            return {"prediction": found, **{f"p_{n}": likely[:, k] for k, n in enumerate(names)}}
        return {"prediction": outputs.flatten().numpy(force=True)}

    def resume_state(self) -> dict[str, Any]:
        """State of the training beside model, optimizer and data: an EMA, a counter.

        Called once, after `model` and `loss_fn`; saved and restored with each checkpoint.

        Returns:
            By name, what `Checkpoints(..., state=...)` takes: objects with `state_dict` and
            `load_state_dict`, dicts, lists, deques, tensors, generators.
        """
        return {}

    def after_epoch(self, model: nn.Module, epoch: int, album: Figures) -> None:
        """Called in eval mode, without gradients, after an epoch that is evaluated at its end.

        Args:
            model: the model being trained.
            epoch: the one that has ended, from 0.
            album: takes the pictures, e.g. one frame of a film.
        """

    def after_evaluation(self, model: nn.Module, record: EvalRecord, album: Figures) -> None:
        """Called in eval mode, without gradients, after an evaluation, at an epoch's end or not.

        Args:
            model: the model being trained.
            record: its scores, with the `epoch` (from 0) and `update` at which it was made.
            album: takes the pictures, or texts, e.g. what the model writes.
        """

    def pictures(
        self, model: nn.Module, splits: Splits, outputs: Tensor, targets: Tensor, album: Figures
    ) -> None:
        """Called once at the end, in eval mode, with the best model.

        Args:
            model: the model with its best weights.
            splits: what `splits` returned.
            outputs: the model's on `splits.val`, in the split's own order.
            targets: those of `splits.val`.
            album: takes the pictures.
        """
