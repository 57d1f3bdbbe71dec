"""A folder of class folders of PNG files, and its data set, the same for both loops."""

import atexit
import shutil
import tempfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import Dataset

CLASSES = ("horizontal", "vertical")


def make_folder(per_class: int, seed: int) -> Path:
    """`FOLDER/CLASS/NUMBER.png`, 12 x 12 grey images of stripes; gone when the program ends."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    rng = np.random.default_rng(seed)
    for number, name in enumerate(CLASSES):
        (folder / name).mkdir()
        for i in range(per_class):
            wave = np.sin(np.arange(12) * rng.uniform(0.7, 1.6) + rng.uniform(0, 6))
            image = np.broadcast_to(wave if number else wave[:, None], (12, 12))
            noisy = 128 + 60 * image + rng.normal(0, 40, (12, 12))
            Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(folder / name / f"{i}.png")
    return folder


class ImageFolder(Dataset[tuple[Tensor, int]]):
    """Images (1, 12, 12) float32, and the number of their folder; `augment` mirrors and shifts."""

    def __init__(self, folder: Path, augment: bool = False) -> None:
        self.paths = sorted(folder.glob("*/*.png"))
        self.augment = augment

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        path = self.paths[index]
        with Image.open(path) as file:
            image = torch.from_numpy(np.asarray(file, dtype=np.float32) / 127.5 - 1)[None]
        if self.augment:
            if torch.rand(()) < 0.5:
                image = image.flip(-1)
            image = image.roll(int(torch.randint(-2, 3, ())), dims=-1)
        return image, CLASSES.index(path.parent.name)
