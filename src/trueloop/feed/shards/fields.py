"""Which fields a sample has, under which names, and what each is decoded with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trueloop import _options
from trueloop.errors import ConfigError, DataError, nearest
from trueloop.feed.collate import reason_of
from trueloop.feed.shards.decode import NAMED, Decoder, of_field, raw
from trueloop.feed.shards.index import Index
from trueloop.feed.shards.tar import KEY

_EXAMPLE = "fields=('jpg', 'cls')"


class Fields:
    """The user's `fields` and `decode`, checked against what the shards have.

    `fields` is None (all, as a dict), a sequence of names (a tuple in this order) or a mapping of
    names to fields (a dict). `jpg;png` is the first of these that a sample has.
    """

    def __init__(self, fields: Any, decode: Any, index: Index) -> None:
        self._is_tar = index.format == "tar"
        self.is_tuple = fields is not None and not isinstance(fields, Mapping)
        known = self._known(index)
        self.names = _named(fields)
        """By name: the fields of which a sample has the first; None for all."""
        self._decoders = _decoders(decode, known)
        if self.names is not None:
            self.names = {name: self._there(each, known) for name, each in self.names.items()}
        wanted = [each for choices in (self.names or {}).values() for each in choices]
        _check_missing(self.names, index)
        self.columns = None if self.names is None else list(dict.fromkeys(wanted))
        """The columns to be read; None for all."""
        self.draws = any(not _is_named(each) for each in self._decoders.values())
        """Whether functions of the user's are called, which may draw random numbers."""

    def _there(self, choices: Sequence[str], known: Mapping[str, str]) -> tuple[str, ...]:
        """Those of `choices` that some sample has; of columns, which every sample has, one."""
        found = [each for each in choices if each in known or (self._is_tar and each == KEY)]
        if not found:
            raise ConfigError(
                f"the shards have no field {choices[0]!r}: {nearest(choices[0], known)}"
            )
        return tuple(found if self._is_tar else found[:1])

    def _known(self, index: Index) -> dict[str, str]:
        """All fields with their types. The columns of all shards must be of the same types."""
        if self._is_tar:
            return {name: kind for fields in index.fields for name, kind in fields.items()}
        first = index.fields[0]
        for file, fields in zip(index.files, index.fields, strict=True):
            for name in sorted(first.keys() | fields.keys()):
                here, there = fields.get(name, "missing"), first.get(name, "missing")
                if here != there:
                    raise DataError(
                        f"the column {name!r} is {there} in {index.files[0].path} and {here} in "
                        f"{file.path}: write the shards with one schema"
                    )
        return first

    @property
    def decoded(self) -> list[str]:
        """The columns that a decoder takes."""
        return list(self._decoders)

    def sample(self, block: Any, row: int) -> Any:
        """The sample `row` of a block, decoded: a tuple or a dict."""
        if self.names is None:
            return {name: self._value(block, row, (name,)) for name in block.fields(row)}
        values = {name: self._value(block, row, each) for name, each in self.names.items()}
        return tuple(values.values()) if self.is_tuple else values

    def _value(self, block: Any, row: int, choices: Sequence[str]) -> Any:
        for field in choices:
            value = block.raw(row, field)
            if value is not None or not self._is_tar:
                break
        else:
            raise DataError(
                f"the sample {block.where(row)} has no field {' or '.join(choices)}: write the "
                "shard again, or leave the field out with fields=[...]"
            )
        decoder = self._decoders.get(field)
        if decoder is None:
            decoder = of_field(field) if self._is_tar and field != KEY else raw
        try:
            return decoder(value)
        except DataError:
            raise
        except Exception as error:
            raise DataError(
                f"the field {field!r} of the sample {block.where(row)} cannot be decoded, "
                f"{reason_of(error)}: repair or remove the sample, or give "
                f"decode={{{field!r}: function}}"
            ) from error


def _named(fields: Any) -> dict[str, tuple[str, ...]] | None:
    if fields is None:
        return None
    if isinstance(fields, str) or not isinstance(fields, (Mapping, Sequence)) or not fields:
        raise ConfigError(
            f"fields={_options.shown(fields)} is not a list of names: write e.g. {_EXAMPLE}"
        )
    pairs = fields.items() if isinstance(fields, Mapping) else [(name, name) for name in fields]
    found = {}
    for name, field in pairs:
        _options.text("fields", field, "jpg")
        found[name] = tuple(field.split(";"))
    if len(found) != len(fields):
        raise ConfigError(f"a name is twice in fields={list(fields)}: write each once")
    return found


def _decoders(decode: Any, known: Mapping[str, str]) -> dict[str, Decoder]:
    found: dict[str, Decoder] = {}
    if decode is None:
        return found
    for field, how in _options.mapping("decode", decode, "{'jpg': 'image'}").items():
        if field not in known:
            raise ConfigError(f"decode has an unknown field {field!r}: {nearest(field, known)}")
        if isinstance(how, str):
            found[field] = NAMED[_options.by_name("decoder", how, NAMED)]
        else:
            example = "decode={'jpg': lambda content: ...}"
            found[field] = _options.function(f"decode[{field!r}]", how, "content", example)
    return found


def _is_named(decoder: Decoder) -> bool:
    return any(decoder is each for each in NAMED.values())


def _check_missing(names: Mapping[str, Sequence[str]] | None, index: Index) -> None:
    for choices in (names or {}).values():
        if len(choices) > 1:
            continue
        (field,) = choices
        for file, fields, missing in zip(index.files, index.fields, index.missing, strict=True):
            if fields and field not in fields and field != KEY:
                raise DataError(
                    f"no sample of the shard {file.path} has the field {field!r}: write the shard "
                    "again, or leave it out"
                )
            if count := missing.get(field):
                raise DataError(
                    f"{count} samples of the shard {file.path} have no field {field!r}: write the "
                    "shard again, or name a choice of fields, as in 'jpg;png'"
                )
