"""What a language model is trained with today: validation loss at equal time, under five seeds.

    python benchmarks/text_recipes.py /path/to/tinyshakespeare.txt --seconds 60 --seeds 5

The tiny preset at a context of 64, characters, 90 % of the text by position to train on and the
whole rest to validate on, in windows of the model's own context. Every run has one thread and the
same processor time: its updates are counted beforehand, from what an update of that recipe takes.
Two runs go on at once, the recipes of one seed after the other, so that the machine's drift meets
all of them. The figures are in nats per character; the difference to the first recipe is that of
runs with the same seed.

The row of the schedule-free optimizer needs `pip install schedulefree`, and is left out without it.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from common import save_results, table
from torch import Tensor, nn

import trueloop
from trueloop import Feed, Outliers, Step, losses, optimizers, schedules
from trueloop.tasks.text.config import preset
from trueloop.tasks.text.contexts import Contexts, Windows
from trueloop.tasks.text.tokenizer import tokenizer_for
from trueloop.tasks.text.transformer import Transformer

CONTEXT, BATCH = 64, 16
ADAMW_LR, MUON_LR = 4e-3, 1e-2
WARMUP, DECAY = "2%", "20%"
MEASURED, UNMEASURED = 30, 10
"""Updates from which the time of one is taken, and those before them."""

Recipe = dict[str, Any]
LINEAR = partial(schedules.warmup_stable_decay, WARMUP, DECAY)
ROOT = partial(schedules.warmup_stable_decay, WARMUP, DECAY, shape="1-sqrt")
RECIPES: dict[str, Recipe] = {
    "AdamW, cosine": {"schedule": partial(schedules.warmup_cosine, WARMUP)},
    "AdamW, stable and linear decay": {"schedule": LINEAR},
    "AdamW, stable and 1-sqrt decay": {"schedule": ROOT},
    "AdamW, linear decay, z-loss": {"schedule": LINEAR, "z_loss": 1e-4},
    "AdamW, linear decay, outliers clipped": {"schedule": LINEAR, "outliers": Outliers()},
    "AdamW schedule-free": {"optimizer": "schedule-free"},
    "Muon, cosine": {"optimizer": "muon", "schedule": partial(schedules.warmup_cosine, WARMUP)},
    "Muon, linear decay": {"optimizer": "muon", "schedule": LINEAR},
    "Muon, 1-sqrt decay": {"optimizer": "muon", "schedule": ROOT},
    "Muon, linear decay, z-loss, outliers clipped": {
        "optimizer": "muon",
        "schedule": LINEAR,
        "z_loss": 1e-4,
        "outliers": Outliers(),
    },
}


def loss_of(z_weight: float) -> Any:
    def loss_fn(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Any:
        tokens, targets = batch
        logits = model(tokens)
        kept = (targets != -100).sum()
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        if not z_weight:
            return loss, kept
        z = losses.z_loss(logits, targets, weight=z_weight)
        return loss + z, kept, {"z_loss": z}

    return loss_fn


def make_step(recipe: Recipe, vocabulary: int, seed: int, updates: int) -> Step:
    torch.manual_seed(seed)
    model = Transformer(preset("tiny", vocabulary, context=CONTEXT))
    kind = recipe.get("optimizer", "adamw")
    optimizer: Any
    if kind == "muon":
        optimizer = optimizers.muon(model, MUON_LR, adamw_lr=ADAMW_LR)
    elif kind == "adamw":
        optimizer = optimizers.adamw(model, ADAMW_LR, weight_decay=0.1, betas=(0.9, 0.95))
    else:
        import schedulefree

        groups = optimizers.parameter_groups(model, 0.1)
        warmup = max(1, updates // 50)
        optimizer = schedulefree.AdamWScheduleFree(groups, ADAMW_LR, warmup_steps=warmup)
    make = recipe.get("schedule")
    step = Step(
        model,
        optimizer,
        loss_of(recipe.get("z_loss", 0.0)),
        schedule=None if make is None else make(),
        outliers=recipe.get("outliers"),
        clip_norm=1.0,
    )
    step.plan(epochs=1, batches=updates)
    return step


def train(step: Step, feed: Feed, updates: int) -> float:
    """Processor seconds of so many updates."""
    start = time.process_time()
    epoch = 0
    while True:
        for batch in feed.epoch(epoch):
            if updates == 0:
                return time.process_time() - start
            step(batch)
            updates -= 1
        epoch += 1


def one_run(path: Path, name: str, seed: int, seconds: float) -> dict[str, Any]:
    """Train one recipe for so many processor seconds, and evaluate it."""
    torch.set_num_threads(1)
    recipe, text = RECIPES[name], path.read_text(encoding="utf-8")
    cut = len(text) * 9 // 10
    tokenizer = tokenizer_for("char", [text[:cut]])
    ids = torch.tensor(tokenizer.encode(text)).numpy()
    train_feed = Feed(Contexts(ids[:cut], CONTEXT, seed=seed), BATCH, shuffle=True, seed=seed)
    val_feed = Feed(Windows(ids[cut:], CONTEXT), 64)
    trial = make_step(recipe, tokenizer.vocab_size, seed, 10**6)
    train(trial, train_feed, UNMEASURED)
    updates = max(50, round(seconds / (train(trial, train_feed, MEASURED) / MEASURED)))
    step = make_step(recipe, tokenizer.vocab_size, seed, updates)
    used = train(step, train_feed, updates)
    if recipe.get("optimizer") == "schedule-free":
        step.optimizer.eval()  # type: ignore[attr-defined]
    scores = trueloop.evaluate(step.model, val_feed, loss_of(0.0)).scores
    return {
        "recipe": name,
        "seed": seed,
        "val_loss": scores["loss"],
        "updates": updates,
        "processor_seconds": used,
    }


def in_a_process(path: Path, name: str, seed: int, seconds: float) -> dict[str, Any]:
    command = [sys.executable, __file__, str(path), "--one", name]
    command += ["--seed", str(seed), "--seconds", str(seconds)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(f"{name}, seed {seed}: {found['val_loss']:.4f} ({found['updates']} updates)", flush=True)
    return found


def summary(runs: list[dict[str, Any]], names: list[str]) -> list[dict[str, Any]]:
    """A row for each recipe: mean and standard deviation over the seeds."""
    by_seed = {(run["recipe"], run["seed"]): run["val_loss"] for run in runs}
    rows = []
    for name in names:
        mine = [run for run in runs if run["recipe"] == name]
        values = [run["val_loss"] for run in mine]
        apart = [run["val_loss"] - by_seed[names[0], run["seed"]] for run in mine]
        spread = [statistics.stdev(part) if len(part) > 1 else 0.0 for part in (values, apart)]
        rows.append(
            {
                "recipe": name,
                "val loss": f"{statistics.mean(values):.4f} ± {spread[0]:.4f}",
                "to the first": f"{statistics.mean(apart):+.4f} ± {spread[1]:.4f}",
                "updates": round(statistics.mean(run["updates"] for run in mine)),
                "seconds": round(statistics.mean(run["processor_seconds"] for run in mine), 1),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0, help="processor time of each run")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--at-once", type=int, default=2, help="runs at once, one thread each")
    parser.add_argument("--one", choices=RECIPES, help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(one_run(given.text, given.one, given.seed, given.seconds)))
        return
    names = list(RECIPES)
    if importlib.util.find_spec("schedulefree") is None:
        names.remove("AdamW schedule-free")
        print("schedulefree is not installed: its row is left out")
    tasks = [(name, seed) for seed in range(given.seeds) for name in names]
    with ThreadPoolExecutor(given.at_once) as pool:
        runs = list(pool.map(lambda task: in_a_process(given.text, *task, given.seconds), tasks))
    rows = summary(runs, names)
    print(table(rows))
    save_results("text_recipes", {"seconds": given.seconds, "rows": rows, "runs": runs})


if __name__ == "__main__":
    main()
