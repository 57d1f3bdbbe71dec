"""Which rules are asked for: by code (`TL101`), by name, by group (`TL1`), or `ALL`."""

from __future__ import annotations

from collections.abc import Iterable

from trueloop.doctor.rules.catalogue import BY_CODE, ENTRIES
from trueloop.errors import ConfigError, nearest


def codes_of(words: Iterable[str], source: str) -> frozenset[str]:
    """The codes that `words` stand for; `ConfigError`, which begins with `source`, if one stands
    for none."""
    return frozenset(code for word in words for code in _codes_of(word, source))


def _codes_of(word: str, source: str) -> list[str]:
    found = find_codes(word)
    if not found:
        raise ConfigError(f"{source}: {unknown_rule(word)}")
    return found


def find_codes(word: str) -> list[str]:
    """The codes that a word stands for; none if it is unknown."""
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
    """What is said about a word that stands for no rule."""
    names = [entry.name for entry in ENTRIES] if "-" in word else list(BY_CODE)
    return f"unknown rule {word.strip()!r}: {nearest(word.strip(), names)}"
