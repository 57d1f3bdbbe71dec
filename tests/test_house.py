"""The house: floors, circles, side effects, sizes, names, and what the import costs."""

from __future__ import annotations

import ast
import functools
import gc
import importlib
import inspect
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

import order
import trueloop
import warm_python

SOURCE = Path(trueloop.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))

# The first part of a module's name below `trueloop` decides its floor; a file imports only from
# floors below its own, or from its own room.
FLOORS = {
    "errors": 0,
    "names": 0,
    "_options": 0,
    "records": 0,
    "option": 0,
    "files": 0,
    "atomic": 0,
    "shapes": 0,
    "reprs": 0,
    "formatting": 0,
    "lengths": 0,
    "uncompiled": 0,
    "ranks": 1,
    "device": 1,
    "threads": 3,
    "seed": 1,
    "cache": 1,
    "hidden_matrices": 1,
    "transforms": 3,
    "group": 2,
    "folds": 2,
    "calibration": 2,
    "losses": 2,
    "optimizers": 2,
    "step": 2,
    "feed": 2,
    "metrics": 2,
    "schedules": 3,
    "checkpoint": 3,
    "evaluation": 3,
    "stopping": 3,
    "display": 3,
    "loop": 4,
    "run": 4,
    "lora": 4,
    "generate": 4,
    "trackers": 5,
    "doctor": 5,
    "tune": 5,
    "tasks": 5,
    "cli": 6,
    "__main__": 7,
}
# What the ground floor raises, and how it shows itself, is on the ground floor too: the exceptions
# within a floor.
SAME_FLOOR = {
    ("records", "errors"),
    ("records", "reprs"),
    ("_options", "errors"),
    ("lengths", "errors"),
    ("atomic", "errors"),
}
HEAVY = (
    "torchmetrics", "rich", "matplotlib", "PIL", "plotly", "jinja2", "jsonargparse", "polars",
    "sklearn", "scipy", "pandas", "yaml", "safetensors", "tokenizers", "transformers", "pyarrow",
    "aiohttp", "optuna", "sqlalchemy",
    "tensorboard", "wandb", "mlflow", "pygls", "lsprotocol",
)  # fmt: skip


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


MODULES = {module_name(path) for path in FILES}


def room(module: str) -> str:
    return module.split(".")[0]


@functools.cache
def trees() -> dict[Path, ast.Module]:
    gc.disable()  # a collection after each thousand nodes takes five times as long as to read them
    try:
        return {path: ast.parse(path.read_text("utf-8")) for path in FILES}
    finally:
        gc.enable()


@functools.cache
def nodes_of(path: Path) -> list[ast.AST]:
    """Those that several tests look for: a walk through all files takes a second."""
    kinds = (ast.Import, ast.ImportFrom, ast.If, ast.ClassDef, ast.FunctionDef,
             ast.AsyncFunctionDef, ast.arguments)  # fmt: skip
    return [node for node in ast.walk(trees()[path]) if isinstance(node, kinds)]


def imports(nodes: list[ast.AST], *, types: bool = True) -> Iterator[str]:
    """Names below `trueloop` that a file imports, wherever the import stands; without `types` what
    only the type checker sees is left out."""
    for_types = {
        id(inner)
        for node in ([] if types else nodes)
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in nodes:
        if id(node) in for_types:
            continue
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("trueloop."):
                    yield alias.name.removeprefix("trueloop.")
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are absolute"
            module = node.module or ""
            if module == "trueloop":
                yield from (alias.name for alias in node.names)
            elif module.startswith("trueloop."):
                inner = module.removeprefix("trueloop.")
                for alias in node.names:
                    name = f"{inner}.{alias.name}"
                    yield name if name in MODULES else inner


@functools.cache
def edges(*, types: bool = True) -> list[tuple[str, str]]:
    return [
        (module_name(path), target)
        for path in FILES
        if module_name(path)  # the public face lists everything and is on no floor
        for target in imports(nodes_of(path), types=types)
        if target != "__version__"
    ]


def test_every_room_has_a_floor() -> None:
    rooms = {room(module_name(path)) for path in FILES} - {""}
    assert rooms <= set(FLOORS), f"give these a floor: {rooms - set(FLOORS)}"


def test_no_import_goes_upward() -> None:
    wrong = [
        f"{source} imports {target}"
        for source, target in edges(types=False)
        if room(source) != room(target)
        and FLOORS[room(target)] >= FLOORS[room(source)]
        and (room(source), room(target)) not in SAME_FLOOR
    ]
    assert not wrong, wrong


def graph_of_imports() -> dict[str, set[str]]:
    """Of modules and packages; that a module belongs to a package is not an import of it."""
    graph: dict[str, set[str]] = {}
    for source, target in edges():
        if target in MODULES and source != target and not source.startswith(target + "."):
            graph.setdefault(source, set()).add(target)
    return graph


def reached_from(start: str, graph: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        for target in graph.get(waiting.pop(), set()) - found:
            found.add(target)
            waiting.append(target)
    return found


def test_no_circles() -> None:
    """Among modules and packages: imports within functions and for the type checker count too."""
    graph = graph_of_imports()
    circles = {module for module in graph if module in reached_from(module, graph)}
    assert not circles, f"each of these imports itself by way of others: {sorted(circles)}"


def test_the_watcher_only_builds_and_connects() -> None:
    """Few attributes, and nothing of the live doctor below its entries imports it; the hub that
    all of it shares imports nothing of ours."""
    live = SOURCE / "doctor" / "live"
    tree = ast.parse((live / "watcher.py").read_text("utf-8"))
    attributes = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        if ast.unparse(node.value) == "self"
    }
    assert attributes
    assert len(attributes) <= 8, attributes
    graph = graph_of_imports()
    above = {source for source, targets in graph.items() if "doctor.live.watcher" in targets}
    assert above == {"doctor.live.session"}
    assert "doctor.live.hub" not in graph


def test_no_side_effect_at_import() -> None:
    """At module level: definitions, constants and imports; no bare call, loop or open file."""
    for path in FILES:
        for node in trees()[path].body:
            where = f"{path.relative_to(SOURCE)}:{node.lineno}"
            if isinstance(node, ast.Expr):
                assert isinstance(node.value, ast.Constant), f"{where}: a bare call at import"
            assert not isinstance(node, (ast.For, ast.While, ast.With, ast.Try, ast.Delete)), where


LONG_BY_ITS_DOCSTRING = "fit"
"""It documents 23 parameters, a line or more for each; these lines are not counted."""


def test_no_file_over_500_lines_and_no_function_over_60() -> None:
    for path in FILES:
        text = path.read_text("utf-8")
        assert text.count("\n") <= 500, (
            f"{path.relative_to(SOURCE)} has {text.count(chr(10))} lines"
        )
        for node in nodes_of(path):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                length = (node.end_lineno or 0) - node.lineno + 1
                if node.name == LONG_BY_ITS_DOCSTRING:
                    length -= (node.body[0].end_lineno or 0) - node.body[0].lineno + 1
                assert length <= 60, f"{path.relative_to(SOURCE)}: {node.name} has {length} lines"


ONE_CONCEPT = {
    "__main__": "what `python -m` runs",
    "base": "the base class of a folder's classes",
    "task": "the class of a ready-made task",
    "options": "the options of what its folder does",
    "checks": "the checks of a task's data before it trains",
    "decode": "decoding files of images",
    "memory": "what something needs of the machine's memory",
    "group": "the process group",
    "outliers": "updates whose gradient norm is an outlier",
    "monitor": "what watches values update by update",
    "cache": "files in the user's cache directory",
    "columns": "the columns of a table",
    # A verb of the command line, and what it calls.
    **dict.fromkeys(("export", "generate", "lab", "replay", "report", "tune"), "a verb"),
    # A package, and the file of its main class.
    **dict.fromkeys(("feed", "interpreter", "loop", "step"), "the main class"),
    # What the library does, and where the doctor patches, models or judges the same.
    **dict.fromkeys(
        ("backward", "checkpoints", "data", "losses", "modes", "muon_parameters", "nonfinite"),
        "its rules",
    ),
    **dict.fromkeys(
        ("modules", "optimizers", "order", "parameters", "precision", "ranks", "schedules"),
        "its rules",
    ),
    **dict.fromkeys(("tensors", "loading"), "its rules"),
}
"""Module names that several rooms have, each for the same thing."""
RETURN_ANY = ["computed", "const", "constant"]
"""Functions of the reader that return any type: that of a constant in the program."""
MOST_ANY_PARAMETERS = 173
"""Parameters in the live doctor that may be anything, of some 2,100. The number only shrinks."""
INHERITED_NAME = "Options"
"""The name of the options within each task's class, where its base class has its own."""


def recurring(names: Iterator[tuple[str, str]]) -> dict[str, list[str]]:
    """Each name that stands in several files, with these."""
    files: dict[str, list[str]] = {}
    for name, file in names:
        files.setdefault(name, []).append(file)
    return {name: found for name, found in files.items() if len(found) > 1}


def test_no_two_classes_of_one_name() -> None:
    """A search for a class finds it and nothing else."""
    doubled = recurring(
        (node.name, module_name(path))
        for path in FILES
        for node in nodes_of(path)
        if isinstance(node, ast.ClassDef) and node.name != INHERITED_NAME
    )
    assert not doubled, f"give one of each pair a name of its own: {doubled}"


def test_a_module_name_means_one_thing() -> None:
    doubled = recurring((name.rpartition(".")[2], name) for name in MODULES if name)
    wrong = {name: files for name, files in doubled.items() if name not in ONE_CONCEPT}
    assert not wrong, f"rename one, or add the name to ONE_CONCEPT if they mean the same: {wrong}"


def test_the_reader_returns_values_of_known_types() -> None:
    functions = [
        node
        for folder in ("model", "static")
        for path in (SOURCE / "doctor" / folder).rglob("*.py")
        for node in nodes_of(path)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.returns is not None
    ]
    of_any = sorted(node.name for node in functions if ast.unparse(node.returns or node) == "Any")
    assert of_any == RETURN_ANY
    taken = [
        each.annotation for node in functions for each in (*node.args.args, *node.args.kwonlyargs)
    ]
    untyped = [each for each in taken if each is not None and ast.unparse(each) == "Any"]
    assert len(untyped) < 0.04 * len(taken)


def test_the_live_doctor_says_of_what_type_its_parameters_are() -> None:
    """Counted are the parameters of all functions, nested ones too, `self` and `cls` without a type
    left out; as anything counts `Any` alone or in a union, but not `list[Any]`: the entries of a
    program's list are of any type."""
    annotations = [
        argument.annotation
        for path in (SOURCE / "doctor/live").rglob("*.py")
        for node in nodes_of(path)
        if isinstance(node, ast.arguments)
        for argument in (
            *node.posonlyargs, *node.args, *node.kwonlyargs, node.vararg, node.kwarg
        )
        if argument is not None and argument.annotation is not None
    ]  # fmt: skip
    of_any = [each for each in annotations if "Any" in ast.unparse(each).split(" | ")]
    assert len(of_any) < 0.15 * len(annotations)
    assert len(of_any) <= MOST_ANY_PARAMETERS, len(of_any)


PUBLIC = [
    "Checkpoints", "ConfigError", "DDPOptions", "DataError", "Doctor", "EMA",
    "EarlyStopping", "EvalRecord", "FSDPOptions", "Feed", "History", "LossOutput", "NonFiniteError",
    "Outliers", "Run", "SWA", "Shards", "Step", "StepRecord", "Task", "TrueloopError",
    "UserError", "batches", "cross_validate", "errors", "evaluate", "fit", "folds", "generate",
    "load_checkpoint", "load_weights",
    "lora", "losses", "metrics", "optimizers", "predict", "process_group", "records",
    "save_weights", "schedules", "seed", "seed_everything", "supervised", "trackers",
    "transforms", "watch",
]  # fmt: skip


def test_the_public_names_are_these() -> None:
    assert trueloop.__all__ == PUBLIC
    for name in PUBLIC:
        assert getattr(trueloop, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'stepp'"):
        trueloop.stepp  # noqa: B018


def test_the_public_face_for_type_checkers_lists_the_same_names() -> None:
    tree = ast.parse((SOURCE / "__init__.py").read_text("utf-8"))
    (block,) = [n for n in tree.body if isinstance(n, ast.If)]
    names = {
        alias.asname
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert names == set(PUBLIC)


def test_what_is_written_like_a_module_is_one() -> None:
    """`import trueloop.optimizers` and `from trueloop.optimizers import adamw` work."""
    modules = [name for name in PUBLIC if inspect.ismodule(getattr(trueloop, name))]
    assert {"losses", "metrics", "optimizers", "schedules", "seed"} < set(modules)
    for name in modules:
        assert importlib.import_module(f"trueloop.{name}") is getattr(trueloop, name)


def in_fresh_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def in_python_with_torch(code: str) -> str:
    done = warm_python.run([sys.executable, "-c", code], start=warm_python.Bare, text=True)
    assert done.returncode == 0, done.stderr
    return str(done.stdout).strip()


def test_importing_and_reaching_for_the_core_loads_no_heavy_library() -> None:
    code = (
        "import json, sys, torch, numpy; assert 'trueloop' not in sys.modules; import trueloop; "
        "trueloop.Step, trueloop.Feed, trueloop.fit, trueloop.Run, trueloop.Task; "
        "print(json.dumps(sorted({m.split('.')[0] for m in sys.modules})))"
    )
    loaded = set(json.loads(in_python_with_torch(code)))
    assert not loaded & set(HEAVY), loaded & set(HEAVY)


def test_the_import_costs_at_most_a_tenth_of_a_second_beyond_torch() -> None:
    code = (
        "import time, torch; start = time.perf_counter(); import trueloop; "
        "print(time.perf_counter() - start)"
    )
    # The best of three: what others do on the machine is no cost of the import.
    assert any(float(in_fresh_python(code)) <= 0.1 for _ in range(3))


def test_test_files_have_names_of_their_own() -> None:
    """A function that a test sends to other processes is found there by its file's bare name."""
    tests = Path(__file__).parent
    files = {*tests.rglob("test_*.py"), *tests.rglob("*_integration.py")}
    names = [path.name for path in files]
    assert sorted(names) == sorted(set(names))


def test_what_begins_first_in_the_tests_is_there_and_nothing_is_lost() -> None:
    tests = Path(__file__).parent
    stems = {path.stem for path in (*tests.rglob("test_*.py"), *tests.rglob("*_integration.py"))}
    long = [name for names in order.LONG for name in names]
    assert len(long) == len(set(long))
    assert stems >= set(long)
    items = [SimpleNamespace(path=f"{stem}.py", number=k) for stem in sorted(stems) for k in (1, 2)]
    for processes in (2, 3, 4):
        parts = order.dealt(items, processes)
        assert sorted(map(id, parts)) == sorted(map(id, items))
        begins = [number * len(items) // processes for number in range(processes)]
        assert [parts[k].path for k in begins] == [f"{n[0]}.py" for n in order.LONG[:processes]]
