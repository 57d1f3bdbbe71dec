"""`[tool.trueloop]` of a pyproject.toml: which rules, which files."""

from __future__ import annotations

import fnmatch
import os
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from trueloop.doctor.rules.catalogue import BY_CODE
from trueloop.doctor.rules.selection import codes_of
from trueloop.errors import ConfigError, nearest
from trueloop.files import cannot_read, read_bytes

LARGEST = 1_000_000
"""Bytes of a pyproject.toml."""
KEYS = ("select", "ignore", "exclude", "per-file-ignores")


@dataclass(frozen=True)
class Config:
    """The settings of a check below one folder."""

    root: str
    """Folder of the pyproject.toml; patterns are relative to it."""
    select: frozenset[str] = frozenset(BY_CODE)
    ignore: frozenset[str] = frozenset()
    exclude: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, frozenset[str]], ...] = ()

    def wants(self, code: str, path: str) -> bool:
        """Whether a rule is asked for in the file at the absolute `path`."""
        if code not in self.select or code in self.ignore:
            return False
        return not any(
            code in codes and self._matches(path, pattern)
            for pattern, codes in self.per_file_ignores
        )

    def excludes(self, path: str) -> bool:
        """Whether the file or folder at the absolute `path`, or a folder around it, is excluded."""
        return any(self._matches(path, pattern) for pattern in self.exclude)

    def _matches(self, path: str, pattern: str) -> bool:
        """A pattern without a slash fits any part of the path, one with a slash its beginning."""
        relative = os.path.relpath(path, self.root).replace(os.sep, "/")
        wanted = pattern.removeprefix("./").removeprefix("**/").rstrip("/")
        parts = [part for part in relative.split("/") if part != ".."]
        candidates: Iterable[str] = parts
        if "/" in wanted:
            candidates = ("/".join(parts[:end]) for end in range(1, len(parts) + 1))
        return any(fnmatch.fnmatchcase(each, wanted) for each in candidates)


@dataclass
class Configs:
    """The configuration of each file, from the nearest pyproject.toml that has one.

    What was given on the command line (`select`, `ignore`, `exclude`) goes before it.
    """

    select: frozenset[str] | None = None
    ignore: frozenset[str] | None = None
    exclude: tuple[str, ...] | None = None
    _found: dict[str, Config] = field(default_factory=dict)

    def of(self, path: str) -> Config:
        """The configuration of the file or folder at the absolute `path`."""
        return self._of_folder(os.path.dirname(path))

    def excludes(self, path: str) -> bool:
        return self.of(path).excludes(path)

    def wants(self, code: str, path: str) -> bool:
        return self.of(path).wants(code, path)

    def _of_folder(self, folder: str) -> Config:
        found = self._found.get(folder)
        if found is None:
            table = _read(os.path.join(folder, "pyproject.toml"))
            above = os.path.dirname(folder)
            if table is not None:
                found = self._overridden(table, folder)
            elif above != folder:
                found = self._of_folder(above)
            else:
                found = self._overridden({}, os.getcwd())
            self._found[folder] = found
        return found

    def _overridden(self, table: dict[str, Any], folder: str) -> Config:
        config = _parsed(table, folder)
        if self.select is not None:
            config = replace(config, select=self.select)
        if self.ignore is not None:
            config = replace(config, ignore=self.ignore)
        if self.exclude is not None:
            config = replace(config, exclude=self.exclude)
        return config


def project_root(folder: str) -> str | None:
    """The nearest folder, from `folder` upwards, with a pyproject.toml."""
    for candidate in (Path(folder), *Path(folder).parents):
        if (candidate / "pyproject.toml").is_file():
            return str(candidate)
    return None


def _read(path: str) -> dict[str, Any] | None:
    """The file's `[tool.trueloop]`; None without such a file or such a table."""
    try:
        data = read_bytes(path, LARGEST)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(cannot_read(path, error)) from None
    if b"trueloop" not in data:
        return None  # a mistake in it is for somebody else to correct
    try:
        content = tomllib.loads(data.decode("utf-8"))
    except RecursionError:
        raise ConfigError(f"{path} is nested too deeply to be read: rewrite it") from None
    except ValueError as error:  # no TOML, no UTF-8, numbers of more digits than Python takes
        raise ConfigError(f"{path} is not valid TOML ({error}): correct the file") from None
    tool = content.get("tool")
    if not isinstance(tool, dict) or "trueloop" not in tool:
        return None
    table = tool["trueloop"]
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: tool.trueloop must be a table: write [tool.trueloop]")
    return table


def _parsed(table: dict[str, Any], folder: str) -> Config:
    source = f"{os.path.join(folder, 'pyproject.toml')}, [tool.trueloop]"
    for key in table:
        if key not in KEYS:
            raise ConfigError(f"{source}: unknown key {key!r}: {nearest(key, KEYS)}")
    config = Config(folder)
    if "select" in table:
        words = _texts(table["select"], f"{source} select", '"TL1"')
        config = replace(config, select=codes_of(words, f"{source} select"))
    if "ignore" in table:
        words = _texts(table["ignore"], f"{source} ignore", '"TL703"')
        config = replace(config, ignore=codes_of(words, f"{source} ignore"))
    if "exclude" in table:
        patterns = _texts(table["exclude"], f"{source} exclude", '"third_party"')
        config = replace(config, exclude=tuple(patterns))
    per_file = table.get("per-file-ignores", {})
    where = f"{source} per-file-ignores"
    if not isinstance(per_file, dict):
        raise ConfigError(f'{where} must be a table: write {{ "examples/*.py" = ["TL703"] }}')
    ignores = (
        (pattern, codes_of(_texts(words, f"{where} {pattern!r}", '"TL703"'), where))
        for pattern, words in per_file.items()
    )
    return replace(config, per_file_ignores=tuple(ignores))


def _texts(value: Any, where: str, example: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise ConfigError(f"{where} must be a list of texts: write [{example}]")
    return value
