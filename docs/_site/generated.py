"""The pages of the site that are generated: rules, the lab's claims, options, public names."""

from __future__ import annotations

from pathlib import Path

from trueloop.doctor.rules import pages


def write(docs: Path) -> None:
    """Write every generated page below `docs`; git ignores all but the index of the rules."""
    pages.write_documents(docs)


def rules_of_the_site(_app: object, name: str, content: list[str]) -> None:
    """The index of the rules leads to their pages; in the repository it leads to their source."""
    if name == "rules":
        index = pages.index_document(lambda entry: f"rules/{entry.code}.md")
        content[0] = f"{index}\n```{{toctree}}\n:hidden:\n:glob:\nrules/T*\n```\n"
