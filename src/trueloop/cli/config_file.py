"""Configuration files with the options of `trueloop train`: YAML, TOML or JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from trueloop import files
from trueloop.errors import ConfigError, nearest

_MOST_BYTES = 10_000_000


def read_config(path: Path) -> dict[str, Any]:
    """The keys of a file: TOML if its name ends so, else YAML, of which JSON is a part. Raises
    `ConfigError`."""
    is_toml = path.suffix.lower() == ".toml"
    lines = "`key = value` lines" if is_toml else "`key: value` lines"
    try:
        text = files.read_text(path, _MOST_BYTES).removeprefix("\ufeff")
        content = _of_toml(path, text) if is_toml else _of_yaml(path, text)
    except FileNotFoundError:
        raise ConfigError(f"no configuration file {path}: check --config") from None
    except OSError as error:
        raise ConfigError(f"{files.cannot_read(path, error)}, in YAML, TOML or JSON") from None
    except UnicodeDecodeError:
        raise ConfigError(
            f"{path} is not UTF-8 text: --config takes a YAML, TOML or JSON file"
        ) from None
    except (ValueError, RecursionError) as error:  # a date or a number that there is not, a maze
        if isinstance(error, ConfigError):
            raise
        why = "too deep" if isinstance(error, RecursionError) else str(error).partition(":")[0]
        raise ConfigError(f"{path} cannot be read ({why}): write {lines}") from None
    if not text.strip():
        raise ConfigError(f"{path} is empty: write {lines}, one option each")
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigError(f"{path} contains no options: write {lines}, one option each")
    return {str(key): value for key, value in content.items()}


def _of_toml(path: Path, text: str) -> Any:
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        where = re.search(r"line \d+", str(error))
        line = f" at {where[0]}" if where else ""
        if "overwrite" in str(error):
            raise ConfigError(f"{path}: a key is given twice{line}: leave one of them") from None
        raise ConfigError(f"{path} is not TOML{line}: write `key = value` lines") from None


def _of_yaml(path: Path, text: str) -> Any:
    import yaml

    try:
        return _load(text)
    except yaml.YAMLError as error:
        where = getattr(error, "problem_mark", None)
        line = f" at line {where.line + 1}" if where else ""
        raise ConfigError(
            f"{path} is neither YAML nor JSON{line}: write `key: value` lines"
        ) from None


def _load(text: str) -> Any:
    """The text's content, in which no key is written twice: YAML would take the last in silence."""
    import yaml

    class OptionsLoader(yaml.SafeLoader):  # type: ignore[misc]
        pass

    def mapping(loader: Any, node: Any) -> Any:
        keys = [key.value for key, _ in node.value]
        for key in keys:
            if isinstance(key, str) and keys.count(key) > 1:
                raise ValueError(f"{key!r} is given twice")
        return loader.construct_mapping(node, deep=True)

    OptionsLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, mapping)
    return yaml.load(text, OptionsLoader)


def known_keys(file: dict[str, Any], options: Iterable[str], source: str) -> dict[str, Any]:
    """The file's keys by the names of their `options` (`--batch-size`). Raises `ConfigError`."""
    names = {option.removeprefix("--").replace("-", "_") for option in options}
    names -= {"help", "config", "print_config"} | {f"no_{name}" for name in names}
    values: dict[str, Any] = {}
    for key, value in file.items():
        name = key.strip().removeprefix("--").replace("-", "_")
        if isinstance(value, dict) and name not in names:
            raise ConfigError(
                f"{source}: {key!r} is a table of options, and options are at the top: "
                "leave out the heading"
            )
        if name not in names:
            raise ConfigError(f"{source}: unknown key {key!r}: {nearest(name, names)}")
        if name in values:
            raise ConfigError(f"{source}: {key!r} is given twice: leave one of them")
        if isinstance(value, dict):
            raise ConfigError(
                f"{source}: {key!r} has keys below it, and an option has one value: write "
                f"{name} and its value in one line"
            )
        values[name] = value
    return values
