"""Configuration files: YAML or JSON with the options of `trueloop train`, read and printed."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueloop import files
from trueloop.cli.parser import field_docs
from trueloop.errors import ConfigError, nearest

if TYPE_CHECKING:
    from trueloop.cli.options import Settings

_MOST_BYTES = 10_000_000
_WIDTH = 96


def read_config(path: Path) -> dict[str, Any]:
    """The keys of a YAML or JSON file (JSON is YAML). Raises `ConfigError`."""
    import yaml

    try:
        content = _load(files.read_text(path, _MOST_BYTES))
    except FileNotFoundError:
        raise ConfigError(f"no configuration file {path}: check --config") from None
    except OSError as error:
        raise ConfigError(f"{files.cannot_read(path, error)}, in YAML or JSON") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8 text: --config takes a YAML or JSON file") from None
    except yaml.YAMLError as error:
        where = getattr(error, "problem_mark", None)
        line = f" at line {where.line + 1}" if where else ""
        raise ConfigError(
            f"{path} is neither YAML nor JSON{line}: write `key: value` lines"
        ) from None
    except (ValueError, RecursionError) as error:  # a date or a number that there is not, a maze
        why = "too deep" if isinstance(error, RecursionError) else str(error).partition(":")[0]
        raise ConfigError(f"{path} cannot be read ({why}): write `key: value` lines") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigError(f"{path} holds no options: write `key: value` lines, one option each")
    return {str(key): value for key, value in content.items()}


def _load(text: str) -> Any:
    """The text's content, in which no key is written twice: YAML would take the last in silence."""
    import yaml

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        pass

    def mapping(loader: Any, node: Any) -> Any:
        keys = [key.value for key, _ in node.value]
        for key in keys:
            if isinstance(key, str) and keys.count(key) > 1:
                raise ValueError(f"{key!r} is given twice")
        return loader.construct_mapping(node, deep=True)

    Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, mapping)
    return yaml.load(text, Loader)


def known_keys(file: dict[str, Any], options: Iterable[str], source: str) -> dict[str, Any]:
    """The file's keys by the names of their `options` (`--batch-size`). Raises `ConfigError`."""
    names = {option.removeprefix("--").replace("-", "_") for option in options}
    names -= {"help", "config", "print_config"} | {f"no_{name}" for name in names}
    values: dict[str, Any] = {}
    for key, value in file.items():
        name = key.strip().removeprefix("--").replace("-", "_")
        if name not in names:
            raise ConfigError(f"{source}: unknown key {key!r}: {nearest(name, names)}")
        if name in values:
            raise ConfigError(f"{source}: {key!r} is given twice: leave one of them")
        values[name] = value
    return values


def as_yaml(settings: Settings) -> str:
    """The settings as a file that `--config` reads back as the same settings.

    What the user has not stated of the recipe is left to the task, which may go by the data, and
    stands in comments.
    """
    lines = [
        "# trueloop train --config FILE",
        "# What is commented out is the task's default, which may go by the data: remove the # in",
        "# front of an option to decide it here.",
        "",
        _line("task", settings.task),
    ]
    plain = settings.config()
    for title, part in (
        ("options of the task", settings.options),
        ("how it trains", settings.recipe),
        ("the run", settings.run),
    ):
        docs = field_docs(type(part))
        named = [field.name for field in dataclasses.fields(part)]
        shown = [name for name in named if name in plain]
        # Where the run goes is its own, and is printed only if it was given.
        own = {name: getattr(part, name) for name in named if name in settings.stated - set(shown)}
        if shown:
            lines += ["", f"# ---- {title}"]
        for name in [*shown, *own]:
            value = plain[name] if name in plain else own[name]
            left = part is settings.recipe and name not in settings.stated
            lines += [
                "",
                *_comment(docs.get(name, "")),
                ("# " if left else "") + _line(name, value),
            ]
    return "\n".join(lines) + "\n"


def _line(name: str, value: Any) -> str:
    import yaml

    given = str(value) if isinstance(value, Path) else value
    text = yaml.safe_dump(given, default_flow_style=True, allow_unicode=True, width=10**9)
    return f"{name}: {text.removesuffix(chr(10)).removesuffix(chr(10) + '...')}"


def _comment(text: str) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(text, _WIDTH)]
