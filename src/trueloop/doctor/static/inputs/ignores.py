"""`# trueloop: ignore[TL101]`: comments that suppress findings, and those that suppress none."""

from __future__ import annotations

import io
import re
import tokenize
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from trueloop.doctor.config import Config
from trueloop.doctor.model.findings import Finding, Location
from trueloop.doctor.rules.catalogue import BY_CODE
from trueloop.doctor.rules.comments.tl001_unused_ignore import UnusedIgnore
from trueloop.doctor.rules.selection import find_codes, unknown_rule
from trueloop.doctor.static.inputs.documents import Document, Program

_COMMENT = re.compile(
    r"#\s*trueloop:\s*ignore(?P<file>-file)?(?![\w-])\s*(?P<list>\[(?P<codes>[^\[\]]*)(?P<end>\]?))?",
    re.IGNORECASE,
)
_OWN = UnusedIgnore.code


@dataclass
class Ignore:
    """One such comment."""

    place: Location
    first: int
    last: int
    """The lines whose findings it suppresses."""
    named: dict[str, frozenset[str]]
    """The words in its brackets that name rules, and the rules; none: it applies to every rule."""
    unknown: tuple[str, ...] = ()
    """Words in its brackets that name no rule."""
    empty: bool = False
    """It has brackets and nothing in them, or they are not closed."""
    whole_file: bool = False
    used: set[str] = field(default_factory=set)
    """The codes that it suppressed."""

    def covers(self, code: str, line: int) -> bool:
        """Whether it speaks of this rule on this line."""
        if not (self.whole_file or self.first <= line <= self.last):
            return False
        if self.named:
            return any(code in codes for codes in self.named.values())
        return not (self.empty or self.unknown) and code != _OWN


def may_have_ignores(document: Document) -> bool:
    """A quick look, before comments and strings are distinguished."""
    return "trueloop:" in document.text.lower()


def ignores_in(document: Document) -> list[Ignore]:
    """The comments of a document's programs, in order.

    A comment applies to the statement that it is in or follows; on a line without code, to the
    statement below it.
    """
    if not may_have_ignores(document):
        return []
    return [
        ignore
        for program in document.programs
        for comment, first, last in _comments(program.text)
        for ignore in _ignores_of(
            document.path, program, comment, first + program.above, last + program.above
        )
    ]


def _ignores_of(
    path: str, program: Program, comment: tokenize.TokenInfo, first: int, last: int
) -> Iterator[Ignore]:
    line, column = comment.start[0] + program.above, comment.start[1]
    for match in _COMMENT.finditer(comment.string):
        start = column + match.start() + program.indent + 1
        inside = (match["codes"] or "") if match["end"] else ""
        words = [word for word in re.split(r"[,\s]+", inside) if word]
        yield Ignore(
            place=Location(path, line, start, line, start + len(match[0].rstrip())),
            first=first,
            last=last,
            named={word: frozenset(find_codes(word)) for word in words if find_codes(word)},
            unknown=tuple(word for word in words if not find_codes(word)),
            empty=bool(match["list"]) and not words,
            whole_file=match["file"] is not None,
        )


def _comments(text: str) -> Iterator[tuple[tokenize.TokenInfo, int, int]]:
    """Each comment of a program with the first and the last line of the statement it speaks of."""
    waiting: list[tokenize.TokenInfo] = []  # comments alone on their lines
    within: list[tokenize.TokenInfo] = []  # comments of the current statement
    first = 0
    quiet = (tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER)
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                (within if first else waiting).append(token)
            elif token.type == tokenize.NEWLINE:
                for comment in (*waiting, *within):
                    yield comment, first, token.start[0]
                waiting, within, first = [], [], 0
            elif token.type not in quiet:
                first = first or token.start[0]
    except (tokenize.TokenError, SyntaxError):
        # The file does not parse, which is reported elsewhere: comments found so far still count.
        return
    for comment in waiting:  # below the last statement
        yield comment, comment.start[0], comment.start[0]


def hold_back(findings: Iterable[Finding], ignores: list[Ignore]) -> list[Finding]:
    """The findings of one document that no comment of it speaks of; notes in the others."""
    left = []
    around = _by_statement(ignores)
    for finding in findings:
        near = around(finding.place.line)
        covering = [each for each in near if each.covers(finding.code, finding.place.line)]
        for ignore in covering:
            ignore.used.add(finding.code)
        if not covering:
            left.append(finding)
    return left


def _by_statement(ignores: list[Ignore]) -> Callable[[int], list[Ignore]]:
    """Finds the comments that may apply to a line. Statements do not overlap: the last one to begin
    at or above a line is the only one that can contain it."""
    everywhere = [each for each in ignores if each.whole_file]
    groups: dict[int, list[Ignore]] = {}
    for each in ignores:
        if not each.whole_file:
            groups.setdefault(each.first, []).append(each)
    firsts = sorted(groups)

    def near(line: int) -> list[Ignore]:
        position = bisect_right(firsts, line) - 1
        return [*everywhere, *(groups[firsts[position]] if position >= 0 else ())]

    return near


def complaints(ignores: list[Ignore], config: Config, path: str) -> list[Finding]:
    """TL001 about each comment that suppressed nothing; rules that are not selected are not
    judged."""
    rule = UnusedIgnore()

    def is_asked(code: str) -> bool:
        return config.wants(code, path)

    around = _by_statement([each for each in ignores if each.covers(_OWN, each.first)])
    for ignore in ignores:
        line = ignore.place.line
        if _OWN in ignore.named or any(each.covers(_OWN, line) for each in around(line)):
            continue
        if ignore.empty:
            rule.unclosed(ignore.place)
        elif ignore.unknown:
            rule.unknown(ignore.place, f"{unknown_rule(ignore.unknown[0])}")
        else:
            _judge(ignore, rule, is_asked)
    return rule.findings


def _judge(ignore: Ignore, rule: UnusedIgnore, is_asked: Callable[[str], bool]) -> None:
    where = "in this file" if ignore.whole_file else "here"
    if ignore.named:
        unused = [
            word
            for word, codes in ignore.named.items()
            if not codes & ignore.used and _is_judged(codes, is_asked)
        ]
        if unused:
            rule.unused(ignore.place, ", ".join(unused), where)
    elif not ignore.used and all(is_asked(code) for code in BY_CODE):
        rule.unused(ignore.place, "", where)


def _is_judged(codes: frozenset[str], is_asked: Callable[[str], bool]) -> bool:
    """Rules that only `trueloop watch` applies are not judged by what the source says."""
    return all(map(is_asked, codes)) and any("S" in BY_CODE[code].seen for code in codes)
