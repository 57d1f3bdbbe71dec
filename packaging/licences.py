"""Writes docs/licences.md: the licence of every package that trueloop and its extras pull in.

    python packaging/licences.py          # asks pip which packages those are; needs the network

pip resolves each extra without installing it; the licences are those of the packages' metadata.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
import tomllib
import venv
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "licences.md"
_HEAD = """\
# Licences

Trueloop is under the Apache License 2.0. These are the packages that it installs, and the licences
in their metadata. `python packaging/licences.py` writes this page.
"""
_SKIPPED = ("dev", "peers", "docs", "release")
"""Extras for the development of trueloop."""


def main() -> None:
    """Resolve, and write the page."""
    given = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    with tempfile.TemporaryDirectory() as scratch:
        venv.create(scratch, with_pip=True, upgrade_deps=True)  # an old pip leaves licences out
        write(given, Path(scratch) / "bin" / "python")


def write(given: dict[str, Any], python: Path) -> None:
    """The page, of what the pip of `python` resolves."""
    base = resolved(python, "")
    parts = [_HEAD, table("trueloop", base.values())]
    for extra in given["optional-dependencies"]:
        if extra not in _SKIPPED:
            more = resolved(python, f"[{extra}]")
            parts.append(
                table(f"trueloop[{extra}]", (more[name] for name in more if name not in base))
            )
    PAGE.write_text("\n".join(parts))
    print(f"wrote {PAGE.relative_to(ROOT)}")


def resolved(python: Path, extra: str) -> dict[str, dict[str, Any]]:
    """The metadata of each package that pip would install for trueloop with `extra`."""
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.json"
        words = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                 "--dry-run", "--ignore-installed", "--report", str(report),
                 "-c", str(ROOT / "constraints.txt"), f"{ROOT}{extra}"]  # fmt: skip
        subprocess.run(words, check=True)
        found = [each["metadata"] for each in json.loads(report.read_text())["install"]]
    return {each["name"].lower(): each for each in found if each["name"] != "trueloop"}


def table(title: str, packages: Iterable[dict[str, Any]]) -> str:
    """A section with a row for each package."""
    rows = [
        f"| {each['name']} | {licence(each)} |"
        for each in sorted(packages, key=lambda each: each["name"].lower())
    ]
    lines = [f"## {title}", ""]
    lines += ["| package | licence |", "| --- | --- |", *rows] if rows else ["No further package."]
    return "\n".join([*lines, ""])


def licence(metadata: dict[str, Any]) -> str:
    """As its metadata names it: SPDX expression, classifier, or the free text's first line."""
    if metadata.get("license_expression"):
        return str(metadata["license_expression"])
    named = [
        each.rpartition(" :: ")[2]
        for each in metadata.get("classifier", [])
        if each.startswith("License ::") and each != "License :: OSI Approved"
    ]
    text = (metadata.get("license") or "").strip().splitlines()
    if named:
        return ", ".join(named)
    return re.sub(r"\s+", " ", text[0]) if text else "not in its metadata"


if __name__ == "__main__":
    main()
