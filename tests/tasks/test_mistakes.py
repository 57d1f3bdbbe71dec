"""The worst mistakes: the right rows, in the right order, with the right words."""

from __future__ import annotations

import torch
from PIL import Image

from trueloop.run import Figures
from trueloop.tasks.mistakes import show_mistakes, worst_mistakes


def test_the_wrong_ones_by_loss_the_worst_first():
    outputs = torch.tensor([[9.0, 0.0], [0.0, 1.0], [0.0, 8.0], [3.0, 0.0], [0.0, 2.0]])
    targets = torch.tensor([0, 0, 0, 1, 1])
    assert worst_mistakes(outputs, targets, 10) == [2, 3, 1]
    assert worst_mistakes(outputs, targets, 2) == [2, 3]


def test_the_picture_holds_the_images_themselves(tmp_path):
    def image_of(row):
        return torch.full((3, 4, 4), 10 * row, dtype=torch.uint8)

    outputs = torch.tensor([[9.0, 0.0], [0.0, 1.0], [0.0, 8.0]])
    album = Figures(tmp_path)
    show_mistakes(outputs, torch.tensor([0, 0, 0]), image_of, ["ant", "b" * 80], album)
    assert "2 of 2" in album.entries[0]["caption"]
    with Image.open(tmp_path / "pictures" / "mistakes.png") as sheet:
        half = sheet.width // 2
        assert sheet.getpixel((half // 2, 60)) == (20, 20, 20)
        assert sheet.getpixel((half + half // 2, 60)) == (10, 10, 10)


def test_no_mistakes_no_picture(tmp_path):
    album = Figures(tmp_path)
    show_mistakes(torch.eye(3), torch.arange(3), lambda row: torch.zeros(1, 2, 2), ["a"] * 3, album)
    assert album.entries == []
