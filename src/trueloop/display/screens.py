"""Where the display appears: a terminal, a notebook, or a stream of lines."""

from __future__ import annotations

import logging
import os
import sys
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Protocol

from trueloop.seed import rng_preserved

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

_PLAIN_WIDTH = 100
"""Characters of a line without a terminal, at the most."""
_ECHO = 4
"""Characters at the end of a live line for the terminal's ^C, which would else begin a new one."""
_BAR = 20
"""Characters of a notebook's bar."""
_MOST_LINES = 200
"""Lines of one output of a notebook, which is sent whole at each refresh."""
_ASCII = str.maketrans({"−": "-", "–": "-", "∞": "inf", "²": "2", "…": "..."})


class Status(NamedTuple):
    """The contents of a live display.

    Attributes:
        head: the position in the run.
        share: how much of the run is done, from 0 to 1.
        facts: the most wanted first; the first is the loss.
        below: a second line; empty for none.
    """

    head: str
    share: float
    facts: list[str]
    below: str = ""


class Screen(Protocol):
    """The place that a `ProgressDisplay` writes to."""

    is_live: bool
    """Whether `show` shows anything."""

    @property
    def width(self) -> int:
        """Characters of a line, at the most."""

    def line(self, text: str, style: str | None = None) -> None:
        """Add a line that stays."""

    def show(self, status: Status) -> None:
        """Replace what is shown below the lines."""

    def close(self) -> None:
        """Take it away; lines may still follow."""


class Lines:
    """A file, a pipe, or a terminal that is not to be written on twice: lines without control
    codes."""

    width = _PLAIN_WIDTH
    is_live = False

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def line(self, text: str, style: str | None = None) -> None:
        self._stream.write(encodable(text, self._stream) + "\n")
        self._stream.flush()

    def show(self, status: Status) -> None:
        pass

    def close(self) -> None:
        pass


class Terminal:
    """A live line at the bottom, and lines above it; what the program prints goes above it too."""

    is_live = True

    def __init__(self, console: Console) -> None:
        with rng_preserved():  # rich draws a random number when it is imported
            import rich.live
            import rich.text  # noqa: F401

        self._console = console
        self._live: Live | None = None
        self._moved: list[tuple[logging.StreamHandler[Any], Any]] = []
        """Handlers of `logging` that write above the live line now, and where they wrote before."""

    @property
    def width(self) -> int:
        return self._console.width

    def line(self, text: str, style: str | None = None) -> None:
        text = encodable(text, self._console.file)
        self._console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)

    def show(self, status: Status) -> None:
        if self._live is None:
            from rich.live import Live

            before = sys.stdout, sys.stderr
            # A stream that leads elsewhere, as with 2>file, keeps what is written to it.
            self._live = Live(
                console=self._console,
                auto_refresh=False,
                transient=True,
                redirect_stdout=_is_terminal(sys.stdout),
                redirect_stderr=_is_terminal(sys.stderr),
            )
            self._live.start()
            self._moved = _moved_handlers(before, (sys.stdout, sys.stderr))
        self._live.update(self.renderable(status), refresh=True)

    def renderable(self, status: Status) -> Text:
        """The status in at most two lines that fit."""
        from rich.text import Text

        width = self.width - _ECHO
        room = width - len(status.head) - 12
        facts: list[str] = []
        for fact in status.facts:
            room -= len(fact) + 2
            if room < 0:
                break
            facts.append(encodable(fact, self._console.file))
        bar = self._bar(10 + min(room, 20) * (room > 0), status.share)
        loss, others = "".join(facts[:1]), "".join(f"  {fact}" for fact in facts[1:])
        styled: list[str | tuple[str, str]] = [
            (status.head, "bold"),
            "  ",
            *bar,
            "  ",
            (loss, "bold"),
            others,
        ]
        lines = Text.assemble(*styled, no_wrap=True, end="")
        if status.below:
            below = f"{'':{len(status.head)}}  {encodable(status.below, self._console.file)}"
            second = Text(below, style="dim", no_wrap=True)
            second.truncate(width, overflow="ellipsis")
            lines = Text("\n", end="").join([lines, second])
        return lines

    def _bar(self, width: int, share: float) -> list[tuple[str, str]]:
        """Rich's own bar, whose class takes ten times as long in a table."""
        whole, half = divmod(int(2 * width * min(1.0, max(0.0, share))), 2)
        full, left, right = "-  " if self._console.options.ascii_only else "━╸╺"
        style = "bar.finished" if whole == width else "bar.complete"
        rest = width - whole - half
        back = full * rest if half or not whole or not rest else right + full * (rest - 1)
        if self._console.no_color or self._console.options.ascii_only:
            back = " " * rest
        return [(full * whole + left * half, style), (back, "bar.back")]

    def close(self) -> None:
        if self._live is not None:
            live, self._live = self._live, None
            live.stop()
            for handler, stream in self._moved:
                handler.setStream(stream)
            self._moved = []


class Notebook:
    """One output of plain text that is replaced at each refresh; of the lines it keeps the end."""

    width = _PLAIN_WIDTH
    is_live = True

    def __init__(self, display: Any) -> None:
        self._display = display
        """`IPython.display.display`."""
        self._output: Any = None
        self._lines: list[str] = []
        self._status = ""

    def line(self, text: str, style: str | None = None) -> None:
        if len(self._lines) >= _MOST_LINES:
            status, self._status = self._status, ""
            self._send()
            self._output, self._lines, self._status = None, [], status
        self._lines.append(text)
        self._send()

    def show(self, status: Status) -> None:
        done = round(_BAR * min(1.0, max(0.0, status.share)))
        shown = f"{status.head}  {'━' * done}{'─' * (_BAR - done)}"
        for fact in status.facts:
            if len(shown) + 2 + len(fact) > self.width:
                break
            shown += f"  {fact}"
        self._status = "\n".join([shown, *([f"  {status.below}"] if status.below else [])])
        self._send()

    def close(self) -> None:
        if self._status:
            self._status = ""
            self._send()

    def _send(self) -> None:
        shown = {"text/plain": "\n".join([*self._lines, *([self._status] * bool(self._status))])}
        if self._output is None:
            self._output = self._display(shown, raw=True, display_id=True)
        else:
            self._output.update(shown, raw=True)


class Unfailing:
    """A screen that goes dark where its stream is closed or broken, and does not end the run."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self.is_live = screen.is_live

    @property
    def width(self) -> int:
        return self._screen.width

    def line(self, text: str, style: str | None = None) -> None:
        try:
            self._screen.line(text, style)
        except (OSError, ValueError):
            self._go_dark()

    def show(self, status: Status) -> None:
        try:
            self._screen.show(status)
        except (OSError, ValueError):
            self._go_dark()

    def close(self) -> None:
        with suppress(OSError, ValueError):
            self._screen.close()

    def _go_dark(self) -> None:
        self.close()
        self._screen, self.is_live = _Dark(), False


class _Dark:
    width = _PLAIN_WIDTH
    is_live = False

    def line(self, text: str, style: str | None = None) -> None:
        pass

    def show(self, status: Status) -> None:
        pass

    def close(self) -> None:
        pass


def standard_output() -> Screen:
    """Standard output, as rich takes it: what the command line prints on."""
    with rng_preserved():
        from rich.console import Console

    console = Console(highlight=False)
    return Terminal(console) if console.is_terminal else Lines(console.file)


def screen_of_fit() -> Screen | None:
    """The notebook whose cell runs, or standard error; None where that is closed."""
    if (display := _notebook_display()) is not None:
        return Unfailing(Notebook(display))
    stream = sys.stderr
    if stream is None or stream.closed:
        return None
    # Within a live display of rich (the program's own, or that of a `fit` around this one) lines
    # are written above that.
    is_taken = any(type(each).__module__.startswith("rich.") for each in (stream, sys.stdout))
    if is_taken or not _is_terminal(stream) or os.environ.get("TERM") == "dumb":
        return Unfailing(Lines(stream))
    with rng_preserved():
        from rich.console import Console

    return Unfailing(Terminal(Console(file=stream, highlight=False, force_terminal=True)))


def _notebook_display() -> Any:
    """`IPython.display.display` in a notebook's kernel; else None."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if getattr(shell, "kernel", None) is None:
        return None
    return sys.modules["IPython.display"].display


def _is_terminal(stream: Any) -> bool:
    try:
        return stream is not None and bool(stream.isatty())
    except (AttributeError, ValueError):
        return False


def _moved_handlers(before: Any, after: Any) -> list[tuple[logging.StreamHandler[Any], Any]]:
    """Have the handlers of `logging` that write to one of the streams `before` write to the one in
    its place; which they are, each with the stream that it had."""
    loggers = [logging.root, *logging.root.manager.loggerDict.values()]
    moved = []
    for handler in dict.fromkeys(h for each in loggers for h in getattr(each, "handlers", ())):
        if isinstance(handler, logging.StreamHandler):
            for old, new in zip(before, after, strict=True):
                if handler.stream is old and new is not old:
                    handler.setStream(new)
                    moved.append((handler, old))
    return moved


def encodable(text: str, stream: IO[str]) -> str:
    """The text, or what of it the stream's encoding has, with a word for a sign."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.translate(_ASCII).encode(encoding, "replace").decode(encoding)
    except LookupError:
        pass
    return text
