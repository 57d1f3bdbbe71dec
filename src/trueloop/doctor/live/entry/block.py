"""`with trueloop.watch():` around your own loop."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import TracebackType
from typing import Any

from trueloop import _options, reprs
from trueloop.doctor.config import Configs
from trueloop.doctor.live.session import Session, Watched, live_codes, running
from trueloop.doctor.model.findings import Finding
from trueloop.doctor.report.terminal import paint_for
from trueloop.doctor.report.watched import as_text
from trueloop.doctor.rules.selection import codes_of
from trueloop.errors import ConfigError


class Watching:
    """A block that is watched; what was found is there after it."""

    def __init__(self, configs: Configs, first: int | None, show: bool) -> None:
        self.findings: list[Finding] = []
        """The findings, each with its code, name, severity, place, message and fix."""
        self.updates = 0
        """Steps that optimizers took in the block."""
        self.errors: list[str] = []
        """Errors of the watching itself."""
        self._configs = configs
        self._first = first
        self._show = show
        self._session: Session | None = None
        self._before: Watched | None = None

    def __repr__(self) -> str:
        codes = sorted({each.code for each in self.findings})
        return reprs.described(self, f"{self.updates:,} updates", " ".join(codes) or "no findings")

    def _repr_html_(self) -> str:
        rows = []
        for each in self.findings:
            place = f"{each.place.path}:{each.place.line}"
            rows.append((each.code, each.severity, place, each.message, each.fix or ""))
        head = ("rule", "severity", "place", "what happens", "what to do")
        return reprs.html_table(repr(self), head, rows)

    def __enter__(self) -> Watching:
        if self._session is not None:
            raise ConfigError("this block is watched already: write trueloop.watch() for each")
        self._session = running()
        if self._session is not None:
            self._before = self._session.so_far()
        else:
            self._session = Session(self._configs, first=self._first)
            self._session.begin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        session = self._session
        assert session is not None
        if not session.is_here:
            return
        if self._before is not None:
            self._since(self._before, session.so_far())
            return
        if error is not None:
            session.record_crash(error)
        watched = session.end(cut=kind is not None)
        self.findings, self.updates, self.errors = watched.findings, watched.updates, watched.errors
        if self._show and sys.stderr is not None:
            print(as_text(watched, paint_for(sys.stderr)), file=sys.stderr)

    def _since(self, before: Watched, now: Watched) -> None:
        """Part of a program that is watched as a whole, which will say it all."""
        known = {(each.code, each.place) for each in before.findings}
        self.findings = [each for each in now.findings if (each.code, each.place) not in known]
        self.updates = now.updates - before.updates
        self.errors = now.errors


def watch(
    *,
    select: Iterable[str] | None = None,
    ignore: Iterable[str] | None = None,
    first: int | None = None,
    show: bool = True,
) -> Watching:
    """Watch a block train, and report what is wrong with it.

        with trueloop.watch() as watched:
        train(model, loader)
        assert not watched.findings

    What the block computes is bitwise what it computes without. Inside of a program that is watched
    already, nothing is printed here, and `first`, `select` and `ignore` are the program's.

    Args:
        select: only these rules: codes, names or groups such as "TL1"; None: all.
        ignore: not these rules.
        first: watch so many updates only; None: all.
        show: print what was found on stderr, after the block.

    Returns:
        A context manager, with `findings` after the block.

    Raises:
        ConfigError: a rule is unknown, or does not watch programs.
    """
    check_first_and_show(first, show)
    return Watching(configs_for(select, ignore), first, show)


def check_first_and_show(first: Any, show: Any) -> None:
    """Raise `ConfigError` for what cannot be these options of `watch` and `Doctor`."""
    if first is not None:
        _options.whole("first", first, 1, 500)
    _options.flag("show", show)


def _words(option: str, words: Any) -> list[str] | None:
    if words is None:
        return None
    if isinstance(words, str):
        raise ConfigError(f'{option} must be a list of codes: write {option}=["{words}"]')
    listed = list(words) if isinstance(words, Iterable) else [words]
    if not isinstance(words, Iterable) or not all(isinstance(word, str) for word in listed):
        raise ConfigError(
            f'{option}={_options.shown(words)} is not a list of codes: write {option}=["TL1"]'
        )
    return listed


def configs_for(select: Iterable[str] | None, ignore: Iterable[str] | None) -> Configs:
    """The rules that are asked for. Raises `ConfigError` as `watch` does."""
    select, ignore = _words("select", select), _words("ignore", ignore)
    selected = None if select is None else live_codes(select, "select")
    ignored = None if ignore is None else codes_of(ignore, "ignore")
    return Configs(selected, ignored)
