"""Curves for MLflow: a local store, or a server."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trueloop.trackers.tracker import Point, ServiceTracker

_MOST_METRICS = 1000
"""That one call of MLflow's takes."""
_MOST_PARAMS = 100
_LONGEST_PARAM = 500
_STATUS = {"finished": "FINISHED", "stopped early": "FINISHED", "failed": "FAILED"}


class MLflow(ServiceTracker):
    """A run of MLflow; the step of each point is its update.

    A resumed run continues the same run of MLflow, whose id is in the folder.

    Args:
        folder: a new folder, for the run's id; of a resumed run, the one that it began with.
        uri: where MLflow stores it; None takes `MLFLOW_TRACKING_URI`, or else MLflow's default,
            mlflow.db in the current folder.
        experiment: its experiment; None takes `MLFLOW_EXPERIMENT_NAME`, or else "trueloop".
        name: its name; None takes the folder's.
        config: options to store as parameters, the first 100 of them.
        every_updates: k stores updates 1, k + 1, 2k + 1, …
        by_line: store the lines of `fit(log_every=…)` in place of updates.

    Raises:
        MissingDependencyError: mlflow is not installed.
        ConfigError: an argument is not what it should be.
    """

    package = "mlflow"
    extra = "mlflow"
    _client: Any = None

    def __init__(
        self,
        folder: Path | str,
        *,
        uri: str | None = None,
        experiment: str | None = None,
        name: str | None = None,
        config: Mapping[str, Any] | None = None,
        every_updates: int = 1,
        by_line: bool = False,
    ) -> None:
        super().__init__(
            folder, name=name, config=config, every_updates=every_updates, by_line=by_line
        )
        self._uri = uri
        self._experiment = experiment

    def _open(self, updates: int) -> None:
        for noisy in ("mlflow", "alembic"):  # how it makes its tables
            logging.getLogger(noisy).setLevel(logging.WARNING)
        import mlflow
        from mlflow.tracking import MlflowClient

        asked = self._uri or os.environ.get("MLFLOW_TRACKING_URI")
        # A relative store is one of the folder that the run began in.
        uri = asked or self._state.get("uri") or mlflow.get_tracking_uri()
        self._client = MlflowClient(tracking_uri=uri)
        self._state["uri"] = uri
        if "id" in self._state:
            self._client.update_run(self._state["id"], status="RUNNING")
            return
        experiment = self._experiment or os.environ.get("MLFLOW_EXPERIMENT_NAME", "trueloop")
        known = self._client.get_experiment_by_name(experiment)
        number = (
            self._client.create_experiment(experiment) if known is None else known.experiment_id
        )
        self._state["id"] = self._client.create_run(number, run_name=self.name).info.run_id
        self._write_params()

    def _write_params(self) -> None:
        from mlflow.entities import Param

        params = [Param(name, str(value)[:_LONGEST_PARAM]) for name, value in self.config.items()]
        if params:
            self._client.log_batch(self._state["id"], params=params[:_MOST_PARAMS])

    def _write(self, points: Sequence[Point]) -> None:
        from mlflow.entities import Metric

        metrics = [
            Metric(name, float(value), int(1000 * point.at), point.update)
            for point in points
            for name, value in {**({} if point.is_eval else point.axes), **point.values}.items()
        ]
        for k in range(0, len(metrics), _MOST_METRICS):
            self._client.log_batch(self._state["id"], metrics=metrics[k : k + _MOST_METRICS])

    def _end(self, status: str) -> None:
        self._client.set_terminated(self._state["id"], status=_STATUS.get(status, "KILLED"))

    def _remedy(self) -> str:
        return "check MLFLOW_TRACKING_URI, and for a local store pip install 'trueloop[mlflow]'"
