"""Does `trueloop tune` pay? Seconds of training until MNIST's test set is 99% right, with what it
proposes within its minutes, against workers 0, fp32 and batches of 64.

    .venv/bin/python benchmarks/tune_mnist.py --data MNIST [--minutes 3] [--seeds 3]

DIR holds train/ and test/ with a folder of PNG files per class. The tuning sees train/ alone, of
which it takes its validation set. Then both train from scratch on all of train/, with each seed in
turn, and are scored on test/ every 6,400 samples; the time of these scores is not counted, that of
the start (reading, compiling) is given beside it. Needs a machine with nothing else to do.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import yaml
from common import save_results, table

BASE = {"workers": 0, "precision": "fp32", "batch_size": 64}
EVERY = "6_400 samples"
GOAL = 0.99


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=None, help="of both (default: the task's)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tune-mnist-") as name:
        folder = Path(name)
        tuned = tune(given.data.absolute(), given.minutes, folder)
        data = scored_on_test(given.data.absolute(), folder / "data")
        length = {} if given.epochs is None else {"epochs": given.epochs}
        runs: dict[str, list[dict[str, Any]]] = {"as it was": [], "tuned": []}
        for seed in range(given.seeds):
            for kind, options in (("as it was", BASE), ("tuned", tuned["options"])):
                run = folder / f"{kind.replace(' ', '-')}-{seed}"
                runs[kind].append(train(data, {**options, **length, "seed": seed}, run))
    show(tuned, runs, given.minutes)


def tune(data: Path, minutes: float, folder: Path) -> dict[str, Any]:
    """What the tuning said, and the options that it wrote."""
    words = [f"--{name.replace('_', '-')}={value}" for name, value in BASE.items()]
    command = [
        sys.executable, "-m", "trueloop", "tune", "images", "--data", str(data), *words,
        "--minutes", str(minutes), "--out", str(folder / "tuned.yaml"), "--format", "json",
    ]  # fmt: skip
    said = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    options = yaml.safe_load((folder / "tuned.yaml").read_text())
    said["options"] = {k: v for k, v in options.items() if k not in ("task", "data")}
    for name in ("base", "range_test", "range_test_of_batch"):
        for long in ("rounds", "rates", "losses", "smoothed"):
            (said.get(name) or {}).pop(long, None)
    return said  # type: ignore[no-any-return]


def scored_on_test(data: Path, folder: Path) -> Path:
    """The same images, with the test set as what is scored while it trains."""
    folder.mkdir()
    (folder / "train").symlink_to(data / "train")
    (folder / "val").symlink_to(data / "test")
    return folder


def train(data: Path, options: dict[str, Any], run: Path) -> dict[str, Any]:
    """Train from scratch; when the goal was reached, and the best that was."""
    config = run.with_suffix(".yaml")
    config.write_text(yaml.safe_dump({"task": "images", "data": str(data), **options}))
    words = ["train", "--config", str(config), "--run", str(run), "--eval-every", EVERY, "--quiet"]
    subprocess.run(
        [sys.executable, "-m", "trueloop", *words], check=True, stdout=subprocess.DEVNULL
    )
    scoring, found = 0.0, None
    evals = []
    for line in map(json.loads, (run / "metrics.jsonl").read_text().splitlines()):
        if line["kind"] != "eval":
            continue
        scoring += line["seconds"]
        evals.append(line["val_accuracy"])
        if found is None and line["val_accuracy"] >= GOAL:
            found = {"seconds": line["time"] - scoring, "update": line["update"]}
    return {"reached": found, "best": max(evals), "training_seconds": line["time"] - scoring}


def show(tuned: dict[str, Any], runs: dict[str, list[dict[str, Any]]], minutes: float) -> None:
    rows = []
    for kind, all_of in runs.items():
        times = [run["reached"]["seconds"] for run in all_of if run["reached"]]
        rows.append(
            {
                "training": kind,
                "reached 99%": f"{len(times)} of {len(all_of)}",
                "seconds (median)": round(median(times), 1) if times else "–",
                "best test accuracy": round(max(run["best"] for run in all_of), 4),
            }
        )
    print(table(rows))
    print("proposed:", tuned["proposal"]["options"] or "nothing", "–", tuned["proposal"]["why"])
    before, after = (row["seconds (median)"] for row in rows)
    ratio = before / after if isinstance(before, float) and isinstance(after, float) else None
    if ratio is not None:
        print(f"{ratio:.2f} times as soon (goal: 2)")
    save_results(
        "tune_mnist",
        {"minutes": minutes, "base": BASE, "tuned": tuned, "runs": runs, "times_as_soon": ratio},
    )


if __name__ == "__main__":
    main()
