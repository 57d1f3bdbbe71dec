"""`%load_ext trueloop`: a notebook is watched, and new findings are shown after each cell."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

from trueloop.doctor.config import Configs
from trueloop.doctor.live.session import Session, running
from trueloop.doctor.report.terminal import finding_text, paint_for, printable


class NotebookCells:
    """Watches what the cells of one IPython shell do."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self._session = Session(Configs())
        self._known: set[object] = set()

    def begin(self) -> None:
        self._session.begin()
        self.shell.events.register("post_run_cell", self._print_findings)

    def end(self) -> None:
        self.shell.events.unregister("post_run_cell", self._print_findings)
        self._session.leave()

    def _print_findings(self, result: Any = None) -> None:
        """Say what the cell that has just ended has brought to light."""
        if not self._session.is_here or sys.stderr is None:
            return
        ended = getattr(result, "success", True)
        watched = self._session.so_far(between_cells=ended)
        paint = paint_for(sys.stderr)
        for finding in watched.findings:
            self._say(finding_text(watched, finding, paint), replace(finding, message="", fix=None))
        for error in watched.errors:
            self._say(
                printable(f"trueloop: a fault of trueloop's own: please report it ({error})"), error
            )

    def _say(self, text: str, what: object) -> None:
        if what not in self._known:
            self._known.add(what)
            print(text, file=sys.stderr)


_loaded: list[NotebookCells] = []


def load_ipython_extension(shell: Any) -> None:
    """Watch from now on; called by `%load_ext trueloop`."""
    if any(cells.shell is shell for cells in _loaded):
        return
    if running() is not None:
        print("trueloop: this process is watched already", file=sys.stderr)
        return
    cells = NotebookCells(shell)
    cells.begin()
    _loaded.append(cells)


def unload_ipython_extension(shell: Any) -> None:
    """Watch no longer; called by `%unload_ext trueloop`."""
    for cells in [each for each in _loaded if each.shell is shell]:
        cells.end()
        _loaded.remove(cells)
