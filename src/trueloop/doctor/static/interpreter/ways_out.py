"""Statements that end the block that contains them."""

from __future__ import annotations

import ast


def leaves(statement: ast.stmt) -> bool:
    """A statement ends the block that contains it: it leaves the loop, the function or the
    program."""
    if isinstance(statement, (ast.Break, ast.Continue, ast.Return, ast.Raise)):
        return True
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        called = statement.value.func
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        return name in {"exit", "_exit", "abort", "quit"}
    if isinstance(statement, ast.If) and statement.orelse:
        return leaves(statement.body[-1]) and leaves(statement.orelse[-1])
    return False


def is_way_out(node: ast.If) -> bool:
    """The branch of a test ends early (`if args.evaluate: ...; return`)."""
    return leaves(node.body[-1]) and not returns_either(node)


def returns_either(node: ast.If) -> bool:
    """`if args.schedule: return [optimizer], [schedule]`, `else: return optimizer`, and nothing
    more: an option decides which of both is the result, and neither is a way out."""
    ends = [body[0] for body in (node.body, node.orelse) if len(body) == 1]
    returns = len(ends) == 2 and all(isinstance(each, ast.Return) and each.value for each in ends)
    return returns and isinstance(node.test, (ast.Name, ast.Attribute))
