"""Epochs over MNIST as PNG files: a hand-written DataLoader with Pillow beside the images task.

    tar xzf mnist-png.tar.gz -C /tmp/mnist
    python benchmarks/images_cache.py --data /tmp/mnist/train [--rounds 5] [--train]

Every pass is a process of its own, in turns: the loop by hand (two workers), the first run of ours
(nothing is kept yet), a second run, and one with --no-cache. An epoch is 54,000 images to train on
and 6,000 to validate, as float32; `--train` trains a small network on them, else nothing is done
with them. The first epoch counts from the listing of the files on. Then two processes fill at once,
and some are killed while they fill. "load before" is the system's load average at the start: above
0.5 the seconds are those of a machine that has more to do.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import save_results, table
from torch import Tensor, nn

EPOCHS = 3
BATCH = 128
KINDS = ("by hand", "first run", "second run", "without cache")


class Files(torch.utils.data.Dataset[Any]):
    """What one writes: open, convert, scale."""

    def __init__(self, paths: list[Path], labels: list[int]) -> None:
        self.paths, self.labels = paths, labels

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        from PIL import Image

        with Image.open(self.paths[index]) as image:
            pixels = np.array(image.convert("L"), dtype=np.float32)
        return torch.from_numpy(pixels)[None] / 255, self.labels[index]


def by_hand(data: Path) -> Callable[[int], Iterator[Any]]:
    from torch.utils.data import DataLoader, random_split

    found = [(path, int(path.parent.name)) for path in sorted(data.glob("*/*.png"))]
    files = Files([path for path, _ in found], [label for _, label in found])
    split = random_split(files, [0.9, 0.1], torch.Generator().manual_seed(0))
    loaders = [
        DataLoader(part, BATCH, shuffle=k == 0, num_workers=2, persistent_workers=True)
        for k, part in enumerate(split)
    ]

    def epoch(number: int) -> Iterator[Any]:
        for loader in loaders:
            yield from loader

    return epoch


def ours(data: Path, *, cache: bool) -> Callable[[int], Iterator[Any]]:
    from trueloop import Feed
    from trueloop.tasks.images import Images

    root = data.parent / f"{data.name}-alone"  # a folder with train/ in it, and no test/
    root.mkdir(exist_ok=True)
    if not (root / "train").exists():
        (root / "train").symlink_to(data)
    task = Images(Images.Options(cache=cache), data=root, seed=0)
    task.quiet = True
    splits = task.splits()
    feeds = [Feed(splits.train, BATCH, shuffle=True), Feed(splits.val, BATCH)]

    def epoch(number: int) -> Iterator[Any]:
        for feed in feeds:
            for images, labels in feed.epoch(number):
                yield images.float() / 255, labels

    return epoch


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 16, 3, 2, 1), nn.ReLU(),
        nn.Flatten(), nn.Linear(16 * 49, 10),
    )  # fmt: skip


def one_pass(kind: str, data: Path, *, train: bool) -> dict[str, Any]:
    """Seconds of each epoch, and the peak memory (MB) of this process and of its largest child."""
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the loop by hand needs the other core for its workers
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), fused=True)

    def use(images: Tensor, labels: Tensor) -> None:
        if train:
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
            optimizer.zero_grad()

    import PIL.Image  # noqa: F401

    import trueloop.tasks.images  # noqa: F401

    seconds, count = [], 0
    started = time.perf_counter()
    epoch = by_hand(data) if kind == "by hand" else ours(data, cache=kind != "without cache")
    for number in range(EPOCHS):
        for images, labels in epoch(number):
            use(images, labels)
            count += len(labels)
        seconds.append(time.perf_counter() - started)
        started = time.perf_counter()
    peak = [
        resource.getrusage(who).ru_maxrss / 1024
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    ]
    return {"seconds": seconds, "images": count, "peak_mb": peak[0], "peak_child_mb": peak[1]}


def started(kind: str, options: argparse.Namespace, cache: str) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, "--data", str(options.data), "--kind", kind]
    if options.train:
        command.append("--train")
    environment = {**os.environ, "TRUELOOP_CACHE": cache}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def finished(process: subprocess.Popen[str]) -> dict[str, Any]:
    text, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"a pass has failed with status {process.returncode}")
    found: dict[str, Any] = json.loads(text)
    return found


def rounds(options: argparse.Namespace) -> dict[str, Any]:
    """All kinds in turns; medians over the rounds, and how many times as fast as by hand."""
    found: dict[str, list[dict[str, Any]]] = {kind: [] for kind in KINDS}
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory() as cache:
            for kind in KINDS:
                found[kind].append(finished(started(kind, options, cache)))
    hand = found["by hand"]
    rows = {}
    for kind, passes in found.items():
        first = [one["seconds"][0] for one in passes]
        later = [statistics.median(one["seconds"][1:]) for one in passes]
        rows[kind] = {
            "first_epoch": statistics.median(first),
            "later_epoch": statistics.median(later),
            "first_ratio": statistics.median(
                by["seconds"][0] / one for by, one in zip(hand, first, strict=True)
            ),
            "later_ratio": statistics.median(
                statistics.median(by["seconds"][1:]) / one
                for by, one in zip(hand, later, strict=True)
            ),
            "peak_mb": max(one["peak_mb"] for one in passes),
            "peak_child_mb": max(one["peak_child_mb"] for one in passes),
        }
    return rows


def two_at_once(options: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as cache:
        both = [started("first run", options, cache) for _ in range(2)]
        passes = [finished(one) for one in both]
        entries = [one for one in Path(cache, "images").iterdir() if one.is_dir()]
        return {"first_epochs": [one["seconds"][0] for one in passes], "entries": len(entries)}


def kills(options: argparse.Namespace) -> dict[str, Any]:
    """Processes that are killed at random moments while they fill, and what they leave."""
    drawn = random.Random(0)
    whole = torn = 0
    with tempfile.TemporaryDirectory() as cache:
        for _ in range(options.kills):
            process = started("first run", options, cache)
            while process.poll() is None and not list(Path(cache).glob("images/*.tmp")):
                time.sleep(0.01)
            time.sleep(drawn.uniform(0, 2.5))
            process.send_signal(signal.SIGKILL)
            process.communicate()
            for entry in Path(cache, "images").iterdir():
                if entry.is_dir() and not entry.name.endswith(".tmp"):
                    sizes = {file.name: file.stat().st_size for file in entry.iterdir()}
                    whole += set(sizes) == {"pixels", "fingerprints", "facts.json"}
                    torn += set(sizes) != {"pixels", "fingerprints", "facts.json"}
                    shutil.rmtree(entry)
        last = finished(started("second run", options, cache))
        left = len(list(Path(cache, "images").glob("*.tmp")))
    return {
        "kills": options.kills, "whole": whole, "torn": torn, "left_over": left,
        "images_after": last["images"],
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--kind", choices=KINDS)
    options = parser.parse_args()
    if options.kind:
        print(json.dumps(one_pass(options.kind, options.data, train=options.train)))
        return
    load = os.getloadavg()[0]
    results = {
        "rounds": options.rounds,
        "load before": round(load, 1),
        "epoch": rounds(options),
        "two_at_once": two_at_once(options),
        "kills": kills(options),
    }
    shown = [{"": kind, **{k: f"{v:.2f}" for k, v in row.items()}}
             for kind, row in results["epoch"].items()]  # fmt: skip
    print(table(shown))
    print(results["two_at_once"], results["kills"], sep="\n")
    results = json.loads(json.dumps(results), parse_float=lambda text: round(float(text), 3))
    print(save_results("images_cache_train" if options.train else "images_cache", results))


if __name__ == "__main__":
    main()
