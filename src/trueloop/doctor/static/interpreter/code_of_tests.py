"""Source that is a test: it is not reported for what only costs time, memory or safety."""

from __future__ import annotations

import ast
import os
import re

from trueloop.doctor.static.interpreter.syntax import once

_NAME = re.compile(r"(test_.*|.*_test|conftest)\.py$")
_FOLDERS = frozenset(("test", "tests"))
_FRAMEWORKS = frozenset(("pytest", "unittest", "absl"))
_RUNS = (ast.For, ast.While, ast.With, ast.Expr)


def is_test(path: str, roots: list[str], tree: ast.Module | None = None) -> bool:
    """Whether the file at `path` belongs to the tests of a project: by its name, or by its folder
    below one of `roots`. A program that runs by itself is none, whatever it is called."""
    named = _NAME.match(os.path.basename(path)) is not None
    return (named or _is_below_tests(path, roots)) and (tree is None or not _runs_by_itself(tree))


def _is_below_tests(path: str, roots: list[str]) -> bool:
    folder = os.path.dirname(os.path.abspath(path))
    within = [root for root in roots if folder.startswith(os.path.join(root, ""))]
    below = os.path.relpath(folder, max(within, key=len)) if within else ""
    return not _FOLDERS.isdisjoint(below.split(os.sep))


@once
def _runs_by_itself(tree: ast.Module) -> bool:
    """It does something when it is run, and has nothing that a test runner would call."""
    for node in tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [getattr(node, "module", None) or "", *(each.name for each in node.names)]
            if not _FRAMEWORKS.isdisjoint(name.partition(".")[0] for name in names):
                return False
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            return False
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            return False
    return any(_acts(node) for node in tree.body)


def _acts(node: ast.stmt) -> bool:
    if isinstance(node, ast.If):
        return any(map(_acts, node.body))
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call)
    return isinstance(node, _RUNS)
