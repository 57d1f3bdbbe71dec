"""The report and the live view of a run with a million logged updates.

    .venv/bin/python benchmarks/long_run_view.py [--updates 1000000] [--quick]

Writes the log as a run does, with a spike of one update, and measures: the time and the memory to
write the report, the size of the page, the time until headless Chromium has opened it with its
charts (less that of an empty page), the first frame of `trueloop follow`, and a further frame after
100 updates more, with the bytes that were read for it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from common import save_results
from PIL import Image

from trueloop.run import Run, write_report
from trueloop.run.live_view import LiveView

SPIKE = 40.0
INK = (0x0B, 0x62, 0xA8)
"""Of the curves of validation, on the page in light."""


def lines(first: int, last: int, total: int) -> str:
    """Those of some updates, with an evaluation after every 5,000."""
    draws = np.random.default_rng(first)
    text = []
    for update in range(first, last + 1):
        loss = 2 * np.exp(-5 * update / total) + 0.3 + 0.1 * draws.standard_normal()
        loss = SPIKE if update == total // 3 else float(loss)
        norm = float(np.exp(draws.normal(0, 0.4)))
        text.append(
            f'{{"kind":"update","epoch":{(update - 1) // 1000 + 1},"batch":{(update - 1) % 1000},'
            f'"update":{update},"loss":{loss!r},"grad_norm":{norm!r},"lr":{1e-3!r},"samples":64,'
            f'"skipped":false,"time":{0.01 * update:.4f}}}\n'
        )
        if update % 5000 == 0:
            score = {"train_loss": loss, "val_loss": 1.1 * loss, "val_accuracy": 1 - loss / 50}
            line = {"kind": "eval", "epoch": (update - 1) // 1000 + 1, "update": update, **score}
            text.append(json.dumps({**line, "time": 0.01 * update, "seconds": 0.2}) + "\n")
    return "".join(text)


def seconds_of(page: str) -> tuple[float, bool]:
    """How long Chromium takes to start, open a page and take its picture, and whether a curve in
    the ink of validation is in the picture."""
    words = ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1280,1400"]
    words += ["--virtual-time-budget=3000"]  # so that what is drawn after loading is in the picture
    with tempfile.TemporaryDirectory() as folder:
        picture = Path(folder) / "page.png"
        start = time.perf_counter()
        words += [f"--user-data-dir={folder}/profile", f"--screenshot={picture}"]
        subprocess.run(["chromium", *words, page], capture_output=True, check=True, timeout=120)
        seconds = time.perf_counter() - start
        pixels = np.asarray(Image.open(picture).convert("RGB"), dtype=np.int64)
    return seconds, bool((np.abs(pixels - INK).sum(-1) < 12).sum() > 100)


def opened(page: Path, rounds: int) -> dict[str, Any]:
    """Medians over some rounds, with the page and an empty one in turn."""
    if shutil.which("chromium") is None:
        return {"chromium": None}
    both = [(seconds_of("about:blank")[0], seconds_of(page.as_uri())) for _ in range(rounds)]
    return {
        "seconds_to_open": round(median(own[0] - empty for empty, own in both), 2),
        "charts_drawn": all(own[1] for _, own in both),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=1_000_000)
    parser.add_argument("--quick", action="store_true", help="10,000 updates, nothing is kept")
    given = parser.parse_args()
    total = 10_000 if given.quick else given.updates
    with tempfile.TemporaryDirectory() as folder:
        config = {"task": "spiral", "updates": total, "monitor": "val_loss", "clip_norm": 1.0}
        run = Run.create(Path(folder) / "run", config=config)
        log = run.path / "metrics.jsonl"
        log.write_text(lines(1, total, total))
        found: dict[str, Any] = {"updates": total, "log_bytes": log.stat().st_size}
        found["load_average"] = os.getloadavg()[0]

        view = LiveView(run)
        start = time.perf_counter()
        view.read()
        view.frame(120, 40)
        found["follow_first_frame_seconds"] = round(time.perf_counter() - start, 2)
        times, read = [], []
        for k in range(5):
            before = view.log.path.stat().st_size
            with log.open("a") as file:
                file.write(lines(total + 100 * k + 1, total + 100 * k + 100, total))
            start = time.perf_counter()
            view.read()
            view.frame(120, 40)
            times.append(time.perf_counter() - start)
            read.append(log.stat().st_size - before)
        found["follow_next_frame_seconds"] = round(median(times), 3)
        found["follow_next_frame_bytes"] = round(median(read))

        start = time.perf_counter()
        page = write_report(run)
        found["report_write_seconds"] = round(time.perf_counter() - start, 2)
        found["peak_memory_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)
        found["report_bytes"] = page.stat().st_size
        one_file = write_report(run, one_file=page.with_name("one.html"))
        found["one_file_bytes"] = one_file.stat().st_size
        found["spike_is_in_the_page"] = f"{SPIKE:.1f}" in page.read_text()
        found |= opened(page, 1 if given.quick else 5)
    print(json.dumps(found, indent=2))
    if not given.quick:
        print(save_results("long_run_view", found))


if __name__ == "__main__":
    main()
