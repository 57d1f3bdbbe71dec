"""The times of updates in a torch profiler's trace."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

PREFIX = "trueloop: "
"""The prefix of our own ranges in a trace."""
DATA, REST = "waiting for data", "the loop itself"
_UPDATE = re.compile(re.escape(PREFIX) + r"update (\d+)")
_ON_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
_MOST = 12
"""Operations in the summary."""

Event = dict[str, Any]


def summary(trace: dict[str, Any], updates: int, order: Sequence[str]) -> dict[str, Any]:
    """The first `updates` updates of the trace as plain data: the share of each phase, of those in
    `order` the first first; operations by their own time, without that of what they call; the
    accelerator's share of busy time. Times are seconds.
    """
    events = [event for event in trace["traceEvents"] if "ts" in event]
    ranges = [e for e in events if e.get("cat") == "user_annotation"]
    ours = [e for e in ranges if e["name"].startswith(PREFIX)]
    spans = sorted((e for e in ours if _UPDATE.fullmatch(e["name"])), key=_start)[:updates]
    begin, end = spans[0]["ts"], _end(spans[-1])
    seconds = sum(e["dur"] for e in spans) / 1e6
    inside = [e for e in events if e.get("ph") == "X" and begin <= e["ts"] and _end(e) <= end]
    here = [e for e in ours if begin <= e["ts"] and _end(e) <= end]
    phases = _phases(here, seconds, order)
    found = {
        "first": _number(spans[0]),
        "updates": len(spans),
        "seconds": seconds,
        "phases": phases,
        "operations": _rows(own_times(e for e in inside if e.get("cat") == "cpu_op"), seconds),
    }
    device = [e for e in inside if e.get("cat") in _ON_DEVICE]
    if device:
        found["kernels"] = _rows(((e["name"], e["dur"]) for e in device), seconds)
        found["busy"] = _union(device) / 1e6 / seconds
    return found


def _start(event: Event) -> float:
    return float(event["ts"])


def _end(event: Event) -> float:
    return float(event["ts"] + event["dur"])


def _number(event: Event) -> int:
    match = _UPDATE.fullmatch(event["name"])
    assert match is not None
    return int(match[1])


def _phases(ranges: Sequence[Event], seconds: float, order: Sequence[str]) -> list[dict[str, Any]]:
    """Each phase's own time, and what is left of the updates: the loop's own."""
    spent: dict[str, float] = defaultdict(float)
    for name, own in own_times(ranges):
        phase = REST if _UPDATE.fullmatch(name) else name.removeprefix(PREFIX)
        spent[phase] += own / 1e6
    return [
        {"name": name, "seconds": spent[name], "share": spent[name] / seconds}
        for name in (*order, REST)
        if name in spent
    ]


def own_times(events: Iterable[Event]) -> list[tuple[str, float]]:
    """Each event's name, and the microseconds that are in no event within it on its thread."""
    by_thread: dict[Any, list[Event]] = defaultdict(list)
    for event in events:
        by_thread[event["pid"], event["tid"]].append(event)
    found: list[tuple[str, float]] = []
    for thread in by_thread.values():
        # Of two that begin together, the longer one is around the other.
        thread.sort(key=lambda e: (e["ts"], -e["dur"]))
        open_ones: list[tuple[float, int]] = []  # where each ends, and its place in `found`
        for event in thread:
            while open_ones and event["ts"] >= open_ones[-1][0]:
                open_ones.pop()
            if open_ones:
                name, own = found[open_ones[-1][1]]
                found[open_ones[-1][1]] = (name, own - event["dur"])
            open_ones.append((_end(event), len(found)))
            found.append((event["name"], event["dur"]))
    return found


def _rows(times: Iterable[tuple[str, float]], seconds: float) -> list[dict[str, Any]]:
    """Names by their times together, the longest first."""
    calls: dict[str, int] = defaultdict(int)
    spent: dict[str, float] = defaultdict(float)
    for name, own in times:
        calls[name] += 1
        spent[name] += own / 1e6
    names = sorted(spent, key=lambda name: -spent[name])[:_MOST]
    return [
        {"name": n, "calls": calls[n], "seconds": spent[n], "share": spent[n] / seconds}
        for n in names
    ]


def _union(events: Iterable[Event]) -> float:
    """The microseconds in which at least one of the events was going on."""
    busy, until = 0.0, float("-inf")
    for event in sorted(events, key=_start):
        busy += max(0.0, _end(event) - max(event["ts"], until))
        until = max(until, _end(event))
    return busy
