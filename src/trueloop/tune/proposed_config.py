"""The proposals of a tuning, as a file for `trueloop train --config`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from trueloop.lengths import LENGTHS
from trueloop.tune.changes import OTHER, ROUNDING
from trueloop.tune.results import TuningResults

_WHAT_IT_TRAINS = {
    OTHER: "This trains DIFFERENTLY from the options as they were given:",
    ROUNDING: "This trains the same, up to rounding (the last digits of sums differ).",
}


def as_config(task: str, stated: dict[str, Any], findings: TuningResults, seconds: float) -> str:
    """YAML: the task, what the user stated, and what is proposed over it, with the reasons."""
    from trueloop.tune.text_report import lines_of_change

    proposal, facts = findings.proposal(), findings.facts
    day = datetime.now(UTC).date().isoformat()
    lines = [
        "# trueloop train --config FILE",
        f"# Measured by trueloop tune on {day}, in {seconds:.0f} s, on {facts.device}, "
        f"{facts.cores} cores.",
        f"# {_WHAT_IT_TRAINS.get(proposal.results, 'This trains bit for bit the same.')}",
        f"# {proposal.why}.",
        "#",
        *(f"# {line}" for line in lines_of_change(findings)),
        "",
        _line("task", task),
    ]
    replaced = {*proposal.options, *(LENGTHS if "updates" in proposal.options else ())}
    kept = {name: value for name, value in stated.items() if name not in replaced}
    if kept:
        lines += ["", "# as they were given", *(_line(*item) for item in kept.items())]
    if proposal.options:
        lines += ["", "# proposed"]
        for name, value in proposal.options.items():
            lines.append(f"{_line(name, value)}  # was {_before(name, facts.options)}")
    return "\n".join(lines) + "\n"


def _before(name: str, options: dict[str, Any]) -> str:
    """The option's value; where the run's length was given in a different unit, that."""
    if name in LENGTHS:
        name = next((unit for unit in LENGTHS if options.get(unit) is not None), name)
        return f"{name} {value_as_yaml(options.get(name))}"
    return value_as_yaml(options.get(name))


def _line(name: str, value: Any) -> str:
    return f"{name}: {value_as_yaml(value)}"


def value_as_yaml(value: Any) -> str:
    """A value as written after a key and a colon."""
    import yaml

    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10**9)
    return str(text).removesuffix("\n").removesuffix("\n...")
