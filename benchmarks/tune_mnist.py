"""Does `trueloop tune` pay? Seconds of training until MNIST's test set is 99% right, with what it
proposes within its minutes, against workers 0, fp32 and batches of 64.

    .venv/bin/python benchmarks/tune_mnist.py --data MNIST [--minutes 3] [--seeds 3] [--threads 1]

MNIST holds train/ and test/ with a folder of PNG files per class. The tuning scores itself on a
part of train/, never on test/. Then both train from scratch on all of train/, with each seed in
turns, and are scored on test/ every 6,400 samples until 99% is reached. The seconds are those since
the first update began, with compiling, without the scores. The load average that is kept says
whether the machine had something else to do: the ratio of a busy machine is only a rough one. With
--threads both compute on so many CPU threads, and with --at-once they run side by side and so meet
the same load: for such a machine. Without, they take turns, on as many threads as torch takes.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
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
    parser.add_argument("--threads", type=int, default=None, help="of both (default: torch's)")
    parser.add_argument("--tuned", type=Path, help="what an earlier tuning wrote: train with that")
    parser.add_argument("--at-once", action="store_true", help="train both at the same time")
    given = parser.parse_args()
    base = BASE if given.threads is None else {**BASE, "threads": given.threads}
    with tempfile.TemporaryDirectory(prefix="tune-mnist-") as name:
        folder = Path(name)
        if given.tuned is None:
            tuned = tune(given.data.absolute(), given.minutes, base, folder)
        else:
            tuned = written(given.tuned)
        data = scored_on_test(given.data.absolute(), folder / "data")
        runs: dict[str, list[dict[str, Any]]] = {"as it was": [], "tuned": []}
        for seed in range(given.seeds):
            with ThreadPoolExecutor(2 if given.at_once else 1) as pool:
                pairs = {}
                for kind, options in (("as it was", base), ("tuned", tuned["options"])):
                    run = folder / f"{kind.replace(' ', '-')}-{seed}"
                    pairs[kind] = pool.submit(train, data, {**options, "seed": seed}, run)
            for kind, future in pairs.items():
                runs[kind].append(future.result())
                print(kind, "seed", seed, runs[kind][-1], file=sys.stderr, flush=True)
    about = {"minutes": given.minutes, "base": base, "at_once": given.at_once}
    show(tuned, runs, about)


def tune(data: Path, minutes: float, base: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What the tuning said, and the options that it wrote."""
    words = [f"--{name.replace('_', '-')}={value}" for name, value in base.items()]
    words.append(f"--goal={GOAL}")
    command = [
        sys.executable, "-m", "trueloop", "tune", "images", "--data", str(data), *words,
        "--minutes", str(minutes), "--out", str(folder / "tuned.yaml"), "--format", "json",
    ]  # fmt: skip
    said = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    said |= written(folder / "tuned.yaml")
    for name in ("base", "range_test", "range_test_of_batch"):
        for long in ("rounds", "rates", "losses", "smoothed"):
            (said.get(name) or {}).pop(long, None)
    return said  # type: ignore[no-any-return]


def written(file: Path) -> dict[str, Any]:
    """The options in a file that the tuning wrote, and what it says about them at its head."""
    text = file.read_text()
    options = yaml.safe_load(text)
    return {
        "options": {k: v for k, v in options.items() if k not in ("task", "data")},
        "file": [line for line in text.splitlines() if line.startswith("#")],
    }


def scored_on_test(data: Path, folder: Path) -> Path:
    """The same images, with the test set as what is scored while it trains."""
    folder.mkdir()
    (folder / "train").symlink_to(data / "train")
    (folder / "val").symlink_to(data / "test")
    return folder


def train(data: Path, options: dict[str, Any], run: Path) -> dict[str, Any]:
    """Train from scratch until the goal is reached; when that was, and the best score."""
    config = run.with_suffix(".yaml")
    config.write_text(yaml.safe_dump({"task": "images", "data": str(data), **options}))
    words = ["train", "--config", str(config), "--run", str(run), "--eval-every", EVERY, "--quiet"]
    process = subprocess.Popen(
        [sys.executable, "-m", "trueloop", *words], stdout=subprocess.DEVNULL
    )
    while process.poll() is None and not any(e["val_accuracy"] >= GOAL for e in evaluations(run)):
        time.sleep(0.5)
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    if process.wait() not in (0, 130):
        raise SystemExit(f"trueloop {' '.join(words)} ended with {process.returncode}")
    scoring, found, scores = 0.0, None, []
    for line in evaluations(run):
        scoring += line["seconds"]
        scores.append(line["val_accuracy"])
        if found is None and line["val_accuracy"] >= GOAL:
            found = {"seconds": line["time"] - scoring, "update": line["update"]}
    return {"reached": found, "scores": scores, "load_average": os.getloadavg()[0]}


def evaluations(run: Path) -> list[dict[str, Any]]:
    """The evaluations in the run's log so far."""
    log = run / "metrics.jsonl"
    lines = log.read_text().split("\n")[:-1] if log.exists() else []
    return [json.loads(line) for line in lines if '"kind":"eval"' in line]


def show(
    tuned: dict[str, Any], runs: dict[str, list[dict[str, Any]]], given: dict[str, Any]
) -> None:
    rows = []
    for kind, all_of in runs.items():
        times = [run["reached"]["seconds"] for run in all_of if run["reached"]]
        rows.append(
            {
                "training": kind,
                "reached 99%": f"{len(times)} of {len(all_of)}",
                "seconds (median)": round(median(times), 1) if times else "–",
                "samples to it": _samples(all_of, given["base"] if kind != "tuned" else tuned),
                "load average": round(median(run["load_average"] for run in all_of), 1),
            }
        )
    print(table(rows))
    print("\n".join(tuned["file"]))
    before, after = (row["seconds (median)"] for row in rows)
    ratio = before / after if isinstance(before, float) and isinstance(after, float) else None
    if ratio is not None:
        print(f"{ratio:.2f} times as soon (goal: 2)")
    save_results(
        "tune_mnist",
        {**given, "tuned": tuned, "runs": runs, "times_as_soon": ratio},
    )


def _samples(runs: list[dict[str, Any]], of: dict[str, Any]) -> str:
    """Samples trained on until the goal, the median."""
    updates = [run["reached"]["update"] for run in runs if run["reached"]]
    size = of.get("options", of)["batch_size"]
    return f"{median(updates) * size:,.0f}" if updates else "–"


if __name__ == "__main__":
    main()
