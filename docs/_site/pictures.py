"""The pictures of the README: the top of a report, and a boundary as it develops.

    make pictures

trains the spiral for some seconds and photographs its report with Chromium, without a network.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

from trueloop.cli import main

FOLDER = Path(__file__).parents[1] / "pictures"
EPOCHS = (1, 8, 16, 100)
"""Of the frames of the boundary, from left to right."""
SIDE = 236
"""Pixels of a frame."""
WINDOW = (1100, 865)
"""Of the report, to the end of its curves."""


def boundary(run: Path) -> Image.Image:
    """The frames of some epochs beside each other."""
    frames = run / "pictures" / "frames" / "boundary"
    strip = Image.new("RGB", (SIDE * len(EPOCHS) + 8 * (len(EPOCHS) - 1), SIDE), "white")
    for place, epoch in enumerate(EPOCHS):
        frame = Image.open(frames / f"{epoch:05}.png").convert("RGB")
        strip.paste(frame.resize((SIDE, SIDE), Image.Resampling.LANCZOS), ((SIDE + 8) * place, 0))
    return strip


def report(run: Path, chromium: str) -> Image.Image:
    """The top of the report as a browser shows it."""
    picture = run / "report.png"
    size = ",".join(map(str, WINDOW))
    subprocess.run(
        [
            *(chromium, "--headless=new", "--no-sandbox", "--hide-scrollbars", "--disable-gpu"),
            *(f"--window-size={size}", "--virtual-time-budget=5000", f"--screenshot={picture}"),
            (run / "report.html").as_uri(),
        ],
        check=True,
        capture_output=True,
        timeout=120,
    )
    return Image.open(picture).convert("RGB")


def save(picture: Image.Image, name: str) -> None:
    """With 256 colours, which halves the file and shows no difference here."""
    FOLDER.mkdir(exist_ok=True)
    picture.quantize(256, dither=Image.Dither.NONE).save(FOLDER / name, optimize=True)


if __name__ == "__main__":
    browser = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chrome")
    if browser is None:
        sys.exit("no Chromium found: install it, or put chromium into PATH")
    with tempfile.TemporaryDirectory() as folder:
        trained = Path(folder) / "spiral"
        if main(["train", "spiral", "--run", str(trained), "--quiet"]) != 0:
            sys.exit("the training failed")
        save(boundary(trained), "boundary.png")
        save(report(trained, browser), "report.png")
