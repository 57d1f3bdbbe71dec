"""Which rules are asked for: by code (`TL101`), by name, by group (`TL1`), or `ALL`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

from trueloop.doctor.rules.catalogue import BY_CODE, ENTRIES, Entry
from trueloop.errors import ConfigError, cut

SHOWN = 6
"""Rules that an answer to an unknown word lists at most."""
_CODE = re.compile(r"(T[LHS]\d)\w{0,4}$")
"""A text that is written like a code, or nearly so; its first digit is the group."""
_MISTYPED = str.maketrans({"O": "0", "I": "1", "L": "1"})


def codes_of(words: Iterable[str], source: str) -> frozenset[str]:
    """The codes that `words` name; `ConfigError`, which begins with `source`, if one names none."""
    return frozenset(code for word in words for code in _codes_of(word, source))


def _codes_of(word: str, source: str) -> list[str]:
    found = find_codes(word)
    if not found:
        raise ConfigError(f"{source}: {unknown_rule(word)}")
    return found


def find_codes(word: str) -> list[str]:
    """The codes that a word names; none if it is unknown."""
    code = word.strip().upper()
    if code in BY_CODE:
        return [code]
    if code == "ALL":
        return list(BY_CODE)
    by_name = [entry.code for entry in ENTRIES if entry.name == word.strip().lower()]
    # A group is "TL", "TL1" or "TL10": never a whole code, of which one digit was mistyped.
    is_group = 2 <= len(code) <= 4
    return by_name or [known for known in BY_CODE if is_group and known.startswith(code)]


def unknown_rule(word: str) -> str:
    """The message about a word that does not name a rule: the names most like it; for a code, the
    rules of its group by name, because the digits of a code do not say what it is about."""
    word = word.strip()
    said = f"unknown rule {cut(word, 60)!r}"
    group = _CODE.match(word.upper())
    meant = BY_CODE.get(word[:2].upper() + word[2:].upper().translate(_MISTYPED))
    inside = [entry for entry in ENTRIES if group and entry.code.startswith(group[1])]
    found = [meant] if meant else _similar(re.sub(r"[\s_]+", "-", word.lower()))
    if found:
        hint = " or ".join(f"{entry.code} ({entry.name})" for entry in found)
        return f"{said}: did you mean {hint}?"
    if group and inside:
        listed = ", ".join(f"{entry.code} {entry.name}" for entry in inside[:SHOWN])
        more = ", …" if len(inside) > SHOWN else ""
        return f"{said}: {group[1]} has {listed}{more}; see `trueloop explain`"
    return f"{said}: write a code or a name from `trueloop explain`"


def _similar(name: str) -> list[Entry]:
    """The rules whose names are most like `name`, or contain all words of it."""
    known = {word for entry in ENTRIES for word in entry.name.split("-")}
    words = {next(iter(get_close_matches(word, known, 1, 0.8)), word) for word in name.split("-")}
    holding = [entry for entry in ENTRIES if words <= set(entry.name.split("-"))]
    names = {entry.name: entry for entry in ENTRIES}
    close = [names[each] for each in get_close_matches(name, names, n=3, cutoff=0.6)]
    return holding[:SHOWN] or close
