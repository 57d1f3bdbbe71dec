"""Dataclasses whose docstring, and so `help()`, has the docstrings of their fields."""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import TypeVar

T = TypeVar("T")
_WIDTH = 96


def documented(cls: type[T]) -> type[T]:
    """Add the fields of a dataclass, with their types, defaults and docstrings, to its docstring.

    Without the source (a frozen program) the docstring stays unchanged.
    """
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    except (OSError, TypeError, SyntaxError):
        return cls
    body = next(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)).body
    lines = ["Fields:"]
    for field, below in zip(body, [*body[1:], None], strict=True):
        if not isinstance(field, ast.AnnAssign):
            continue
        default = "" if field.value is None else f" = {ast.unparse(_default(field.value))}"
        lines.append(f"  {ast.unparse(field.target)}: {ast.unparse(field.annotation)}{default}")
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            text = " ".join(str(below.value.value).split())
            indent = " " * 6
            lines += textwrap.wrap(
                text,
                _WIDTH,
                initial_indent=indent,
                subsequent_indent=indent,
                break_on_hyphens=False,
            )
    if len(lines) > 1:
        cls.__doc__ = inspect.cleandoc(cls.__doc__ or "") + "\n\n" + "\n".join(lines)
    return cls


def _default(value: ast.expr) -> ast.expr:
    """The default of a field: of `option(64, unit="samples")` its first argument."""
    declared = isinstance(value, ast.Call) and ast.unparse(value.func) == "option"
    return value.args[0] if declared and isinstance(value, ast.Call) else value
