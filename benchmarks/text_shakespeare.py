"""tinyshakespeare by characters on a CPU in 15 minutes: `trueloop train text`, nanoGPT's recipe.

    python benchmarks/text_shakespeare.py --data tinyshakespeare.txt [--only ours|nanogpt]

The text is split by position, 90% to train on and 10% to validate. The loss is in nats per
character over the whole validation part, in consecutive windows of the model's own context, by a
program of its own, in float32 with sums in float64.

- ours: `trueloop train text --precision bf16` as it comes (preset tiny, 0.8 million weights); the
  best of its evaluations, one a minute
- nanogpt: its recipe for a CPU (4 layers, 4 heads, 128 wide, context 64, batch 12, 2,000
  iterations), by a loop written like its own; then the same recipe with its schedule stretched
  over the same minutes

`--only` runs one part; the other's figures stay in the result file as they were.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from common import RESULTS, save_results, table
from nanogpt_style import GPT, make_optimizer, rate, update, whole_loss
from torch import Tensor

import trueloop

NAME = "text_shakespeare"


def ids_of(path: Path) -> tuple[Tensor, Tensor, int]:
    """Training and validation characters as ids, and how many there are."""
    text = path.read_text(encoding="utf-8")
    known = {char: k for k, char in enumerate(sorted(set(text)))}
    ids = torch.tensor([known[char] for char in text])
    cut = int(0.9 * len(ids))
    return ids[:cut], ids[cut:], len(known)


def ours(path: Path, minutes: float, folder: Path) -> dict[str, Any]:
    run = folder / "run"
    command = [sys.executable, "-m", "trueloop", "train", "text", "--data", str(path)]
    command += ["--precision", "bf16", "--eval-every", "1 minutes", "--run", str(run), "--quiet"]
    command += ["--max-minutes", f"{minutes:g}"]
    start = time.perf_counter()
    subprocess.run(command, check=True)
    seconds = time.perf_counter() - start
    found = trueloop.Run(run)
    lines = found.metrics()
    curve = [
        {"minutes": round(line["time"] / 60, 2), "val_loss": round(line["val_loss"], 4)}
        for line in lines
        if line["kind"] == "eval"
    ]
    texts = sorted((run / "texts" / "written").glob("*.txt"))
    return {
        "command": shlex.join(["trueloop", *command[3:-5], *command[-2:]]),
        "minutes with report": round(seconds / 60, 2),
        "updates": found.results["updates"],
        "parameters": found.results["parameters"],
        "context": found.task_state["config"]["context"],
        "val_loss of the log": round(found.results["scores"]["val_loss"], 4),
        "val_loss": round(_loss(found, path), 4),
        "curve": curve,
        "text": texts[-1].read_text(encoding="utf-8"),
    }


@torch.no_grad()
def _loss(run: Any, path: Path) -> float:
    """Nats per character over the validation part, from the saved weights and characters alone."""
    model, characters = run.model(device="cpu"), run.task_state["tokenizer"]["characters"]
    known = {chr(code): k for k, code in enumerate(characters)}
    text = path.read_text(encoding="utf-8")
    ids = torch.tensor([known[char] for char in text[int(0.9 * len(text)) :]])
    total, context = 0.0, model.config.context
    for start in range(0, len(ids) - 1, context):
        part = ids[start : start + context + 1]
        losses = F.cross_entropy(model(part[None, :-1])[0], part[1:], reduction="none")
        total += float(losses.double().sum())
    return total / (len(ids) - 1)


def nanogpt(path: Path, minutes: float) -> dict[str, Any]:
    train, val, vocab = ids_of(path)
    published = train_nanogpt(train, val, vocab, iterations=2000, seconds=None)
    per_second = published["iterations per second"]
    # As many iterations as the minutes hold, so that its schedule ends where they do.
    stretched = train_nanogpt(
        train, val, vocab, iterations=int(60 * minutes * per_second * 0.97), seconds=60 * minutes
    )
    return {"as published": published, f"stretched over {minutes:g} minutes": stretched}


def train_nanogpt(
    train: Tensor, val: Tensor, vocab: int, *, iterations: int, seconds: float | None
) -> dict[str, Any]:
    torch.manual_seed(1337)
    model = GPT(vocab, 64, 4, 128, 4)
    optimizer = make_optimizer(model, fused=False)  # as it is on a CPU there
    curve: list[dict[str, float]] = []
    start, done = time.perf_counter(), 0
    for iteration in range(iterations):
        update(model, optimizer, train, 12, rate(iteration, iterations))
        done = iteration + 1
        passed = time.perf_counter() - start
        if passed > 120 * (len(curve) + 1):
            curve.append({"minutes": round(passed / 60, 2), "val_loss": whole_loss(model, val)})
        if seconds is not None and passed > seconds:
            break
    took = time.perf_counter() - start
    return {
        "iterations": done,
        "of": iterations,
        "minutes": round(took / 60, 2),
        "iterations per second": round(done / took, 2),
        "val_loss": round(whole_loss(model, val), 4),
        "curve": [{**point, "val_loss": round(point["val_loss"], 4)} for point in curve],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data/tinyshakespeare.txt"))
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--only", choices=("ours", "nanogpt"))
    given = parser.parse_args()
    kept = RESULTS / f"{NAME}.json"
    results: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {}
    results = {name: results[name] for name in ("ours", "nanogpt") if name in results}
    with tempfile.TemporaryDirectory() as folder:
        if given.only != "nanogpt":
            # Half a minute of the time is for the last evaluation and the report.
            results["ours"] = ours(given.data.resolve(), given.minutes - 0.5, Path(folder))
            print(results["ours"].pop("text"), flush=True)
        if given.only != "ours":
            results["nanogpt"] = nanogpt(given.data.resolve(), given.minutes)
    print(table(rows_of(results)))
    print(save_results(NAME, results))


def rows_of(results: dict[str, Any]) -> list[dict[str, Any]]:
    rows = []
    if "ours" in results:
        one = results["ours"]
        minutes = one["minutes with report"]
        rows.append({"what": "trueloop", "minutes": minutes, "val_loss": one["val_loss"]})
    for name, one in results.get("nanogpt", {}).items():
        what = f"nanoGPT's loop, {name}"
        rows.append({"what": what, "minutes": one["minutes"], "val_loss": one["val_loss"]})
    return rows


if __name__ == "__main__":
    main()
