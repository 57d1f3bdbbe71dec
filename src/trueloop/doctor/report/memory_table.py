"""The memory of a program that ran out of it, by part, for people and for programs."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from trueloop.doctor.report.locations import spot_of
from trueloop.doctor.report.terminal import Paint, counted, printable

if TYPE_CHECKING:
    from trueloop.doctor.live.memory.options import MemoryOption
    from trueloop.doctor.live.memory.out_of_memory import Exhausted
    from trueloop.doctor.live.session import Watched

_MIB = 2**20


def memory_text(watched: Watched, memory: Exhausted, paint: Paint) -> str:
    """A heading, where it happened, what took how much, and what would fit."""
    lines = [f"{paint('place', 'Memory')}", *_wrapped(_happened(watched, memory), paint, "  ")]
    rows = _rows(memory)
    width = max(len(name) for name, _, _ in rows)
    sizes = [size_text(size) for _, size, _ in rows]
    room = max(map(len, sizes))
    for (name, _, more), size in zip(rows, sizes, strict=True):
        line = f"    {printable(name):{width}}  {size:>{room}}"
        lines.append(f"{line}  {paint('dim', printable(more))}".rstrip() if more else line)
    if memory.why_not:
        text = f"activations could not be estimated without running the model: {memory.why_not}"
        lines += _wrapped(text, paint, "  ")
    lines += _advice(memory, paint)
    return "\n".join(lines) + "\n"


def memory_object(watched: Watched, memory: Exhausted) -> dict[str, Any]:
    """Bytes; `activations` is null where they could not be counted."""
    spot = spot_of(watched, memory.place) if memory.place.line else None
    return {
        "path": None if spot is None else spot.name,
        "line": None if spot is None else spot.line,
        "device": memory.device,
        "limit": memory.limit,
        "limited_by": memory.limited_by,
        "asked": memory.asked,
        "update": memory.update,
        "moment": memory.moment or None,
        "module": memory.module or None,
        "samples": memory.samples,
        "weights": memory.weights,
        "gradients": memory.gradients,
        "optimizer_state": memory.state,
        "buffers": memory.buffers,
        "batch": memory.batch,
        "activations": memory.activations,
        "modules": [
            {"name": name, "bytes": size, "modules": count}
            for name, size, count in memory.modules
        ],
        "rest": memory.rest,
        "fits": [
            {
                "what": fit.what, "needs": fit.needs, "fits": fit.does, "samples": fit.samples,
                "steps": fit.steps, "of": fit.of or None,
            }
            for fit in memory.fits
        ],
    }  # fmt: skip


def size_text(size: int) -> str:
    """`0.4 MiB`, `1,204 MiB`."""
    whole = size / _MIB
    return f"{whole:,.0f} MiB" if whole >= 100 else f"{whole:,.1f} MiB"


def _happened(watched: Watched, memory: Exhausted) -> str:
    where = {
        "forward": f"the forward of `{memory.module}`" if memory.module else "the forward",
        "backward": "the backward",
        "step": "the optimizer's step",
    }.get(memory.moment)
    spot = f"{spot_of(watched, memory.place)}: " if memory.place.line else ""
    asked = "" if memory.asked is None else f" when {size_text(memory.asked)} more were asked for"
    text = f"{spot}memory ran out in update {memory.update:,}"
    text += f", in {where}" if where else ""
    return f"{text},{asked}; the limit is {size_text(memory.limit)} ({memory.limited_by})".replace(
        ",;", ";"
    )


def _rows(memory: Exhausted) -> list[tuple[str, int, str]]:
    kinds = ", ".join(memory.optimizers)
    state = kinds if memory.state_made else f"{kinds}; not fully allocated yet"
    samples = "" if memory.samples is None else counted(memory.samples, "sample")
    rows = [
        ("weights", memory.weights, ""),
        ("gradients", memory.gradients, ""),
        ("optimizer state", memory.state, state if memory.optimizers else ""),
        ("buffers", memory.buffers, ""),
        ("batch", memory.batch, samples),
    ]
    if memory.activations is not None:
        rows.append(("activations", memory.activations, "stored for the backward pass"))
        for name, size, count in memory.modules:
            rows.append((f"  {name}", size, f"{count} modules" if count > 1 else ""))
    rows.append(("everything else", memory.rest, "as measured when memory ran out"))
    return rows


def _advice(memory: Exhausted, paint: Paint) -> list[str]:
    room = max(0, memory.limit - memory.rest)
    lines: list[str] = []
    for fit in memory.fits:
        lines += [paint("fix", line) for line in _wrapped(_fit(fit, memory, room), paint, "  ")]
    is_small = memory.fixed and memory.state < 0.1 * (memory.fixed + (memory.activations or 0))
    if is_small and memory.fits:
        text = f"a smaller optimizer would save {size_text(memory.state)} at most: not needed"
        lines += _wrapped(text, paint, "  ")
    return lines


def _fit(fit: MemoryOption, memory: Exhausted, room: int) -> str:
    if fit.what == "none":
        return (
            f"no batch fits: without one, weights, gradients, optimizer state and buffers take"
            f" {size_text(fit.needs)} of {size_text(room)}; train fewer of the weights, keep them"
            " in bfloat16, or use an optimizer with less state"
        )
    does = {True: "fits", None: "may just fit", False: "does not fit by itself"}[fit.does]
    needs = f"an update then takes {size_text(fit.needs)} of {size_text(room)}"
    if fit.what == "batch size":
        return f"fits: a batch of {counted(fit.samples, 'sample')}; {needs}"
    if fit.what == "accumulation":
        return f"fits: {fit.steps} accumulation steps of {counted(fit.samples, 'sample')}; {needs}"
    if fit.what == "bf16 autocast":
        return f"{does}: autocast to bfloat16; {needs}"
    return f"{does}: recomputing the modules of `{fit.of}` in the backward pass; {needs}"


def _wrapped(text: str, paint: Paint, indent: str) -> list[str]:
    return textwrap.wrap(
        printable(text), paint.width, initial_indent=indent, subsequent_indent=indent + "  ",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
