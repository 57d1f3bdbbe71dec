"""Which files are programs that train by what they import, without a word about it themselves."""

from __future__ import annotations

import ast
import os
from collections import deque
from collections.abc import Iterator

from trueloop.doctor.model.nodes import walk
from trueloop.doctor.static.interpreter.project import Project
from trueloop.doctor.static.interpreter.syntax import once
from trueloop.doctor.static.interpreter.values import Imported, Module

FILES = 60
"""Files of a project that are looked at."""


def trains_by_import(project: Project, module: Module) -> bool:
    """A backward is in what a program imports from its own project:
    `from engine import Trainer`, `Trainer(config).train()`."""
    seen: set[tuple[str, str]] = set()
    waiting = deque(_imports(project, module))
    while waiting and len(seen) < FILES:
        imported = waiting.popleft()
        for dotted in (imported.source, f"{imported.source}.{imported.name}".strip(".")):
            path = project.find(dotted, imported.near)
            if path is None or (path, imported.name) in seen:
                continue
            seen.add((path, imported.name))
            found = project.load(path, dotted)
            if found is None:
                continue
            if found.survey.backwards:
                return True
            exports = os.path.basename(path) == "__init__.py" and dotted == imported.source
            waiting.extend(_imports(project, found, imported.name if exports else ""))
    return False


def _imports(project: Project, module: Module, name: str = "") -> Iterator[Imported]:
    """The imports of a file; of a package that passes names on, only what binds `name`, or may."""
    stars: list[Imported] = []
    bound = False
    for node in _import_statements(module.tree):
        if isinstance(node, ast.Import):
            if not name:
                yield from (Imported(each.name, "", module) for each in node.names)
        else:
            source = project.absolute(node.module or "", node.level, module)
            for each in node.names:
                if each.name == "*":
                    stars.append(Imported(source, name, module))
                elif not name or name == (each.asname or each.name):
                    bound = bool(name)
                    yield Imported(source, each.name, module)
    if not bound:
        yield from stars


@once
def _import_statements(tree: ast.Module) -> list[ast.Import | ast.ImportFrom]:
    """Those of a file, level by level."""
    return [node for node in walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
