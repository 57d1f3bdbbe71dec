"""The doctor's own programs, for benchmarks that change them and run `check` on the result."""

from __future__ import annotations

import argparse
from pathlib import Path

CORPUS = Path(__file__).parent.parent / "tests" / "doctor" / "corpus"


def options(about: str | None) -> argparse.ArgumentParser:
    """The options that these benchmarks share; the first line of `about` describes the command."""
    parser = argparse.ArgumentParser(description=(about or "").splitlines()[0])
    parser.add_argument("--folder", type=Path, help="programs of a different folder")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--show", action="store_true", help="print each program that is affected")
    return parser


def programs_in(folder: Path) -> list[Path]:
    """The Python files of a folder. Raises SystemExit where there is none."""
    programs = sorted(folder.rglob("*.py"))
    if not programs:
        raise SystemExit(f"no Python file in {folder}")
    return programs
