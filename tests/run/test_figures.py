from pathlib import Path

import numpy as np
import pytest
from made_up import picture
from PIL import Image

from trueloop.errors import ConfigError, RunError
from trueloop.run import Figures


def flat(value: int, size: tuple[int, int] = (32, 24)) -> Image.Image:
    return Image.new("RGB", size, (value, value, value))


def levels(path: Path) -> tuple[list[int], list[int]]:
    """Brightness and duration (ms) of each frame."""
    with Image.open(path) as film:
        brightness, durations = [], []
        for k in range(film.n_frames):  # type: ignore[attr-defined]
            film.seek(k)
            film.load()
            brightness.append(round(float(np.asarray(film.convert("L")).mean())))
            durations.append(film.info["duration"])
    return brightness, durations


def test_a_film_has_its_frames_in_order_and_holds_the_last(tmp_path: Path) -> None:
    album = Figures(tmp_path)
    for epoch in (2, 0, 1):  # a resume may store them in any order
        album.frame("boundary", flat(50 + 60 * epoch), epoch)
    album.frame("boundary", flat(110), 1)
    path = album.animate("boundary", "Boundary", "It moves.", seconds=3)
    assert path == tmp_path / "pictures" / "boundary.webp"
    brightness, durations = levels(path)
    assert np.allclose(brightness, [50, 110, 170], atol=2)
    assert durations == [1000, 1000, 3000]
    with Image.open(path) as film:
        assert film.info["loop"] == 0
    assert album.entries == [
        {
            "file": "pictures/boundary.webp",
            "title": "Boundary",
            "caption": "It moves.",
            "still": "pictures/boundary.png",
        }
    ]
    with Image.open(tmp_path / "pictures" / "boundary.png") as still:
        assert still.getpixel((0, 0)) == (170, 170, 170)


def test_many_frames_are_thinned_evenly(tmp_path: Path) -> None:
    album = Figures(tmp_path)
    for epoch in range(121):
        album.frame("f", flat(2 * epoch, (16, 16)), epoch)
    path = album.animate("f", "t", "c")
    assert path is not None
    brightness, _ = levels(path)
    assert len(brightness) == 60
    assert brightness[0] <= 2
    assert brightness[-1] >= 238
    steps = np.diff(brightness)
    assert steps.min() >= 1
    assert steps.max() <= 8


def test_a_large_film_stays_small(tmp_path: Path) -> None:
    album, draws = Figures(tmp_path), np.random.default_rng(0)
    for epoch in range(12):
        noise = draws.integers(0, 256, (600, 600, 3), dtype=np.uint8)
        album.frame("noise", Image.fromarray(noise), epoch)
    path = album.animate("noise", "t", "c")
    assert path is not None
    assert path.stat().st_size < 1_500_000
    with Image.open(path) as film:
        assert 2 <= film.n_frames < 12  # type: ignore[attr-defined]


def test_frames_of_other_sizes_and_modes_fit_the_last(tmp_path: Path) -> None:
    album = Figures(tmp_path)
    album.frame("f", flat(0, (10, 10)).convert("L"), 0)
    album.frame("f", flat(255, (20, 30)).convert("RGBA"), 1)
    path = album.animate("f", "t", "c")
    assert path is not None
    with Image.open(path) as film:
        assert film.size == (20, 30)


def test_no_frames_make_no_film(tmp_path: Path) -> None:
    album = Figures(tmp_path)
    assert album.animate("f", "t", "c") is None
    assert album.entries == []


def test_pictures_are_registered_once(tmp_path: Path) -> None:
    album = Figures(tmp_path)
    album.picture("worst", picture(1), "Old", "c")
    album.picture("worst", picture(2), "Worst mistakes", "c")
    (entry,) = album.entries
    assert entry["title"] == "Worst mistakes"
    with Image.open(tmp_path / entry["file"]) as image:
        assert np.array_equal(np.asarray(image), np.asarray(picture(2)))


@pytest.mark.parametrize("name", ["", "a/b", "..", "a b", "ä", "a\n"])
def test_names_that_could_leave_the_folder(tmp_path: Path, name: str) -> None:
    album = Figures(tmp_path)
    for act in (
        lambda: album.frame(name, flat(0), 0),
        lambda: album.picture(name, flat(0), "t", "c"),
        lambda: album.animate(name, "t", "c"),
    ):
        with pytest.raises(ConfigError, match="cannot name a picture"):
            act()
    assert list(tmp_path.rglob("*.*")) == []


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "pictures").write_text("in the way")
    with pytest.raises(RunError, match="cannot write"):
        Figures(tmp_path).frame("f", flat(0), 0)
