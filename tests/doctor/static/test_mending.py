"""`--fix` and `--diff` around the edits: files, their bytes, their permissions."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from trueloop.doctor.config import Configs
from trueloop.doctor.static.checking import check
from trueloop.doctor.static.fixes.fix_files import FixedFile, mend, unified

pytestmark = pytest.mark.usefixtures("planted")


def mended(*paths: str, write: bool = True, configs: Configs | None = None) -> FixedFile:
    configs = configs or Configs()
    return mend(check(paths, configs), configs, write=write)


def test_the_edit_and_nothing_else() -> None:
    data = b"\xef\xbb\xbfx = '\xc3\xa9'\r\nTL101('delete')\r\ny = 2\rTL102()\n\tz = 3  # no newline"
    data = data.replace(b"\n\tz", b"\nz")
    Path("a.py").write_bytes(data)
    found = mended("a.py")
    assert [each.code for each in found.fixed] == ["TL101"]
    assert Path("a.py").read_bytes() == data.replace(b"TL101('delete')\r\n", b"")


def test_an_encoding_stays() -> None:
    data = "# coding: latin-1\nx = 'é'\nTL101('delete')\n".encode("latin-1")
    Path("a.py").write_bytes(data)
    assert mended("a.py").fixed
    assert Path("a.py").read_bytes() == data.replace(b"TL101('delete')\n", b"")


def test_several_findings_that_are_reported_as_one_are_in_no_fix_s_way() -> None:
    Path("a.py").write_text("TL310()\nTL310()\nTL101('delete')\nx = 1\n")
    assert [each.code for each in mended("a.py").fixed] == ["TL101"]
    assert Path("a.py").read_text() == "TL310()\nTL310()\nx = 1\n"


def test_permissions_and_links_stay() -> None:
    Path("real.py").write_text("TL101('delete')\nx = 1\n")
    os.chmod("real.py", 0o751)
    os.symlink("real.py", "link.py")
    assert mended("link.py").fixed
    assert os.path.islink("link.py")
    assert Path("real.py").read_text() == "x = 1\n"
    assert stat.S_IMODE(os.stat("real.py").st_mode) == 0o751
    assert sorted(os.listdir()) == ["link.py", "real.py"]


def test_without_writing_there_is_a_diff_that_patch_takes(tmp_path: Path) -> None:
    text = "x = 1\r\n\x0cTL101('delete')\ny = '\u2028'\nz = 3"
    Path("a.py").write_bytes(text.encode())
    found = mended("a.py", write=False)
    assert Path("a.py").read_bytes() == text.encode()
    subprocess.run(
        ["patch", "-p1", "--binary"], input="".join(found.diffs).encode(), check=True, stdout=-3
    )
    after = Path("a.py").read_bytes()
    assert b"TL101" not in after
    Path("a.py").write_bytes(text.encode())
    mended("a.py")
    assert Path("a.py").read_bytes() == after


def test_a_last_line_without_an_end_is_marked() -> None:
    assert unified("a\nb", "a\nc", "x.py").split("\n") == [
        "--- a/x.py", "+++ b/x.py", "@@ -1,2 +1,2 @@", " a", "-b", "\\ No newline at end of file",
        "+c", "\\ No newline at end of file", "",
    ]  # fmt: skip


def test_what_is_held_back_or_not_asked_for_stays() -> None:
    text = "TL101('delete')  # trueloop: ignore[TL101]\nTL102('delete')\nTL103('delete')\nx = 1\n"
    Path("a.py").write_text(text)
    mended("a.py", configs=Configs(ignore=frozenset({"TL102"})))
    assert Path("a.py").read_text() == text.replace("TL103('delete')\n", "")


def test_notebooks_markdown_and_files_that_were_not_given_stay() -> None:
    Path("helper.py").write_text("TL101('delete')\n")
    Path("a.py").write_text("import helper\n")
    Path("a.md").write_text("```python\nTL101('delete')\n```\n")
    found = mended("a.py", "a.md")
    assert (found.fixed, found.diffs, found.problems) == ([], [], [])
    assert Path("helper.py").read_text() == "TL101('delete')\n"


def test_a_file_that_cannot_be_written_is_a_problem_of_that_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("a.py", "b.py"):
        Path(name).write_text("TL101('delete')\nx = 1\n")
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: "a.py" not in path and access(path, mode))
    found = mended("a.py", "b.py")
    assert [os.path.basename(each.path) for each in found.problems] == ["a.py"]
    assert "cannot be written (it is write-protected)" in found.problems[0].message
    assert Path("a.py").read_text() == "TL101('delete')\nx = 1\n"
    assert Path("b.py").read_text() == "x = 1\n"
    assert [os.path.basename(each.place.path) for each in found.fixed] == ["b.py"]
