"""A rule: it observes the events of one run and reports findings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from typing import Any, ClassVar

from trueloop.doctor.model.events import Event
from trueloop.doctor.model.findings import GRAVITY, Finding, Location, Related, Remedy, Severity
from trueloop.doctor.rules.catalogue import BY_CODE
from trueloop.doctor.rules.timeline import KINDS, Timeline

Handler = Callable[[Any], None]


@cache
def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


@lru_cache(maxsize=1024)
def _hearers(rules: tuple[type[Rule], ...], kind: type[Event]) -> tuple[str, tuple[int, ...]]:
    """The method of rules for events of a kind, and the positions of those that have it."""
    method = f"on_{_snake(kind.__name__)}"
    return method, tuple(i for i, rule in enumerate(rules) if hasattr(rule, method))


class Rule:
    """One rule in one run. Each run that is read or watched has its own instance.

    A subclass has a method `on_<event>` for each kind of event that it needs: `on_backward` is
    called with each `Backward`, `on_zero_grad` with each `ZeroGrad`, `on_ended` once, last.
    """

    code: ClassVar[str]
    """Its code in the catalogue, which has its name and its severity."""
    symptom_of: ClassVar[tuple[str, ...]] = ()
    """Prefixes of codes: next to an error or warning of one of these rules this rule is not
    reported, because it finds their consequence."""
    hygiene: ClassVar[bool] = False
    """It finds what costs time, memory or safety, and not what makes a training wrong: source that
    is a test is not reported for it."""
    timeline: Timeline
    """The events so far, shared by all rules of a runner."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self._places: dict[tuple[str, int, int], Severity] = {}
        self.refuted: set[Location] = set()
        self.settled: set[Location] = set()

    def refute(self, place: Location) -> None:
        """Withdraw this rule's findings at `place` in other runs of the program: in this run the
        program does what seemed to be missing."""
        self.refuted.add(place)

    def settle(self, place: Location) -> None:
        """In this run nothing is wrong at `place`. If the run is that of a program, this withdraws
        what was found in a different file, in a function that was read without its callers."""
        self.settled.add(place)

    def report(
        self,
        place: Location,
        message: str,
        *,
        fix: str | None = None,
        related: Iterable[tuple[Location, str]] = (),
        remedies: Iterable[Remedy] = (),
        severity: Severity | None = None,
    ) -> None:
        """Add a finding, at most one per place: the gravest, and the first of those."""
        if len(self._places) != len(self.findings):  # a rule has taken some back
            self._places = {found.place[:3]: found.severity for found in self.findings}
        entry = BY_CODE[self.code]
        known, severity = self._places.get(place[:3]), severity or entry.severity
        if not place.line or (known is not None and GRAVITY[known] >= GRAVITY[severity]):
            return
        if known is not None:
            self.findings = [each for each in self.findings if each.place[:3] != place[:3]]
        self._places[place[:3]] = severity
        self.findings.append(
            Finding(
                code=entry.code,
                name=entry.name,
                severity=severity,
                place=place,
                message=message,
                fix=fix,
                related=tuple(Related(*each) for each in related if each[0].line),
                remedies=tuple(remedies),
            )
        )


class RuleRunner:
    """Rules side by side over one run: hands each event to those that ask for its kind."""

    def __init__(self, rules: Iterable[type[Rule]]) -> None:
        self._classes = tuple(rules)
        self.rules = [rule() for rule in self._classes]
        self.timeline = Timeline()
        for rule in self.rules:
            rule.timeline = self.timeline
        self._handlers: dict[type[Event], tuple[Handler, ...]] = {}

    def handle(self, event: Event) -> None:
        kind = type(event)
        for handler in self._handlers.get(kind) or self.handlers_of(kind):
            handler(event)

    def handlers_of(self, kind: type[Event]) -> tuple[Handler, ...]:
        """The handlers of the rules for events of a kind."""
        handlers = self._handlers.get(kind)
        if handlers is None:
            method, hearers = _hearers(self._classes, kind)  # type: ignore[arg-type]
            found = (getattr(self.rules[index], method) for index in hearers)
            writes = (self.timeline.add,) if kind in KINDS else ()
            handlers = (*found, *writes)
            self._handlers[kind] = handlers
        return handlers

    def findings(self) -> list[Finding]:
        return [finding for rule in self.rules for finding in rule.findings]
