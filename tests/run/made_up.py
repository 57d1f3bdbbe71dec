"""Made-up runs, written as a real one writes its own: through the log, the album and `Run`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from step_records import step_record
from trueloop.records import EvalRecord
from trueloop.run import Figures, MetricsLog, Run

CLASSES = ["blue", "yellow", "red"]


def write_log(run: Run, *, epochs: int, batches: int = 8, val: bool = True, seed: int = 0) -> None:
    """Training that learns and, after two thirds, starts to overfit a little."""
    draws = np.random.default_rng(seed)
    with MetricsLog(run.path / "metrics.jsonl") as log:
        for epoch in range(epochs):
            losses = []
            for batch in range(batches):
                update = epoch * batches + batch + 1
                record = step_record(update, batches=batches)
                loss = record.loss * float(np.exp(draws.normal(0, 0.25)))
                losses.append(float(loss))
                norm = record.grad_norm * float(np.exp(draws.normal(0, 0.4)))
                log(record._replace(loss=loss, grad_norm=norm))
            train = float(np.mean(losses))
            scores = {"train_loss": train}
            if val:
                rise = 0.004 * max(0, epoch - 2 * epochs // 3)
                val_loss = train * 1.1 + 0.01 + rise + abs(draws.normal(0, 0.004))
                accuracy = 1 - 0.55 * val_loss / 1.1
                scores |= {
                    "val_loss": val_loss,
                    "val_accuracy": accuracy,
                    "val_f1": accuracy - 0.01,
                }
            log(EvalRecord(scores, 1000, epoch, (epoch + 1) * batches, 0.0))


def spiral(
    path: Path, *, epochs: int = 100, lr: float = 1e-3, seed: int = 0, **results: Any
) -> Run:
    """A finished classification run with everything that a report can show."""
    run = Run.create(
        path,
        config={
            "task": "spiral",
            "seed": seed,
            "recipe": {"epochs": epochs, "batch_size": 64, "lr": lr, "clip_norm": 1.0,
                       "monitor": "val_accuracy"},
        },
    )  # fmt: skip
    run.write_data({"training points": 2000, "validation points": 1000, "noise": 0.035})
    write_log(run, epochs=epochs, seed=seed)
    evals = [line for line in run.metrics() if line["kind"] == "eval"]
    best = max(evals, key=lambda line: line["val_accuracy"])
    album = Figures(path)
    for epoch in range(0, epochs, max(1, epochs // 10)):
        album.frame("boundary", picture(epoch), epoch)
    album.animate("boundary", "Decision boundary", "One frame per tenth epoch; points: validation.")
    run.write_results(
        {
            "status": "finished",
            "task": "spiral",
            "kind": "multiclass",
            "classes": CLASSES,
            "best_epoch": best["epoch"],
            "epochs": epochs,
            "updates": epochs * 8,
            "seconds": 12.34,
            "monitor": "val_accuracy",
            "scores": {k: v for k, v in best.items() if k.startswith(("train_", "val_"))},
            "test_scores": None,
            "confusion": [[330, 3, 1], [0, 333, 0], [2, 1, 330]],
            "per_class": [
                {"name": name, "precision": 0.99, "recall": 0.988, "f1": 0.989, "support": 333}
                for name in CLASSES
            ],
            "residuals": None,
            "parameters": 17_283,
            "pictures": album.entries,
            **results,
        }
    )
    return run


def picture(epoch: int) -> Image.Image:
    """A small picture that differs from epoch to epoch."""
    y, x = np.mgrid[-1:1:160j, -1:1:160j]
    turn = np.arctan2(y, x) + np.hypot(x, y) * (1 + epoch / 10)
    arms = ((turn / (2 * np.pi) * 3) % 3).astype(int)
    return Image.fromarray(np.array([[0, 68, 136], [221, 170, 51], [187, 85, 102]], "uint8")[arms])
