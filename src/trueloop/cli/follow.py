"""`trueloop follow [RUN]`: the curves of a run in the terminal, as it goes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from trueloop.cli import OK
from trueloop.cli._latest import UNSET, run_or_latest
from trueloop.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console

    from trueloop.run.live_view import LiveView

_SHARE = 10
"""A frame takes at most one part of so many of the time."""
_HEARTBEAT = 30.0
"""Without a terminal: seconds between two lines where evaluations are rare."""


def main(argv: Sequence[str]) -> int:
    """Show the run until it ends; the exit status."""
    from trueloop.cli.parser import Parser

    parser = Parser(
        "trueloop follow",
        usage="trueloop follow [RUN] [options]",
        description="Show the curves of a run in the terminal as it goes, until it ends or Ctrl-C.",
        epilog="example:\n  trueloop follow runs/spiral-20250131-120000",
    )
    parser.add_option("run", nargs="?", metavar="RUN", unset=UNSET, help="directory of the run")
    parser.add_option("--once", action="store_true", help="print one frame and end")
    parser.add_option(
        "--seconds", type=float, default=1.0, metavar="X", help="time between two frames"
    )
    given = parser.parse(argv)
    if not 0.1 <= given.seconds <= 3600:
        raise ConfigError(f"--seconds must be from 0.1 to 3600, not {given.seconds}: write 1")
    run = run_or_latest(given.run, parser, single=True)

    from rich.console import Console

    from trueloop.run import Run
    from trueloop.run.live_view import LiveView

    view, console = LiveView(Run(run)), Console(highlight=False)
    view.read()
    try:
        if given.once:
            _print_frame(view, console)
        elif console.is_terminal:
            _show(view, console, given.seconds)
        else:
            _print_lines(view, console, given.seconds)
    except KeyboardInterrupt:
        pass  # how one stops looking; the run goes on
    return OK


def _show(view: LiveView, console: Console, seconds: float) -> None:
    """Frames on the whole terminal, and the last one below the command."""
    from rich.live import Live

    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            start = time.monotonic()
            live.update(view.frame(*console.size), refresh=True)
            if view.end is not None:
                break
            time.sleep(max(seconds, _SHARE * (time.monotonic() - start)))
            view.read()
    _print_frame(view, console)


def _print_frame(view: LiveView, console: Console) -> None:
    height = console.height if console.is_terminal else 40
    console.print(view.frame(console.width, min(40, height - 1)))


def _print_lines(view: LiveView, console: Console, seconds: float) -> None:
    """Without a terminal, a line for each evaluation, and one now and then between them."""
    shown, spoke = -1, -_HEARTBEAT
    while True:
        ended = view.end is not None
        count = len(view.log.evals)
        if ended or count != shown or time.monotonic() - spoke >= _HEARTBEAT:
            text = "  ".join(line.plain for line in view.summary())
            console.print(text, markup=False, soft_wrap=True)
            shown, spoke = count, time.monotonic()
        if ended:
            return
        time.sleep(seconds)
        view.read()
