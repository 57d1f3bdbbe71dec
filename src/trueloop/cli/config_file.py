"""Configuration files: YAML or JSON with the options of `trueloop train`, read and printed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from trueloop import files
from trueloop.errors import ConfigError, nearest

_MOST_BYTES = 10_000_000


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
        raise ConfigError(f"{path} contains no options: write `key: value` lines, one option each")
    return {str(key): value for key, value in content.items()}


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
        if name not in names:
            raise ConfigError(f"{source}: unknown key {key!r}: {nearest(name, names)}")
        if name in values:
            raise ConfigError(f"{source}: {key!r} is given twice: leave one of them")
        values[name] = value
    return values
