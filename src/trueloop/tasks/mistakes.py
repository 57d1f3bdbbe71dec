"""The worst mistakes of a classifier of images, as one picture."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from trueloop.run import Figures

if TYPE_CHECKING:
    from PIL.Image import Image

COLUMNS, ROWS = 6, 4
TILE = 112
"""Pixels along a side of an image on the sheet."""
LINE = 18
"""Pixels of a line of the caption."""
GAP = 10


def worst_mistakes(outputs: Tensor, targets: Tensor, count: int) -> list[int]:
    """Rows of the wrongly classified samples of the highest loss, the worst first, at most `count`.

    `outputs` are logits, (N, classes); `targets` class indices, (N,).
    """
    losses = torch.nn.functional.cross_entropy(outputs.float(), targets, reduction="none")
    wrong = (outputs.argmax(dim=1) != targets).nonzero().flatten()
    order = losses[wrong].argsort(descending=True, stable=True)
    return wrong[order[:count]].tolist()


def show_mistakes(
    outputs: Tensor,
    targets: Tensor,
    image_of: Callable[[int], Tensor],
    classes: list[str],
    album: Figures,
) -> None:
    """Put the worst mistakes into the album; nothing if there are none.

    `image_of(row)` is the image of a row: uint8, (1 or 3, height, width).
    """
    rows = worst_mistakes(outputs, targets, COLUMNS * ROWS)
    if not rows:
        return
    probabilities = torch.softmax(outputs[rows].float(), dim=1)
    tiles = []
    for row, shares in zip(rows, probabilities, strict=True):
        guess = int(shares.argmax())
        share = 100 * float(shares[guess])
        lines = (f"is {classes[int(targets[row])]}", f"predicted {classes[guess]}, {share:.0f}%")
        tiles.append((image_of(row), lines))
    wrong = int((outputs.argmax(dim=1) != targets).sum())
    album.picture(
        "mistakes",
        _sheet(tiles),
        "Worst mistakes",
        f"The {len(rows)} of {wrong} wrongly classified validation images with the highest loss, "
        "each with its class, the predicted class and the probability.",
    )


def _sheet(tiles: list[tuple[Tensor, tuple[str, str]]]) -> Image:
    from PIL import Image, ImageDraw, ImageFont

    columns = min(COLUMNS, len(tiles))
    rows = -(-len(tiles) // columns)
    width, height = TILE + 2 * GAP + 28, TILE + 2 * LINE + 2 * GAP
    sheet = Image.new("RGB", (columns * width, rows * height), (255, 255, 255))
    draw = ImageDraw.Draw(sheet)
    font = ImageFont.load_default(size=13)
    for k, (pixels, lines) in enumerate(tiles):
        left, top = k % columns * width, k // columns * height
        tile = _enlarged(pixels)
        sheet.paste(tile, (left + (width - tile.width) // 2, top + GAP + (TILE - tile.height) // 2))
        for n, (line, colour) in enumerate(zip(lines, ((20, 20, 20), (170, 40, 60)), strict=True)):
            text = _shortened(line, width - 4, font.getlength)
            place = (left + (width - font.getlength(text)) / 2, top + GAP + TILE + 3 + n * LINE)
            draw.text(place, text, fill=colour, font=font)
    return sheet


def _enlarged(pixels: Tensor) -> Image:
    """An image fitted into a tile; small ones with their pixels visible."""
    from PIL import Image

    array = pixels.permute(1, 2, 0).cpu().numpy()
    image = Image.fromarray(array[:, :, 0] if array.shape[2] == 1 else array)
    scale = TILE / max(image.size)
    method = Image.Resampling.NEAREST if scale >= 2 else Image.Resampling.LANCZOS
    size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    return image.resize(size, method).convert("RGB")


def _shortened(text: str, width: float, length: Callable[[str], float]) -> str:
    if length(text) <= width:
        return text
    while text and length(text + "…") > width:
        text = text[:-1]
    return text + "…"
