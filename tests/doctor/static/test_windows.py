"""Generator functions that are read as makers of windows, and those that are not."""

from __future__ import annotations

import ast

import pytest

from trueloop.doctor.model.windows import Windows, windows_in

SLICES = """
def windows(stream, size):
    stream = iter(stream)
    while window := list(islice(stream, size)):
        yield window
"""
ENDLESS = """
def windows(stream, size):
    '''Its last one may have fewer.'''
    batches = iter(stream)
    while True:
        window = tuple(itertools.islice(batches, size))
        if not window:
            return
        yield window
"""
WHOLE = ENDLESS.replace("not window", "len(window) < size")
GROUPS = """
def windows(stream, size):
    group = []
    for batch in stream:
        group.append(batch)
        if len(group) == size:
            yield group
            group = []
"""
REST = GROUPS + "    if group:\n        yield group\n"


def made(text: str) -> Windows | None:
    return windows_in(ast.parse(text).body[0])


@pytest.mark.parametrize(
    ("text", "with_rest"),
    [(SLICES, True), (ENDLESS, True), (WHOLE, False), (GROUPS, False), (REST, True)],
)
def test_source_size_and_rest(text: str, with_rest: bool) -> None:
    found = made(text)
    assert found is not None
    assert (ast.unparse(found.source), ast.unparse(found.size)) == ("stream", "size")
    assert found.with_rest is with_rest


def test_of_attributes_and_constants() -> None:
    text = GROUPS.replace("stream:", "self.loader:").replace("== size", ">= 4")
    found = made(text)
    assert found is not None
    assert (ast.unparse(found.source), ast.unparse(found.size)) == ("self.loader", "4")


@pytest.mark.parametrize(
    "text",
    [
        GROUPS.replace("            group = []", "            group = group[1:]"),
        GROUPS.replace("            group = []\n", ""),
        GROUPS.replace("group.append(batch)", "group.append(batch.half())"),
        GROUPS.replace("yield group", "yield group[0]"),
        GROUPS.replace("len(group) ==", "len(group) <"),
        REST.replace("if group:\n        yield group", "if group:\n        yield group[0]"),
        SLICES.replace("list(islice(stream, size))", "next(stream)"),
        SLICES.replace("yield window", "yield window[::-1]"),
        SLICES.replace("        yield window", "        train(window)\n        yield window"),
        "window = 3",
    ],
)
def test_what_does_more_is_not_one(text: str) -> None:
    assert made(text) is None
