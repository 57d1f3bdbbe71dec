"""The results as text, as the tables of docs/speed.md, and as a picture."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

from common import RESULTS, table

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "speed.md"
PICTURE = RESULTS / "side_by_side.png"
ORDER = ("spiral", "table", "mnist", "gpt", "validation", "own_cost", "startup")


def as_text(results: dict[str, Any]) -> str:
    lines = [f"\n{results['title']} ({results['rounds']} rounds, {results['seconds']:.0f} s)"]
    if results["rows"]:
        lines.append(table([{**row, "ratio": _ratio(row)} for row in results["rows"]]))
    for goal in results["goals"]:
        verdict = "met" if goal["met"] else "MISSED"
        lines.append(f"{goal['measured']:g} {goal['goal']} (goal: {goal['wanted']}): {verdict}")
    return "\n".join(lines)


def _ratio(row: dict[str, Any]) -> str:
    return "" if row["ratio"] is None else f"{row['ratio']:.2f}×"


def as_markdown(results: dict[str, Any]) -> str:
    """The table of a workload, and what was wanted."""
    names = ["", *results["figures"]]
    if results["compared"]:
        names.append(f"speed, {results['beside']} = 1")
    lines = ["| " + " | ".join(names) + " |", "| --- " + "| ---: " * (len(names) - 1) + "|"]
    for row in results["rows"]:
        cells = [row["contender"], *(_number(row[name]) for name in results["figures"])]
        if results["compared"]:
            cells.append(_ratio(row))
        ours = row["contender"].startswith("trueloop")
        lines.append("| " + " | ".join(f"**{c}**" if ours else c for c in cells) + " |")
    for name, why in results["left_out"].items():
        lines.append(f"\n{name} was left out: {why}.")
    goals = [
        f"{_number(g['measured'])} {g['goal']} (wanted: {g['wanted']})" for g in results["goals"]
    ]
    if goals:
        lines.append("\n" + "; ".join(goals) + ".")
    return "\n".join(lines)


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:g}"


def saved() -> dict[str, dict[str, Any]]:
    """The saved results of all workloads, in the page's order."""
    found = {}
    for name in ORDER:
        path = RESULTS / f"side_by_side_{name}.json"
        if path.exists():
            found[name] = json.loads(path.read_text(encoding="utf-8"))
    return found


def write() -> None:
    """Put what was measured into the page, and draw the picture."""
    results = saved()
    page = PAGE.read_text(encoding="utf-8")
    for name, found in results.items():
        machine = found["machine"]
        said = (
            f"{found['rounds']} rounds on {machine['date']}: {machine['processor']}, "
            f"{machine['cores']} cores, {found['threads']} "
            f"{'thread' if found['threads'] == 1 else 'threads'}, torch {machine['torch']}, Python "
            f"{machine['python']}."
        )
        page = _between(page, name, f"{as_markdown(found)}\n\n{said}")
    if results:
        first = next(iter(results.values()))
        versions = ", ".join(f"{name} {number}" for name, number in first["versions"].items())
        page = _between(page, "versions", versions + ".")
    PAGE.write_text(page, encoding="utf-8")
    draw(results)


def _between(page: str, name: str, text: str) -> str:
    """The page with `text` between the two comments of this name."""
    begin, end = f"<!-- measured: {name} -->", f"<!-- end of {name} -->"
    head, found, rest = page.partition(begin)
    _, closed, tail = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"{PAGE} has no {begin} … {end}")
    return f"{head}{begin}\n{text}\n{end}{tail}"


def draw(results: dict[str, dict[str, Any]]) -> None:
    """Bars of each workload's first figure, ours in colour, the floor in outline."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    shown = [results[name] for name in ("spiral", "table", "mnist", "gpt") if name in results]
    if not shown:
        return
    heights = [len(found["rows"]) + 1.6 for found in shown]
    figure, axes = pyplot.subplots(
        len(shown), 1, figsize=(8.4, 0.27 * sum(heights)), height_ratios=heights, squeeze=False
    )
    for found, axis in zip(shown, axes[:, 0], strict=True):
        _bars(axis, found)
    figure.tight_layout(h_pad=1.2)
    figure.savefig(PICTURE, dpi=130)
    pyplot.close(figure)


def _bars(axis: Any, found: dict[str, Any]) -> None:
    name = found["figures"][0]
    lower = found["lower_is_better"]
    rows = sorted(found["rows"], key=lambda row: row[name], reverse=not lower)
    for place, row in enumerate(rows):
        ours, floor = row["contender"].startswith("trueloop"), row["contender"] == "floor"
        color = "#1f6feb" if ours else "#ffffff" if floor else "#b4bcc6"
        axis.barh(
            place, row[name], color=color, edgecolor="#6e7781" if floor else color, height=0.7
        )
        axis.text(row[name], place, f" {_number(row[name])}", va="center", fontsize=8)
    axis.set_yticks(range(len(rows)), [row["contender"] for row in rows], fontsize=8)
    axis.invert_yaxis()
    better = "less is better" if lower else "more is better"
    # From the left edge of the figure, over the names: some are as long as the figure is wide.
    title = textwrap.fill(f"{found['title']}: {name} ({better})", 112)
    axis.set_title(title, fontsize=9, loc="left", x=-0.3)
    axis.set_xlim(0, 1.12 * max(row[name] for row in rows))
    axis.xaxis.set_visible(False)
    axis.tick_params(left=False)
    for side in ("top", "right", "bottom"):
        axis.spines[side].set_visible(False)
