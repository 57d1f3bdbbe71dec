"""Predictions for images, with the model in this folder; needs torch, safetensors, numpy, Pillow.

python predict.py cat.png dog.jpg > predictions.csv

In a program: `model = ImagePredictor(); model.predict(["cat.png"])` returns a dict for each
image, which may also be an image of Pillow.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor

HERE = Path(__file__).resolve().parent


class ImagePredictor:
    """The trained network and the preprocessing of its inputs."""

    def __init__(self, folder: Path = HERE) -> None:
        from network import ResNet  # type: ignore[import-not-found]  # beside this file
        from safetensors.torch import load_model

        self.task: dict[str, Any] = json.loads((folder / "task.json").read_text("utf-8"))
        self.network: torch.nn.Module = ResNet(**self.task["network"])
        load_model(self.network, folder / "model.safetensors")
        self.network.eval()

    def predict(self, images: list[Any]) -> list[dict[str, Any]]:
        """A dict for each image: `prediction`, `probability`, and that of each class."""
        found, names = [], self.task["classes"]
        with torch.inference_mode():
            for image in images:
                shares = self.network(self.encode(image)[None])[0].softmax(0).tolist()
                best = max(range(len(shares)), key=shares.__getitem__)
                each = {f"p_{name}": share for name, share in zip(names, shares, strict=True)}
                found.append({"prediction": names[best], "probability": shares[best], **each})
        return found

    def encode(self, image: Any) -> Tensor:
        """The network's input: uint8 (channels, height, width).

        Upright as EXIF says, on white where it is transparent, scaled to cover the network's size
        and cut to it around the middle.
        """
        form = self.task["form"]
        size, channels = (form["width"], form["height"]), form["channels"]
        if not isinstance(image, Image.Image):
            image = Image.open(image)
            image.draft(image.mode, (2 * size[0], 2 * size[1]))
        image.load()
        flat = flattened(ImageOps.exif_transpose(image), "L" if channels == 1 else "RGB")
        if flat.size != size:
            flat = ImageOps.fit(flat, size, Image.Resampling.BICUBIC)
        pixels = np.array(flat).reshape(size[1], size[0], channels)
        return torch.from_numpy(np.ascontiguousarray(pixels.transpose(2, 0, 1)))


def flattened(image: Image.Image, mode: str) -> Image.Image:
    """The image with 8 bits per channel, grey (L) or RGB, without transparency."""
    if image.mode == "I" or image.mode.startswith("I;16"):
        wide = np.asarray(image).astype(np.int64)
        image = Image.fromarray((wide.clip(0, 65535) >> 8).astype(np.uint8))
    if image.mode in ("LA", "PA", "La", "RGBA", "RGBa") or "transparency" in image.info:
        coloured = image.convert("RGBA")
        image = Image.new("RGBA", image.size, (255, 255, 255, 255))
        image.alpha_composite(coloured)
    return image if image.mode == mode else image.convert(mode)


def main() -> None:
    """Write a CSV file with the predictions for the images that are named."""
    if len(sys.argv) < 2:
        raise SystemExit("usage: python predict.py IMAGE [IMAGE ...] > predictions.csv")
    found = ImagePredictor().predict(sys.argv[1:])
    writer = csv.DictWriter(sys.stdout, ["file", *found[0]], lineterminator="\n")
    writer.writeheader()
    for name, row in zip(sys.argv[1:], found, strict=True):
        writer.writerow({"file": name, **row})


if __name__ == "__main__":
    main()
