"""The code that runs here: its commit, and what the working tree has changed since, as a patch."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

MOST_PATCH = 1_000_000
"""Bytes of the uncommitted changes that a run keeps."""
# Of a file, and of all files in a patch, before and after the change together: git reads them, also
# where little differs.
_MOST_OF_A_FILE = 2_000_000
_MOST_READ = 16_000_000
_MOST_NAMES = 50
_SECONDS = 10
_SUBMODULE = "160000"
_ENCODING = ("utf-8", "surrogateescape")
# What the user's own configuration may not change: a patch must be one that `git apply` takes.
_FORM = (
    "--binary", "--no-renames", "--submodule=diff", "--no-color", "--no-ext-diff", "--no-textconv",
    "--no-relative", "--src-prefix=a/", "--dst-prefix=b/",
)  # fmt: skip


def git_facts() -> dict[str, Any] | None:
    """The repository's folder, the commit checked out here (None before the first), whether tracked
    files differ from it, and which Python files are not tracked; None outside git, or where git
    does not answer."""
    try:
        modified = bool(_ask("status", "--porcelain", "-uno"))
        folder, commit = _checked_out()
        facts: dict[str, Any] = {"folder": folder, "commit": commit, "modified": modified}
        others, left = _untracked(), []
        if modified or others:
            with _index_with(others) as index:
                left = _left_out(_changed_sizes(_base(commit), index))
    except (OSError, subprocess.SubprocessError):
        return None
    if others:
        facts["untracked"] = others[:_MOST_NAMES]
    if left:
        facts["not_in_patch"] = left[:_MOST_NAMES]
    return facts


def changes_since(facts: Any) -> bytes:
    """`uncommitted_changes`, where these facts of `git_facts` say that there are some."""
    if not isinstance(facts, Mapping) or not (facts.get("modified") or facts.get("untracked")):
        return b""
    return uncommitted_changes()


def uncommitted_changes() -> bytes:
    """The changes of tracked files since the commit checked out here, and the Python files that git
    does not track, as `git apply` takes them; empty outside git.

    A file of more than two megabytes, before and after the change together, is not part of it,
    and `git_facts` names it. A longer patch is cut at a megabyte, which its last line notes.
    """
    try:
        with _index_with(_untracked()) as index:
            base = _base(_commit())
            sizes = _changed_sizes(base, index)
            if not sizes:
                return b""
            without = [f":(top,exclude,literal){name}" for name in _left_out(sizes)]
            patch = _ask("diff", *_FORM, base, "--", ":/", *without, index=index)
    except (OSError, subprocess.SubprocessError):
        return b""
    content = patch.encode(*_ENCODING)
    if len(content) <= MOST_PATCH:
        return content
    kept = content[:MOST_PATCH].rpartition(b"\n")[0]
    return kept + f"\n# cut: {len(kept):,} of {len(content):,} bytes\n".encode()


def _checked_out() -> tuple[str, str | None]:
    """The repository's folder, and the commit, None before the first one."""
    # A folder's name may have a line end: git prints `false` between the two.
    between = "--is-bare-repository"
    answer = _ask("rev-parse", "--show-toplevel", between, "--revs-only", "HEAD")
    folder, _, commit = answer.rpartition("\nfalse\n")
    return folder, commit.strip() or None


def _top() -> Path:
    return Path(_ask("rev-parse", "--show-toplevel").rstrip("\n"))


def _commit() -> str | None:
    try:
        return _ask("rev-parse", "--verify", "--quiet", "HEAD").strip()
    except subprocess.CalledProcessError:
        return None


def _base(commit: str | None) -> str:
    """The tree that the working tree is compared with; before the first commit, the empty one."""
    return commit or _ask("hash-object", "-t", "tree", "--stdin").strip()


def _untracked() -> list[str]:
    """The Python files here and below that git neither tracks nor ignores."""
    names = _ask("ls-files", "-z", "--others", "--exclude-standard", "--", "*.py")
    return [name for name in names.split("\0") if name]


@contextmanager
def _index_with(names: Sequence[str]) -> Iterator[str | None]:
    """A copy of git's index in which these untracked files are to be added, so that a diff shows
    them; None where there are none. The repository does not change."""
    if not names:
        yield None
        return
    own, objects = (_ask("rev-parse", "--git-path", n).rstrip("\n") for n in ("index", "objects"))
    with tempfile.TemporaryDirectory() as folder:
        index = os.path.join(folder, "index")
        if os.path.exists(own):
            shutil.copy2(own, index)  # with its time, by which git knows what has changed since
        # For a file that is to be added, git stores the object of an empty one.
        aside = {
            "GIT_OBJECT_DIRECTORY": folder,
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": os.path.abspath(objects),
        }
        _ask("add", "--intent-to-add", "--", *names[:_MOST_NAMES], index=index, **aside)
        yield index


def _changed_sizes(base: str, index: str | None) -> dict[str, int]:
    """The changed files, by their names from the top folder, and their bytes before and after."""
    raw = _ask("diff", "--raw", "-z", "--no-renames", "--no-abbrev", "--no-relative", base,
               index=index).split("\0")  # fmt: skip
    top = _top() if raw[0] else Path()
    sizes, before = {}, {}
    for facts, name in zip(raw[::2], raw[1::2], strict=False):
        mode, _, blob = facts.lstrip(":").split(" ")[:3]
        if mode != _SUBMODULE and blob.strip("0"):
            before[name] = blob
        path = top / name
        sizes[name] = path.lstat().st_size if path.is_file() else 0
    if before:
        listed = _ask("cat-file", "--batch-check=%(objectsize)", given="\n".join(before.values()))
        for name, size in zip(before, listed.split("\n"), strict=False):
            sizes[name] += int(size) if size.isdigit() else 0
    return sizes


def _left_out(sizes: Mapping[str, int]) -> list[str]:
    """The files that do not go into a patch: large ones, and the largest of very many."""
    total, left = 0, []
    for name, size in sorted(sizes.items(), key=lambda item: item[1]):
        total += size
        if size > _MOST_OF_A_FILE or total > _MOST_READ:
            left.append(name)
    return sorted(left)


def _ask(*words: str, index: str | None = None, given: str = "", **settings: str) -> str:
    """The output of git with these `settings` in its environment, its line ends as they are. Raises
    `OSError` without git, `SubprocessError` where it fails."""
    if index is not None:
        settings["GIT_INDEX_FILE"] = index
    answer = subprocess.run(
        ["git", *words],
        input=given.encode(*_ENCODING), capture_output=True, timeout=_SECONDS, check=True,
        env={**os.environ, "GIT_OPTIONAL_LOCKS": "0", **settings},
    )  # fmt: skip
    return answer.stdout.decode(*_ENCODING)
