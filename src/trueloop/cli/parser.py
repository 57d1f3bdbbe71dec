"""The parser that all verbs use: options from dataclasses, complaints in one line."""

from __future__ import annotations

import csv
import dataclasses
import functools
import inspect
import re
import shlex
import types
import typing
from argparse import Action, ArgumentError, ArgumentTypeError
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

import jsonargparse

from trueloop.cli import refuse_dashes
from trueloop.cli._help import LIST, HelpfulParser
from trueloop.errors import ConfigError, nearest
from trueloop.option import OptionFacts, facts_of

_SWITCH = jsonargparse.ActionYesNo(yes_prefix="", no_prefix="no-")
_NOTHING = ("none", "null")
"""How nothing is spelled, for options that may have no value."""


class Parser(HelpfulParser):
    """A parser whose every complaint is one `ConfigError` with the nearest known option."""

    def __init__(self, prog: str, **kwargs: Any) -> None:
        jsonargparse.set_parsing_settings(add_print_completion_argument=False)
        super().__init__(
            prog,
            exit_on_error=False,
            allow_abbrev=False,
            print_config=None,
            **kwargs,
        )
        # argparse takes "-1e-3" for an option; here it is a number wherever no option is called so.
        self._negative_number_matcher = re.compile(r"^-\.?\d")
        self.nullable: set[str] = set()
        """Options that may be nothing: `none` and `null`, in any case."""
        self.words: list[str] = []
        """The command line that is being parsed."""

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        raise ConfigError(_one_line(self, str(message))) from None

    def option_names(self) -> list[str]:
        return [name for name in self._option_string_actions if name.startswith("--")]

    def parse(self, argv: Sequence[str], **kwargs: Any) -> Any:
        """`parse_args` with every failure as a `ConfigError`."""
        self.words = self._with_null(argv)
        refuse_dashes(self.words)
        try:
            return self.parse_args(self.words, **kwargs)
        except ArgumentError as error:
            self.error(str(error))

    def _with_null(self, words: Sequence[str]) -> list[str]:
        """The command line with each value that says nothing spelled as YAML has it."""
        changed = list(words)
        for k, word in enumerate(words):
            option, equals, value = word.partition("=")
            if option not in self.nullable:
                continue
            if equals and value.lower() in _NOTHING:
                changed[k] = f"{option}=null"
            elif not equals and k + 1 < len(words) and words[k + 1].lower() in _NOTHING:
                changed[k + 1] = "null"
        return changed

    def parse_values(self, values: dict[str, Any], source: str) -> Any:
        """Values from a file called `source`, typed and checked as if given as options."""
        nothing = {
            name
            for name, value in values.items()
            if isinstance(value, str)
            and value.lower() in _NOTHING
            and f"--{name.replace('_', '-')}" in self.nullable
        }
        given = {name: None if name in nothing else value for name, value in values.items()}
        try:
            return self.parse_object(given)
        except (ConfigError, ArgumentTypeError) as error:
            raise ConfigError(f"{source}: {error}") from None


_KIND = {
    "int": "a whole number",
    "float": "a number",
    "bool": "yes or no",
    "str": "text",
    "Path": "a path",
}
_EXAMPLES = {"a whole number": 8, "a number": 0.5, "yes or no": "yes"}
"""Values that every option of the kind takes, for those without a default."""
_UNKNOWN = "unrecognized arguments: "


def _one_line(parser: Parser, message: str) -> str:
    """One of argparse's or jsonargparse's messages in one line, with the remedy."""
    if message.startswith(_UNKNOWN):
        words = _separated(message.removeprefix(_UNKNOWN), parser.words)
        return _unknown(parser, next((w for w in words if w.startswith("-")), words[0]))
    if match := re.match(r"argument (--[\w-]+)(?:/\S+)?: expected", message):
        option = match[1]
        return f"{option} needs a value: write {option}=VALUE"
    if match := re.match(r"argument (?:-h/)?(--[\w-]+).*: ignored explicit argument (.*)", message):
        return f"{match[1]} takes no value, but got {match[2]}: write {match[1]} without a value"
    if match := re.match(r"argument (--[\w-]+).*invalid _boolean_type value: (.*)", message):
        return f"{match[1]} must be yes or no, not {match[2]}: write {match[1]} or {match[1]}=no"
    if match := re.match(r"the following arguments are required: (\w+)", message):
        return f"{match[1].upper()} is missing: write {parser.prog} {match[1].upper()}"
    if match := re.match(r'Parser key "([\w.]+)":?', message):
        return _wrong_kind(parser, match[1], message)
    text = " ".join(message.split())
    if match := re.match(r"argument (--[\w-]+): (?=--)", text):
        return text.removeprefix(match[0])  # it names the option itself
    return text.removeprefix("argument ")


def _wrong_kind(parser: Parser, name: str, message: str) -> str:
    """A value that is not of its option's kind, from jsonargparse's message."""
    option = "--" + name.replace("_", "-")
    if match := re.search(r"Value not boolean: (.*)\.", message, re.DOTALL):
        return f"{option} must be yes or no, not {match[1]!r}: write {option} yes"
    given = re.search(r"(?:Got|Given) value: (.*)\Z", message, re.DOTALL)
    wanted = [_KIND[k] for k in re.findall(r"class '(?:\w+\.)*(\w+)'", message) if k in _KIND]
    if not (given and wanted):
        return " ".join(message.split())
    value = " ".join(given[1].split())
    if wanted[0] == _KIND["str"]:
        return f"{option} must be text, not {value}: put it in quotes"
    example = next((a.default for a in parser._actions if a.dest == name), None)
    if not isinstance(example, (int, float, str)):
        example = _EXAMPLES.get(wanted[0], "PATH")
    return f"{option} must be {wanted[0]}, not {value!r}: write e.g. {option} {example}"


def _separated(joined: str, words: Sequence[str]) -> list[str]:
    """The words of the command line that argparse has joined by blanks, which they may contain."""
    found, rest = [], joined
    for word in words:
        if rest == word or rest.startswith(f"{word} "):
            found.append(word)
            rest = rest[len(word) + 1 :]
    return found or joined.split() or [joined]


def _unknown(parser: Parser, word: str) -> str:
    known = parser.option_names()
    if not word.startswith("-"):
        return f"unexpected argument {word!r}: {_instead_of(word, known)}"
    name = word.split("=")[0]
    # Without the dashes, which all options share and which would make them look alike.
    hint = nearest(name.lstrip("-"), [option.lstrip("-") for option in known])
    if hint.startswith("did you mean"):
        hint = re.sub(r"'([^']+)'", r"'--\1'", hint)
    else:
        hint = "see --help for all options"
    return f"unknown option {name}: {hint}"


def _instead_of(word: str, known: Collection[str]) -> str:
    """The remedy for a word without an option."""
    option = option_for(word, known)
    if option is not None:
        return f"write {option} {shlex.quote(word)}"
    name, equals, value = word.partition("=")
    if equals and f"--{name}" in known:
        return f"write --{name} {shlex.quote(value)}"
    if f"--{word}" in known:
        return f"write --{word}"
    return "options start with --, see --help"


def option_for(word: str, known: Collection[str]) -> str | None:
    """The option to which a bare file or folder on the command line must belong, if any."""
    if not word.strip():
        return None
    suffix = Path(word).suffix.lower()
    if suffix in CONFIGURATION and "--config" in known:
        return "--config"
    try:
        exists = Path(word).expanduser().exists()
    except (OSError, ValueError):  # too long, or with a zero in it
        return None
    if "--data" in known and (exists or (suffix in _TABLES and "--out" not in known)):
        return "--data"
    return "--out" if "--out" in known and suffix else None


DEVICES = ("auto", "cpu", "cuda", "cuda:N", "mps")
CONFIGURATION = (".yaml", ".yml", ".toml", ".json")
"""How the names of configuration files end."""
_TABLES = (".csv", ".tsv", ".parquet")


def add_dataclass(
    parser: Parser,
    title: str,
    cls: type,
    defaults: Any = None,
    *,
    left_out: Collection[str] = (),
    usual: Collection[str] | None = None,
    changed: Mapping[str, OptionFacts] = MappingProxyType({}),
) -> None:
    """One option for each field of a dataclass, grouped under `title`: those that the class itself
    declares first, then those that it inherits.

    `defaults` is an instance whose values are shown and used instead of the class's own. `left_out`
    fields that become no options. `usual` ones are listed by --help, instead of those that are
    declared so. `changed` facts take the place of those that a field declares.
    Raises `ConfigError` for a field whose option a different dataclass already has.
    """
    group = parser.add_argument_group(title)
    hints, docs = typing.get_type_hints(cls), field_docs(cls)
    base = cls() if defaults is None else defaults
    declares = any(facts_of(field) is not None for field in dataclasses.fields(cls))
    fine = ""
    for field in own_first(cls):
        option = "--" + field.name.replace("_", "-")
        facts = facts_of(field) or OptionFacts(usual=not declares)
        if usual is not None:
            facts = dataclasses.replace(facts, usual=field.name in usual)
        fine = facts.group or fine
        if field.name in left_out:
            continue
        hint = hints[field.name]
        if type(None) in typing.get_args(hint):
            parser.nullable.add(option)
        if option in parser.option_names():
            raise ConfigError(
                f"{cls.__qualname__}.{field.name} would be the option {option}, which every task "
                "has: rename the field"
            )
        action = group.add_argument(
            option,
            default=getattr(base, field.name),
            help=docs.get(field.name, ""),
            **_argument_type(hint),
        )
        if facts.choices and action.metavar == "TEXT":
            action.metavar = "NAME"
        parser.facts[action.dest] = changed.get(field.name, facts)
        parser.fine[action.dest] = fine


def own_first(cls: type) -> list[dataclasses.Field[Any]]:
    """The fields of a dataclass: its own before those that it inherits."""
    own = inspect.get_annotations(cls)
    return sorted(dataclasses.fields(cls), key=lambda field: field.name not in own)


@functools.cache  # the source of a class is searched for in its file, and parsed
def field_docs(cls: type) -> Mapping[str, str]:
    """The docstring under each field, the nearest class in the inheritance first."""
    from docstring_parser import parse_from_object

    docs: dict[str, str] = {}
    for base in reversed(cls.__mro__[:-1]):
        for param in parse_from_object(base).params:
            docs[param.arg_name] = " ".join((param.description or "").split())
    return docs


def _argument_type(hint: Any) -> dict[str, Any]:
    """The argparse arguments for a field's type."""
    parts = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    kinds = [part for part in parts if part is not type(None)]
    if typing.get_origin(kinds[0]) in (list, tuple):
        container: Any = typing.get_origin(kinds[0])
        read = _numbers if float in typing.get_args(kinds[0]) else words_of

        def words(given: Any) -> Any:
            nothing = given in (None, "null") and type(None) in parts
            return None if nothing else container(read(given))

        return {"type": words, "metavar": LIST}
    if kinds == [Path]:
        return {"type": lambda given: path_from(None if given == "null" else given)} | _PATH
    if hint is bool:
        return {"action": _SWITCH, "nargs": "?"}
    if kinds == [bool, str]:
        return {
            "action": _SwitchOrWord,
            "type": _yes_no_or_word,
            "nargs": "?",
            "const": True,
            "metavar": "MODE",
        }
    metavar = {bool: "yes|no", int: "N", float: "X", str: "TEXT"}.get(kinds[0], "VALUE")
    return {"type": hint, "metavar": metavar}


class _SwitchOrWord(Action):
    """`--compile`, `--no-compile`, `--compile=no`, `--compile step`."""

    def __init__(self, option_strings: Sequence[str], dest: str, **kwargs: Any) -> None:
        negative = f"--no-{dest.replace('_', '-')}"
        super().__init__([*option_strings, negative], dest, **kwargs)

    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        setattr(namespace, self.dest, not str(option).startswith("--no-") and values)


def _yes_no_or_word(given: Any) -> bool | str:
    """A switch that also takes words."""
    if isinstance(given, bool):
        return given
    word = str(given).strip().lower()
    if word in ("true", "yes", "false", "no"):
        return word in ("true", "yes")
    return str(given)


_PATH = {"metavar": "PATH"}


def words_of(given: Any) -> list[str]:
    """Names from 'a,b' or '"a, b",c', as in a line of CSV, or from a list in a file."""
    if isinstance(given, str):
        try:
            given.encode()
        except UnicodeEncodeError:
            raise ArgumentTypeError(f"{given!r} is not UTF-8 text: write it in UTF-8") from None
        lines = csv.reader(given.splitlines(), skipinitialspace=True)
        return [word.strip() for line in lines for word in line if word.strip()]
    if isinstance(given, (list, tuple)):
        return [str(word) for word in given]
    raise ValueError("names separated by commas, or a list")


def _numbers(given: Any) -> list[float]:
    """Numbers from "0.1,0.2" or from a list in a file."""
    if isinstance(given, (int, float)) and not isinstance(given, bool):
        given = [given]
    found = []
    for word in words_of(given):
        try:
            found.append(float(word))
        except ValueError:
            raise ArgumentTypeError(
                f"{word!r:.42} is not a number: write numbers separated by commas, e.g. 0.1,0.5,0.9"
            ) from None
    return found


def path_from(given: Any) -> Path | None:
    """An absolute path: the run must find its data again from any directory."""
    if given is None or isinstance(given, Path):
        return given
    # An empty one is most often a variable of the shell's that was never set.
    if str(given).strip() == "" or "\0" in str(given):
        raise ArgumentTypeError(f"{given!r} is not a path: write the name of a file or folder")
    return Path(str(given)).expanduser().absolute()
