"""Decoding: every kind of image becomes the same form, and broken files are named."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest
import torch
from PIL import Image

from trueloop.errors import DataError
from trueloop.tasks.images.decode import (
    BrokenImageError,
    ImageFiles,
    ImageShape,
    choose_form,
    decode,
    decode_all,
    find_broken,
)

RGB = ImageShape(3, 16, 16)
GREY = ImageShape(1, 16, 16)


def save(path, pixels, mode=None, **options):
    image = Image.fromarray(np.asarray(pixels, dtype=np.uint8))
    if mode is not None:
        image = image.convert(mode)
    image.save(path, **options)
    return path


def orange(height=16, width=16):
    return np.full((height, width, 3), (250, 130, 20))


@pytest.mark.parametrize("ending", ["png", "webp", "bmp", "jpg", "gif"])
def test_every_format_in_grey_and_colour(tmp_path, ending):
    path = save(
        tmp_path / f"i.{ending}", orange(), **({"lossless": True} if ending == "webp" else {})
    )
    pixels = decode(path, RGB)
    assert pixels.shape == (3, 16, 16)
    assert pixels.dtype == np.uint8
    assert np.abs(pixels.reshape(3, -1).mean(1) - [250, 130, 20]).max() < 4
    grey = decode(path, GREY)
    assert grey.shape == (1, 16, 16)
    assert abs(grey.mean() - (0.299 * 250 + 0.587 * 130 + 0.114 * 20)) < 4


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGBA", "LA", "CMYK", "YCbCr"])
def test_every_mode(tmp_path, mode):
    ending = "jpg" if mode in ("CMYK", "YCbCr") else "png"
    level = np.full((16, 16, 3), 255)
    pixels = decode(save(tmp_path / f"i.{ending}", level, mode), RGB)
    assert np.abs(pixels.astype(int) - 255).max() < 4


def test_sixteen_bits_keep_their_upper_eight(tmp_path):
    path = tmp_path / "i.png"
    wide = np.arange(256, dtype=np.uint16).reshape(16, 16) * 257
    Image.fromarray(wide).save(path)
    assert (decode(path, GREY)[0] == np.arange(256).reshape(16, 16)).all()


def test_what_is_transparent_is_white(tmp_path):
    pixels = np.zeros((16, 16, 4), dtype=np.uint8)
    pixels[:, 8:] = (0, 0, 0, 255)
    Image.fromarray(pixels).save(tmp_path / "i.png")
    decoded = decode(tmp_path / "i.png", GREY)[0]
    assert (decoded[:, :8] == 255).all()
    assert (decoded[:, 8:] == 0).all()
    palette = Image.fromarray(np.zeros((16, 16), dtype=np.uint8)).convert("P")
    palette.save(tmp_path / "p.png", transparency=0)
    assert (decode(tmp_path / "p.png", GREY) == 255).all()


def test_the_exif_orientation_is_applied(tmp_path):
    pixels = np.zeros((16, 32, 3), dtype=np.uint8)
    pixels[:, 16:] = 255  # bright on the right
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned a quarter to the right: bright at the bottom
    path = save(tmp_path / "i.png", pixels, exif=exif)
    decoded = decode(path, ImageShape(1, 32, 16))[0]
    assert decoded[:15].max() < 10
    assert decoded[17:].min() > 245
    assert choose_form([path], None) == ImageShape(1, 32, 16)


def test_other_sizes_are_scaled_and_cut_around_the_middle(tmp_path):
    pixels = np.zeros((40, 120, 3))
    pixels[:, 40:80] = 255
    decoded = decode(save(tmp_path / "i.png", pixels), ImageShape(1, 20, 20))[0]
    assert decoded.shape == (20, 20)
    assert decoded[:, 2:-2].min() > 240


def test_of_an_animation_the_first_frame(tmp_path):
    frames = [Image.new("L", (16, 16), level) for level in (200, 0)]
    frames[0].save(tmp_path / "i.gif", save_all=True, append_images=frames[1:])
    assert (decode(tmp_path / "i.gif", GREY) == 200).all()


def bomb() -> bytes:
    """A PNG of 100,000 × 100,000 pixels, in its header."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", 100_000, 100_000, 8, 0, 0, 0, 0)
    pixels = chunk(b"IDAT", zlib.compress(bytes(1000)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + pixels + chunk(b"IEND", b"")


def noise(ending: str) -> bytes:
    buffer = io.BytesIO()
    pixels = np.random.default_rng(0).integers(0, 255, (64, 64, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(buffer, ending)
    return buffer.getvalue()


BROKEN = [
    (b"", "an empty file"),
    (b"words, no image", "not an image in a format"),
    (noise("PNG")[:2000], "truncated"),
    (noise("JPEG")[:900], "truncated"),
    (noise("PNG")[:30], "."),
    (bomb(), "an image bomb"),
]


@pytest.mark.parametrize(("content", "reason"), BROKEN)
def test_broken_files_say_why(tmp_path, content, reason, one_line):
    path = tmp_path / "i.png"
    path.write_bytes(content)
    with pytest.raises(BrokenImageError, match=reason):
        decode(path, RGB)
    with pytest.raises(DataError, match="train with --broken skip") as error:
        ImageFiles([path], [0], RGB)[0]
    assert str(path) in one_line(error)


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_an_image_a_little_too_large_is_refused_by_its_header(tmp_path, monkeypatch):
    path = save(tmp_path / "i.png", orange(20, 20))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 399)
    with pytest.raises(BrokenImageError, match="an image bomb of 20×20 pixels"):
        decode(path, RGB)


@pytest.mark.filterwarnings("error")
def test_all_images_at_once_the_broken_ones_apart(tmp_path):
    paths = [save(tmp_path / f"{k}.png", np.full((16, 16), k)) for k in range(150)]
    paths[7].write_bytes(b"")
    paths[100].write_bytes(bomb())
    images, broken = decode_all(paths, GREY, what="reading")
    assert images.shape == (150, 1, 16, 16)
    assert list(broken) == [7, 100]
    assert find_broken(paths, GREY, what="reading") == broken
    whole = [k for k in range(150) if k not in broken]
    assert images[whole, 0, 3, 3].tolist() == whole


def test_a_form_that_suits_the_images(tmp_path, one_line):
    grey = [save(tmp_path / f"g{k}.png", np.full((28, 20), k)) for k in range(3)]
    stored_as_rgb = save(tmp_path / "r.png", np.full((28, 20, 3), 7))
    colour = save(tmp_path / "c.png", orange(28, 20))
    large = [save(tmp_path / f"l{k}.png", orange(300, 200 + k)) for k in range(3)]
    medium = [save(tmp_path / f"m{k}.png", orange(90, 70 + k)) for k in range(3)]
    tiny = save(tmp_path / "t.png", orange(4, 4))
    assert choose_form(grey, None) == ImageShape(1, 28, 20)
    assert choose_form([*grey, stored_as_rgb], None) == ImageShape(1, 28, 20)
    assert choose_form([*grey, colour], None) == ImageShape(3, 28, 20)
    assert choose_form(large, None) == ImageShape(3, 128, 128)
    assert choose_form(medium, None) == ImageShape(3, 64, 64)
    assert choose_form([tiny], None) == ImageShape(3, 32, 32)
    assert choose_form(grey, 40) == ImageShape(1, 40, 40)
    empty = tmp_path / "e.png"
    empty.write_bytes(b"")
    assert choose_form([empty, *grey], None) == ImageShape(1, 28, 20)
    with pytest.raises(DataError, match="none of the images can be read") as error:
        choose_form([empty], None)
    one_line(error)


def test_images_on_demand_are_the_ones_in_memory(tmp_path):
    paths = [save(tmp_path / f"{k}.jpg", orange(30, 30 + k)) for k in range(4)]
    images, _ = decode_all(paths, RGB, what="reading")
    files = ImageFiles(paths, [0, 1, 0, 1], RGB)
    assert len(files) == 4
    assert all(torch.equal(files[k][0], images[k]) for k in range(4))
    assert [files[k][1] for k in range(4)] == [0, 1, 0, 1]
    assert torch.equal(ImageFiles(paths, None, RGB)[2], images[2])
