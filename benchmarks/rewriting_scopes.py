"""Which names of a program are its own, and where they are local: what rewriting.py asks for."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SCOPES = (*FUNCTIONS, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
# A part of a statement inside of these may run never, later or often.
BLOCKED = (*SCOPES, *COMPREHENSIONS, ast.IfExp, ast.BoolOp, ast.NamedExpr, ast.Yield, ast.YieldFrom)
Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def parsed(text: str) -> list[ast.stmt]:
    return ast.parse(text).body


def definitions(tree: ast.Module) -> list[Definition]:
    """The functions and classes at the top."""
    return [each for each in tree.body if isinstance(each, (*FUNCTIONS, ast.ClassDef))]


def free_name(tree: ast.Module, wanted: str) -> str:
    """A name that the program does not use."""
    used = {each.id for each in ast.walk(tree) if isinstance(each, ast.Name)}
    used |= {each.name for each in ast.walk(tree) if isinstance(each, (*FUNCTIONS, ast.ClassDef))}
    while wanted in used:
        wanted += "_"
    return wanted


def _header(statement: ast.stmt) -> bool:
    """Whether the statement is an import or the program's docstring."""
    text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return text or isinstance(statement, (ast.Import, ast.ImportFrom))


def insert_imports(tree: ast.Module, text: str) -> ast.Module:
    """Put the statements after the program's first imports."""
    place = next((n for n, each in enumerate(tree.body) if not _header(each)), len(tree.body))
    tree.body[place:place] = parsed(text)
    return tree


def split_head(tree: ast.Module) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """The imports, functions and classes at the top, and what runs."""
    defined = {id(each) for each in definitions(tree)}
    # A class or a function whose decorators, defaults or bases need what ran before stays after it.
    late = _needed_when_defined(tree) & variables(tree)
    head = [each for each in tree.body if _header(each) or id(each) in defined]
    if late:
        return [each for each in tree.body if _header(each)], [
            each for each in tree.body if not _header(each)
        ]
    return head, [each for each in tree.body if not _header(each) and id(each) not in defined]


def _needed_when_defined(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for each in definitions(tree):
        parts: list[ast.AST] = [*each.decorator_list]
        if isinstance(each, ast.ClassDef):
            parts += [*each.bases, *each.keywords]
            parts += [part for part in each.body if not isinstance(part, FUNCTIONS)]
            for method in each.body:
                if isinstance(method, FUNCTIONS):
                    parts += [*method.decorator_list, method.args]
        else:
            parts.append(each.args)
        names |= {n.id for part in parts for n in ast.walk(part) if isinstance(n, ast.Name)}
    return names


def _stored(body: list[ast.stmt]) -> Iterator[str]:
    """Names that the statements assign, functions and classes inside left out."""
    waiting: list[ast.AST] = [*body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (*SCOPES, *COMPREHENSIONS, ast.ClassDef)):
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        waiting += ast.iter_child_nodes(node)


def variables(tree: ast.Module) -> set[str]:
    """What the program assigns at the top and that can be an attribute as well."""
    names = set(_stored(tree.body))
    for node in ast.walk(tree):
        if isinstance(node, ast.NamedExpr) and isinstance(node.target, ast.Name):
            names.discard(node.target.id)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            names.discard(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names -= {each.asname or each.name for each in node.names}
        elif isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            names.discard(node.name)
            if isinstance(node, ast.ClassDef):
                names -= set(_stored(node.body))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            # globals()["name"] and the like.
            names.discard(node.value)
    return {each for each in names if not each.startswith("_")}


def _bound(scope: ast.AST) -> set[str]:
    """Names that are local to a function, a lambda or a comprehension."""
    if isinstance(scope, COMPREHENSIONS):
        targets = [each.target for each in scope.generators]
        return {n.id for each in targets for n in ast.walk(each) if isinstance(n, ast.Name)}
    assert isinstance(scope, SCOPES)
    given = scope.args
    own = {each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)}
    own |= {each.arg for each in (given.vararg, given.kwarg) if each}
    if isinstance(scope, ast.Lambda):
        return own
    own |= set(_stored(scope.body))
    own |= {n.name for n in scope.body if isinstance(n, (*FUNCTIONS, ast.ClassDef))}
    inside = [each for each in ast.walk(scope) if isinstance(each, ast.Global)]
    return own - {name for each in inside for name in each.names}


def names_in_functions(tree: ast.Module) -> set[str]:
    """Names that the functions and classes at the top use from the program's own level."""
    found: set[str] = set()

    def take(name: ast.Name) -> ast.expr:
        found.add(name.id)
        return name

    changer = Globals(None, take)
    for each in definitions(tree):
        changer.visit(each)
    return found


class Globals(ast.NodeTransformer):
    """Replaces each name of the program's own level that is one of `names` (all for None)."""

    def __init__(self, names: set[str] | None, replace: Callable[[ast.Name], ast.expr]) -> None:
        self.names, self.replace = names, replace
        self.local: list[set[str]] = []

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, SCOPES):
            return self._function(node)
        if isinstance(node, COMPREHENSIONS):
            return self._comprehension(node)
        changed: ast.AST = super().visit(node)
        return changed

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if any(node.id in each for each in self.local):
            return node
        return self.replace(node) if self.names is None or node.id in self.names else node

    def visit_Global(self, node: ast.Global) -> ast.AST:
        kept = [each for each in node.names if self.names is not None and each not in self.names]
        return ast.Global(kept) if kept else ast.Pass()

    def _function(self, node: Scope) -> ast.AST:
        # Defaults and decorators are computed outside.
        node.args = self.visit(node.args)
        if not isinstance(node, ast.Lambda):
            node.decorator_list = [self.visit(each) for each in node.decorator_list]
        self.local.append(_bound(node))
        if isinstance(node, ast.Lambda):
            node.body = self.visit(node.body)
        else:
            node.body = [self.visit(each) for each in node.body]
        self.local.pop()
        return node

    def _comprehension(self, node: ast.AST) -> ast.AST:
        self.local.append(_bound(node))
        self.generic_visit(node)
        self.local.pop()
        return node
