"""`trueloop explain`: a rule's page, or all rules."""

from __future__ import annotations

import sys

import pytest

from conftest import Command
from trueloop.doctor.rules.catalogue import ENTRIES


@pytest.mark.parametrize("word", ["TL001", "tl001", "unused-ignore"])
def test_the_page_of_a_rule(command: Command, word: str) -> None:
    found = command("explain", word)
    assert found.status == 0
    assert found.out.startswith("# TL001 unused-ignore\n\nAdvice, found in source.\n\n")
    assert "\n## Wrong\n\n```python\n" in found.out


def test_all_rules_by_group(command: Command) -> None:
    found = command("explain")
    assert found.status == 0
    assert "Order of the step\n  TL101  zero-grad-after-backward " in found.out
    assert all(f"  {entry.code}  {entry.name}" in found.out for entry in ENTRIES)


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("TL10l", "did you mean TL101 (zero-grad-after-backward)?"),
        ("TL199", "TL1 has TL101 zero-grad-after-backward, TL102 missing-zero-grad, "),
        ("TL1", "TL1 has TL101 zero-grad-after-backward, "),
        ("missing-zerograd", "did you mean TL102 (missing-zero-grad)?"),
        ("missing_zero_grad ", "did you mean TL102 (missing-zero-grad)?"),
        ("softmax", "did you mean TL401 (softmax-before-cross-entropy) or TL408 (softmax-over-b"),
        ("softmaxx", "did you mean TL401 (softmax-before-cross-entropy) or TL408 (softmax-over-b"),
        ("xyzzy", "write a code or a name from `trueloop explain`"),
        ("", "write a code or a name from `trueloop explain`"),
    ],
)
def test_an_unknown_rule_is_one_line(command: Command, word: str, hint: str) -> None:
    found = command("explain", word)
    assert found.status == 2
    assert f"unknown rule {word.strip()!r}: " in found.complaint
    assert hint in found.complaint


def test_on_a_terminal_it_is_set_as_a_page(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(sys.stdout), "isatty", lambda self: True)
    monkeypatch.setenv("TERM", "xterm")
    found = command("explain", "TL001")
    assert "##" not in found.out
    assert "```" not in found.out
    assert "What it does" in found.out
