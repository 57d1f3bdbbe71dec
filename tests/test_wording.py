"""Plain English of the field: phrases that the package's strings and the guides do not contain."""

from __future__ import annotations

import ast
import re
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
    r"\b[Tt]here (?:is|are) no\b": "has no, is missing, is empty",
    r"(?<!Leave it )(?<!leave it )(?<!left )(?<!-)\balone\b(?!`)": "only, by itself",
    r"\bof (?:its|their|our|one's) own\b(?! \w+)": "its own, a separate, a new",
    r"\b(?:was|were|is|are) left out\b|\bleaves out\b": "is skipped, is not part of",
    r"\b(?:lie|lies|lay|stood)\b": "is, was",
    r"(?:file|folder|checkpoint|data|column|row|table|list|container|batch) holds\b": "contains",
}
"""What to write in place of each phrase. Allowed: "is no longer" and the like, "one after another",
and a stand-in."""
OPENINGS = {r"What\b": "the name of the thing: The result of, The state that"}
"""The same of the first words of a docstring."""
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
GENERATED = {"crib-sheet.md"}
"""Pages whose text is that of `examples/lab`."""


def strings(path: Path) -> list[str]:
    """The string literals of a source file, those of f-strings included, each as one line."""
    tree = ast.parse(path.read_text("utf-8"))
    constants = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return [" ".join(value.split()) for value in constants if isinstance(value, str)]


def docstrings(path: Path) -> list[str]:
    """The strings that are statements: docstrings, and what is written below an attribute."""
    nodes = ast.walk(ast.parse(path.read_text("utf-8")))
    values = (node.value for node in nodes if isinstance(node, ast.Expr))
    constants = (value.value for value in values if isinstance(value, ast.Constant))
    return [value for value in constants if isinstance(value, str)]


def texts() -> list[tuple[str, list[str]]]:
    """Each source file and page by its path, with its texts."""
    sources = [(str(path), strings(path)) for path in sorted(SOURCE.rglob("*.py"))]
    pages = [
        (str(path), [" ".join(path.read_text("utf-8").split())])
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
    wrong = [f"{name}: {hit}" for name, parts in texts() for part in parts for hit in found(part)]
    assert not wrong, "\n".join(wrong)


def test_docstrings_begin_with_what_they_are_about() -> None:
    wrong = [
        f"{path}: {text[:60]!r} (write: {instead})"
        for path in sorted(SOURCE.rglob("*.py"))
        for text in docstrings(path)
        for opening, instead in OPENINGS.items()
        if re.match(opening, text)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("text", "phrases"),
    [
        ("depth is no integer", 1),
        ("the state is said at the first save, and nobody is told", 2),
        ("a run goes on behind the loop, written anew", 3),
        ("there is no file alone: a checkpoint holds it, where it lies", 4),
        ("the folder is missing, one after another; it is no longer a stand-in", 0),
    ],
)
def test_the_phrases_are_found_and_correct_sentences_are_not(text: str, phrases: int) -> None:
    assert len(found(text)) == phrases
