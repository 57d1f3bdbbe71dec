"""Every public name is documented in one form: Google's, read by `docstring_parser`."""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import docstring_parser
from docstring_parser import Docstring, DocstringStyle

from test_public_surface import RETURNED, public
from trueloop import feed, run, tasks
from trueloop.errors import TrueloopError

# Packages whose names the guides use: what users subclass, call or get.
ROOMS = (feed, run, tasks)


def is_ours(value: Any) -> bool:
    return str(getattr(value, "__module__", "")).startswith("trueloop")


def members(kind: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The public methods and properties that a class, or a base of ours, defines.

    One without a docstring that overrides a documented one, ours or torch's, has that.
    """
    for place, base in enumerate(kind.__mro__):
        for name, value in vars(base).items() if is_ours(base) else ():
            function = value.fget if isinstance(value, property) else value
            function = getattr(function, "func", getattr(function, "__func__", function))
            if not inspect.isfunction(function) or (name.startswith("_") and name != "__call__"):
                continue
            above = [vars(other).get(name) for other in kind.__mro__[place + 1 :]]
            if function.__doc__ or not any(getattr(other, "__doc__", None) for other in above):
                yield name, inspect.unwrap(function)


def surface() -> dict[str, Any]:
    """Everything that is to be documented; a name for each, and each once."""
    found: dict[int, tuple[str, Any]] = {}
    beside = {
        f"{room.__name__}.{name}": getattr(room, name) for room in ROOMS for name in room.__all__
    }
    returned = {kind.__name__: kind for kind in RETURNED}
    for name, value in [*public(), *returned.items(), *beside.items()]:
        if inspect.isclass(value) and is_ours(value):
            found.setdefault(id(value), (name, value))
            for member, function in members(value):
                found.setdefault(id(function), (f"{name}.{member}", function))
        elif inspect.isfunction(value) and is_ours(value):
            found.setdefault(id(value), (name, inspect.unwrap(value)))
    return dict(found.values())


SURFACE = surface()
FUNCTIONS = {name: value for name, value in SURFACE.items() if inspect.isfunction(value)}
CLASSES = {name: value for name, value in SURFACE.items() if inspect.isclass(value)}


def parsed(value: Any) -> Docstring:
    return docstring_parser.parse(inspect.getdoc(value) or "", DocstringStyle.GOOGLE)


def syntax(value: Any) -> ast.AST:
    return ast.parse(textwrap.dedent(inspect.getsource(value))).body[0]


def own_statements(function: Callable[..., Any]) -> Iterator[ast.AST]:
    """The nodes of a function's body, without those of the functions that it defines."""
    todo: list[ast.AST] = list(syntax(function).body)  # type: ignore[attr-defined]
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            todo.extend(ast.iter_child_nodes(node))


def is_text(statements: Sequence[ast.stmt]) -> bool:
    """Whether the first of the statements is a string."""
    texts = [s.value for s in statements[:1] if isinstance(s, ast.Expr)]
    return bool(texts) and isinstance(texts[0], ast.Constant)


def class_body(kind: type) -> list[ast.stmt]:
    """The statements of a class and of its bases of ours."""
    trees = [syntax(base) for base in kind.__mro__ if is_ours(base)]
    return [statement for tree in trees for statement in tree.body]  # type: ignore[attr-defined]


def documented_fields(kind: type) -> set[str]:
    """The fields that have a string of their own below them."""
    return {
        field.target.id
        for field, text in itertools.pairwise(class_body(kind))
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and is_text([text])
    }


def explained(value: Any) -> set[str]:
    """The names under `Args:` and `Attributes:` (or, of a class, those with a text below them)."""
    found = {entry.arg_name.lstrip("*") for entry in parsed(value).params}
    return found | (documented_fields(value) if inspect.isclass(value) else set())


def unexplained(value: Any) -> list[str]:
    """The parameters that are not explained."""
    found = {"self", "cls", *explained(value)}
    if inspect.isclass(value) and issubclass(value, BaseException):
        found |= {"args", "kwargs", "message"}  # what every exception takes
        value = value.__init__
    return [name for name in inspect.signature(value).parameters if name not in found]


def raised(function: Callable[..., Any]) -> set[str]:
    """The error classes of ours that the body of a function raises."""
    names = set()
    for node in own_statements(function):
        if isinstance(node, ast.Raise) and node.exc is not None:
            made = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            kind = function.__globals__.get(getattr(made, "id", ""))
            if isinstance(kind, type) and issubclass(kind, TrueloopError):
                names.add(kind.__name__)
    return names


def returns(function: Callable[..., Any]) -> bool:
    """Whether the body of a function returns or yields something."""
    for node in own_statements(function):
        if isinstance(node, ast.YieldFrom):
            return True
        if isinstance(node, (ast.Return, ast.Yield)) and node.value is not None:
            return not (isinstance(node.value, ast.Constant) and node.value.value is None)
    return False


def is_property(name: str) -> bool:
    owner, _, last = name.rpartition(".")
    found = inspect.getattr_static(CLASSES.get(owner), last, None)
    return hasattr(found, "fget") or hasattr(found, "func")


def test_the_surface_is_found() -> None:
    assert {"Step", "Step.plan", "fit", "schedules.cosine", "seed.for_sample"} <= set(SURFACE)
    assert "Run.id" not in SURFACE


def test_every_public_name_has_a_summary_of_one_line() -> None:
    wrong = []
    for name, value in SURFACE.items():
        summary, *rest = (inspect.getdoc(value) or "").splitlines() or [""]
        if not summary.endswith(".") or (rest and rest[0]):
            wrong.append(name)
    assert not wrong, f"begin each docstring with one line that ends in a period: {wrong}"


def test_every_public_parameter_is_explained() -> None:
    wrong = {name: missing for name, value in SURFACE.items() if (missing := unexplained(value))}
    assert not wrong, f"explain under Args: {wrong}"


def assigned(kind: type) -> Iterator[tuple[str, bool]]:
    """The public attributes that `__init__` sets, and whether each has a string of its own."""
    inits = [each for each in class_body(kind) if getattr(each, "name", "") == "__init__"]
    for statements in (init.body for init in inits):  # type: ignore[attr-defined]
        for place, statement in enumerate(statements):
            for target in getattr(statement, "targets", [getattr(statement, "target", None)]):
                for part in getattr(target, "elts", [target]):
                    if isinstance(part, ast.Attribute) and not part.attr.startswith("_"):
                        yield part.attr, is_text(statements[place + 1 : place + 2])


def test_every_public_attribute_is_explained() -> None:
    """Under `Args:` or `Attributes:` of its class, or below the place where it is set."""
    wrong = [
        f"{name}.{attribute}"
        for name, kind in CLASSES.items()
        for attribute, has_text in assigned(kind)
        if not has_text and attribute not in explained(kind)
    ]
    assert not wrong, f"explain {wrong}"


def test_what_public_functions_return_is_explained() -> None:
    """Under `Returns:` or `Yields:`, or by a summary that begins with that word."""
    wrong = [
        name
        for name, function in FUNCTIONS.items()
        if not is_property(name)
        and returns(function)
        and parsed(function).returns is None
        and not re.match("(Return|Yield)s? ", inspect.getdoc(function) or "")
    ]
    assert not wrong, f"add Returns: or Yields: to {wrong}"


def test_what_public_functions_raise_is_explained() -> None:
    wrong = {
        name: sorted(missing)
        for name, function in FUNCTIONS.items()
        if (missing := raised(function) - {entry.type_name for entry in parsed(function).raises})
    }
    assert not wrong, f"add under Raises: {wrong}"
