"""Git repositories without a work tree: their Python files and notebooks at a commit.

Clones lie in one folder as `owner+name`, each a bare repository, or with a `.git` (or `repo`,
`repo/.git`) in it.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

LISTS = Path(__file__).parent / "public"
SUFFIXES = (".py", ".ipynb")
LARGEST = 4_000_000
"""Bytes: generated tables and notebooks full of pictures are left out."""


@dataclass(frozen=True)
class Repository:
    """One line of `public/repositories.json`."""

    repository: str
    commit: str
    kind: str
    part: str
    """`looked at` while rules are changed, or `held out`."""
    folders: tuple[str, ...] = ()
    """Only these; everything if empty."""

    @property
    def folder(self) -> str:
        return folder_of(self.repository)


def folder_of(repository: str) -> str:
    """What a checkout or a clone is called."""
    return repository.replace("/", "+")


def listed(lists: Path = LISTS) -> list[Repository]:
    """The repositories that the committed list names."""
    content = json.loads((lists / "repositories.json").read_text("utf-8"))
    return [
        Repository(**{**each, "folders": tuple(each.get("folders", ()))})
        for each in content["repositories"]
    ]


def git_folder(clones: Path, repository: str) -> Path | None:
    """Where the objects of a clone are."""
    root = clones / folder_of(repository)
    for path in (root / "repo" / ".git", root / "repo", root / ".git", root):
        if (path / "HEAD").exists():
            return path
    return None


def git(folder: Path, *words: str, given: bytes | None = None) -> bytes:
    command = ["git", f"--git-dir={folder}", *words]
    return subprocess.run(command, input=given, capture_output=True, check=True).stdout


def files_at(folder: Path, commit: str, folders: Sequence[str] = ()) -> Iterator[tuple[str, bytes]]:
    """The Python files and notebooks of a commit: path and content."""
    listing = git(folder, "ls-tree", "-r", "-l", "-z", commit, "--", *folders)
    names: dict[str, list[str]] = {}
    for line in listing.decode("utf-8", "replace").split("\0"):
        facts, _, path = line.partition("\t")
        if not path.endswith(SUFFIXES):
            continue
        mode, _, blob, size = facts.split()
        if mode.startswith("100") and size.isdigit() and int(size) <= LARGEST:
            names.setdefault(blob, []).append(path)
    for blob, content in blobs(folder, names):
        for path in names[blob]:
            yield path, content


def blobs(folder: Path, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """The content of objects by their hash; those that the clone does not have are left out."""
    answer = git(folder, "cat-file", "--batch", given="".join(f"{n}\n" for n in names).encode())
    at = 0
    while at < len(answer):
        end = answer.index(b"\n", at)
        head = answer[at:end].decode().split()
        at = end + 1
        if head[1] != "missing":
            size = int(head[2])
            yield head[0], answer[at : at + size]
            at += size + 1


def check_out(folder: Path, commit: str, into: Path, folders: Sequence[str] = ()) -> int:
    """Write the files of a commit below `into`; how many there are."""
    count = 0
    for path, content in files_at(folder, commit, folders):
        target = into / path
        if ".." in Path(path).parts or Path(path).is_absolute():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        count += 1
    return count


def check_out_all(clones: Path, into: Path, repositories: Iterable[Repository]) -> None:
    """Check out what is not there yet, and say what cannot be had."""
    for each in repositories:
        target = into / each.folder
        if target.exists():
            continue
        folder = git_folder(clones, each.repository)
        if folder is None:
            print(f"no clone of {each.repository} in {clones}")
            continue
        count = check_out(folder, each.commit, target, each.folders)
        print(f"{each.repository}: {count} files")
