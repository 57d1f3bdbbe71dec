"""What a language model is trained with today: validation loss at equal time, under five seeds.

    python benchmarks/text_recipes.py /path/to/tinyshakespeare.txt --seconds 60 --seeds 5

The tiny preset at a context of 64, characters, 90 % of the text by position to train on and the
whole rest to validate on, in windows of the model's own context. The figures are in nats per
character; the difference to the first recipe is that of runs with the same seed.

1. Every run has one thread and as many updates as `--seconds` of an idle core would make. They are
   counted once, before all runs: one process trains all recipes in turns, some updates of each, and
   takes the least processor time that an update of a recipe has had in any turn. What else the
   machine does meanwhile changes neither the numbers of updates nor, with them, the result.
2. Each optimizer's learning rate is the best of three, in one run each with a seed that the table
   does not have. Muon's embeddings, norms and head have AdamW's.
3. The runs, `--at-once` of them at a time.

With `--keep FILE` each run that has ended stands there as a line, and is not made again.
The row of the schedule-free optimizer needs `pip install schedulefree`, and is left out without it.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import math
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
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
from trueloop.tasks.text.context_windows import Contexts, WindowDataset
from trueloop.tasks.text.tokenizer import tokenizer_for
from trueloop.tasks.text.transformer import Transformer
from trueloop.tasks.text.transformer_config import preset

CONTEXT, BATCH = 64, 16
WARMUP, DECAY = "2%", "20%"
TURNS, MEASURED, UNMEASURED = 8, 8, 3
"""Turns of counting, updates of each recipe in a turn, and those that are made before."""
SWEPT: dict[str, tuple[str, tuple[float, ...]]] = {
    "adamw": ("AdamW, stable and linear decay", (1e-3, 2e-3, 4e-3)),
    "schedule-free": ("AdamW schedule-free", (2e-3, 4e-3, 8e-3)),
    "muon": ("Muon, linear decay", (2.5e-3, 5e-3, 1e-2)),
}
"""By optimizer: the recipe that its learning rate is chosen with, and the values."""
SWEEP_SEED = 1000

Recipe = dict[str, Any]
Run = dict[str, Any]
Counts = dict[str, int]
"""Updates of each recipe."""
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


def make_step(
    recipe: Recipe, vocabulary: int, seed: int, updates: int, lrs: dict[str, float]
) -> Step:
    torch.manual_seed(seed)
    model = Transformer(preset("tiny", vocabulary, context=CONTEXT))
    kind = kind_of(recipe)
    optimizer: Any
    if kind == "muon":
        optimizer = optimizers.muon(model, lrs[kind], adamw_lr=lrs["adamw"])
    elif kind == "adamw":
        optimizer = optimizers.adamw(model, lrs[kind], weight_decay=0.1, betas=(0.9, 0.95))
    else:
        import schedulefree

        groups = optimizers.parameter_groups(model, 0.1)
        warmup = max(1, updates // 50)
        optimizer = schedulefree.AdamWScheduleFree(groups, lrs[kind], warmup_steps=warmup)
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


def kind_of(recipe: Recipe) -> str:
    return str(recipe.get("optimizer", "adamw"))


class Data:
    """The text as ids, divided by position."""

    def __init__(self, path: Path) -> None:
        text = path.read_text(encoding="utf-8")
        cut = len(text) * 9 // 10
        self.tokenizer = tokenizer_for("char", [text[:cut]])
        ids = torch.tensor(self.tokenizer.encode(text)).numpy()
        self._train, self._val = ids[:cut], ids[cut:]

    def train(self, seed: int) -> Iterator[Any]:
        feed = Feed(Contexts(self._train, CONTEXT, seed=seed), BATCH, shuffle=True, seed=seed)
        for epoch in itertools.count():
            yield from feed.epoch(epoch)

    def val(self) -> Feed:
        return Feed(WindowDataset(self._val, CONTEXT), 64)


def train(step: Step, batches: Iterator[Any], updates: int) -> float:
    """Processor seconds of so many updates."""
    start = time.process_time()
    for _ in range(updates):
        step(next(batches))
    return time.process_time() - start


def updates_of(path: Path, names: list[str], seconds: float) -> dict[str, int]:
    """How many updates of each recipe an idle core makes in so many seconds."""
    torch.set_num_threads(1)
    data = Data(path)
    lrs = {kind: values[0] for kind, (_, values) in SWEPT.items()}
    batches = data.train(0)
    vocabulary = data.tokenizer.vocab_size
    steps = {name: make_step(RECIPES[name], vocabulary, 0, 10**6, lrs) for name in names}
    for step in steps.values():
        train(step, batches, UNMEASURED)
    least = dict.fromkeys(names, math.inf)
    for _ in range(TURNS):
        for name, step in steps.items():
            least[name] = min(least[name], train(step, batches, MEASURED) / MEASURED)
    return {name: max(50, round(seconds / least[name])) for name in names}


def one_run(path: Path, name: str, seed: int, updates: int, lrs: dict[str, float]) -> Run:
    """Train one recipe for so many updates, and evaluate it."""
    torch.set_num_threads(1)
    data = Data(path)
    step = make_step(RECIPES[name], data.tokenizer.vocab_size, seed, updates, lrs)
    used = train(step, data.train(seed), updates)
    with step.evaluating():
        scores = trueloop.evaluate(step.model, data.val(), loss_of(0.0)).scores
    return {
        "recipe": name,
        "seed": seed,
        "lr": lrs[kind_of(RECIPES[name])],
        "val_loss": scores["loss"],
        "updates": updates,
        "processor_seconds": round(used, 1),
    }


class Runs:
    """Runs in processes of their own, so many at once; those that are in the file `keep` are
    there already."""

    def __init__(self, path: Path, at_once: int, keep: Path | None) -> None:
        self._path, self._at_once, self._keep = path, at_once, keep
        lines = keep.read_text().splitlines() if keep is not None and keep.exists() else []
        self._done: list[Run] = [json.loads(line) for line in lines]
        self._lock = threading.Lock()

    def counts(self, names: list[str], seconds: float) -> Counts:
        """How many updates of each recipe make so many seconds: counted, or as the file has it."""
        for each in self._done:
            if each.get("seconds") == seconds and list(each["counts"]) == names:
                found: Counts = each["counts"]
                return found
        found = updates_of(self._path, names, seconds)
        self._note({"seconds": seconds, "counts": found})
        return found

    def _note(self, line: dict[str, Any]) -> None:
        with self._lock:
            if self._keep is not None:
                with self._keep.open("a") as file:
                    file.write(json.dumps(line) + "\n")

    def made(self, wanted: list[tuple[str, int, dict[str, float]]], counts: Counts) -> list[Run]:
        """The runs of these recipes, seeds and learning rates, in their order."""
        with ThreadPoolExecutor(self._at_once) as pool:
            return list(pool.map(lambda each: self._one(*each, counts[each[0]]), wanted))

    def _one(self, name: str, seed: int, lrs: dict[str, float], updates: int) -> Run:
        known = {"recipe": name, "seed": seed, "lr": lrs[kind_of(RECIPES[name])]}
        known["updates"] = updates
        for each in self._done:
            if known.items() <= each.items():
                return each
        task = json.dumps({"name": name, "seed": seed, "updates": updates, "lrs": lrs})
        command = [sys.executable, __file__, str(self._path), "--one", task]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found: Run = json.loads(done.stdout.splitlines()[-1])
        self._note(found)
        print(f"{name}, seed {seed}, lr {known['lr']:g}: {found['val_loss']:.4f}", flush=True)
        return found


def chosen_lrs(runs: Runs, counts: Counts) -> tuple[dict[str, float], list[Run]]:
    """Each optimizer's best learning rate of three, and the runs that say so; AdamW's first."""
    lrs = {kind: values[0] for kind, (_, values) in SWEPT.items()}
    made: list[Run] = []
    for kinds in (("adamw",), ("schedule-free", "muon")):
        wanted = [
            (name, SWEEP_SEED, {**lrs, kind: value})
            for kind in kinds
            for name, values in (SWEPT[kind],)
            for value in values
            if name in counts
        ]
        found = runs.made(wanted, counts)
        for kind in kinds:
            mine = [run for run in found if run["recipe"] == SWEPT[kind][0]]
            if mine:
                lrs[kind] = min(mine, key=lambda run: run["val_loss"])["lr"]
        made += found
    return lrs, made


def summary(runs: list[Run], names: list[str]) -> list[dict[str, Any]]:
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
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0, help="processor time of each run")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--at-once", type=int, default=2, help="runs at once, one thread each")
    parser.add_argument("--keep", type=Path, help="a file of the runs that have ended")
    parser.add_argument("--one", type=json.loads, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(one_run(given.text, **given.one)))
        return
    names = list(RECIPES)
    if importlib.util.find_spec("schedulefree") is None:
        names.remove("AdamW schedule-free")
        print("schedulefree is not installed: its row is left out")
    runs = Runs(given.text, given.at_once, given.keep)
    counts = runs.counts(names, given.seconds)
    print(f"updates in {given.seconds:g} s of a core: {counts}", flush=True)
    lrs, swept = chosen_lrs(runs, counts)
    print(f"learning rates: {lrs}", flush=True)
    wanted = [(name, seed, lrs) for seed in range(given.seeds) for name in names]
    made = runs.made(wanted, counts)
    rows = summary(made, names)
    print(table(rows))
    facts = {"seconds": given.seconds, "seeds": given.seeds, "learning rates": lrs}
    save_results("text_recipes", {**facts, "rows": rows, "sweep": swept, "runs": made})


if __name__ == "__main__":
    main()
