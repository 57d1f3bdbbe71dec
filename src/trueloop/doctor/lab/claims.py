"""Claims about the training loop, and their tests: the folders of examples/lab.

A folder has a right and a wrong program, perhaps a third for the reader's own trials, and a
`claim.toml`: the claim as it is taught, the figures of the programs to show, statements that every
seed can refute, and which of them make which verdict.
"""

from __future__ import annotations

import ast
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trueloop.errors import ConfigError, nearest

VERDICTS = ("true", "true only if", "no longer true", "false")
UNITS = ("", "share", "bytes", "seconds", "times", "count")
_INSTALLED = Path(__file__).with_name("programs")
_CHECKOUT = Path(__file__).parents[4] / "examples" / "lab"


@dataclass(frozen=True)
class Shown:
    """A figure that both programs print, and how it is shown."""

    name: str
    says: str
    unit: str = ""


@dataclass(frozen=True)
class Statement:
    """Something that one seed can refute: `test` is an expression over the programs' figures."""

    name: str
    says: str
    test: str


@dataclass(frozen=True)
class ClaimOutcome:
    """A verdict, and the statements that must be true in every seed for it."""

    verdict: str
    needs: tuple[str, ...]
    says: str


@dataclass(frozen=True)
class Claim:
    """A claim and all that decides it."""

    folder: Path
    number: str
    """Place in the crib sheet: a topic's number, and a letter where it has several claims."""
    title: str
    claim: str
    """As it is commonly taught, in one sentence."""
    why: str
    """The reason for what is measured."""
    curve: str
    """Name of the list that is drawn."""
    curve_says: str
    curve_x: str
    curve_log: bool
    timed: bool
    """Its figures are times: nothing else may run beside it."""
    figures: tuple[Shown, ...]
    tests: tuple[Statement, ...]
    verdicts: tuple[ClaimOutcome, ...]
    finds: tuple[str, ...]
    """Codes of the errors and warnings that the doctor finds in the wrong program."""
    harmless: bool
    """The wrong program breaks nothing."""
    silent: str
    """Why the doctor has nothing to say of the wrong program."""

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def order(self) -> tuple[int, str]:
        digits = self.number.rstrip("abcdefghijklmnopqrstuvwxyz")
        return int(digits), self.number

    def program(self, side: str) -> Path:
        return self.folder / f"{side}.py"

    @property
    def convinces(self) -> Path | None:
        """The smallest program with which readers convince themselves."""
        path = self.program("convince")
        return path if path.exists() else None


def folder() -> Path:
    """The folder of the programs: beside this file once installed, in examples/lab in a checkout.

    Raises `ConfigError` if they are in neither place.
    """
    for path in (_INSTALLED, _CHECKOUT):
        if path.is_dir():
            return path
    raise ConfigError("the lab's programs are missing from this installation: install it again")


def all_claims() -> list[Claim]:
    """Every claim, in the order of the crib sheet."""
    claims = [_read(path.parent) for path in folder().glob("*/claim.toml")]
    return sorted(claims, key=lambda claim: claim.order)


def claims_named(names: list[str]) -> list[Claim]:
    """The claims with these names or numbers ("4" is 4a to 4d), in the order of the crib sheet; all
    of them without names. Raises `ConfigError` for an unknown name."""
    claims = all_claims()
    if not names:
        return claims
    chosen = []
    for name in names:
        meant = [c for c in claims if name in (c.name, c.number, str(c.order[0]))]
        if not meant:
            hint = nearest(name, [claim.name for claim in claims])
            raise ConfigError(f"--only: no claim is called {name!r}: {hint}")
        chosen += meant
    return [claim for claim in claims if claim in chosen]


def _read(path: Path) -> Claim:
    with open(path / "claim.toml", "rb") as file:
        table = tomllib.load(file)
    doctor = table.get("doctor", {})
    return Claim(
        folder=path,
        number=str(table["number"]),
        title=table["title"],
        claim=table["claim"],
        why=" ".join(table["why"].split()),
        curve=table["curve"],
        curve_says=table["curve_says"],
        curve_x=table["curve_x"],
        curve_log=table.get("curve_log", False),
        timed=table.get("timed", False),
        figures=tuple(Shown(name, **entry) for name, entry in table["figures"].items()),
        tests=tuple(Statement(**entry) for entry in table["tests"]),
        verdicts=tuple(_outcome(entry) for entry in table["verdicts"]),
        finds=tuple(doctor.get("finds", ())),
        harmless=doctor.get("harmless", False),
        silent=doctor.get("silent", ""),
    )


def _outcome(entry: dict[str, Any]) -> ClaimOutcome:
    return ClaimOutcome(entry["verdict"], tuple(entry["needs"]), entry["says"])


def docstring_of(source: str) -> tuple[str, str]:
    """(the docstring of a program, the program without it)."""
    tree = ast.parse(source)
    text = ast.get_docstring(tree)
    if text is None:
        return "", source
    end = tree.body[0].end_lineno or 0
    return text, "\n".join(source.splitlines()[end:]).lstrip("\n")
