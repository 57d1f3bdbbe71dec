"""Writes a program in other words: what it does stays the same.

Each function takes the parsed program, which it may change, and returns it, or None where it finds
nothing to change. What they share is in rewriting_scopes.py.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from itertools import count

from rewriting_scopes import (
    BLOCKED,
    FUNCTIONS,
    Globals,
    definitions,
    free_name,
    insert_imports,
    names_in_functions,
    parsed,
    split_head,
    variables,
)

Rewrite = Callable[[ast.Module], ast.Module | None]


def loops_by_generator(tree: ast.Module) -> ast.Module | None:
    """`for x in items` runs over a generator function of the program."""
    name = free_name(tree, "each_of")
    changed = False
    for node in ast.walk(tree):
        if isinstance(node, ast.For):
            node.iter = ast.Call(ast.Name(name, ast.Load()), [node.iter], [])
            changed = True
    helper = f"def {name}(items):\n    for item in items:\n        yield item"
    return insert_imports(tree, helper) if changed else None


class _NextLoops(ast.NodeTransformer):
    def __init__(self, tree: ast.Module) -> None:
        self.numbers = count(1)
        self.prefix = free_name(tree, "rest")

    def visit_For(self, node: ast.For) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        if node.orelse:
            return node
        name = f"{self.prefix}_{next(self.numbers)}"
        loop = parsed(
            f"{name} = iter(0)\nwhile True:\n    try:\n        a = next({name})\n"
            "    except StopIteration:\n        break\n"
        )
        first, turns = loop
        assert isinstance(first, ast.Assign)
        assert isinstance(first.value, ast.Call)
        assert isinstance(turns, ast.While)
        taken = turns.body[0]
        assert isinstance(taken, ast.Try)
        assert isinstance(taken.body[0], ast.Assign)
        first.value.args = [node.iter]
        taken.body[0].targets = [node.target]
        turns.body += node.body
        return loop


def loops_by_next(tree: ast.Module) -> ast.Module | None:
    """`for x in items` becomes `while True` with `next()` until StopIteration."""
    changer = _NextLoops(tree)
    changed = changer.visit(tree)
    return changed if next(changer.numbers) > 1 else None


class _SentinelLoops(ast.NodeTransformer):
    def __init__(self, tree: ast.Module) -> None:
        self.numbers = count(1)
        self.prefix, self.end = free_name(tree, "item"), free_name(tree, "NOTHING")

    def visit_For(self, node: ast.For) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        if node.orelse:
            return node
        item = f"{self.prefix}_{next(self.numbers)}"
        loop = parsed(
            f"{item}_rest = iter(0)\nwhile True:\n    {item} = next({item}_rest, {self.end})\n"
            f"    if {item} is {self.end}:\n        break\n    a = {item}\n"
        )
        first, turns = loop
        assert isinstance(first, ast.Assign)
        assert isinstance(first.value, ast.Call)
        assert isinstance(turns, ast.While)
        assert isinstance(turns.body[-1], ast.Assign)
        first.value.args = [node.iter]
        turns.body[-1].targets = [node.target]
        turns.body += node.body
        return loop


def loops_by_sentinel(tree: ast.Module) -> ast.Module | None:
    """`for x in items` becomes `while True` with `next(items, NOTHING)`."""
    changer = _SentinelLoops(tree)
    changed = changer.visit(tree)
    if next(changer.numbers) == 1:
        return None
    return insert_imports(changed, f"{changer.end} = object()")


def loops_by_class(tree: ast.Module) -> ast.Module | None:
    """`for x in items` runs over an object of the program, which goes through them."""
    name = free_name(tree, "Pass")
    changed = False
    for node in ast.walk(tree):
        if isinstance(node, ast.For):
            node.iter = ast.Call(ast.Name(name, ast.Load()), [node.iter], [])
            changed = True
    helper = (
        f"class {name}:\n    def __init__(self, items):\n        self.items = items\n"
        "    def __iter__(self):\n        for item in self.items:\n            yield item"
    )
    return insert_imports(tree, helper) if changed else None


class _Stacks(ast.NodeTransformer):
    def __init__(self, tree: ast.Module) -> None:
        self.numbers = count(1)
        self.prefix = free_name(tree, "stack")

    def visit_With(self, node: ast.With) -> ast.AST:
        self.generic_visit(node)
        name = f"{self.prefix}_{next(self.numbers)}"
        entered: list[ast.stmt] = []
        for item in node.items:
            (statement,) = parsed(f"{name}.enter_context(0)")
            assert isinstance(statement, ast.Expr)
            assert isinstance(statement.value, ast.Call)
            statement.value.args = [item.context_expr]
            target = item.optional_vars
            entered.append(ast.Assign([target], statement.value) if target else statement)
        (block,) = parsed(f"with contextlib.ExitStack() as {name}:\n    pass")
        assert isinstance(block, ast.With)
        block.body = [*entered, *node.body]
        return block


def contexts_by_stack(tree: ast.Module) -> ast.Module | None:
    """`with a:` enters `a` through `contextlib.ExitStack`."""
    changer = _Stacks(tree)
    changed = changer.visit(tree)
    return insert_imports(changed, "import contextlib") if next(changer.numbers) > 1 else None


class _Temporaries(ast.NodeTransformer):
    def __init__(self, tree: ast.Module) -> None:
        self.numbers = count(1)
        self.prefix = free_name(tree, "part")

    def visit(self, node: ast.AST) -> ast.AST | list[ast.stmt]:
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.Expr, ast.Return)):
            return self._split(node)
        return self.generic_visit(node)

    def _split(self, node: ast.stmt) -> ast.stmt | list[ast.stmt]:
        if any(isinstance(each, BLOCKED) for each in ast.walk(node)):
            return node
        before: list[ast.stmt] = []
        root, prefix, numbers = getattr(node, "value", None), self.prefix, self.numbers

        class Calls(ast.NodeTransformer):
            def visit_Call(self, call: ast.Call) -> ast.AST:
                self.generic_visit(call)
                if call is root or (isinstance(call.func, ast.Name) and call.func.id == "super"):
                    return call
                name = f"{prefix}_{next(numbers)}"
                before.append(ast.Assign([ast.Name(name, ast.Store())], call))
                return ast.Name(name, ast.Load())

        changed = Calls().visit(node)
        return [*before, changed]


def calls_by_parts(tree: ast.Module) -> ast.Module | None:
    """A call inside of a call gets a variable and a line of its own."""
    changer = _Temporaries(tree)
    changed = changer.visit(tree)
    return changed if next(changer.numbers) > 1 else None


def arguments_unpacked(tree: ast.Module) -> ast.Module | None:
    """The program's functions get their arguments as `*(...)` and `**{...}`."""
    own = {each.name for each in definitions(tree)}
    changed = False
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
            continue
        starred = any(isinstance(each, ast.Starred) for each in node.args)
        if node.func.id not in own or starred or any(not each.arg for each in node.keywords):
            continue
        keys: list[ast.expr | None] = [ast.Constant(each.arg) for each in node.keywords]
        if node.args:
            node.args = [ast.Starred(ast.Tuple(node.args, ast.Load()), ast.Load())]
        if keys:
            node.keywords = [ast.keyword(None, ast.Dict(keys, [k.value for k in node.keywords]))]
        changed = changed or bool(node.args or keys)
    return tree if changed else None


def functions_by_partial(tree: ast.Module) -> ast.Module | None:
    """The program's functions are called through `functools.partial`."""
    own = {each.name for each in definitions(tree) if not isinstance(each, ast.ClassDef)}
    changed = False
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in own:
            if any(isinstance(each, ast.Starred) for each in node.args):
                continue
            bound = ast.parse("functools.partial(0)", mode="eval").body
            assert isinstance(bound, ast.Call)
            bound.args, bound.keywords = [node.func, *node.args[:1]], node.keywords
            node.func, node.args, node.keywords = bound, node.args[1:], []
            changed = True
    return insert_imports(tree, "import functools") if changed else None


def methods_by_name(tree: ast.Module) -> ast.Module | None:
    """`optimizer.step()` as a statement becomes `getattr(optimizer, "step")()`."""
    changed = False
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            called = node.value.func
            if isinstance(called, ast.Attribute) and not isinstance(called.value, ast.Call):
                arguments: list[ast.expr] = [called.value, ast.Constant(called.attr)]
                node.value.func = ast.Call(ast.Name("getattr", ast.Load()), arguments, [])
                changed = True
    return tree if changed else None


def branches_swapped(tree: ast.Module) -> ast.Module | None:
    """`if a: ... else: ...` asks `not a`."""
    changed = False
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and node.orelse:
            node.test = ast.UnaryOp(ast.Not(), node.test)
            node.body, node.orelse = node.orelse, node.body
            changed = True
    return tree if changed else None


def loops_interruptible(tree: ast.Module) -> ast.Module | None:
    """A loop at the top, or of a function, that has a loop inside stands in a `try`."""

    class Loops(ast.NodeTransformer):
        changed = False

        def visit_For(self, node: ast.For) -> ast.AST:
            if not any(isinstance(each, ast.For) for each in ast.walk(node) if each is not node):
                return node
            (block,) = parsed("try:\n    pass\nexcept KeyboardInterrupt:\n    print('stopped')")
            assert isinstance(block, ast.Try)
            block.body = [node]
            self.changed = True
            return block

    changer = Loops()
    changed = changer.visit(tree)
    return changed if changer.changed else None


def functions_decorated(tree: ast.Module) -> ast.Module | None:
    """Each function at the top has a decorator that calls it and does nothing else."""
    name = free_name(tree, "logged")
    own = [each for each in tree.body if isinstance(each, FUNCTIONS)]
    for each in own:
        each.decorator_list.insert(0, ast.Name(name, ast.Load()))
    helper = (
        f"import functools\ndef {name}(function):\n    @functools.wraps(function)\n"
        "    def call(*args, **kwargs):\n        return function(*args, **kwargs)\n    return call"
    )
    return insert_imports(tree, helper) if own else None


def functions_by_factory(tree: ast.Module) -> ast.Module | None:
    """Each function at the top is made by a function that returns it."""
    body: list[ast.stmt] = []
    changed = False
    for each in tree.body:
        if not isinstance(each, FUNCTIONS):
            body.append(each)
            continue
        maker = free_name(tree, f"make_{each.name}")
        made = parsed(f"def {maker}():\n    return {each.name}\n{each.name} = {maker}()")
        assert isinstance(made[0], ast.FunctionDef)
        made[0].body.insert(0, each)
        body += made
        changed = True
    tree.body = body
    return tree if changed else None


def functions_in_classes(tree: ast.Module) -> ast.Module | None:
    """Each function at the top becomes a static method of a class of its own."""
    own = {each.name for each in tree.body if isinstance(each, FUNCTIONS)}
    if not own:
        return None
    holders = {name: free_name(tree, f"Holder_{name}") for name in own}
    body: list[ast.stmt] = []
    for each in tree.body:
        if isinstance(each, FUNCTIONS):
            (holder,) = parsed(f"class {holders[each.name]}:\n    pass")
            assert isinstance(holder, ast.ClassDef)
            each.decorator_list.insert(0, ast.Name("staticmethod", ast.Load()))
            holder.body = [each]
            body.append(holder)
        else:
            body.append(each)
    tree.body = body

    def through_holder(name: ast.Name) -> ast.expr:
        return ast.Attribute(ast.Name(holders[name.id], ast.Load()), name.id, ast.Load())

    return Globals(own, through_holder).visit(tree)


def classes_by_base(tree: ast.Module) -> ast.Module | None:
    """Each class at the top takes all that it has from a base class of the program."""
    own = [each for each in tree.body if isinstance(each, ast.ClassDef)]
    text = ast.unparse(tree)
    # `super(Net, self)` and `Net.forward` would mean a different class; a dataclass has its fields.
    own = [each for each in own if not each.decorator_list and each.bases and not each.keywords]
    own = [each for each in own if f"super({each.name}" not in text]
    for each in own:
        base = free_name(tree, f"{each.name}Base")
        (derived,) = parsed(f"class {each.name}({base}):\n    pass")
        each.name = base
        tree.body.insert(tree.body.index(each) + 1, derived)
    return tree if own else None


def imports_by_module(tree: ast.Module) -> ast.Module | None:
    """`from a import b` becomes `import a as a_1`, and `b` is `a_1.b`; `import a.b as c` becomes
    `from a import b as c`."""
    numbers = count(1)
    body: list[ast.stmt] = []
    for each in tree.body:
        if isinstance(each, ast.ImportFrom) and each.module and not each.level:
            if each.module == "__future__" or any(name.name == "*" for name in each.names):
                body.append(each)
                continue
            alias = free_name(tree, f"module_{next(numbers)}")
            body.append(ast.Import([ast.alias(each.module, alias)]))
            meant = {name.asname or name.name: name.name for name in each.names}

            def from_module(
                name: ast.Name, alias: str = alias, meant: dict[str, str] = meant
            ) -> ast.expr:
                return ast.Attribute(ast.Name(alias, ast.Load()), meant[name.id], ast.Load())

            tree = Globals(set(meant), from_module).visit(tree)
        elif isinstance(each, ast.Import) and all("." in n.name and n.asname for n in each.names):
            for name in each.names:
                package, _, last = name.name.rpartition(".")
                body.append(ast.ImportFrom(package, [ast.alias(last, name.asname)], 0))
            next(numbers)
        else:
            body.append(each)
    tree.body = body
    return tree if next(numbers) > 1 else None


def numbers_by_options(tree: ast.Module) -> ast.Module | None:
    """`NAME = 3` at the top becomes the default of a command-line option."""
    options = free_name(tree, "options")
    declared = [f"import argparse\n{options} = argparse.ArgumentParser()"]
    changed: list[ast.Assign] = []
    for each in tree.body:
        if not (isinstance(each, ast.Assign) and isinstance(each.value, ast.Constant)):
            continue
        target, value = each.targets[0], each.value.value
        if type(value) in (int, float, bool) and isinstance(target, ast.Name):
            given = f"type={type(value).__name__}, default={value}"
            if isinstance(value, bool):
                given = f"action='store_{'false' if value else 'true'}', dest={target.id!r}"
            declared.append(f"{options}.add_argument('--{target.id}', {given})")
            each.value = ast.Attribute(ast.Name(options, ast.Load()), target.id, ast.Load())
            changed.append(each)
    declared.append(f"{options} = {options}.parse_args()")
    return insert_imports(tree, "\n".join(declared)) if changed else None


def variables_by_attribute(tree: ast.Module) -> ast.Module | None:
    """What is assigned at the top becomes an attribute of one object."""
    own = variables(tree)
    if not own:
        return None
    holder = free_name(tree, "shared")

    def through_holder(name: ast.Name) -> ast.expr:
        return ast.Attribute(ast.Name(holder, ast.Load()), name.id, name.ctx)

    changed = Globals(own, through_holder).visit(tree)
    return insert_imports(changed, f"import types\n{holder} = types.SimpleNamespace()")


def variables_by_key(tree: ast.Module) -> ast.Module | None:
    """What is assigned at the top becomes an item of one dict."""
    own = variables(tree)
    if not own:
        return None
    holder = free_name(tree, "state")

    def through_holder(name: ast.Name) -> ast.expr:
        return ast.Subscript(ast.Name(holder, ast.Load()), ast.Constant(name.id), name.ctx)

    return insert_imports(Globals(own, through_holder).visit(tree), f"{holder} = {{}}")


def program_by_main(tree: ast.Module) -> ast.Module | None:
    """What runs at the top runs in a function `main` instead."""
    head, rest = split_head(tree)
    if not variables(tree) or len(rest) < 2:
        return None
    name = free_name(tree, "main")
    (function, call) = parsed(f"def {name}():\n    pass\nif __name__ == '__main__':\n    {name}()")
    assert isinstance(function, ast.FunctionDef)
    shared = sorted(variables(tree) & names_in_functions(tree))
    function.body = [*([ast.Global(shared)] if shared else []), *rest]
    tree.body = [*head, function, call]
    return tree


def program_by_class(tree: ast.Module) -> ast.Module | None:
    """What runs at the top becomes a class: what is before the first loop is its `__init__`, and
    what follows is a method; variables are its attributes."""
    head, rest = split_head(tree)
    loop = next((n for n, each in enumerate(rest) if isinstance(each, (ast.For, ast.While))), 0)
    own = variables(tree)
    if not own or not loop:
        return None
    name = free_name(tree, "Trainer")
    (trainer, call) = parsed(
        f"class {name}:\n    def __init__(self):\n        pass\n    def fit(self):\n        pass\n"
        f"if __name__ == '__main__':\n    {name}().fit()"
    )
    assert isinstance(trainer, ast.ClassDef)
    shared = sorted(own & names_in_functions(tree))
    declared: list[ast.stmt] = [ast.Global(shared)] if shared else []
    for method, part in zip(trainer.body, (rest[:loop], rest[loop:]), strict=True):
        assert isinstance(method, ast.FunctionDef)
        method.body = [*declared, *part]

    def of_trainer(name: ast.Name) -> ast.expr:
        return ast.Attribute(ast.Name("self", ast.Load()), name.id, name.ctx)

    for method in trainer.body:
        assert isinstance(method, ast.FunctionDef)
        changer = Globals(own - set(shared), of_trainer)
        method.body = [changer.visit(each) for each in method.body]
    tree.body = [*head, trainer, call]
    return tree


REWRITES: tuple[Rewrite, ...] = (
    loops_by_generator,
    loops_by_next,
    loops_by_sentinel,
    loops_by_class,
    contexts_by_stack,
    calls_by_parts,
    arguments_unpacked,
    functions_by_partial,
    methods_by_name,
    branches_swapped,
    loops_interruptible,
    functions_decorated,
    functions_by_factory,
    functions_in_classes,
    classes_by_base,
    imports_by_module,
    numbers_by_options,
    variables_by_attribute,
    variables_by_key,
    program_by_main,
    program_by_class,
)


def rewritten(text: str, rewrite: Rewrite) -> str | None:
    """The program's text in other words, or None where there is nothing to change."""
    changed = rewrite(ast.parse(text))
    return None if changed is None else ast.unparse(ast.fix_missing_locations(changed))
