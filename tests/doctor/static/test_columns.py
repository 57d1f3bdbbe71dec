"""Columns are counted in characters, whatever Python's syntax tree counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from trueloop.doctor.model.findings import Delete, Finding, Insert, Location, Related
from trueloop.doctor.static import check_text
from trueloop.doctor.static.inputs.columns import in_characters

LOOP = """\
import torch
from torch import nn
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in range(10):
    loss = model(torch.randn(8, 4)).mean()
    loss.backward()
    s = {text!r}; optimizer.zero_grad()
    optimizer.step()
"""


@pytest.mark.parametrize("text", ["a", "é", "日本", "🔥"])
def test_what_is_found_stands_where_it_is_seen(text: str) -> None:
    code = LOOP.format(text=text)
    (finding,) = check_text(code, "train.py").findings
    place = finding.place
    line = code.split("\n")[place.line - 1]
    assert line[place.column - 1 : place.end_column - 1] == "optimizer.zero_grad()"


def test_all_places_of_a_finding_and_those_in_other_files(tmp_path: Path) -> None:
    other = tmp_path / "other.py"
    other.write_bytes("# coding: latin-1\r\né = f(é)\r\n".encode("latin-1"))
    # In bytes of UTF-8: é is two.
    here, there = Location("a.py", 1, 8, 2, 4), Location(str(other), 2, 6, 2, 11)
    only_line, unknown = Location("a.py", 1, 8), Location("gone.py", 1, 8, 1, 9)
    finding = Finding(
        "TL101",
        "zero-grad-after-backward",
        "error",
        here,
        "…",
        related=(Related(there, "there"), Related(unknown, "nowhere")),
        remedies=(Delete(here), Insert("x", only_line, "before")),
    )
    (moved,) = in_characters([finding], "a.py", "s = 'é'\né = 1")
    right = Location("a.py", 1, 7, 2, 3)
    assert moved.place == right
    assert [each.place for each in moved.related] == [Location(str(other), 2, 5, 2, 9), unknown]
    assert moved.remedies == (Delete(right), Insert("x", Location("a.py", 1, 7), "before"))
