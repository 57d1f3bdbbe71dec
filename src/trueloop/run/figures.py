"""The run's pictures: stills, and films of one frame per epoch; and the texts that it wrote."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import TYPE_CHECKING

from trueloop import ranks
from trueloop.checkpoint import cannot_write, write_atomic
from trueloop.errors import ConfigError
from trueloop.files import read_bytes

if TYPE_CHECKING:
    from PIL.Image import Image

_NAME = re.compile(r"[A-Za-z0-9_-]+")
_MOST_FRAMES = 60
_MOST_BYTES = 1_500_000
# The last frame is the result: it is held before the film starts again.
_HOLD_MS = 2000
_SHORTEST_MS = 20


class Figures:
    """Stores pictures below `run_path`/pictures and keeps the list that the report shows.

    Of many ranks the main one stores them; on the others nothing is written. Names of pictures
    consist of letters, digits, "-" and "_"; any other raises `ConfigError`.

    Args:
        run_path: the run directory.
    """

    def __init__(self, run_path: Path | str) -> None:
        self._run = Path(run_path)
        self._entries: dict[str, dict[str, str]] = {}

    @property
    def entries(self) -> list[dict[str, str]]:
        """The registered figures, in order: `file` (relative to the run), `title` and `caption`.

        A film also has `still`, its last frame.
        """
        return list(self._entries.values())

    def frame(self, name: str, image: Image, epoch: int) -> Path:
        """Store one frame of a film. A frame made again (after a resume) is replaced.

        Args:
            name: of the film.
            image: the frame.
            epoch: from 0, the place of the frame.

        Returns:
            The path of the frame.
        """
        path = self._folder("frames", _checked(name)) / f"{epoch + 1:05d}.png"
        if not ranks.is_main():
            return path
        # Fast rather than small: this is done while training waits.
        _save_png(image, path, compress_level=1)
        return path

    def animate(self, name: str, title: str, caption: str, *, seconds: float = 6) -> Path | None:
        """Make the film pictures/`name`.webp of the frames, and register it.

        It stays at its last frame, and starts again. More than 60 frames are thinned evenly, the
        first and the last kept.

        Args:
            name: of the film.
            title: for the report.
            caption: for the report.
            seconds: how long it plays, about.

        Returns:
            The path; None, and nothing is registered, if no frame was stored.
        """
        if not ranks.is_main():
            return None
        frames = _frames(self._run / "pictures" / "frames" / _checked(name))
        if not frames:
            return None
        path = self._folder() / f"{name}.webp"
        step_ms = max(_SHORTEST_MS, round(1000 * seconds / len(frames)))
        write_atomic(path, _encode(frames, step_ms))
        still = path.with_suffix(".png")
        _save_png(frames[-1], still)
        self._register(name, path, title, caption)
        self._entries[name]["still"] = self._relative(still)
        return path

    def picture(self, name: str, image: Image, title: str, caption: str) -> Path:
        """Save pictures/`name`.png and register it.

        Args:
            name: of the picture.
            image: the picture.
            title: for the report.
            caption: for the report.

        Returns:
            The path.
        """
        path = self._folder() / f"{_checked(name)}.png"
        if not ranks.is_main():
            return path
        _save_png(image, path)
        self._register(name, path, title, caption)
        return path

    def text(self, name: str, text: str, update: int) -> Path:
        """Store texts/`name`/UPDATE.txt, the output of a model after so many updates.

        The report shows the texts of each name with control characters as escapes. One made again
        (after a resume) is replaced.

        Args:
            name: of the series of texts.
            text: the output.
            update: updates applied.

        Returns:
            The path.
        """
        folder = self._run / "texts" / _checked(name)
        path = folder / f"{update:09d}.txt"
        if ranks.is_main():
            _make(folder)
            write_atomic(path, text.encode("utf-8", "replace"))
        return path

    def _register(self, name: str, path: Path, title: str, caption: str) -> None:
        self._entries[name] = {"file": self._relative(path), "title": title, "caption": caption}

    def _relative(self, path: Path) -> str:
        return path.relative_to(self._run).as_posix()

    def _folder(self, *parts: str) -> Path:
        folder = self._run.joinpath("pictures", *parts)
        if ranks.is_main():
            _make(folder)
        return folder


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(folder, error) from None


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{name!r} cannot name a picture: use letters, digits, '-' and '_'")
    return name


def _save_png(image: Image, path: Path, *, compress_level: int = 6) -> None:
    buffer = io.BytesIO()
    image.save(buffer, "PNG", compress_level=compress_level)
    write_atomic(path, buffer.getvalue())


def _frames(folder: Path) -> list[Image]:
    """The frames in order, at most 60 of them, all of the last one's size."""
    from PIL import Image

    paths = sorted(folder.glob("*.png"))
    if len(paths) > _MOST_FRAMES:
        last = len(paths) - 1
        paths = [paths[round(k * last / (_MOST_FRAMES - 1))] for k in range(_MOST_FRAMES)]
    frames = []
    for path in paths:
        with Image.open(io.BytesIO(read_bytes(path))) as image:
            frames.append(image.convert("RGB"))
    return [f if f.size == frames[-1].size else f.resize(frames[-1].size) for f in frames]


def _encode(frames: list[Image], step_ms: int) -> bytes:
    """The film as WebP: of the best quality that stays below 1.5 MB, at last with fewer frames."""
    for quality in (90, 75, 50):
        film = _webp(frames, step_ms, quality)
        if len(film) < _MOST_BYTES:
            return film
    while len(film) >= _MOST_BYTES and len(frames) > 2:
        # Every second one, counted from the end: the last frame is the result.
        frames, step_ms = frames[::-2][::-1], 2 * step_ms
        film = _webp(frames, step_ms, 50)
    return film


def _webp(frames: list[Image], step_ms: int, quality: int) -> bytes:
    buffer = io.BytesIO()
    durations = [step_ms] * (len(frames) - 1) + [step_ms + _HOLD_MS]
    frames[0].save(
        buffer,
        "WEBP",
        save_all=True,
        append_images=frames[1:],
        duration=durations,
        loop=0,
        quality=quality,
        method=2,
    )
    return buffer.getvalue()
