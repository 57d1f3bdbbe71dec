"""Plain English of the field: phrases that the package's strings and the guides do not contain."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

import trueloop

SOURCE = Path(trueloop.__file__).parent
ROOT = SOURCE.parents[1]
INSTEAD = {
    r"(?<!here )\b(?:is|are) no\b(?! (?:longer|more|less)\b)": "is not a",
    r"\b(?:is|are|was|were) said\b": "is printed, is reported",
    r"\bsays? so\b": "reports it, warns",
    r"\btold\b": "reported, given",
    r"\btells?\b": "reports, shows, names",
    r"\bbehind\b": "after",
    r"\bbeforehand\b": "before",
    r"\bown accord\b": "automatically",
    r"\banew\b": "again",
    r"\bgo(?:es)? on\b": "continues, resumes",
    r"\btaken up\b|\btakes? up\b": "restores, resumes",
    r"\bgiv(?:es?|en) back\b": "returns",
    r"\bat hand\b": "current",
    r"\bmend(?:s|ed|ing)?\b": "fix, repair",
    r"\bstands?\b(?!-in)": "is",
    r"(?<!after )\banother\b": "a different, a second",
}
"""What to write in place of each phrase. Left out: "there is no", "is no longer" and the like, "one
after another", and a stand-in."""
MOST = {
    "doctor": 276,
    "feed": 21,
    "loop": 5,
    "step": 29,
}
"""How many of these phrases a room or a page still has, at most. The numbers only fall; what is not
listed has none."""
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
GENERATED = {"crib-sheet.md"}
"""Pages whose text is that of `examples/lab`."""


def strings(path: Path) -> list[str]:
    """The string literals of a source file, those of f-strings included, each as one line."""
    tree = ast.parse(path.read_text("utf-8"))
    constants = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return [" ".join(value.split()) for value in constants if isinstance(value, str)]


def texts() -> list[tuple[str, str, list[str]]]:
    """Each source file and page: the room that it counts for, its name, and its texts."""
    sources = [
        (path.relative_to(SOURCE).parts[0].removesuffix(".py"), str(path), strings(path))
        for path in sorted(SOURCE.rglob("*.py"))
    ]
    pages = [
        (f"docs/{path.name}", str(path), [" ".join(path.read_text("utf-8").split())])
        for path in PAGES
        if path.name not in GENERATED
    ]
    return sources + pages


def found(text: str) -> list[str]:
    """Each phrase in `text`, with a few words around it and what to write instead."""
    return [
        f"{text[max(0, match.start() - 40) : match.end() + 40]!r} (write: {instead})"
        for phrase, instead in INSTEAD.items()
        for match in re.finditer(phrase, text)
    ]


def test_messages_docstrings_and_guides_are_in_plain_english() -> None:
    count: Counter[str] = Counter()
    wrong = []
    for room, name, parts in texts():
        for part in parts:
            hits = found(part)
            count[room] += len(hits)
            wrong += [f"{name}: {hit}" for hit in hits if room not in MOST]
    assert not wrong, "\n".join(wrong)
    more = {room: n for room, n in count.items() if n > MOST.get(room, 0)}
    assert not more, f"more of these phrases than before, see tests/test_wording.py: {more}"


@pytest.mark.parametrize(
    ("text", "phrases"),
    [
        ("depth is no integer", 1),
        ("the state is said at the first save, and nobody is told", 2),
        ("a run goes on behind the loop, written anew", 3),
        ("there is no folder, one after another; it is no longer a stand-in", 0),
    ],
)
def test_the_phrases_are_found_and_correct_sentences_are_not(text: str, phrases: int) -> None:
    assert len(found(text)) == phrases
