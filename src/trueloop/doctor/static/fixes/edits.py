"""A text and its syntax tree, edited side by side."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from trueloop.doctor.model.findings import Location

LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
# Comments that mark a place in the file, and are not about the line below them.
MARKS = re.compile(r"#\s?(%%|In\s?\[|fmt:|type:|region|endregion|pylint:|yapf:|isort:|!)")

CHANGED = "the code there is not what was checked"
CONFLICT = "a second fix changes the same lines"
NOT_AS_MEANT = "the edited code would not mean what the fix means"
SHARED_LINE = "the statement shares its line with other code"


class EditRejected(Exception):  # noqa: N818  (it says what happened; nothing went wrong)
    """An edit that cannot be made, and why."""

    def __init__(self, reason: str, later: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.later = reason, later


Cut = tuple[int, int, str]
"""Characters from, to (exclusive) and their replacement."""


@dataclass
class Edit:
    """Changes of the text, and the same changes of its tree."""

    cuts: list[Cut] = field(default_factory=list)
    lines: set[int] = field(default_factory=set)
    """Lines that are changed, or that a changed line is put next to; from 0."""
    changes: list[Callable[[Tree], None]] = field(default_factory=list)

    def __add__(self, other: Edit) -> Edit:
        return Edit(self.cuts + other.cuts, self.lines | other.lines, self.changes + other.changes)


class Tree:
    """A syntax tree whose nodes are numbered alike each time the same text is parsed."""

    def __init__(self, text: str) -> None:
        self.root = ast.parse(text)
        self.nodes = list(ast.walk(self.root))
        self.number = {id(node): number for number, node in enumerate(self.nodes)}
        self._behind: dict[int, ast.AST] = {}

    def block_of(self, statement: ast.AST) -> list[ast.stmt]:
        """The list that contains a statement now."""
        for node in self.nodes:
            for _, value in ast.iter_fields(node):
                if isinstance(value, list) and any(each is statement for each in value):
                    return value
        raise EditRejected(CHANGED)

    def take(self, number: int) -> ast.stmt:
        statement = self.nodes[number]
        block = self.block_of(statement)
        if len(block) == 1:
            raise EditRejected("its block would be empty")
        block[:] = [each for each in block if each is not statement]
        assert isinstance(statement, ast.stmt)
        return statement

    def put(self, new: list[ast.stmt], number: int, where: str) -> None:
        target = self.nodes[number]
        block = self.block_of(target)
        at = next(k for k, each in enumerate(block) if each is target)
        if where == "after":  # after what was already put there
            last = self._behind.get(number, target)
            at = next((k for k, each in enumerate(block) if each is last), at) + 1
            if new:
                self._behind[number] = new[-1]
        block[at:at] = new

    def exchange(self, number: int, new: ast.Call) -> None:
        """Put the arguments of the call `new` in place of one expression: a new expression, or, if
        it is an argument itself, several arguments."""
        old = self.nodes[number]
        for node in self.nodes:
            for name, value in ast.iter_fields(node):
                if value is old:
                    if isinstance(node, ast.keyword):
                        self._add_keywords(node, new)
                    else:
                        _only_one(new)
                    setattr(node, name, new.args[0])
                    return
                if isinstance(value, list) and any(each is old for each in value):
                    at = next(k for k, each in enumerate(value) if each is old)
                    if isinstance(old, ast.keyword):
                        if new.args:
                            raise EditRejected(NOT_AS_MEANT)
                        value[at : at + 1] = new.keywords
                        return
                    if isinstance(node, ast.Call):
                        node.keywords[:0] = new.keywords
                    else:
                        _only_one(new)
                    value[at : at + 1] = new.args
                    return
        raise EditRejected(CHANGED)

    def _add_keywords(self, keyword: ast.keyword, new: ast.Call) -> None:
        """More keywords after one that is there."""
        if len(new.args) != 1:
            raise EditRejected(NOT_AS_MEANT)
        for call in self.nodes:
            if isinstance(call, ast.Call) and keyword in call.keywords:
                at = call.keywords.index(keyword) + 1
                call.keywords[at:at] = new.keywords


def _only_one(new: ast.Call) -> None:
    if new.keywords or len(new.args) != 1:
        raise EditRejected(NOT_AS_MEANT)


class SourceText:
    """A text, its lines and its tree."""

    def __init__(self, text: str) -> None:
        self.mark = "\ufeff" if text.startswith("\ufeff") else ""
        self.text = text.removeprefix("\ufeff")
        self.lines: list[str] = LINE.findall(self.text)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))
        self.tree = Tree(self.text)
        self.statements = [node for node in self.tree.nodes if isinstance(node, ast.stmt)]
        self.newline = next((ending(line) for line in self.lines if ending(line)), "\n")
        self._inside: set[int] | None = None

    # -- places ------------------------------------------------------------------------------

    def offset(self, line: int, column: int) -> int:
        """From a place of `ast`: line from 1, column in bytes of UTF-8 from 0."""
        text = self.lines[line - 1]
        if not text.isascii():
            column = len(text.encode()[:column].decode())
        return self.starts[line - 1] + column

    def span(self, node: ast.expr | ast.stmt | ast.keyword) -> tuple[int, int]:
        """First character and the one after the last."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self.offset(node.lineno, node.col_offset)
        decorators: list[ast.expr] = getattr(node, "decorator_list", [])
        if decorators:
            line = min(each.lineno for each in decorators) - 1
            start = self.starts[line] + len(indent_of(self.lines[line]))
        return start, self.offset(node.end_lineno, node.end_col_offset)

    def line_at(self, position: int) -> int:
        return bisect_right(self.starts, position, hi=len(self.lines)) - 1

    def range_of(self, place: Location) -> tuple[int, int]:
        """The characters of a place. Of one that is only a line: its first character."""
        if not 1 <= place.line <= len(self.lines) or place.end_line > len(self.lines):
            raise EditRejected(CHANGED)
        line = place.line - 1
        if not place.end_line:
            start = self.starts[line] + max(place.column - 1, len(indent_of(self.lines[line])))
            return start, start + 1
        end = self.starts[place.end_line - 1] + place.end_column - 1
        return self.starts[line] + place.column - 1, end

    def statement(self, place: Location) -> ast.stmt:
        """The innermost statement around a place."""
        start, end = self.range_of(place)
        found = None
        for node in self.statements:  # blocks come before what is in them
            first, last = self.span(node)
            if first <= start and end <= last:
                found = node
        if found is None:
            raise EditRejected(CHANGED)
        return found

    def whole_statement(self, place: Location) -> ast.stmt:
        """The statement at a place; of one that is a block, the place must be all of it."""
        node = self.statement(place)
        if hasattr(node, "body") and place.end_line and self.range_of(place) != self.span(node):
            raise EditRejected("it is the head of a block")
        return node

    def expression(self, place: Location) -> ast.expr | ast.keyword:
        """The expression, or the keyword argument, that is exactly at a place."""
        where = self.range_of(place)
        if not place.end_line:
            raise EditRejected(CHANGED)
        in_text = {
            id(part)
            for node in self.tree.nodes
            if isinstance(node, ast.JoinedStr)
            for part in ast.walk(node)
            if part is not node
        }
        for node in self.tree.nodes:
            if (
                isinstance(node, (ast.expr, ast.keyword))
                and id(node) not in in_text
                and self.span(node) == where
            ):
                return node
        raise EditRejected(CHANGED)

    # -- lines -------------------------------------------------------------------------------

    def own_lines(self, node: ast.stmt) -> tuple[int, int]:
        """First and last line of a statement, which must have them for itself."""
        start, end = self.span(node)
        first, last = self.line_at(start), self.line_at(max(start, end - 1))
        before = self.text[self.starts[first] : start]
        after = self.text[end : self.starts[last + 1]].strip()
        continued = first > 0 and self.lines[first - 1].rstrip("\r\n").endswith("\\")
        if before.strip() or continued or (after and not after.startswith("#")):
            raise EditRejected(SHARED_LINE)
        return first, last

    def with_comments(self, first: int) -> int:
        """The first of the comment lines directly above line `first`, which belong to it."""
        indent = indent_of(self.lines[first])
        while first > 0:
            above = self.lines[first - 1]
            text = above.strip()
            is_comment = text.startswith("#") and not MARKS.match(text)
            if not is_comment or indent_of(above) != indent or first - 1 in self.inside():
                break
            first -= 1
        return first

    def inside(self) -> set[int]:
        """Lines within an expression or a simple statement of several lines."""
        if self._inside is None:
            self._inside = {
                line
                for node in self.tree.nodes
                if isinstance(node, ast.expr)
                or (isinstance(node, ast.stmt) and not hasattr(node, "body"))
                for line in range(node.lineno, node.end_lineno or 0)
            }
        return self._inside

    def indent(self, node: ast.stmt) -> str:
        return indent_of(self.lines[self.own_lines(node)[0]])

    def gap(self, node: ast.stmt, where: str) -> int:
        """The line before which something is put that goes before or after a statement."""
        first, last = self.own_lines(node)
        return self.with_comments(first) if where == "before" else last + 1

    def put(self, gap: int, lines: Sequence[str]) -> Cut:
        block = "".join(line if ending(line) else line + self.newline for line in lines)
        if gap == len(self.lines) and self.lines and not ending(self.lines[-1]):
            return len(self.text), len(self.text), self.newline + block.rstrip("\r\n")
        return self.starts[gap], self.starts[gap], block

    def drop(self, first: int, last: int) -> Cut:
        start, end = self.starts[first], self.starts[last + 1]
        if not ending(self.lines[last]) and first > 0:  # the file stays without a last newline
            start -= len(ending(self.lines[first - 1]))
        return start, end, ""

    def indented(self, first: int, last: int, old: str, new: str) -> list[str]:
        """Lines in the indentation of a different place; the inside of a string does not change."""
        texts = {
            line
            for node in self.tree.nodes
            if isinstance(node, (ast.Constant, ast.JoinedStr))
            and node.lineno != node.end_lineno
            and _is_long_text(self.text[slice(*self.span(node))])
            for line in range(node.lineno, node.end_lineno or 0)
        }
        return [
            new + line.removeprefix(old)
            if number not in texts and line.startswith(old) and line.strip()
            else line
            for number, line in enumerate(self.lines[first : last + 1], first)
        ]

    # -- the whole ---------------------------------------------------------------------------

    def extend(self, plan: Edit, edit: Edit) -> Edit:
        """Both edits in one, if they do not meet and the result is what they mean."""
        if plan.lines & edit.lines:
            raise EditRejected(CONFLICT, later=True)
        both = plan + edit
        try:
            expected = Tree(self.text)
            for change in both.changes:
                change(expected)
            result = ast.parse(self.render(both))
            right = ast.dump(result) == ast.dump(expected.root)
        except (SyntaxError, ValueError, RecursionError):
            right = False
        if not right:
            raise EditRejected(NOT_AS_MEANT)
        return both

    def render(self, edit: Edit) -> str:
        parts, position = [], 0
        for start, end, new in sorted(edit.cuts, key=lambda cut: cut[:2]):
            if start < position:
                raise EditRejected(CONFLICT, later=True)
            parts += [self.text[position:start], new]
            position = end
        return "".join([*parts, self.text[position:]])


def indent_of(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t\f"))]


def ending(line: str) -> str:
    return line[len(line.rstrip("\r\n")) :]


def _is_long_text(text: str) -> bool:
    return '"""' in text or "'''" in text
