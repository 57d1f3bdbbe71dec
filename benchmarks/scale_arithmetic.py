"""On paper: what a rank holds, what it sends, and what a checkpoint costs, for 10 to 10,000 ranks.

    python benchmarks/scale_arithmetic.py [--parameters 7e9] [--blocks 32] [--tensors 900]
        [--ranks 10 1000 10000] [--host 8] [--accumulate 1]
        [--rank-disk 1e9] [--all-disk 100e9] [--hash 1e9]

Nothing is measured and nothing is started: every figure is a formula of this file. docs/scale.md
shows the output; benchmarks/scale_checks.py compares the formulas with 2 and 4 real ranks.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from common import table

STRATEGIES = ("ddp", "fsdp", "hsdp", "fsdp, offloaded")
GIB = 1 << 30


@dataclass(frozen=True)
class Dtypes:
    """Bytes per parameter."""

    weight: int
    gradient: int
    moments: int
    """The two of AdamW together."""
    gathered: int
    """Of an unsharded weight, which the forward reads."""
    reduced: int
    """Of a gradient as it travels."""

    @property
    def kept(self) -> int:
        """From one update to the next, and the gradient between backward and update."""
        return self.weight + self.gradient + self.moments


MIXED = Dtypes(weight=4, gradient=4, moments=8, gathered=2, reduced=4)
"""fp32 weights, gradients and AdamW; under fsdp, blocks are gathered as bf16."""
WHOLE = Dtypes(weight=4, gradient=4, moments=8, gathered=4, reduced=4)
"""fp32 throughout."""
HALF = Dtypes(weight=2, gradient=2, moments=4, gathered=2, reduced=2)
"""bf16 throughout, AdamW too."""
DTYPES = {"fp32, gathered as bf16": MIXED, "fp32": WHOLE, "bf16": HALF}


@dataclass(frozen=True)
class Memory:
    """Bytes of one rank, without activations."""

    device: float
    host: float = 0.0


def host_group(ranks: int, host: int) -> int:
    """Ranks that share one copy under hsdp: the most up to one host's that divide `ranks`."""
    return max(size for size in range(1, host + 1) if ranks % size == 0)


def in_flight(parameters: int, blocks: int, of: Dtypes) -> float:
    """The most that fsdp holds unsharded at once: the weights of this block and of the next, this
    block's gradients, and their copy that is being reduced."""
    return parameters / blocks * (2 * of.gathered + of.gathered + of.reduced)


def memory(
    strategy: str, parameters: int, blocks: int, ranks: int, group: int, of: Dtypes
) -> Memory:
    """What one rank holds at the peak of an update. `group`: the ranks that share one copy."""
    kept = parameters * of.kept
    if strategy == "ddp" or ranks == 1:
        return Memory(kept)
    unsharded = in_flight(parameters, blocks, of)
    if strategy == "fsdp, offloaded":
        return Memory(unsharded, kept / ranks)
    return Memory(kept / (group if strategy == "hsdp" else ranks) + unsharded)


def all_gather(size: float, ranks: int) -> float:
    """Bytes that each rank sends so that all have `size` bytes, of which each began with its part:
    its own part once, and on a ring the others' on to the next."""
    return size * (ranks - 1) / ranks


def all_reduce(size: float, ranks: int) -> float:
    """Bytes that each rank sends for the sum of `size` bytes on a ring: a reduce-scatter, then an
    all-gather (Patarasuk and Yuan 2009: no algorithm sends less)."""
    return 2 * all_gather(size, ranks)


@dataclass(frozen=True)
class Sent:
    """Bytes that one rank sends."""

    shared: float
    """To the ranks that share one copy of the model; under ddp and fsdp, to all."""
    copies: float = 0.0
    """Between the copies of hsdp: what goes from host to host."""

    @property
    def total(self) -> float:
        return self.shared + self.copies


def sent(
    strategy: str, parameters: int, ranks: int, group: int, of: Dtypes, accumulate: int = 1
) -> Sent:
    """What one rank sends per update of `accumulate` micro-batches.

    Gradients travel with the last micro-batch only; fsdp gathers each block's weights in every
    forward, and again in every backward.
    """
    gradients, weights = parameters * of.reduced, parameters * of.gathered
    if strategy == "ddp":
        return Sent(all_reduce(parameters * of.gradient, ranks))
    sharing = group if strategy == "hsdp" else ranks
    within = 2 * accumulate * all_gather(weights, sharing) + all_gather(gradients, sharing)
    return Sent(within, all_reduce(gradients / sharing, ranks // sharing))


def checkpoint_bytes(parameters: int, of: Dtypes) -> int:
    """Weights and AdamW's two moments: the gradient is used up when a state is saved."""
    return parameters * (of.weight + of.moments)


def write_seconds(size: float, ranks: int, each: float, all_of_them: float, hashed: float) -> float:
    """Until `size` bytes are on the disk: each rank hashes and writes its part of them, at `each`
    bytes a second, and the file system takes no more than `all_of_them` bytes a second."""
    part = size / ranks
    return max(part / each, size / all_of_them) + part / hashed


# Of trueloop's own code, in bytes; measured, and checked by tests/test_scale.py.
PER_FILE = 136
"""Of the manifest, for each rank's file."""
PER_RANK = 15_700
"""In a rank's file: its generators' states."""
PER_SHARD = 1_600
"""In a rank's file, for each tensor of which it has a part: torch.save's frame around it."""
INDEX_PER_SHARD = 160
"""Of the checkpoint's index, for each part of a tensor."""
VECTOR = 32
"""Per update: four numbers that all ranks add up."""
LAZY_FROM = 64
"""From so many ranks on, gloo connects a rank only with those that it talks to."""


def growth(ranks: int, tensors: int) -> dict[str, float]:
    """What of our own code costs with so many ranks.

    `tensors`: of weights and AdamW's moments, each cut into as many parts as there are ranks.
    """
    others = ranks - 1 if ranks < LAZY_FROM else 2
    return {
        "bytes that a rank sends per update, for Step": all_reduce(VECTOR, ranks),
        "requests a second to the store, for signs of life": 2 * ranks / max(1.0, ranks / 1000),
        "requests of rank 0 at the start, to meet the others": 2 * (ranks - 1),
        "requests of a rank that looks for the dead one": 2 * (ranks - 1),
        "connections of a rank, for gloo's three groups": 3 * others,
        "connections of rank 0, for a checkpoint": ranks - 1,
        "bytes of a checkpoint's manifest": PER_FILE * ranks,
        "bytes of the ranks' own states in it": PER_RANK * ranks,
        "bytes of its index, under fsdp": INDEX_PER_SHARD * tensors * ranks,
        "bytes of frames around its parts, under fsdp": PER_SHARD * tensors * ranks,
    }


# ------------------------------------------------------------------------------- tables


def _rounded(value: float) -> str:
    """Three significant digits, without an exponent."""
    digits = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:,.{digits}f}"


def memory_rows(options: argparse.Namespace) -> list[dict[str, Any]]:
    rows = []
    for strategy in STRATEGIES:
        for dtypes, of in DTYPES.items():
            if strategy == "ddp" and of is MIXED:
                continue  # nothing is gathered: as fp32
            row: dict[str, Any] = {"strategy": strategy, "AdamW": dtypes}
            for ranks in options.ranks:
                group = host_group(ranks, options.host)
                need = memory(strategy, options.parameters, options.blocks, ranks, group, of)
                words = _rounded(need.device / GIB)
                if need.host:
                    words += f" + {_rounded(need.host / GIB)} host"
                row[f"{ranks:,}"] = words
            rows.append(row)
    return rows


def sent_rows(options: argparse.Namespace) -> list[dict[str, Any]]:
    rows = []
    for strategy in STRATEGIES[:3]:
        for dtypes, of in DTYPES.items():
            if strategy == "ddp" and of is MIXED:
                continue
            row: dict[str, Any] = {"strategy": strategy, "AdamW": dtypes}
            for ranks in options.ranks:
                group = host_group(ranks, options.host)
                size = sent(strategy, options.parameters, ranks, group, of, options.accumulate)
                words = _rounded(size.shared / GIB)
                row[f"{ranks:,}"] = (
                    words + f" + {_rounded(size.copies / GIB)}" if size.copies else words
                )
            rows.append(row)
    return rows


def checkpoint_rows(options: argparse.Namespace) -> list[dict[str, Any]]:
    rows = []
    for dtypes, of in (("fp32", WHOLE), ("bf16", HALF)):
        size = checkpoint_bytes(options.parameters, of)
        for ranks in options.ranks:
            seconds = write_seconds(size, ranks, options.rank_disk, options.all_disk, options.hash)
            rows.append(
                {
                    "AdamW": dtypes,
                    "ranks": f"{ranks:,}",
                    "whole": _rounded(size / GIB),
                    "of one rank": _rounded(size / ranks / GIB),
                    "seconds to write": _rounded(seconds),
                }
            )
    return rows


def growth_rows(options: argparse.Namespace) -> list[dict[str, Any]]:
    found = {ranks: growth(ranks, options.tensors) for ranks in options.ranks}
    return [
        {"what": what, **{f"{ranks:,}": f"{found[ranks][what]:,.0f}" for ranks in options.ranks}}
        for what in found[options.ranks[0]]
    ]


def report(options: argparse.Namespace) -> dict[str, str]:
    """The four tables as text, by what they show."""
    groups = ", ".join(f"{host_group(ranks, options.host)}" for ranks in options.ranks)
    return {
        "memory": "memory of one rank in GiB, without activations\n" + table(memory_rows(options)),
        "sent": f"GiB that one rank sends per update; hsdp: among the {groups} ranks that share "
        "a copy + between copies\n" + table(sent_rows(options)),
        "checkpoint": "a checkpoint in GiB, and the time to write it\n"
        + table(checkpoint_rows(options)),
        "growth": f"what of our own code costs with so many ranks; {options.tensors} tensors\n"
        + table(growth_rows(options)),
    }


def parsed(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parameters", type=float, default=7e9)
    parser.add_argument("--blocks", type=int, default=32, help="of equal size, sharded one by one")
    parser.add_argument("--tensors", type=int, default=900, help="weights, and their moments")
    parser.add_argument("--ranks", type=int, nargs="+", default=[10, 1_000, 10_000])
    parser.add_argument("--host", type=int, default=8, help="ranks on one host, for hsdp")
    parser.add_argument("--accumulate", type=int, default=1, help="micro-batches of an update")
    parser.add_argument("--rank-disk", type=float, default=1e9, help="bytes/s that a rank writes")
    parser.add_argument("--all-disk", type=float, default=100e9, help="bytes/s of the file system")
    parser.add_argument("--hash", type=float, default=1e9, help="bytes/s of SHA-256 on one core")
    options = parser.parse_args(words)
    options.parameters = int(options.parameters)
    return options


def main() -> int:
    options = parsed()
    print(f"{options.parameters:,} parameters in {options.blocks} blocks\n")
    print("\n\n".join(report(options).values()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
