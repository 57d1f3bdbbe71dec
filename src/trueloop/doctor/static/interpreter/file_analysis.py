"""Which runs a file is worth: its program from the top, then what nothing in it calls.

An open condition splits a program in two. Following all combinations is out of reach and mostly
meaningless, so a program is run with every option on, with none, and then once more for each branch
of interest that neither run got to.
"""

from __future__ import annotations

import ast
import itertools
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from trueloop.doctor.model.events import Ended, Event
from trueloop.doctor.model.findings import Finding
from trueloop.doctor.model.nodes import walk
from trueloop.doctor.model.things import Tensor, Thing
from trueloop.doctor.rules.base import Rule, RuleRunner
from trueloop.doctor.static.inputs.skipped import Gaps
from trueloop.doctor.static.interpreter.branches import BranchPolicy
from trueloop.doctor.static.interpreter.calls import start
from trueloop.doctor.static.interpreter.code_of_tests import is_test
from trueloop.doctor.static.interpreter.conditions import ways_out
from trueloop.doctor.static.interpreter.framework_runs import framework_runs
from trueloop.doctor.static.interpreter.ignite_loop import run_waiting
from trueloop.doctor.static.interpreter.imports import value_in
from trueloop.doctor.static.interpreter.interpreter import DEPTH, Interpreter, LeaveGenerator
from trueloop.doctor.static.interpreter.loop_plans import elements
from trueloop.doctor.static.interpreter.project import Project
from trueloop.doctor.static.interpreter.receivers import definitions, receiver
from trueloop.doctor.static.interpreter.source_interpreter import SourceInterpreter
from trueloop.doctor.static.interpreter.statements import run_block
from trueloop.doctor.static.interpreter.step_budget import OutOfBudgetError, ProgramFailsError
from trueloop.doctor.static.interpreter.survey import INTERESTING, last_name
from trueloop.doctor.static.interpreter.syntax import nodes_of, once
from trueloop.doctor.static.interpreter.ticks_passed_by import never_reached
from trueloop.doctor.static.interpreter.unread_backwards import unread_backward
from trueloop.doctor.static.interpreter.values import (
    Class,
    Constant,
    Function,
    Generator,
    Instance,
    Method,
    Module,
    Scope,
    Value,
    inside,
    parts_of,
)

_FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
EXPLORED = 120_000
"""Steps of a file after which no more runs are made for single branches."""
STEPS_TO_BEGIN = 20
"""The cost of a run before its first step: new rules are made for it."""


@dataclass(frozen=True, slots=True)
class RunLimits:
    """How far the runs from one beginning go."""

    steps: int = 500_000
    """Steps that one run may take."""
    depth: int = DEPTH
    """Calls within calls that are entered."""
    both: bool = True
    """Whether all options are also left off together."""
    more: int = 5
    """Runs for branches that were not reached then."""


TRAINS = RunLimits()
PASSES = RunLimits(steps=100_000, depth=4, both=False, more=2)
"""For a function in which nothing is trained."""
UNTRAINED = RunLimits(steps=12_000, depth=6, both=False, more=0)
"""For a class that the program has not trained, with what its Trainer does around it: a library's
has many options, and its methods are read one by one before."""
INSIDE = "<inside>"
"""In place of an owner: the function is defined within an outer one, whose variables it may use."""


@dataclass(slots=True)
class FileAnalysis:
    """The knowledge about one file so far."""

    project: Project
    module: Module
    rules: list[type[Rule]]
    left: int
    """Steps that the runs still to come may take."""
    gaps: Gaps = field(default_factory=Gaps)
    listen: Callable[[Event], None] | None = None
    strict: bool = False
    findings: dict[tuple[Any, ...], Finding] = field(default_factory=dict)
    refuted: set[tuple[Any, ...]] = field(default_factory=set)
    """Findings that some run has shown to be none."""
    settled: set[tuple[str, str, int]] = field(default_factory=set)
    """Codes and lines: there the program itself shows that nothing is wrong."""
    frameworks: set[tuple[str, int, int]] = field(default_factory=set)
    """Where a framework's own loop is taken to be: nothing there is the user's."""
    entered: set[int] = field(default_factory=set)
    spent: int = 0
    """Steps that the runs so far have taken."""
    runs: list[Interpreter] = field(default_factory=list)
    """Those of the beginning under way."""
    refused: list[Any] = field(default_factory=list)
    """The place and the reason for each of them that Python ends with an error."""

    def go(
        self, drive: Callable[[Interpreter], None], effort: RunLimits, *, whole_program: bool
    ) -> None:
        """Make the runs of one beginning."""
        self._explore(drive, effort, whole_program)
        for run in self.runs:
            run.forget()
        if len(self.refused) == len(self.runs):  # with some options only, it is not named
            self.gaps.refused += self.refused[:1]
        self.runs.clear()
        self.refused.clear()

    def _explore(
        self, drive: Callable[[Interpreter], None], effort: RunLimits, whole_program: bool
    ) -> None:
        runs = [self._run(drive, BranchPolicy(True), effort, whole_program)]
        sites, reached = dict(runs[0].sites), set(runs[0].reached)
        if (sites or runs[0].chose) and effort.both and self.goes_on():
            runs.append(self._run(drive, BranchPolicy(False), effort, whole_program))
            beside = (
                *self._training_alone(drive, effort, whole_program, *runs),
                *self._all_but_some(drive, effort, whole_program, *runs),
            )
            for more in (runs[1], *beside):
                sites |= more.sites
                reached |= more.reached
        tried: list[BranchPolicy] = []
        added: dict[str, bool] = {}
        while len(tried) < effort.more:
            forced = self._unreached(sites, reached, whole_program)
            if forced is None or not self.goes_on() or self.spent > EXPLORED:
                break
            policy = _untried(runs, *forced, added, tried)
            if policy is None:
                # It cannot be got to this way either.
                reached |= {
                    (site, branch)
                    for site, where in sites.items()
                    for branch in (True, False)
                    if where.key == forced[0]
                }
                continue
            tried.append(policy)
            more = self._run(drive, policy, effort, whole_program)
            sites |= more.sites
            reached |= more.reached
            if not policy.optional and self._unreached(sites, reached, whole_program) != forced:
                added = policy.forced

    def _training_alone(
        self,
        drive: Callable[[Interpreter], None],
        effort: RunLimits,
        whole_program: bool,
        first: Interpreter,
        second: Interpreter,
    ) -> Iterator[Interpreter]:
        """Runs with no option but those that training takes (`--do_train`, `--data PATH`), where
        without any option there is none; then with one more, where that leads to other calls."""
        under = first.reach.trains_under
        if under is None or second.reach.trains_under is not None:
            return
        forced = {each.removeprefix("not "): not each.startswith("not ") for each in under}
        for given in (False, True):
            policy = BranchPolicy(False, forced, given)
            if not (forced or given) or not self.goes_on():
                continue
            run = self._run(drive, policy, effort, whole_program)
            yield run
            if run.reach.trains_under is None:
                continue
            for key, fact in itertools.islice(_detours(run), DETOURS):
                if self.goes_on():
                    changed = BranchPolicy(False, {**forced, key: fact}, given)
                    yield self._run(drive, changed, effort, whole_program)
            return

    def _all_but_some(
        self,
        drive: Callable[[Interpreter], None],
        effort: RunLimits,
        whole_program: bool,
        first: Interpreter,
        second: Interpreter,
    ) -> Iterator[Interpreter]:
        """Runs with all options but those that leave before anything trains (`if args.test_only:
        return`), where with all of them nothing does; and but those that say which of several
        things a different option names."""
        ends = first.reach.trains_under is None and second.reach.trains_under is not None
        named = first.reach.overridden if first.reach.searched else {}
        for forced in (
            dict(ways_out(first)) if ends else {},
            {key: not fact for key, fact in named.items()},
        ):
            if forced and self.goes_on():
                yield self._run(drive, BranchPolicy(True, forced), effort, whole_program)

    def _is_test(self, path: str) -> bool:
        own = self.module.tree if path == self.module.path else None
        return is_test(path, self.project.roots, own)

    def _hear(self, rules: list[Rule], whole_program: bool) -> None:
        """Take what the rules of a run have found, and what they have shown to be right."""
        for rule in rules:
            for finding in rule.findings:
                if finding.place[:3] in self.frameworks:
                    continue
                if not (rule.hygiene and self._is_test(finding.place.path)):
                    found = replace(finding, without_callers=not whole_program)
                    self.findings.setdefault((finding.code, *finding.place[:3]), found)
            self.refuted |= {(rule.code, *place[:3]) for place in rule.refuted}
            if whole_program:
                self.settled |= {(rule.code, *place[:2]) for place in rule.settled}

    def goes_on(self) -> bool:
        """There is room for one more run."""
        return self.left > 0

    def _unreached(
        self, sites: dict[int, Any], reached: set[tuple[int, bool]], whole_program: bool
    ) -> tuple[str, bool] | None:
        for identity, site in sites.items():
            if not whole_program and site.module is not self.module:
                continue  # It is looked at when its own file is read.
            for branch in (True, False):
                body = site.branches[0 if branch else 1]
                if (identity, branch) not in reached and _is_worth(body, site.module):
                    return site.key, branch != site.negated
        return None

    def _run(
        self,
        drive: Callable[[Interpreter], None],
        policy: BranchPolicy,
        effort: RunLimits,
        whole_program: bool,
    ) -> Interpreter:
        runner = RuleRunner(self.rules)
        listen = self.listen

        def watch(event: Event) -> None:
            runner.handle(event)
            if listen is not None:
                listen(event)

        budget = min(effort.steps, self.left)
        heard = runner.handle if listen is None else watch
        machine = SourceInterpreter(self.project, heard, policy, budget, effort.depth)
        self.runs.append(machine)
        machine.is_notebook = self.module.path.endswith(".ipynb")
        machine.modules[:], machine.functions[:] = [self.module], [""]
        try:
            drive(machine)
            if machine.reach.engines:
                run_waiting(machine)
            machine.modules[:], machine.functions[:] = [self.module], [""]
            machine.budget += 10  # the end is not a step of the program
            unread = unread_backward(machine)
            read = [each.module.survey for each in machine.namespaces.values()]
            machine.emit(
                Ended, self.module.tree, whole_program=whole_program, unread_backward=unread,
                handed_on=tuple(machine.reach.handed_on),
                switched=frozenset[str]().union(*(each.switched for each in read)),
                stepped=frozenset[str]().union(*(each.stepped | each.left_out for each in read)),
                stepped_entries=frozenset[str]().union(*(each.stepped_entries for each in read)),
                never_stepped=never_reached(machine) if machine.ticks_passed_by else {},
            )  # fmt: skip
        except OutOfBudgetError:
            if machine.stopped is not None:  # what was seen before still counts
                limit = effort.steps if budget == effort.steps else 0
                self.gaps.cuts.append((machine.stopped, limit))
                self.gaps.cut_within += machine.stopped_within[::-1]
        except LeaveGenerator:
            pass  # of a loop that was left before the generator was
        except ProgramFailsError as refused:
            self.refused.append(refused.args)
        except Exception as error:
            if self.strict:
                raise
            self.gaps.add_fault(error)
        self.gaps.left_out = machine.left_out | self.gaps.left_out
        self._hear(runner.rules, whole_program)
        self.left -= machine.steps + STEPS_TO_BEGIN
        self.spent += machine.steps
        self.entered.update(machine.entered)
        return machine


def _untried(
    runs: list[Interpreter],
    key: str,
    fact: bool,
    added: dict[str, bool],
    tried: list[BranchPolicy],
) -> BranchPolicy | None:
    """A run that decides one condition in advance, and differs from those before it: first with all
    other options on; then with none but those that such runs have `added`, then with none.
    `runs`: with all options, and with none."""
    for run in runs:
        optional = run.policy.optional
        if run.decided.get(key) is fact or not run.policy.may_change(key, fact):
            continue
        for others in ({},) if optional else (added, {}):
            policy = BranchPolicy(optional, {**others, key: fact})
            if all((policy.optional, policy.forced) != (p.optional, p.forced) for p in tried):
                return policy
    return None


def _detours(run: Interpreter) -> Iterator[tuple[str, bool]]:
    """Conditions with a branch that the run has not come to and that bears on training, by itself
    or through a function that the run has not entered: which outcome leads there."""
    taken: set[str] = set()
    for identity, site in [*run.sites.items()]:  # a file that is read meanwhile has others
        for branch in (True, False):
            body = site.branches[0 if branch else 1]
            if (identity, branch) in run.reached or site.key in taken or not body:
                continue
            if _trains_or_tests(body, site.module, run):
                taken.add(site.key)
                yield site.key, branch != site.negated


def _trains_or_tests(body: list[ast.stmt], module: Module, run: Interpreter) -> bool:
    """A branch has calls that bear on training, or calls a function of the user's by its name that
    has some and was not entered."""
    calls = [each for part in body for each in walk(part) if isinstance(each, ast.Call)]
    if not BEARS.isdisjoint(last_name(each.func) for each in calls):
        return True
    top = run.namespaces[id(module)]
    names = {each.func.id for each in calls if isinstance(each.func, ast.Name)}
    for found in (value_in(run, top, name) for name in names):
        if isinstance(found, Function) and id(found.node) not in run.entered:
            contents = found.module.survey.contents.get(id(found.node))
            if contents is not None and not BEARS.isdisjoint(contents.names):
                return True
    return False


BEARS = frozenset(
    "backward zero_grad step train eval no_grad inference_mode GradScaler set_epoch".split()
)
"""Calls in a branch, or in a function that it calls, that make a detour worth a run."""
DETOURS = 4
_BEGUN = INTERESTING | {"detach"}


def _is_worth(body: list[ast.stmt], module: Module) -> bool:
    """Something in a branch bears on training."""
    if not body:
        return False
    calls = _calls_of_interest(module.tree)
    at = bisect_left(calls, _start(body[0]))
    return at < len(calls) and calls[at] < (body[-1].end_lineno, body[-1].end_col_offset)


def _start(statement: ast.stmt) -> tuple[int, int]:
    """Where a statement begins, its decorators included."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    nodes: list[ast.stmt | ast.expr] = [statement, *decorators]
    return min((each.lineno, each.col_offset) for each in nodes)


@once
def _calls_of_interest(tree: ast.Module) -> list[tuple[int, int]]:
    """Where a file has calls that bear on training, in order."""
    return sorted(
        (node.lineno, node.col_offset)
        for node in nodes_of(tree, ast.Call)
        if last_name(node.func) in INTERESTING
    )


# ------------------------------------------------------------------------------- beginnings


def read_module(reading: FileAnalysis) -> None:
    """Make all runs that a file is worth."""
    module = reading.module
    reading.go(lambda m: _program(m, module), TRAINS, whole_program=True)
    ends, program = bool(reading.gaps.refused), frozenset(reading.entered)
    _run_frameworks(reading, TRAINS, program)
    for definition, owner in _beginnings(reading):
        if id(definition) in reading.entered or ends:
            continue
        if not reading.goes_on():
            name = ".".join(each for each in (*owner, definition.name) if each != INSIDE)
            reading.gaps.not_begun.append((name, definition.lineno))
            continue
        trains = any(module.survey.trains(definition.name))
        effort = TRAINS if trains else PASSES
        reading.go(_from(module, definition, owner), effort, whole_program=False)
    _run_frameworks(reading, UNTRAINED, program)
    for refuted in reading.refuted:
        reading.findings.pop(refuted, None)


def _run_frameworks(reading: FileAnalysis, limits: RunLimits, program: frozenset[int]) -> None:
    """A run for each class of the file that a framework trains, with its loop around it. `program`:
    the functions that the program has come to by itself."""
    entered = set(reading.entered)
    for run in framework_runs(reading.module):
        reading.frameworks.add(run.place)
        seen = run.once and program.issuperset(map(id, run.methods))
        if run.once == (limits is UNTRAINED) and not seen and reading.goes_on():
            reading.go(run.drive, limits, whole_program=False)
    reading.entered = entered  # they are also read one by one


def _program(m: Interpreter, module: Module) -> None:
    """The file as it is run from the command line."""
    scope = m.namespaces[id(module)] = Scope(module)
    scope.variables["__name__"] = Constant("__main__")
    run_block(m, module.tree.body, scope)


def _from(module: Module, definition: Any, owner: list[str]) -> Callable[[Interpreter], None]:
    """A run that begins with one function or method, with arguments that are not known."""

    def drive(m: Interpreter) -> None:
        scope = definitions(m, module)
        if INSIDE in owner:
            m.beginning = True
            inner = Function(definition, scope, module, definition.name)
            m.reach.handed_on.append(start(m, inner, [], {}, definition))
            return
        holder: Value | None = None
        for name in owner:
            holder = _member(m, scope, holder, name)
            if not isinstance(holder, Class):
                return
        function = _member(m, scope, holder, definition.name)
        if isinstance(function, Method):
            function = function.function
        if not isinstance(function, Function) or function.node is not definition:
            return
        mine = [receiver(m, holder, definition)] if isinstance(holder, Class) else []
        m.beginning = True
        found = start(m, function, mine, {}, definition)
        if isinstance(found, Generator):
            values, _ = elements(m, found, definition)  # which whoever asks for them gets
            parts = (part for each in values for part in inside(each, parts_of, 2))
            m.expose([each for each in parts if isinstance(each, Tensor)], "yield", definition)
        kept = [each.attributes.values() for each in mine if isinstance(each, Instance | Thing)]
        m.reach.handed_on += [found, *itertools.chain(*kept)]

    return drive


def _member(m: Interpreter, scope: Scope, holder: Value | None, name: str) -> Value | None:
    """A name of a class, or else of the file."""
    return holder.namespace.get(name) if isinstance(holder, Class) else value_in(m, scope, name)


def _beginnings(reading: FileAnalysis) -> Iterator[tuple[_FunctionNode, list[str]]]:
    """Functions and methods of interest; first those that nothing in the file calls."""
    survey = reading.module.survey
    called = {name for contents in survey.contents.values() for name in contents.names}
    found = [
        (node, owner)
        for node, owner in _walk(reading.module.tree.body, [])
        if not survey.contents[id(node)].names.isdisjoint(_BEGUN)
        or any(survey.trains(node.name))
        or (owner and node.name == "__init__")
    ]
    yield from (each for each in found if each[0].name not in called)
    yield from (each for each in found if each[0].name in called)


def _walk(body: list[ast.stmt], owner: list[str]) -> Iterator[tuple[_FunctionNode, list[str]]]:
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node, owner
            for inner in _inner_functions(node.body):
                yield inner, [*owner, INSIDE]
        elif isinstance(node, ast.ClassDef):
            yield from _walk(node.body, [*owner, node.name])
        elif isinstance(node, (ast.If, ast.Try)):
            yield from _walk(node.body, owner)


def _inner_functions(body: list[ast.stmt]) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Functions defined within a function: what it hands to an engine that cannot be read."""
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node
        elif isinstance(node, (ast.If, ast.With, ast.Try)):
            yield from _inner_functions(node.body)
