"""The `match` statement: the first case that the subject is, or may be."""

from __future__ import annotations

import ast

from trueloop.doctor.static.interpreter.interpreter import ControlFlow, Interpreter
from trueloop.doctor.static.interpreter.values import Constant, Scope, Unknown, Value


def run_match(m: Interpreter, node: ast.Match, scope: Scope) -> ControlFlow | None:
    """Run the body of the case that this run takes."""
    subject = m.evaluate(node.subject, scope)
    for position, case in enumerate(node.cases):
        m.spend(1, case.pattern)
        outcome, guard = _matches(m, case.pattern, subject, node, position, len(node.cases))
        if outcome:
            with m.guarded([guard] if guard else []):
                return m.run_block(case.body, scope)
    return None


def _matches(
    m: Interpreter,
    pattern: ast.pattern,
    subject: Value,
    node: ast.Match,
    position: int,
    cases: int,
) -> tuple[bool, str]:
    if isinstance(pattern, ast.MatchAs) and pattern.pattern is None:
        return True, ""
    if isinstance(pattern, ast.MatchValue) and isinstance(pattern.value, ast.Constant):
        if isinstance(subject, Constant):
            return subject.value == pattern.value.value, ""
        key = f"{m.key(subject)} == {pattern.value.value!r}"
        return m.decide(Unknown(key, equals=(m.key(subject), pattern.value.value)))
    return m.decide(Unknown(f"{m.key(subject)} matches {node.lineno}.{position}"))
