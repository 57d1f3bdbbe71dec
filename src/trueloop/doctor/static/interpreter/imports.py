"""The names that the imports of a program bind, in one run of it."""

from __future__ import annotations

import ast
import os

from trueloop.doctor.model.nodes import walk
from trueloop.doctor.static.interpreter.canonical_names import canonical
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.pending import define, settle
from trueloop.doctor.static.interpreter.syntax import once
from trueloop.doctor.static.interpreter.values import (
    Constant,
    Imported,
    LibraryName,
    Module,
    Namespace,
    Scope,
    Value,
)


def now(m: Interpreter, imported: Imported) -> Value:
    """The value of an imported name."""
    if imported.name:
        return member(m, imported.source, imported.name, imported.near)
    return module_value(m, imported.source, imported.near)


def value_in(m: Interpreter, scope: Scope, name: str) -> Value | None:
    """A name of a different scope; None if it has none."""
    if name in scope.waiting and name not in scope.variables:
        settle(m, scope, name)
    found = scope.variables.get(name)
    if isinstance(found, Imported):
        del scope.variables[name]  # modules that import each other do not go round for ever
        found = scope.variables[name] = now(m, found)
    return found


def module_value(m: Interpreter, dotted: str, near: Module) -> Value:
    """The value that `import dotted` binds."""
    path = m.project.find(dotted, near)
    module = m.project.load(path, dotted) if path else None
    if module is None:
        return LibraryName(canonical(dotted))
    return Namespace(scope_of(m, module))


def member(m: Interpreter, source: str, name: str, near: Module) -> Value:
    """The value that `from source import name` binds."""
    path = m.project.find(source, near)
    module = m.project.load(path, source) if path else None
    if module is not None:
        found = value_in(m, scope_of(m, module), name)
        if found is not None:
            return found
    inner = m.project.find(f"{source}.{name}", near) if source else m.project.find(name, near)
    module = m.project.load(inner, f"{source}.{name}") if inner else None
    if module is not None:
        return Namespace(scope_of(m, module))
    return LibraryName(canonical(f"{source}.{name}"))


def failure_of(m: Interpreter, source: str, names: list[str], near: Module) -> str:
    """Why Python is certain to refuse `from source import names` at the top of the program `near`;
    empty if it is not certain. Only files beside the program or below it count: elsewhere Python
    may find a different file."""
    folder = os.path.dirname(os.path.abspath(near.path))
    if why := _misses_a_package(m, source, near, folder):
        return why
    found = _module_below(m, source, near, folder)
    if found is None or _sets_path(near.tree) or _is_above(m, folder, source):
        return ""
    for name in names:
        if _lacks(found, name):
            return f"`{os.path.basename(found.path)}` has no `{name}`"
    return _failure_within(m, source, near, folder)


def _misses_a_package(m: Interpreter, source: str, near: Module, folder: str) -> str:
    """Python finds a file of the first name of `source`, where a folder is needed."""
    head, _, inner = source.partition(".")
    file = m.project.find(head, near) if inner else None
    if file is None or os.path.basename(file) == "__init__.py" or m.project.find(source, near):
        return ""
    beside, others = os.path.dirname(file), _folders_of_others(m, head, near, folder)
    is_sure = others <= {folder} if beside == folder else beside in others
    if not is_sure or os.path.isdir(os.path.join(beside, head)) or _sets_path(near.tree):
        return ""
    return f"`{head}.py` is not a package: `{source}` cannot be imported"


def _folders_of_others(m: Interpreter, head: str, near: Module, folder: str) -> set[str]:
    """The folders in which Python finds the program's other imports. With `python -m` the program's
    own folder may not be one of them."""
    folders: set[str] = set()
    for node in near.tree.body:
        if not isinstance(node, ast.ImportFrom) or node.level or not node.module:
            continue
        parts = node.module.split(".")
        if parts[0] == os.path.basename(folder):
            folders.add(os.path.dirname(folder))
        path = m.project.find(node.module, near) if parts[0] != head else None
        if path is not None:
            path = path.removesuffix(os.sep + "__init__.py")
            folders.add(os.path.normpath(os.path.join(path, *[os.pardir] * len(parts))))
    return folders


def _failure_within(m: Interpreter, source: str, near: Module, folder: str) -> str:
    """The same for the imports of the imported file, and of the packages around it."""
    parts = source.split(".")
    for dotted in (".".join(parts[:count]) for count in range(1, len(parts) + 1)):
        module = _module_below(m, dotted, near, folder) if dotted not in m.imported else None
        m.imported.add(dotted)
        if module is None:
            continue
        for node in module.tree.body:
            if not isinstance(node, ast.ImportFrom):
                continue
            inner = m.project.absolute(node.module or "", node.level, module)
            below = _module_below(m, inner, near, folder)
            if below is None or (not node.level and _is_above(m, folder, inner)):
                continue
            for each in node.names:
                if _lacks(below, each.name):
                    file, importer = os.path.basename(below.path), os.path.basename(module.path)
                    return f"`{file}` has no `{each.name}`, which `{importer}` imports"
            if why := _failure_within(m, inner, near, folder):
                return why
    return ""


def _module_below(m: Interpreter, source: str, near: Module, folder: str) -> Module | None:
    path = m.project.find(source, near)
    is_below = path is not None and path.startswith(folder + os.sep)
    return m.project.load(path, source) if path is not None and is_below else None


def _lacks(module: Module, name: str) -> bool:
    """A file certainly does not define a name; a package may have compiled parts."""
    known = _names_bound_in(module.tree)
    defined = known is None or name in known or name.startswith("__") or name == "*"
    return not defined and os.path.basename(module.path) != "__init__.py"


@once
def _sets_path(tree: ast.AST) -> bool:
    """A file may add folders that modules are looked for in."""
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == "path"
        and getattr(node.value, "id", "") == "sys"
        for node in walk(tree)
    )


def _is_above(m: Interpreter, folder: str, source: str) -> bool:
    """A folder further up has such a module, too, which `python -m` would find first. Where there
    is none, the findings depend on that."""
    below = source.replace(".", os.sep)
    for _ in range(4):
        folder = os.path.dirname(folder)
        file = os.path.join(folder, f"{below}.py")
        if os.path.exists(file) or os.path.exists(os.path.join(folder, below)):
            return True
        m.project.followed[file] = ""
    return False


@once
def _names_bound_in(tree: ast.AST) -> frozenset[str] | None:
    """All names that a file binds anywhere; None where it may bind others."""
    found: set[str] = set()
    for node in walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Global):
            found.update(node.names)
        elif isinstance(node, ast.Attribute) and node.attr in ("modules", "__dict__"):
            return None  # `setattr(sys.modules[__name__], name, value)`
    return None if found & {"*", "__getattr__", "globals", "vars", "exec"} else frozenset(found)


def import_star(m: Interpreter, source: str, scope: Scope) -> None:
    path = m.project.find(source, scope.module)
    module = m.project.load(path, source) if path else None
    if module is None:
        scope.top().stars.append(canonical(source))
        return
    found = scope_of(m, module)
    public: dict[str, Value] = {
        name: Imported(source, name, scope.module) for name in found.waiting if name[0] != "_"
    }
    public |= {name: value for name, value in found.variables.items() if name[0] != "_"}
    m.project.names.update(public)
    scope.variables.update(public)
    scope.top().stars += found.stars


def scope_of(m: Interpreter, module: Module) -> Scope:
    """The names of a module of the project in this run; it is run when first asked for."""
    scope = m.namespaces.get(id(module))
    if scope is not None:
        return scope
    scope = m.namespaces[id(module)] = Scope(module)
    scope.variables["__name__"] = Constant(module.name)
    with m.elsewhere(module):
        define(m, scope)
    return scope
