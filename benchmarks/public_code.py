"""`trueloop check` on code that nobody here wrote, against findings that were judged by hand.

    python benchmarks/public_code.py checkout CLONES FOLDER   the listed commits, out of git clones
    python benchmarks/public_code.py check FOLDER [--unjudged FILE]
    python benchmarks/public_code.py accept FILE              verdicts filled in go to the lists
    python benchmarks/public_code.py commits CLONES           known bugs, before and after the fix
    python benchmarks/public_code.py removals FOLDER          training scripts, one statement less

The lists are in `public/`, the code is not. `repositories.json` names each repository with the
commit that is read. Two thirds of them may be looked at while rules change; the judgements on the
others are in `held_out.json`, to be left unread. `CLONES` contains a git directory for each, as
`owner+name`. One process, without the cache.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from common import save_results, table
from public_clones import LISTS, Repository, check_out_all, folder_of, listed
from public_commits import try_commits
from public_findings import run_command
from public_removals import removals, try_removals

VERDICTS = ("true", "noise", "false")
PARTS = ("looked at", "held out")
LIST_OF = {"looked at": "judged.json", "held out": "held_out.json"}
SHOWN = 100
"""Characters of a line that are kept to recognise it."""
AROUND = 12
"""Lines before and after a finding that are shown for judging."""


@dataclass(frozen=True)
class Place:
    """Where a finding is: lines do not move, since the commit is fixed."""

    repository: str
    path: str
    cell: int
    """Number of the notebook's cell; 0 in a file."""
    line: int
    code: str

    def __str__(self) -> str:
        cell = f"cell {self.cell}, line " if self.cell else ""
        return f"{self.repository} {self.path}:{cell}{self.line} {self.code}"


@dataclass
class Judged:
    """One line of `judged.json` or `held_out.json`."""

    place: Place
    text: str
    """The line that the finding points at."""
    verdict: str
    reason: str

    def as_object(self) -> dict[str, Any]:
        told = asdict(self.place)
        return {**told, "text": self.text, "verdict": self.verdict, "reason": self.reason}


@dataclass
class Checked:
    """What `check` said of one repository."""

    repository: Repository
    findings: list[dict[str, Any]]
    unread: list[dict[str, Any]]
    problems: list[dict[str, Any]]
    files: int
    lines: int
    seconds: float
    places: list[Place] = field(init=False)

    def __post_init__(self) -> None:
        name = self.repository.repository
        self.places = [
            Place(name, each["path"], each.get("cell", 0), each["line"], each["code"])
            for each in self.findings
        ]


def judged_of(content: dict[str, Any]) -> Judged:
    """From an object of a list. Raises `SystemExit` for a verdict that is none."""
    place = Place(*(content[name] for name in ("repository", "path", "cell", "line", "code")))
    if content["verdict"] not in VERDICTS or not content["reason"]:
        raise SystemExit(f"{place}: give a verdict, one of {', '.join(VERDICTS)}, and a reason")
    return Judged(place, content["text"], content["verdict"], content["reason"])


def judged_in(path: Path) -> dict[Place, Judged]:
    """The judgements of a list."""
    found = [judged_of(each) for each in json.loads(path.read_text("utf-8"))["findings"]]
    return {each.place: each for each in found}


def write_list(path: Path, judged: Iterable[Judged], head: dict[str, Any]) -> None:
    """One finding a line, in order, so that a diff shows what was judged."""
    ordered = sorted(judged, key=lambda each: tuple(asdict(each.place).values()))
    lines = [json.dumps(each.as_object(), ensure_ascii=False) for each in ordered]
    opening = json.dumps(head, indent=2, ensure_ascii=False)[:-2]
    body = ",\n".join(f"    {line}" for line in lines)
    path.write_text(f'{opening},\n  "findings": [\n{body}\n  ]\n}}\n', encoding="utf-8")


def run_check(folder: Path, repository: Repository, jobs: int, outputs: Path | None) -> Checked:
    """What `trueloop check . --format json` prints in a checkout, or printed before."""
    kept = outputs / f"{repository.folder}.json" if outputs else None
    if kept and kept.exists():
        told = json.loads(kept.read_text("utf-8"))
    else:
        told = run_command(folder, ["."], jobs)
        if kept:
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps(told), encoding="utf-8")
    lines = sum(len(lines_of(path)) for path in folder.rglob("*") if path.is_file())
    parts = (told["findings"], told["unread"], told["problems"], told["files"])
    return Checked(repository, *parts, lines, told["seconds"])


def lines_of(path: Path, cell: int = 0) -> list[str]:
    """The lines of a Python file, or of the code in a notebook or in one of its cells."""
    if path.suffix == ".py":
        return split(path.read_text("utf-8", "replace"))
    if path.suffix != ".ipynb":
        return []
    try:
        notebook = json.loads(path.read_text("utf-8", "replace"))
    except ValueError:
        return []
    cells = notebook.get("cells") or [
        each for sheet in notebook.get("worksheets", ()) for each in sheet.get("cells", ())
    ]
    lines: list[str] = []
    for number, each in enumerate(cells, 1):
        if each.get("cell_type") == "code" and (not cell or number == cell):
            source = each.get("source", each.get("input", ""))
            lines += split(source if isinstance(source, str) else "".join(source))
    return lines


def split(text: str) -> list[str]:
    """Lines as Python counts them; `splitlines` also divides at form feeds."""
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def line_at(folder: Path, place: Place) -> str:
    """The line that a finding points at, as far as it is kept."""
    lines = lines_of(folder / folder_of(place.repository) / place.path, place.cell)
    return lines[place.line - 1].strip()[:SHOWN] if place.line <= len(lines) else ""


def share(count: int, of: int) -> str:
    return f"{count / of:.1%}" if of else ""


def row(name: str, found: Counter[str], gone: Counter[str]) -> dict[str, Any]:
    """A line of the table of precision."""
    true, noise, false = (found[each] for each in VERDICTS)
    return {
        "": name,
        "true": true,
        "noise": noise,
        "false": false,
        "unjudged": found["unjudged"],
        "true/(true+false)": share(true, true + false),
        "true/all": share(true, true + noise + false),
        "gone: true": gone["true"],
        "noise or false": gone["noise"] + gone["false"],
    }


def precision(
    checked: Sequence[Checked], judged: dict[Place, Judged], *, advice: bool
) -> list[dict[str, Any]]:
    """By rule, then by severity, then all; of errors and warnings, or of advice."""
    found: dict[str, Counter[str]] = {}
    for repository in checked:
        for place, finding in zip(repository.places, repository.findings, strict=True):
            severity = finding["severity"]
            if (severity == "advice") is advice:
                verdict = judged[place].verdict if place in judged else "unjudged"
                for name in (place.code, f"{severity}s", "total"):
                    found.setdefault(name, Counter())[verdict] += 1
    gone: dict[str, Counter[str]] = {}
    for place in set() if advice else gone_from(checked, judged):
        for name in (place.code, "total"):
            gone.setdefault(name, Counter())[judged[place].verdict] += 1
    nothing: Counter[str] = Counter()
    order = sorted({*found, *gone}, key=lambda name: (name == "total", name.islower(), name))
    return [row(name, found.get(name, nothing), gone.get(name, nothing)) for name in order]


def gone_from(checked: Sequence[Checked], judged: dict[Place, Judged]) -> set[Place]:
    """Judged places in these repositories at which nothing is found today."""
    names = {each.repository.repository for each in checked}
    found = {place for each in checked for place in each.places}
    return {place for place in judged if place.repository in names and place not in found}


def other_lines(checked: Sequence[Checked], judged: dict[Place, Judged], root: Path) -> list[str]:
    """Judged places whose line is a different one: the checkout is of another commit."""
    names = {each.repository.repository for each in checked}
    return [
        str(place)
        for place, each in judged.items()
        if place.repository in names and each.text != line_at(root, place)
    ]


def print_list(title: str, lines: Sequence[str]) -> None:
    print(f"\n{title}: {len(lines)}")
    for line in lines:
        print(f"  {line}")


def report(
    checked: list[Checked], judged: dict[Place, Judged], root: Path, lists: Path
) -> dict[str, Any]:
    """Print the tables; what a result file keeps of them."""
    results: dict[str, Any] = {}
    for part in PARTS:
        chosen = [each for each in checked if each.repository.part == part]
        for advice in (False, True):
            rows = precision(chosen, judged, advice=advice)
            title = f"{part}: {'advice' if advice else 'errors and warnings'}"
            if rows:
                print(f"\n{title}\n{table(rows)}")
                results[title] = rows
    looked_at = [each for each in checked if each.repository.part == PARTS[0]]
    gone = sorted(str(p) for p in gone_from(looked_at, judged) if judged[p].verdict == "true")
    print_list("judged true and not found today", gone)
    print_list("judged, but the line is a different one", other_lines(checked, judged, root))
    cut = [
        f"{each.repository.repository} {unread['path']}:{unread['line']}: {unread['message']}"
        for each in checked
        for unread in each.unread
    ]
    print_list("files not read to their end", cut)
    programs = main_programs(checked, lists)
    return {**results, "cut": cut, "programs": programs, **speed(checked)}


def main_programs(checked: list[Checked], lists: Path) -> dict[str, bool]:
    """Print which of the training scripts in `removals.json` are read to their end."""
    cut = {(e.repository.repository, str(Path(u["path"]))) for e in checked for u in e.unread}
    names = {each.repository.repository for each in checked}
    read: dict[str, bool] = {}
    for each in removals(lists):
        if each.repository in names:
            program = f"{each.repository} {each.script}"
            whole = not {(each.repository, each.script), (each.repository, each.file)} & cut
            read[program] = read.get(program, True) and whole
    print(f"\ntraining scripts read to their end: {sum(read.values())} of {len(read)}")
    return read


def speed(checked: Sequence[Checked]) -> dict[str, Any]:
    """Print how long each repository took, the slowest first."""
    rows = [
        {
            "repository": each.repository.repository,
            "files": each.files,
            "lines": each.lines,
            "seconds": round(each.seconds, 1),
            "lines/s": round(each.lines / each.seconds),
        }
        for each in sorted(checked, key=lambda each: -each.seconds)
    ]
    lines, seconds = sum(each.lines for each in checked), sum(each.seconds for each in checked)
    files = sum(each.files for each in checked)
    print(f"\n{table(rows)}")
    print(f"\n{files} files, {lines} lines in {seconds:.1f} s: {lines / seconds:.0f} lines/s")
    return {"files": files, "lines": lines, "seconds": round(seconds, 1), "repositories": rows}


def write_unjudged(
    checked: Sequence[Checked], judged: dict[Place, Judged], root: Path, path: Path
) -> int:
    """Errors and warnings without a verdict, each with the lines around it and an object to fill
    in for `accept`; how many there are."""
    blocks = []
    for each in checked:
        for place, finding in zip(each.places, each.findings, strict=True):
            if place in judged or finding["severity"] == "advice":
                continue
            lines = lines_of(root / each.repository.folder / place.path, place.cell)
            around = range(max(1, place.line - AROUND), min(len(lines), place.line + AROUND) + 1)
            code = [f"{'>' if at == place.line else ' '}{at:5} {lines[at - 1]}" for at in around]
            empty = Judged(place, line_at(root, place), "", "").as_object()
            head = f"#### {place} {finding['severity']}: {finding['message']}"
            blocks.append("\n".join([head, *code, json.dumps(empty, ensure_ascii=False)]))
    path.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")
    return len(blocks)


def accept(path: Path, lists: Path) -> int:
    """Add the objects of a file whose verdict was filled in to the list of their part."""
    parts = {each.repository: each.part for each in listed(lists)}
    new: dict[str, list[Judged]] = {part: [] for part in PARTS}
    for line in path.read_text("utf-8").split("\n"):
        if line.startswith('{"repository"') and (each := json.loads(line))["verdict"]:
            new[parts[each["repository"]]].append(judged_of(each))
    for part, judgements in new.items():
        target = lists / LIST_OF[part]
        content = json.loads(target.read_text("utf-8"))
        known = {each.place: each for each in map(judged_of, content.pop("findings"))}
        known.update({each.place: each for each in judgements})
        write_list(target, known.values(), content)
        print(f"{target.name}: {len(judgements)} accepted, {len(known)} in all")
    return 0


def score(given: argparse.Namespace) -> int:
    """The `check` command."""
    judged: dict[Place, Judged] = {}
    for name in LIST_OF.values():
        judged |= judged_in(given.lists / name)
    wanted = [
        each
        for each in listed(given.lists)
        if (not given.repository or each.repository in given.repository)
        and given.part in (None, each.part)
    ]
    checked = []
    for each in wanted:
        folder = given.folder / each.folder
        if folder.is_dir():
            checked.append(run_check(folder, each, given.jobs, given.outputs))
        else:
            print(f"not checked out: {each.repository}")
    if not checked:
        raise SystemExit(f"no listed repository in {given.folder}: run the checkout command first")
    results = report(checked, judged, given.folder, given.lists)
    if given.unjudged:
        count = write_unjudged(checked, judged, given.folder, given.unjudged)
        print(f"\n{count} unjudged findings in {given.unjudged}")
    if given.lists == LISTS and len(checked) == len(listed()):
        print(save_results("public_code", results))
    return 0


def parsed(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--lists", type=Path, default=LISTS, help="folder of the lists")
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("checkout")
    command.add_argument("clones", type=Path)
    command.add_argument("folder", type=Path)
    command = commands.add_parser("check")
    command.add_argument("folder", type=Path)
    command.add_argument("--repository", action="append", help="only this one (may be repeated)")
    command.add_argument("--part", choices=PARTS, help="only these repositories")
    command.add_argument("--jobs", type=int, default=1)
    command.add_argument("--outputs", type=Path, help="keep the output there and use what is there")
    command.add_argument("--unjudged", type=Path, help="write what has no verdict, to be judged")
    command = commands.add_parser("accept")
    command.add_argument("file", type=Path)
    command = commands.add_parser("commits")
    command.add_argument("clones", type=Path)
    command.add_argument("--repository", action="append", help="only this one (may be repeated)")
    command = commands.add_parser("removals")
    command.add_argument("folder", type=Path)
    command.add_argument("--repository", action="append", help="only this one (may be repeated)")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    given = parsed(words)
    if given.command == "checkout":
        check_out_all(given.clones, given.folder, listed(given.lists))
        return 0
    if given.command == "accept":
        return accept(given.file, given.lists)
    if given.command == "commits":
        return try_commits(given.clones, given.lists, given.repository)
    if given.command == "removals":
        return try_removals(given.folder, given.lists, given.repository)
    return score(given)


if __name__ == "__main__":
    sys.exit(main())
