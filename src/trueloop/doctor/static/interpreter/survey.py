"""A first look at a file: what its names are used for, and what its functions and loops contain.

The machine cannot enter what it does not see called, and has to guess what a parameter is. How the
file uses a name shows it: an object with `zero_grad()` and `step()` is an optimizer.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from trueloop.doctor.model.nodes import FIELDS, walk
from trueloop.doctor.model.vocabulary import lines_of_sharing, steps_left_out
from trueloop.doctor.static.interpreter.decays import Decay, decay_of
from trueloop.doctor.static.interpreter.syntax import constants_of, written
from trueloop.doctor.static.interpreter.ways_out import is_way_out

LONGEST_DEFAULT = 1_000
"""Characters of an option's default that is taken for known."""
NONE = ast.Constant(None)
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
LoopNode = ast.For | ast.AsyncFor | ast.While
Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
BACKWARD = frozenset({"backward", "manual_backward"})
_LOGS = frozenset({"add_scalar", "add_scalars", "add_histogram", "Histogram", "log_metric"})
_WRAPPERS = frozenset({"enumerate", "tqdm", "zip", "iter", "trange", "track", "progress_bar"})
_LEAVES = frozenset(
    {ast.Name, ast.Constant, ast.alias, ast.Load, ast.Store, ast.Del, ast.Pass, ast.Break}
    | {ast.Continue, ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom, ast.arg}
    | set(ast.operator.__subclasses__())
    | set(ast.cmpop.__subclasses__())
    | set(ast.unaryop.__subclasses__())
    | set(ast.boolop.__subclasses__())
)
"""Nodes with nothing in them to look at."""
_LOOKED_AT = frozenset(
    {ast.FunctionDef, ast.AsyncFunctionDef, ast.For, ast.AsyncFor, ast.While, ast.Call, ast.If}
    | {
        ast.Assign,
        ast.AugAssign,
        ast.Yield,
        ast.YieldFrom,
        ast.Attribute,
        ast.ClassDef,
        ast.Compare,
        ast.Subscript,
        ast.ListComp,
        ast.SetComp,
        ast.GeneratorExp,
        ast.DictComp,
    }
)
"""Nodes of which more is noted than what is below them."""
INTERESTING = frozenset(
    "backward manual_backward zero_grad step eval train no_grad inference_mode load_state_dict"
    " state_dict save load DataLoader manual_seed seed forward dropout dropout1d dropout2d"
    " dropout3d alpha_dropout Parameter clip_grad_norm_ clip_grad_value_ softmax log_softmax"
    " sigmoid cross_entropy nll_loss"
    " kl_div random_split fit fit_transform Module Sequential CrossEntropyLoss NLLLoss KLDivLoss"
    " BCEWithLogitsLoss binary_cross_entropy_with_logits DistributedDataParallel DDP DataParallel"
    " GradScaler Adam AdamW SGD RMSprop item append criterion loss_fn autocast"
    " seed_everything Engine create_supervised_trainer init_process_group"
    " gradient_checkpointing_enable".split()
)


@dataclass(slots=True)
class CodeContents:
    """The contents of a stretch of code, without the functions defined in it."""

    names: set[str] = field(default_factory=set)
    """Last parts of all names that are called."""
    direct: bool = False
    """A backward outside of any loop in it."""
    nested: bool = False
    """A loop in it contains a backward."""
    clears: bool = False
    clears_nested: bool = False
    """The same of `zero_grad`."""
    calls_outside: set[str] = field(default_factory=set)
    """Names called outside of any loop in it; those of methods begin with a dot."""
    calls_inside: set[str] = field(default_factory=set)
    """Names called within its loops."""
    has_loop: bool = False
    yields: bool = False


class FileSummary:
    """The first look at one file."""

    def __init__(self, tree: ast.Module, text: str = "") -> None:
        self.sharing = lines_of_sharing(text)
        """Lines that speak of shared weights."""
        self.left_out = steps_left_out(text)
        """Names whose `step()` is commented out."""
        self.uses: dict[str, set[str]] = defaultdict(set)
        """Last part of a name -> the methods called on it; `()` it is called, `iter` looped over,
        `[]` it is indexed."""
        self.may_be_thing: dict[str, bool] = {}
        """Name -> whether its uses may be those of a model, an optimizer, ...; see `inference`."""
        self.options: dict[str, Any] = {}
        """Option of the command line -> its default, where that is written out."""
        self.either: dict[str, list[str]] = {}
        """Option -> the texts of which a condition makes its default."""
        self.given: set[str] = set()
        """Options of the command line that take a value and have no default: paths, mostly."""
        self.logged: set[int] = set()
        """Reads of `.grad` in the arguments of calls that write a log."""
        self.measured: set[int] = set()
        """Reads of `.grad` whose norm is taken."""
        self.asked: set[int] = set()
        """Those that are compared with None."""
        self.functions: dict[str, list[FunctionNode]] = defaultdict(list)
        self.contents: dict[int, CodeContents] = {}
        self._methods: set[int] = set()
        """Functions that are in a class, by the identity of their node."""
        self._calls_of_classes: dict[str, ast.stmt] = {}
        """Name of a class -> its `__call__`."""
        self._objects: dict[str, str] = {}
        """Name that is given an object (an attribute after a dot) -> its class, or the function of
        a `functools.partial`."""
        self._kinds: dict[int, str] = {}
        self.backwards: list[int] = []
        """Every `.backward`, called or not, by the identity of its node."""
        self.stepped: set[str] = set()
        """The names of which the file reads `step`, called or not."""
        self.stepped_entries: set[str] = set()
        """Those that are entries: `parts["scheduler"].step()`."""
        self.exits: set[str] = set()
        """Options that end a program or function early where they are on (`if args.evaluate:`)."""
        self.ends: set[tuple[str, bool]] = set()
        """Variables and attributes that end a loop, with the value that they then have
        (`if last_step: break`, `while not self.done`), and comparisons, as they are written
        (`if self.patience == 0: break`)."""
        self._assigned: list[ast.Assign | ast.AugAssign] = []
        self._tree = tree
        self._look(tree.body, CodeContents())
        if not self.backwards:
            # It is elsewhere (`loss_scaler(loss, optimizer)`), or missing: what clears, trains.
            for contents in self.contents.values():
                contents.direct, contents.nested = contents.clears, contents.clears_nested
        self.decays = self._find_decays()
        self._trains: dict[str, tuple[bool, bool]] | None = None

    @cached_property
    def switched(self) -> frozenset[str]:
        """The names of which the file calls `eval` or `train`."""
        modes = {"eval", "train"}
        return frozenset(name for name, used in self.uses.items() if not used.isdisjoint(modes))

    def _look(self, body: list[ast.stmt], into: CodeContents) -> None:
        waiting: list[tuple[ast.AST, tuple[CodeContents, ...], int]] = [
            (statement, (into,), 0) for statement in reversed(body)
        ]
        while waiting:
            node, inside, depth = waiting.pop()
            if type(node) not in _LOOKED_AT:
                self._look_below(waiting, node, inside, depth)
                continue
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self.functions[node.name].append(node)
                for contents in inside[-1:]:
                    # A closure that is defined in a loop is called there, by somebody.
                    contents.calls_outside.add(node.name)
                contents = self.contents[id(node)] = CodeContents()
                waiting.extend((child, (contents,), 0) for child in node.body)
                waiting.extend((child, inside, depth) for child in node.decorator_list)
                defaults = [*node.args.defaults, *node.args.kw_defaults]
                waiting.extend((child, inside, depth) for child in defaults if child is not None)
                continue
            if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
                for each in inside:
                    each.has_loop = True
                contents = self.contents[id(node)] = CodeContents()
                self._look_at_loop(node)
                heads = [node.iter] if not isinstance(node, ast.While) else [node.test]
                waiting.extend((child, inside, depth) for child in heads)
                waiting.extend((child, (*inside, contents), depth + 1) for child in node.body)
                waiting.extend((child, inside, depth) for child in node.orelse)
                continue
            if isinstance(node, Comprehension):
                self._look_at_comprehension(waiting, node, inside, depth)
                continue
            if isinstance(node, ast.ClassDef):
                self._look_at_class(node)
            elif isinstance(node, ast.Call):
                self._look_at_call(node, inside)
            elif isinstance(node, ast.If):
                if not depth and isinstance(node.test, ast.Attribute) and is_way_out(node):
                    self.exits.add(written(node.test))
                elif depth and _ends_loop(node.body[-1]):
                    self._look_at_end(node.test, ends=True)
            elif isinstance(node, (ast.Assign, ast.AugAssign)):
                if isinstance(node.value, (ast.BinOp, ast.Call)):
                    self._assigned.append(node)
                self._look_at_object(node)
            elif isinstance(node, (ast.Yield, ast.YieldFrom)):
                for each in inside:
                    each.yields = True
            elif isinstance(node, ast.Attribute):
                if node.attr in BACKWARD:
                    self.backwards.append(id(node))
                elif node.attr == "step":
                    self._look_at_step(node.value)
            elif isinstance(node, ast.Compare) and len(node.comparators) == 1:
                if getattr(node.comparators[0], "value", self) is None:
                    self.asked.add(id(node.left))
            elif isinstance(node, ast.Subscript):
                self.uses[last_name(node.value)].add("[]")
            self._look_below(waiting, node, inside, depth)

    def _look_at_class(self, node: ast.ClassDef) -> None:
        self._methods.update(map(id, node.body))
        for each in node.body:
            if isinstance(each, ast.FunctionDef) and each.name == "__call__":
                self._calls_of_classes[node.name] = each

    def _look_at_object(self, node: ast.Assign | ast.AugAssign) -> None:
        """`step = Stepper(...)`, `step = partial(train_step, model)`: a name that may be called
        like a function."""
        call = node.value
        if not isinstance(node, ast.Assign) or not isinstance(call, ast.Call):
            return
        is_partial = last_name(call.func) == "partial" and call.args
        made = call.args[0] if is_partial else call.func
        if not isinstance(made, ast.Name):
            return
        for target in node.targets:
            if isinstance(target, ast.Name):
                self._objects[target.id] = made.id
            elif isinstance(target, ast.Attribute) and target.attr not in INTERESTING:
                self._objects[f".{target.attr}"] = made.id

    def _look_at_comprehension(
        self,
        waiting: list[tuple[ast.AST, tuple[CodeContents, ...], int]],
        node: Comprehension,
        inside: tuple[CodeContents, ...],
        depth: int,
    ) -> None:
        """The expression for each element is the body of a loop."""
        contents = self.contents[id(node)] = CodeContents()
        first, *rest = node.generators
        waiting.append((first.iter, inside, depth))
        made = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        tests = [each for generator in node.generators for each in generator.ifs]
        within = [*made, *tests, *(generator.iter for generator in rest)]
        waiting.extend((child, (*inside, contents), depth) for child in within)

    def _look_at_step(self, stepped: ast.expr) -> None:
        self.stepped.update((last_name(stepped), _key(stepped)))
        self.stepped_entries.add(_key(stepped))

    def _look_below(
        self,
        waiting: list[tuple[ast.AST, tuple[CodeContents, ...], int]],
        node: ast.AST,
        inside: tuple[CodeContents, ...],
        depth: int,
    ) -> None:
        for name in FIELDS[type(node)]:
            value = getattr(node, name, None)
            if type(value) is list:
                waiting += [
                    (child, inside, depth)
                    for child in value
                    if child is not None and type(child) not in _LEAVES
                ]
            elif value is not None and type(value) not in _LEAVES:
                waiting.append((value, inside, depth))

    def _look_at_end(self, test: ast.expr, *, ends: bool) -> None:
        while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test, ends = test.operand, not ends
        if isinstance(test, (ast.Name, ast.Attribute, ast.Compare)):
            self.ends.add((end_name(test), ends))

    def reading_of(self, node: ast.AST) -> dict[str, bool]:
        """The purpose of a read of `.grad`, as `GradRead` has it."""
        asked = id(node) in self.asked
        measured = asked or id(node) in self.measured
        return {"logged": id(node) in self.logged, "measured": measured, "asked": asked}

    def ends_loop(self, body: list[ast.stmt]) -> bool:
        """All that a branch does is to say that a loop ends (`self.done = True`)."""
        return all(
            isinstance(each, ast.Assign)
            and isinstance(each.value, ast.Constant)
            and isinstance(each.value.value, bool)
            and (last_name(each.targets[0]), each.value.value) in self.ends
            for each in body
        )

    def _find_decays(self) -> dict[int, Decay]:
        """Statements that multiply their own variable by what may be a decay."""
        found = {id(node): decay_of(node, self.functions) for node in self._assigned}
        return {key: decay for key, decay in found.items() if decay is not None}

    def _look_at_call(self, node: ast.Call, inside: tuple[CodeContents, ...]) -> None:
        function = node.func
        name = last_name(function)
        if name in ("add_argument", "add"):
            self._look_at_option(node)
        elif name in _LOGS:
            parts = (part for arg in node.args for part in walk(arg))
            self.logged.update(id(part) for part in parts if last_name(part) == "grad")
        elif (
            name == "getattr"
            and len(node.args) > 1
            and getattr(node.args[1], "value", None) in BACKWARD
        ):
            self.backwards.append(id(node))
        elif name == "norm":
            self.measured.add(id(_gradient_in(node)))
        self.uses[name].add("()")
        if isinstance(function, ast.Attribute):
            self.uses[last_name(function.value)].add(function.attr)
            if function.attr in ("step", "unscale_") and len(node.args) == 1:
                # `scaler.step(optimizer)` says what is handed over; so does `scheduler.step(loss)`.
                self.uses[last_name(node.args[0])].add("step()")
        handed = [arg.id for arg in node.args if isinstance(arg, ast.Name)]
        innermost = len(inside) - 1
        called = name if isinstance(function, ast.Name) else f".{name}"
        inside[innermost].calls_outside.update(handed)
        for position, contents in enumerate(inside):
            contents.names.add(name)
            if position == innermost:
                contents.calls_outside.add(called)
                contents.direct |= name in BACKWARD
                contents.clears |= name == "zero_grad"
            else:
                contents.calls_inside.add(called)
                contents.nested |= name in BACKWARD
                contents.clears_nested |= name == "zero_grad"

    def _look_at_option(self, node: ast.Call) -> None:
        """`parser.add_argument("--gamma", default=0.7)`."""
        named = {keyword.arg: keyword.value for keyword in node.keywords}
        flags = [named["dest"]] if "dest" in named else node.args
        names = [flag.value for flag in flags if isinstance(flag, ast.Constant)]
        words = [name for name in names if isinstance(name, str)]
        words = [word for word in words if word.startswith("--")] or words
        if last_name(node.func) == "add":  # of a parser by configargparse, or of a set
            words = [word for word in words if word.startswith("-")]
        if not words:
            return
        name = words[0].lstrip("-").replace("-", "_")
        if "action" not in named and getattr(named.get("default", NONE), "value", 0) is None:
            self.given.add(name)
        if "default" not in named:
            return
        given = named["default"]
        if isinstance(given, ast.Name):
            given = constants_of(self._tree).get(given.id, given)
        if isinstance(given, ast.IfExp):
            both = given.body, given.orelse
            texts = [each.value for each in both if isinstance(each, ast.Constant)]
            self.either[name] = [each for each in texts if isinstance(each, str)]
            return
        try:
            default = ast.literal_eval(given)
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            return
        if len(repr(default)) <= LONGEST_DEFAULT:
            self.options[name] = default

    def _look_at_loop(self, node: LoopNode) -> None:
        if isinstance(node, ast.While):
            self._look_at_end(node.test, ends=False)
            return
        waiting: list[ast.expr] = [node.iter]
        while waiting:
            iterable = waiting.pop()
            if isinstance(iterable, ast.Call) and last_name(iterable.func) in _WRAPPERS:
                waiting.extend(iterable.args)
            else:
                self.uses[last_name(iterable)].add("iter")

    def trains(self, name: str) -> tuple[bool, bool]:
        """Whether the functions and methods of a name do a backward: outside of loops, and within
        loops."""
        if self._trains is None:
            self._trains = self._find_training()
        both = [self._trains.get(each, (False, False)) for each in (name, f".{name}")]
        return any(each[0] for each in both), any(each[1] for each in both)

    def _find_training(self) -> dict[str, tuple[bool, bool]]:
        """The same of all functions, and of methods after a dot, through those that they call: from
        the ones that call backward themselves up to their callers, until nothing changes."""
        called: dict[str, list[CodeContents]] = defaultdict(list)
        for name, functions in self.functions.items():
            for each in functions:
                key = f".{name}" if id(each) in self._methods else name
                called[key].append(self.contents[id(each)])
        for name, made in self._objects.items():
            own = self._calls_of_classes.get(made)
            called[name] += [self.contents[id(own)]] if own is not None else called.get(made, [])
        callers: dict[str, list[tuple[str, bool]]] = defaultdict(list)
        waiting: list[tuple[str, bool, bool]] = []
        for name, several in called.items():
            for contents in several:
                for other in contents.calls_outside & called.keys():
                    callers[other].append((name, False))
                for other in contents.calls_inside & called.keys():
                    callers[other].append((name, True))
                waiting.append((name, contents.direct, contents.nested))
        found: dict[str, tuple[bool, bool]] = {}
        while waiting:
            name, direct, nested = waiting.pop()
            before = found.get(name, (False, False))
            after = before[0] or direct, before[1] or nested
            if after == before:
                continue
            found[name] = after
            for caller, within in callers[name]:
                waiting.append((caller, *((False, any(after)) if within else after)))
        return found

    def _closure(
        self, contents: CodeContents, found: dict[str, tuple[bool, bool]]
    ) -> tuple[bool, bool]:
        direct, nested = contents.direct, contents.nested
        for name in contents.calls_outside & found.keys():
            inner = found[name]
            direct, nested = direct or inner[0], nested or inner[1]
        nested = nested or any(any(found[name]) for name in contents.calls_inside & found.keys())
        return direct, nested

    def loop_kind(self, node: LoopNode | Comprehension) -> str:
        """The kind of a loop by its contents: `epochs`, `batches` or `other`."""
        found = self._kinds.get(id(node))
        if found is None:
            self.trains("")  # of all functions
            direct, nested = self._closure(self.contents[id(node)], self._trains or {})
            found = "epochs" if nested else "batches" if direct else "other"
            self._kinds[id(node)] = found
        return found

    def interesting(self, node: FunctionNode | LoopNode) -> bool:
        """Something in it may bear on training."""
        return not INTERESTING.isdisjoint(self.contents[id(node)].names)


def _ends_loop(statement: ast.stmt) -> bool:
    return isinstance(statement, (ast.Break, ast.Return))


def _gradient_in(call: ast.Call) -> ast.AST:
    """The tensor of which `p.grad.data.norm()` or `torch.norm(p.grad.detach())` is the norm."""
    function = call.func
    of_torch = last_name(getattr(function, "value", function)) in {"torch", "linalg", "norm"}
    node: ast.AST = call.args[0] if of_torch and call.args else getattr(function, "value", function)
    while True:
        if isinstance(node, ast.Attribute) and node.attr == "data":
            node = node.value
        elif isinstance(node, ast.Call) and last_name(node.func) in {"detach", "float"}:
            node = getattr(node.func, "value", node.func)
        else:
            return node


def end_name(test: ast.Name | ast.Attribute | ast.Compare) -> str:
    """The name under which `FileSummary.ends` has a test."""
    return written(test) if isinstance(test, ast.Compare) else last_name(test)


def _key(node: ast.expr) -> str:
    """`scheduler` of `parts["scheduler"]`; empty for what is not such an entry."""
    key = getattr(getattr(node, "slice", None), "value", None)
    return key if isinstance(key, str) else ""


def last_name(node: ast.AST) -> str:
    """The last part of a dotted name, of what is called or indexed: `optimizer` of
    `self.optimizers["d"].optimizer`."""
    while True:
        if isinstance(node, ast.Attribute):
            return node.attr
        if isinstance(node, ast.Name):
            return node.id
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        else:
            return ""
