"""The pages of the site that are generated: rules, the lab's claims, options, public names."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import options

import trueloop
from trueloop.doctor.lab import claim_pages, claims
from trueloop.doctor.rules import pages

PUBLIC = {
    "step": (
        "One update",
        ["Step", "Outliers", "DDPOptions", "FSDPOptions", "StepRecord", "LossOutput", "supervised"],
    ),
    "fit": (
        "Training and evaluation",
        ["fit", "History", "EarlyStopping", "evaluate", "predict", "EvalRecord"],
    ),
    "data": ("Data", ["Feed", "Shards"]),
    "checkpoints": (
        "Checkpoints and weights",
        ["Checkpoints", "load_checkpoint", "save_weights", "load_weights"],
    ),
    "doctor": ("The doctor", ["watch", "Doctor"]),
    "runs": ("Runs, tasks and ranks", ["Run", "Task", "process_group", "seed_everything"]),
}
"""Pages of the reference, with what stands at the top of the package. A name that is in none comes
on the page of the others; a module of the package has a page of its own."""


def write(docs: Path) -> None:
    """Write every generated page below `docs`; git ignores all but the index of the rules."""
    pages.write_documents(docs)
    _write(docs / "options.md", options.page())
    _claims(docs / "lab")
    _reference(docs / "api")


def links_of_the_site(_app: object, name: str, content: list[str]) -> None:
    """Links that lead to folders and to source in the repository lead to pages of the site."""
    text = re.sub(r"\[(T[LHS]\d{3})\]\(rules\.md#[\w-]+\)", r"[\1](rules/\1.md)", content[0])
    text = re.sub(r"\]\(\.\./examples/lab/([\w-]+)/claim\.toml\)", r"](lab/\1.md)", text)
    # What has no page, neither in the repository as a file to load: its name remains.
    content[0] = re.sub(r"\[([^\]]+)\]\(\.\./([\w/]+?(?:\.md|/?))\)", r"\1 (`\2`)", text)
    _rules_of_the_site(name, content)


def accessible(_app: object, _page: str, _template: str, context: dict[str, Any], _: Any) -> None:
    """What a keyboard and a screen reader need: levels of headings, code that scrolls."""
    for part in ("body", "furo_navigation_tree"):
        text = context.get(part) or ""
        text = text.replace('role="heading"', 'role="heading" aria-level="2"')
        text = text.replace("<pre>", '<pre tabindex="0">')
        text = text.replace('<div class="table-wrapper', '<div tabindex="0" class="table-wrapper')
        context[part] = re.sub(r"<dl>\n((?:<dd>.*</dd>\n)+)</dl>", _parameter_lines, text)


def _parameter_lines(found: re.Match[str]) -> str:
    """A signature's parameters, which Sphinx writes as descriptions without anything described."""
    return re.sub(r"<dd>(.*)</dd>", r'<span class="sig-line">\1</span>', found[1])


def _rules_of_the_site(name: str, content: list[str]) -> None:
    """The index of the rules leads to their pages; in the repository it leads to their source."""
    if name == "rules":
        index = pages.index_document(lambda entry: f"rules/{entry.code}.md")
        content[0] = f"{index}\n```{{toctree}}\n:hidden:\n:glob:\nrules/T*\n```\n"
    if name == "crib-sheet":
        for claim in claims.all_claims():
            content[0] = content[0].replace(
                f"`{claim.name}` ", f"[`{claim.name}`](lab/{claim.name}.md) "
            )
        listed = "".join(f"lab/{claim.name}\n" for claim in claims.all_claims())
        content[0] += f"\n```{{toctree}}\n:hidden:\n{listed}```\n"


def _write(path: Path, text: str) -> None:
    """Write what changed: a page that stays the same is not built again."""
    path.parent.mkdir(exist_ok=True)
    if not path.exists() or path.read_text("utf-8") != text:
        path.write_text(text, "utf-8", newline="\n")


# ------------------------------------------------------------------------------- the lab


def _claims(folder: Path) -> None:
    measured = _measured(folder.parent / claim_pages.CRIB_SHEET)
    for claim in claims.all_claims():
        right, wrong = (claim.program(side).read_text("utf-8") for side in ("right", "wrong"))
        changed = "\n".join(
            f"{line.mark} {line.text}".rstrip() for line in claim_pages.diff(wrong, right)
        )
        found = ", ".join(f"[{code}](../rules/{code}.md)" for code in claim.finds)
        doctor = (
            f"finds {found}"
            if found
            else claim.silent or "is silent: the wrong program breaks nothing"
        )
        statements = "".join(f"- {each.says}\n" for each in claim.tests)
        _write(
            folder / f"{claim.name}.md",
            f"# {claim.number}. {claim.title}\n\n> {claim.claim}\n\n"
            f"{measured[claim.name]}\n\n{claim.why}\n\n"
            f"From the wrong program (−) to the right one (+):\n\n```diff\n{changed}\n```\n\n"
            f"Statements that each seed can refute:\n\n{statements}\n"
            f"The doctor: {doctor}. All claims: [the crib sheet](../crib-sheet.md).\n\n"
            f"```\ntrueloop lab --only {claim.name}\n```\n",
        )


def _measured(sheet: Path) -> dict[str, str]:
    """The verdict on each claim and what was measured, from the crib sheet."""
    rows = re.findall(
        r"^\| \w+ \| `([\w-]+)` .*? \| (\*\*.*?\*\*) \| (.*?) \| ", sheet.read_text(), re.M
    )
    return {name: f"{verdict}: {says}" for name, verdict, says in rows}


# ------------------------------------------------------------------------------- public names


def _reference(folder: Path) -> None:
    top = [name for name in trueloop.__all__ if not inspect.ismodule(getattr(trueloop, name))]
    modules = [name for name in trueloop.__all__ if inspect.ismodule(getattr(trueloop, name))]
    placed = {name for _, names in PUBLIC.values() for name in names}
    errors = [name for name in top if name.endswith("Error")]
    others = sorted(set(top) - placed - set(errors))
    chapters = dict(PUBLIC) | ({"others": ("Others", others)} if others else {})
    for page, (title, names) in chapters.items():
        parts = "".join(_directive(f"trueloop.{name}", getattr(trueloop, name)) for name in names)
        _write(folder / f"{page}.md", f"# {title}\n\n{parts}")
    for name in modules:
        module = getattr(trueloop, name)
        parts = "".join(
            _directive(f"trueloop.{name}.{part}", getattr(module, part))
            for part in sorted(getattr(module, "__all__", []))
        )
        _write(folder / f"{name}.md", f"# trueloop.{name}\n\n{inspect.getdoc(module)}\n\n{parts}")
    listed = "".join(f"{page}\n" for page in (*chapters, *modules))
    _write(
        folder / "index.md",
        "# Public names\n\nEverything that programs may build on, with shapes and errors, from the "
        f"docstrings. Names that are not here can change.\n\n"
        f":::{{toctree}}\n:maxdepth: 2\n\n{listed}:::\n",
    )


_INHERITED = "   :inherited-members: object, Module, Exception, tuple\n"


def _directive(path: str, value: Any) -> str:
    if inspect.ismodule(value):
        return ""
    if inspect.isclass(value):
        call = "   :special-members: __call__\n" if "__call__" in vars(value) else ""
        body = f".. autoclass:: {path}\n   :members:\n{_INHERITED}{call}"
    elif callable(value):
        body = f".. autofunction:: {path}\n"
    else:
        values = value if isinstance(value, (dict, tuple, list, frozenset)) else [value]
        return f"`{path}`: {', '.join(f'`{each}`' for each in values)}.\n\n"
    return f"```{{eval-rst}}\n{body}```\n\n"
