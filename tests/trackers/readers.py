"""What each tracker's own library finds in its store: {(series, update): [values]}."""

from __future__ import annotations

import csv
import json
import struct
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Curves = dict[tuple[str, int], list[float]]


def read_csv(folder: Path) -> Curves:
    found: Curves = defaultdict(list)
    for name in ("updates", "evaluations"):
        with (folder / f"{name}.csv").open(newline="") as file:
            for row in csv.DictReader(file):
                for key, value in row.items():
                    if value != "":
                        found[f"{name}/{key}", int(row["update"])].append(float(value))
    return found


def read_jsonl(folder: Path) -> Curves:
    found: Curves = defaultdict(list)
    for name in ("updates", "evaluations"):
        for line in (folder / f"{name}.jsonl").read_text().splitlines():
            row = json.loads(line)
            for key, value in row.items():
                found[f"{name}/{key}", row["update"]].append(float(value))
    return found


def read_tensorboard(folder: Path) -> Curves:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    events.Reload()
    found: Curves = defaultdict(list)
    for tag in events.Tags()["scalars"]:
        for event in events.Scalars(tag):
            found[tag.replace("axes/", "updates/"), event.step].append(event.value)
    return found


def read_mlflow(folder: Path) -> Curves:
    from mlflow.tracking import MlflowClient

    state = json.loads((folder / "run.json").read_text())
    client = MlflowClient(tracking_uri=state["uri"])
    (experiment,) = client.search_experiments(filter_string="name = 'trueloop'")
    (run,) = client.search_runs([experiment.experiment_id])  # a resumed run is not a new one
    assert run.info.run_id == state["id"]
    found: Curves = defaultdict(list)
    for name in run.data.metrics:
        kind = "evaluations" if name.startswith(("val_", "test_")) else "updates"
        for metric in client.get_metric_history(run.info.run_id, name):
            found[f"{kind}/{name}", metric.step].append(metric.value)
    return found


def read_wandb(folder: Path) -> Curves:
    from wandb.proto import wandb_internal_pb2

    found: Curves = defaultdict(list)
    runs, steps = set(), set()
    for path in sorted(folder.glob("wandb/offline-run-*/*.wandb")):
        for raw in _blocks(path):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(raw)
            if record.WhichOneof("record_type") == "run":
                runs.add(record.run.run_id)
            if record.WhichOneof("record_type") != "history":
                continue
            row: dict[str, Any] = {
                item.key or "/".join(item.nested_key): json.loads(item.value_json)
                for item in record.history.item
            }
            assert row["_step"] == row["update"]
            assert row["_step"] not in steps  # one row a step, also across both parts of the run
            steps.add(row["_step"])
            for key, value in row.items():
                kind = "evaluations" if key.startswith(("val_", "test_")) else "updates"
                if not key.startswith("_"):
                    found[f"{kind}/{key}", row["_step"]].append(float(value))
    assert len(runs) == 1
    return found


def _blocks(path: Path) -> Iterator[bytes]:
    """The records of a file in LevelDB's log format, as W&B writes it."""
    raw, at, part = path.read_bytes(), 7, b""
    while at + 7 <= len(raw):
        if 32768 - at % 32768 < 7:
            at += 32768 - at % 32768
            continue
        _, length, kind = struct.unpack("<IHB", raw[at : at + 7])
        part += raw[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # whole, or the last part
            yield part
            part = b""
