"""Makes the edits that findings suggest, and changes nothing else in the file.

An edit is made on the text: lines are moved, added or taken out whole, an expression is replaced in
place; every other byte stays. Whether the text then means what was meant is not left to the text:
the same edit is made on the syntax tree, and the new text must parse to that very tree. Otherwise
the edit is not made.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from trueloop.doctor.model.findings import Delete, Finding, Insert, Move, Remedy, Replace
from trueloop.doctor.static.fixes.edits import (
    NOT_AS_MEANT,
    Edit,
    EditRejected,
    SourceText,
    Tree,
    indent_of,
)

PASSES = 10
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Unfixed(NamedTuple):
    """A finding that was not fixed."""

    finding: Finding
    reason: str
    later: bool = False
    """Another fix was in the way: a second pass may do it."""


@dataclass(frozen=True)
class Fixed:
    """The outcome for a text and its findings."""

    text: str
    fixed: tuple[Finding, ...] = ()
    left: tuple[Unfixed, ...] = ()


def fix_text(text: str, findings: Sequence[Finding]) -> Fixed:
    """Apply the remedies of `findings`, all found in this very `text`, in their order.

    A finding's remedies are applied together or not at all. Where two findings touch the same
    lines the first wins. Line endings (read the file with `newline=""`), a byte order mark and a
    missing final newline are kept.
    """
    try:
        source = SourceText(text)
    except (SyntaxError, ValueError, RecursionError):
        return Fixed(text, (), tuple(Unfixed(each, "the file does not parse") for each in findings))
    plan, fixed, left = Edit(), [], []
    made: list[tuple[Remedy, ...]] = []
    for finding in findings:
        try:
            if finding.remedies not in made:
                plan = source.extend(plan, _edit(source, finding))
                made.append(finding.remedies)
            fixed.append(finding)
        except EditRejected as refused:
            left.append(Unfixed(finding, refused.reason, refused.later))
    return Fixed(source.mark + source.render(plan), tuple(fixed), tuple(left))


def fix_until_done(
    text: str, findings: Sequence[Finding], check: Callable[[str], Sequence[Finding]]
) -> Fixed:
    """Apply `findings` one after the other, and keep a fix only if it proves right.

    `check` finds what is wrong with a text. After each pass it must find fewer faults, and none
    of a kind that was not there before; a pass that does worse is made again finding by finding,
    and those that do harm are left. `left` speaks of the text as it was given.
    """
    fixed: list[Finding] = []
    left: dict[Finding, Unfixed] = {}
    waiting = list(findings)
    for _ in range(PASSES):
        step = fix_text(text, waiting)
        remaining = check(step.text) if step.fixed else waiting
        if step.fixed and not _better(waiting, remaining, step.fixed):
            step, remaining = _one_by_one(text, waiting, check)
        for each in step.left:
            left.setdefault(each.finding, each)
        fixed.extend(step.fixed)
        text, waiting = step.text, list(remaining)
        if not step.fixed:
            break
    return Fixed(text, tuple(fixed), tuple(each for each in left.values() if not each.later))


def _better(before: Sequence[Finding], after: Sequence[Finding], gone: Sequence[Finding]) -> bool:
    """Each fixed finding is gone, and nothing has come in its place."""
    codes = sorted(each.code for each in before)
    for each in gone:
        codes.remove(each.code)
    for each in after:
        if each.code not in codes:
            return False
        codes.remove(each.code)
    return True


def _one_by_one(
    text: str, findings: Sequence[Finding], check: Callable[[str], Sequence[Finding]]
) -> tuple[Fixed, Sequence[Finding]]:
    """Only the first finding whose fix proves right; the rest waits for the next pass."""
    left: list[Unfixed] = []
    for finding in findings:
        step, remaining = _alone(text, finding, findings, check)
        if step.fixed:
            return Fixed(step.text, step.fixed, tuple(left)), remaining
        left.extend(step.left)
    return Fixed(text, (), tuple(left)), findings


def fix_one(
    text: str,
    finding: Finding,
    findings: Sequence[Finding],
    check: Callable[[str], Sequence[Finding]],
) -> str:
    """The text with the remedies of one of its `findings`; the very text if they do not prove
    right."""
    return _alone(text, finding, findings, check)[0].text


def _alone(
    text: str,
    finding: Finding,
    findings: Sequence[Finding],
    check: Callable[[str], Sequence[Finding]],
) -> tuple[Fixed, Sequence[Finding]]:
    """One finding's fix, if it proves right, and what is found then."""
    step = fix_text(text, [finding])
    if step.fixed:
        remaining = check(step.text)
        if _better(findings, remaining, step.fixed):
            return step, remaining
        step = Fixed(text, (), (Unfixed(finding, "the edit would not put it right"),))
    return step, findings


def _edit(source: SourceText, finding: Finding) -> Edit:
    """All remedies of one finding."""
    if not finding.remedies:
        raise EditRejected("no single edit is safe here")
    edit = Edit()
    for remedy in finding.remedies:
        place = remedy.target if isinstance(remedy, Insert) else remedy.what
        if place.path != finding.place.path:
            raise EditRejected("the edit is in a different file")
        if isinstance(remedy, Move):
            edit += _move(source, remedy)
        elif isinstance(remedy, Insert):
            edit += _insert(source, remedy)
        elif isinstance(remedy, Replace):
            edit += _replace(source, remedy)
        else:
            edit += _delete(source, remedy)
    return edit


def _move(source: SourceText, remedy: Move) -> Edit:
    target = source.statement(remedy.target)
    node = _with_its_condition(source, source.whole_statement(remedy.what), target)
    if remedy.target.path != remedy.what.path or _function(source, node) is not _function(
        source, target
    ):
        raise EditRejected("it would go to a different function")
    if any(part is target for part in ast.walk(node)):
        raise EditRejected("it would go into itself")
    first, last = source.own_lines(node)
    indent, new_indent = indent_of(source.lines[first]), source.indent(target)
    with_comments = source.with_comments(first)
    gap = source.gap(target, remedy.where)
    same_block = source.tree.block_of(node) is source.tree.block_of(target)
    if same_block and with_comments <= gap <= last + 1:
        raise EditRejected("it is there already")
    _check_names(source, node, gap)
    number, at = source.tree.number[id(node)], source.tree.number[id(target)]
    lines = source.indented(with_comments, last, indent, new_indent)
    return Edit(
        [source.drop(with_comments, last), source.put(gap, lines)],
        {*range(with_comments, last + 1), *_anchor(source, target, remedy.where)},
        [lambda tree: tree.put([tree.take(number)], at, remedy.where)],
    )


def _with_its_condition(source: SourceText, node: ast.stmt, target: ast.stmt) -> ast.stmt:
    """A statement that is the only one in an `if` moves with it."""
    for outer in reversed(source.statements):  # inner blocks come after those around them
        if (
            isinstance(outer, ast.If)
            and outer.body == [node]
            and not outer.orelse
            and not any(part is target for part in ast.walk(outer))
        ):
            node = outer
    return node


def _insert(source: SourceText, remedy: Insert) -> Edit:
    target = source.statement(remedy.target)
    gap, indent = source.gap(target, remedy.where), source.indent(target)
    at = source.tree.number[id(target)]
    body = ast.parse(remedy.text).body  # a remedy that does not parse is a fault of the rule
    lines = []
    for line in remedy.text.splitlines():
        depth = len(line) - len(line.lstrip(" "))
        inner = "\t" * (depth // 4) if "\t" in indent else " " * depth
        lines.append(f"{indent}{inner}{line.lstrip(' ')}" if line.strip() else "")
    return Edit(
        [source.put(gap, lines)],
        _anchor(source, target, remedy.where),
        [lambda tree: tree.put(body, at, remedy.where)],
    )


def _delete(source: SourceText, remedy: Delete) -> Edit:
    node = source.whole_statement(remedy.what)
    first, last = source.own_lines(node)
    number = source.tree.number[id(node)]

    def take(tree: Tree) -> None:
        tree.take(number)

    return Edit([source.drop(first, last)], set(range(first, last + 1)), [take])


def _replace(source: SourceText, remedy: Replace) -> Edit:
    node = source.expression(remedy.what)
    start, end = source.span(node)
    number = source.tree.number[id(node)]
    old = source.text[start:end]
    new = remedy.text.replace("{}", old)
    is_keyword = isinstance(node, ast.keyword)
    meant = _arguments(remedy.text.replace("{}", old if is_keyword else f"({old})"))
    if meant is None:
        raise EditRejected(NOT_AS_MEANT)
    found = _arguments(new)
    if found is None or ast.dump(found) != ast.dump(meant):
        new = remedy.text.replace("{}", f"({old})")
    return Edit(
        [(start, end, new)],
        set(range(source.line_at(start), source.line_at(end) + 1)),
        [lambda tree: tree.exchange(number, meant)],
    )


def _arguments(text: str) -> ast.Call | None:
    """A call with these arguments; None if they are none."""
    try:
        call = ast.parse(f"f({text}\n)", mode="eval").body
    except SyntaxError:
        return None
    return call if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) else None


def _check_names(source: SourceText, node: ast.stmt, gap: int) -> None:
    """A statement must not pass one that sets a name it uses, or uses a name it sets."""
    own = [part for part in ast.walk(node) if isinstance(part, ast.Name)]
    first, last = node.lineno - 1, (node.end_lineno or 0) - 1
    passed = range(gap, first) if gap <= first else range(last + 1, gap)
    others = [
        part
        for part in source.tree.nodes
        if isinstance(part, ast.Name) and part.lineno - 1 in passed
    ]
    sets = {part.id for part in own if not isinstance(part.ctx, ast.Load)}
    uses = {part.id for part in own}
    clash = sets & {part.id for part in others}
    clash |= uses & {part.id for part in others if not isinstance(part.ctx, ast.Load)}
    if clash:
        raise EditRejected(f"it would pass a line that it depends on through {min(clash)!r}")


def _function(source: SourceText, node: ast.stmt) -> ast.AST:
    """The function, class or module whose code a statement is."""
    found: ast.AST = source.tree.root
    for outer in source.statements:
        if isinstance(outer, SCOPES) and outer is not node:
            first, last = source.span(outer)
            start, end = source.span(node)
            if first <= start and end <= last:
                found = outer
    return found


def _anchor(source: SourceText, target: ast.stmt, where: str) -> set[int]:
    first, last = source.own_lines(target)
    return {first} if where == "before" else {last}
