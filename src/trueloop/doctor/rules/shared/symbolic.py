"""Arithmetic with numbers that are known only by what they are made of.

`events.Size` gives a quantity as a number or as a text such as `(args.epochs * len(loader))`. Here
such texts are read as sums of products, so that quantities can be compared: `epochs * steps` with
`steps * epochs`, `1 + epochs - 1` with `epochs`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from trueloop.doctor.model.things import Size

Sum = dict[tuple[str, ...], float]
"""A sum of products: sorted factors -> their number. `{(): 3}` is three."""

_NUMBER = re.compile(r"-?\d+(\.\d*)?([eE][-+]?\d+)?")
_MARK = re.compile(r"<[\d.]+>(\[[^\]]*\])*\.")
"""An object that is known only by its line, before the name of its attribute."""
_SIGNS = ("+", "-", "*", "//", "/", "%", "**", "@")
_BATCHES = re.compile(
    r"len\(.*(load|dl\b|batch|iter|data|train)|steps_per_epoch|(num|n|stepping|training)_batches",
    re.IGNORECASE,
)
_EPOCHS = re.compile(r"epoch", re.IGNORECASE)
_MULTIPLE = re.compile(r"\((?!1\*)[\d.e+]+\*")
"""`(64*epochs // every)`: several for each epoch."""
_NOT_EPOCHS = re.compile(
    r"len\(|step|iter|batch|update|start|warm|per_epoch|epoch_(len|size)", re.IGNORECASE
)


def parse(size: Size) -> Sum | None:
    """A quantity as a sum of products; None where nothing is known of it."""
    if size is None:
        return None
    if isinstance(size, int):
        return {(): float(size)} if size else {}
    return _parse(size.strip(), 20)


def _parse(text: str, depth: int) -> Sum:
    if _NUMBER.fullmatch(text):
        value = float(text)
        return {(): value} if value else {}
    if text.startswith("max(") and _is_in_brackets(text[3:]) and depth:
        rest = [each for each in _arguments(text[4:-1]) if each not in ("0", "1")]
        if len(rest) == 1:  # `max(1, steps)`: for a run that is shorter than one
            return _parse(rest[0], depth - 1)
    if not text.startswith("(") or not text.endswith(")") or not depth:
        return {(text,): 1.0}
    inner = text[1:-1]
    if inner.startswith("-") and _operator(inner[1:]) is None:
        return scaled(_parse(inner[1:], depth - 1), -1.0)
    found = _operator(inner)
    if found is None:
        return {(text,): 1.0}
    left, right = _parse(found.left, depth - 1), _parse(found.right, depth - 1)
    if found.sign == "+":
        return added(left, right)
    if found.sign == "-":
        return added(left, scaled(right, -1.0))
    if found.sign == "*":
        return times(left, right)
    divisor = number(right)
    if found.sign == "/" and divisor:
        return scaled(left, 1.0 / divisor)
    return _atom(left, found.sign, right)


def _atom(left: Sum, sign: str, right: Sum) -> Sum:
    return {(f"({text_of(left)} {sign} {text_of(right)})",): 1.0}


def quotient(left: Sum, right: Sum) -> Sum:
    """`left // right`."""
    mine, other = number(left), number(right)
    if mine is not None and other:
        return {(): mine // other} if mine // other else {}
    return _atom(left, "//", right)


class _Operation(NamedTuple):
    left: str
    sign: str
    right: str


def _operator(text: str) -> _Operation | None:
    """The operator outside of all brackets: the reader writes them all out."""
    depth = 0
    for position, letter in enumerate(text):
        if letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter == " " and not depth:
            sign, space, right = text[position + 1 :].partition(" ")
            if space and sign in _SIGNS:
                return _Operation(text[:position], sign, right)
    return None


def added(left: Sum, right: Sum) -> Sum:
    found = dict(left)
    for factors, count in right.items():
        found[factors] = found.get(factors, 0.0) + count
        if not found[factors]:
            del found[factors]
    return found


def scaled(quantity: Sum, by: float) -> Sum:
    return {factors: count * by for factors, count in quantity.items()} if by else {}


def times(left: Sum, right: Sum) -> Sum:
    found: Sum = {}
    for mine, count in left.items():
        for other, by in right.items():
            product = tuple(sorted((*mine, *other)))
            found[product] = found.get(product, 0.0) + count * by
    return found


def text_of(quantity: Sum) -> str:
    """The same text for the same quantity."""
    parts = sorted((factors, count) for factors, count in quantity.items())
    return " + ".join("*".join((f"{count:g}", *factors)) for factors, count in parts) or "0"


def spelled(size: Size) -> str:
    """A quantity as the program writes it: without the reader's marks for where a value is from.
    `N` where that leaves nothing to read."""
    text = _MARK.sub("", str(size))
    while _is_in_brackets(text):
        text = text[1:-1]
    return "N" if not text or "<" in text else text


def _is_in_brackets(text: str) -> bool:
    """The first bracket is closed by the last one."""
    depth = 0
    for at, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth <= 0:
            return character == ")" and at == len(text) - 1
    return False


def number(quantity: Sum | None) -> float | None:
    """The number that it is; None where it is not known as one."""
    if quantity is None:
        return None
    if not quantity:
        return 0.0
    return quantity.get(()) if len(quantity) == 1 else None


def same(left: Sum | None, right: Sum | None) -> bool:
    """They are certainly equal."""
    if left is None or right is None or left.keys() != right.keys():
        return False
    return all(abs(left[key] - right[key]) < 1e-9 for key in left)


def ratio(left: Sum | None, right: Sum | None) -> float | None:
    """How many times `right` the `left` is, where that is a known number."""
    if not left or not right or left.keys() != right.keys() or 0 in right.values():
        return None
    found = {left[key] / right[key] for key in left}
    return found.pop() if len(found) == 1 else None


def counts_batches(quantity: Sum | None) -> bool:
    """It is made of a number of batches: `len(loader)`."""
    return quantity is not None and any(
        _BATCHES.search(factor) for factors in quantity for factor in factors
    )


def counts_epochs(quantity: Sum | None) -> bool:
    """By its name it is a number of epochs and nothing else: `args.epochs`, `epochs // 2`."""
    named = [(product, count) for product, count in (quantity or {}).items() if product]
    return bool(named) and all(
        # A larger count may be the known number of batches.
        len(product) == 1
        and 0 < count <= 1
        and _EPOCHS.search(product[0])
        and not _NOT_EPOCHS.search(product[0])
        and not _MULTIPLE.search(product[0])
        for product, count in named
    )


def range_of(turns: Size) -> list[Sum]:
    """The value to assume for the number of a loop's turns.

    `range(start, stop)` makes `stop - start` turns; if the start is not a constant, a resumed run
    begins there, and the whole run makes `stop`.
    """
    whole = parse(turns)
    if whole is None:
        return []
    match = re.fullmatch(r"range\((.*)\)", turns) if isinstance(turns, str) else None
    if match is None:
        return [whole]
    parts = _arguments(match[1])
    if len(parts) != 3 or parts[2] != "1":
        return []
    start, stop = _parse(parts[0], 20), _parse(parts[1], 20)
    found = [added(stop, scaled(start, -1.0))]
    if number(start) is None:
        found.append(stop)
    return found


def _arguments(text: str) -> list[str]:
    parts, depth, begin = [], 0, 0
    for position, letter in enumerate(text):
        if letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter == "," and not depth:
            parts.append(text[begin:position].strip())
            begin = position + 1
    return [*parts, text[begin:].strip()]
