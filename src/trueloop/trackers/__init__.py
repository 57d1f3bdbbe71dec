"""Trackers: sinks that send a run's curves to TensorBoard, Weights & Biases, MLflow or a table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trueloop.trackers.mlflow import MLflow
from trueloop.trackers.tables import CSV, JSONL
from trueloop.trackers.tensorboard import TensorBoard
from trueloop.trackers.tracker import ServiceTracker, Tracker
from trueloop.trackers.wandb import WandB

__all__ = ["CSV", "JSONL", "MLflow", "TensorBoard", "WandB"]

BY_NAME: dict[str, type[Tracker]] = {
    "tensorboard": TensorBoard,
    "wandb": WandB,
    "mlflow": MLflow,
    "csv": CSV,
    "jsonl": JSONL,
}
"""The trackers as `trueloop train --track` names them."""


def open_tracker(
    name: str, folder: Path, *, run: str, config: Mapping[str, Any], by_line: bool
) -> Tracker:
    """The tracker called `name` (a key of `BY_NAME`) of the run called `run`."""
    kind = BY_NAME[name]
    if issubclass(kind, ServiceTracker):
        return kind(folder, name=run, config=config, by_line=by_line)
    return kind(folder, by_line=by_line)
