"""`--fix` and `--diff`: the remedies of what was found, put into the files."""

from __future__ import annotations

import difflib
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from trueloop.doctor.config import Config, Configs
from trueloop.doctor.model.findings import Finding
from trueloop.doctor.static.checking import CheckResult, once_a_function
from trueloop.doctor.static.fixes.apply import fix_until_done
from trueloop.doctor.static.inputs.discovery import FileProblem
from trueloop.doctor.static.inputs.documents import (
    Document,
    Program,
    UnreadableError,
    decode,
    decode_exactly,
    is_python,
    read_bytes,
)
from trueloop.doctor.static.inputs.examine import check_program, forget_projects
from trueloop.doctor.static.inputs.ignores import hold_back, ignores_in


@dataclass
class FixedFile:
    """The outcome for the files."""

    fixed: list[Finding] = field(default_factory=list)
    diffs: list[str] = field(default_factory=list)
    problems: list[FileProblem] = field(default_factory=list)


def mend(outcome: CheckResult, configs: Configs, *, write: bool) -> FixedFile:
    """Apply the remedies of what was found in the files that were asked for; `write` them too.

    Notebooks and Markdown stay as they are, and so does whatever a fix would not put right.
    """
    mended = FixedFile()
    by_file: dict[str, list[Finding]] = {}
    for finding in outcome.findings:
        if is_python(finding.place.path) and finding.place.path in outcome.shown:
            by_file.setdefault(finding.place.path, []).append(finding)
    for path, findings in by_file.items():
        if any(finding.remedies for finding in findings):
            try:
                _mend_file(path, findings, configs.of(path), mended, outcome, write=write)
            except UnreadableError as error:
                mended.problems.append(FileProblem(path, error.line, error.message))
            except (SyntaxError, RecursionError):
                why = "was not fixed: the file with the fix could not be checked"
                mended.problems.append(FileProblem(path, 0, why))
            except OSError as error:
                why = error.strerror or str(error)
                mended.problems.append(FileProblem(path, 0, f"cannot be written ({why})"))
    return mended


def _mend_file(
    path: str,
    findings: Sequence[Finding],
    config: Config,
    mended: FixedFile,
    outcome: CheckResult,
    *,
    write: bool,
) -> None:
    before, encoding = decode_exactly(read_bytes(path))
    result = fix_until_done(before, findings, lambda text: found_in(text, path, config))
    if result.text == before:
        return
    try:
        data = result.text.encode(encoding)
    except UnicodeEncodeError:
        why = f"was not fixed: the fix cannot be written as {encoding}"
        mended.problems.append(FileProblem(path, 0, why))
        return
    if write:
        replace_file(path, data)
        outcome.documents.forget(path)
        forget_projects()
    mended.fixed.extend(result.fixed)
    mended.diffs.append(unified(before, result.text, outcome.name(path)))


def found_in(text: str, path: str, config: Config) -> list[Finding]:
    """The findings of a different text of the file at `path`, as `check` would report them."""
    program = Program(decode(text.encode("utf-8")))
    found = check_program(program, path).findings
    asked = [
        finding
        for finding in found
        if finding.place.path == path and config.wants(finding.code, path)
    ]
    return once_a_function(hold_back(asked, ignores_in(Document(path, program.text, [program]))))


def unified(before: str, after: str, name: str) -> str:
    """The change as `patch` and `git apply` take it, line endings included."""
    name = name.replace(os.sep, "/")
    lines = difflib.unified_diff(
        _lines(before), _lines(after), f"a/{name.lstrip('/')}", f"b/{name.lstrip('/')}"
    )
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def _lines(text: str) -> list[str]:
    """Lines as `diff` counts them: each ends after its line feed."""
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + [line for line in lines[-1:] if line]


def replace_file(path: str, data: bytes) -> None:
    """Put `data` in place of a file's content in one go; its permissions stay, and a link to it."""
    target = os.path.realpath(path)
    temporary = f"{target}.{os.getpid()}.tmp"
    if not os.access(target, os.W_OK):  # replacing it would need no permission to write to it
        raise PermissionError(13, "it is write-protected", target)
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, stat.S_IMODE(os.stat(target).st_mode))
        os.replace(temporary, target)
    finally:
        with suppress(FileNotFoundError):  # it is gone once it has become the file
            os.unlink(temporary)
