"""`trueloop env`: what a training would run on, and what is likely set wrong."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from trueloop.cli import OK
from trueloop.errors import ConfigError, nearest

if TYPE_CHECKING:
    from trueloop.cli._machine import Machine
    from trueloop.cli._misconfigurations import Misconfiguration

FORMATS = ("text", "json")
_GB = 1e9


def main(argv: Sequence[str]) -> int:
    """Print the facts and the likely misconfigurations; the exit status."""
    from trueloop.cli.parser import Parser

    parser = Parser(
        "trueloop env",
        usage="trueloop env [options]",
        description="Print versions, devices, threads, variables and disk space as a training "
        "would have them, and what is likely set wrong, with what to type.",
        epilog="example:\n  trueloop env --format json > machine.json",
    )
    parser.add_option(
        "--format", default="text", metavar="NAME", choices=FORMATS, help="how it is printed"
    )
    given = parser.parse(argv)
    if given.format not in FORMATS:
        raise ConfigError(f"unknown format {given.format!r}: {nearest(given.format, FORMATS)}")

    from trueloop.cli._machine import machine
    from trueloop.cli._misconfigurations import misconfigurations
    from trueloop.cli._one_run import RUNS

    facts = machine(RUNS)
    found = misconfigurations(facts)
    print(as_json(facts, found) if given.format == "json" else as_text(facts, found))
    return OK


def as_json(facts: Machine, found: Sequence[Misconfiguration]) -> str:
    """One object: the fields of `Machine`, and `misconfigurations` with name and message."""
    plain: dict[str, Any] = dataclasses.asdict(facts)
    plain["misconfigurations"] = [dataclasses.asdict(each) for each in found]
    return json.dumps(plain, indent=2)


def as_text(facts: Machine, found: Sequence[Misconfiguration]) -> str:
    """The facts, one to a line, and the misconfigurations under them."""
    missing = [name for name, version in facts.extras.items() if version is None]
    installed = [f"{name} {version}" for name, version in facts.extras.items() if version]
    rows = [
        ("versions", ", ".join(f"{name} {version}" for name, version in facts.versions.items())),
        ("system", facts.system),
        ("extras", ", ".join(installed) or "none"),
        ("not installed", ", ".join(missing)),
        ("CPU", _cpu(facts)),
        ("memory", _memory(facts)),
        *((f"cuda:{number}", _gpu(gpu)) for number, gpu in enumerate(facts.gpus)),
        ("CUDA", _cuda(facts)),
        ("MPS", "available" if facts.mps else "none"),
        ("ranks", _variables(facts.ranks) or "one process"),
        ("variables", _variables(facts.variables) or "none that changes how torch trains"),
        ("hash seed", _hash_seed(facts)),
        ("runs", f"{facts.runs}, {(facts.free_disk or 0) / _GB:.1f} GB free"),
    ]
    width = max(len(name) for name, _ in rows) + 2
    lines = [f"{name:<{width}}{text}" for name, text in rows if text]
    count = len(found)
    what = "misconfiguration" if count == 1 else "misconfigurations"
    lines += ["", f"{count or 'no'} likely {what}" + (":" if found else "")]
    return "\n".join([*lines, *(f"  {each.message}" for each in found)])


def _cpu(facts: Machine) -> str:
    usable = f"{facts.usable_cores:g} of {facts.cores}"
    cores = str(facts.cores) if facts.usable_cores == facts.cores else usable
    load = "" if facts.load is None else f", load {facts.load:.1f}"
    return f"{facts.cpu}: {cores} cores, {facts.threads} threads of torch{load}"


def _memory(facts: Machine) -> str:
    shared = facts.shared_memory
    beside = "" if shared is None else f"; /dev/shm {shared / _GB:.2f} GB"
    return f"{facts.free_memory / _GB:.1f} of {facts.memory / _GB:.1f} GB free{beside}"


def _gpu(gpu: Any) -> str:
    return f"{gpu.name}, {gpu.memory / _GB:.1f} GB, sm_{gpu.capability[0]}{gpu.capability[1]}"


def _cuda(facts: Machine) -> str:
    built = f"torch is built for {facts.torch_cuda}" if facts.torch_cuda else "none in this torch"
    return built + (f"; driver {facts.driver}" if facts.driver else "")


def _hash_seed(facts: Machine) -> str:
    seed = facts.variables.get("PYTHONHASHSEED", "random")
    if seed != "random":
        return f"PYTHONHASHSEED={seed}"
    return "random: the order of a set of texts differs from run to run (PYTHONHASHSEED=0 fixes it)"


def _variables(found: Any) -> str:
    return ", ".join(f"{name}={value}" for name, value in found.items())
