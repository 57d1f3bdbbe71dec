"""Three interleaved spiral arms: no data file, half a minute, and a boundary that one can watch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from trueloop.errors import ConfigError
from trueloop.run import Figures
from trueloop.tasks.base import Splits, Task
from trueloop.tasks.random_split import generator, stratified_split
from trueloop.tasks.recipe import Recipe

if TYPE_CHECKING:
    from PIL.Image import Image

ARMS = 3
TURNS = 1.25
NOISE = 0.035
"""Standard deviation of a point around its arm, whose outermost radius is 1."""
CORE = 0.15
"""Radius below which the arms would run into each other: no points there."""

# Paul Tol's "high contrast" scheme: told apart with any colour vision, and in grey.
COLOURS = np.array([[0, 68, 136], [221, 170, 51], [187, 85, 102]], dtype=np.float32)
EXTENT = 1.15
"""A frame shows the plane from -EXTENT to EXTENT in both directions."""
GRID = 120
"""Points along a side at which the model is asked."""
FRAME = 480
"""Pixels along a side of a frame."""


class Spiral(Task):
    """Three interleaved spiral arms in the plane, made from the seed: 2,000 points to train on."""

    random_weights = True
    recipe = Recipe(
        epochs=100,
        batch_size=64,
        optimizer="adam",
        lr=1e-3,
        schedule="cosine",
        clip_norm=1.0,
    )
    classes = ["blue", "yellow", "red"]  # noqa: RUF012 - read only

    def splits(self) -> Splits:
        if self.data is not None:
            raise ConfigError(
                "the spiral is generated from the seed, not from a file: leave out --data"
            )
        rng = generator(self.seed, "spiral")
        train, val = spiral(2000, rng), spiral(1000, rng)
        if self.fold is not None:
            points, arms = (torch.cat(both) for both in zip(train, val, strict=True))
            rows = stratified_split(arms.numpy(), [0.5], self.seed, self.fold)
            train, val = ((points[part], arms[part]) for part in rows)
        self._film = _Film(*val)
        facts = {
            "training points": len(train[0]),
            "validation points": len(val[0]),
            "arms": ARMS,
            "turns": TURNS,
            "noise": NOISE,
        }
        return Splits(train=train, val=val, facts=facts)

    def model(self) -> nn.Module:
        return nn.Sequential(
            nn.Linear(2, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, ARMS)
        )

    def example_inputs(self, samples: int) -> tuple[Tensor, ...]:
        return (torch.empty(samples, 2),)

    def after_epoch(self, model: nn.Module, epoch: int, album: Figures) -> None:
        if worth_a_frame(epoch + 1):
            album.frame("boundary", self._film.frame(model, f"epoch {epoch + 1}"), epoch)

    def pictures(
        self, model: nn.Module, splits: Splits, outputs: Tensor, targets: Tensor, album: Figures
    ) -> None:
        album.animate(
            "boundary",
            "Decision boundary",
            "The predicted class of each point of the plane, epoch by epoch; the paler, the less "
            "certain. The dots are the validation points.",
        )


def spiral(count: int, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Points of the three arms in turn: float32 (count, 2), about within [-1, 1]; int64 (count,).

    Points are spread evenly along the area that their arm sweeps, with normal noise around it.
    """
    arm = np.arange(count) % ARMS
    radius = np.sqrt(rng.uniform(CORE**2, 1.0, count))
    angle = 2 * np.pi * (arm / ARMS + TURNS * radius)
    points = radius[:, None] * np.stack((np.cos(angle), np.sin(angle)), axis=1)
    points += rng.normal(0.0, NOISE, points.shape)
    return torch.from_numpy(points.astype(np.float32)), torch.from_numpy(arm)


def worth_a_frame(number: int) -> bool:
    """Whether the epoch (from 1) gets a frame: often while much changes; 40 of the first 100."""
    if number <= 16:
        return True
    if number <= 40:
        return number % 2 == 0
    return number % 5 == 0 if number <= 100 else number % 50 == 0


class _Film:
    """Draws the frames: what does not change from one to the next is drawn once."""

    def __init__(self, points: Tensor, labels: Tensor) -> None:
        self._points = points.numpy()
        self._labels = labels.tolist()
        axis = torch.linspace(-EXTENT, EXTENT, GRID)
        # Row 0 of a picture is its upper edge, where y is largest.
        y, x = torch.meshgrid(axis.flip(0), axis, indexing="ij")
        self._grid = torch.stack((x.flatten(), y.flatten()), dim=1)
        self._dots: Image | None = None

    @torch.no_grad()
    def frame(self, model: nn.Module, caption: str) -> Image:
        """The plane in the colours of the classes, mixed by probability and brightened."""
        from PIL import Image, ImageDraw

        device = next(model.parameters()).device
        shares = torch.softmax(model(self._grid.to(device)).float(), dim=1).cpu().numpy()
        colours = 255 - 0.62 * (255 - shares @ COLOURS)
        plane = Image.fromarray(colours.reshape(GRID, GRID, 3).astype(np.uint8))
        frame = plane.resize((FRAME, FRAME), Image.Resampling.BICUBIC)
        if self._dots is None:
            self._dots = self._draw_dots()
        frame.paste(self._dots, (0, 0), self._dots)
        draw = ImageDraw.Draw(frame)
        draw.text((14, 10), caption, fill=(30, 30, 30), font=self._font)
        return frame

    def _draw_dots(self) -> Image:
        """The points on a transparent ground, drawn four times as large for smooth edges."""
        from PIL import Image, ImageDraw, ImageFont

        self._font = ImageFont.load_default(size=20)
        scale = 4
        side = FRAME * scale
        sheet = Image.new("RGBA", (side, side), (255, 255, 255, 0))
        draw = ImageDraw.Draw(sheet)
        for (x, y), label in zip(self._points, self._labels, strict=True):
            centre = ((x / EXTENT + 1) / 2 * side, (1 - y / EXTENT) / 2 * side)
            fill = tuple(int(c) for c in COLOURS[label])
            draw.circle(centre, 2.6 * scale, fill=fill, outline=(255, 255, 255), width=2)
        return sheet.resize((FRAME, FRAME), Image.Resampling.BOX)
