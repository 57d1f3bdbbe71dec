"""Which files make a text, and where it is cut."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from trueloop.errors import DataError
from trueloop.tasks.text import spans
from trueloop.tasks.text.spans import Span, cut, digest, find


def write(folder: Path, **texts: str) -> Path:
    for name, text in texts.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def names(found: list[Span], root: Path) -> list[str]:
    return [str(span.path.relative_to(root)) for span in found]


def test_a_folder_gives_its_text_files_in_order(tmp_path: Path) -> None:
    write(tmp_path, b10_txt="x", b9_txt="x", sub__c_py="x", _hidden="x", a_md="x", empty_txt="")
    write(tmp_path, _git__config="x")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\0\0")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    found = find(tmp_path)
    assert names(found.parts["train"], tmp_path) == ["a.md", "b9.txt", "b10.txt", "sub/c.py"]
    assert found.ignored == 3
    assert not found.are_tokens


def test_parts_by_name(tmp_path: Path) -> None:
    write(tmp_path, train_txt="aa", valid_txt="b", test__c_txt="c", test__d_txt="d", other_txt="e")
    found = find(tmp_path)
    assert {part: names(each, tmp_path) for part, each in found.parts.items()} == {
        "test": ["test/c.txt", "test/d.txt"],
        "train": ["train.txt"],
        "val": ["valid.txt"],
    }
    programs = write(tmp_path / "programs", train_py="x", test_py="x")
    assert list(find(programs).parts) == ["train"]
    (tmp_path / "val.txt").write_text("b")
    with pytest.raises(DataError, match=r"val\.txt and .*valid\.txt are both the val part"):
        find(tmp_path)


def test_token_files(tmp_path: Path) -> None:
    (tmp_path / "train.bin").write_bytes(b"\0\0")
    found = find(tmp_path)
    assert found.are_tokens
    assert found.tokenizer is None
    write(tmp_path, tokenizer_json="{}")
    (tmp_path / "val.bin").write_bytes(b"\0\0")
    found = find(tmp_path)
    assert (set(found.parts), found.tokenizer) == ({"train", "val"}, tmp_path / "tokenizer.json")
    assert find(tmp_path / "val.bin").are_tokens
    write(tmp_path, test_txt="a")
    with pytest.raises(DataError, match="has both text and token ids as its parts"):
        find(tmp_path)


def test_nothing_to_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no file or folder .*none: check the path"):
        find(tmp_path / "none")
    (tmp_path / "x.png").write_bytes(b"\0")
    with pytest.raises(DataError, match="contains no text file, and 1 of other kinds: give a text"):
        find(tmp_path)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(DataError, match="fifo is a FIFO: give a text file"):
        find(tmp_path / "fifo")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_cannot_be_read_is_not_passed_over(tmp_path: Path) -> None:
    write(tmp_path, a_txt="x", sub__b_txt="x")
    (tmp_path / "sub").chmod(0)
    with pytest.raises(DataError, match=r"cannot read .*sub .*: check its permissions"):
        find(tmp_path)
    (tmp_path / "sub").chmod(0o755)


def content(found: list[Span]) -> bytes:
    return b"".join(span.path.read_bytes()[span.start : span.stop] for span in found)


@settings(deadline=None)
@given(
    st.lists(st.text("ab\n|é☕", min_size=1, max_size=30), min_size=1, max_size=4),
    st.floats(0, 1),
    st.sampled_from([None, b"|", b"\n\n"]),
)
def test_a_cut_loses_nothing_and_keeps_documents_whole(
    tmp_path_factory: pytest.TempPathFactory,
    texts: list[str],
    share: float,
    separator: bytes | None,
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    found = find(write(folder, **{f"{k}_txt": text for k, text in enumerate(texts)}))
    whole = found.parts["train"]
    total = sum(span.size for span in whole)
    left, right = cut(whole, int(total * share), separator)
    assert content(left) + content(right) == content(whole)
    for part in (left, right):
        content(part).decode()
        assert all(span.size for span in part)
    position = int(total * share)
    low = max(position // 2, position - 2 * (total - position))
    high = position + (total - position) // 2
    ends, place = [0], 0
    for span in whole:
        text = span.path.read_bytes()
        at = text.find(separator) if separator else -1
        while at >= 0:
            ends.append(place + at + len(separator or b""))
            at = text.find(separator or b"", at + len(separator or b""))
        place += span.size
        ends.append(place)
    here = sum(span.size for span in left)
    if any(low <= end and end <= high for end in ends if 0 < end < total):
        assert here in ends


def test_one_file_is_cut_where_nanogpt_cuts_it(tmp_path: Path) -> None:
    path = write(tmp_path, x_txt="0123456789" * 11) / "x.txt"
    left, right = cut([Span(path, 0, 110)], int(110 * 0.9), None)
    assert (left[0].stop, right[0].start) == (99, 99)


def test_the_last_document_is_not_left_over_empty(tmp_path: Path) -> None:
    path = write(tmp_path, x_txt="a|" + "b" * 60 + "|" + "c" * 39 + "|") / "x.txt"
    whole = [Span(path, 0, 103)]
    assert [cut(whole, place, b"|")[0][-1].stop for place in (4, 30, 61, 80, 95)] == [
        2, 63, 63, 63, 95
    ]  # fmt: skip


def test_files_are_cut_between_unless_one_is_too_large(tmp_path: Path) -> None:
    write(tmp_path, a_txt="a" * 80, b_txt="b" * 15, c_txt="c" * 8)
    whole = find(tmp_path).parts["train"]
    left, right = cut(whole, 92, None)
    assert names(left, tmp_path) == ["a.txt", "b.txt"]
    assert names(right, tmp_path) == ["c.txt"]
    left, right = cut(whole, 40, None)
    assert (left[-1].stop, right[0].start) == (40, 40)


def test_a_digest_sees_names_bytes_and_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, a_txt="x" * 5000, b_txt="y" * 5000) / "a.txt"

    def now() -> str:
        return digest(find(tmp_path).parts["train"], tmp_path)

    kept = now()
    os.utime(path, (1, 1))
    assert now() == kept
    path.write_text("x" * 4999 + "z")
    assert now() != kept
    path.write_text("x" * 5000)
    assert now() == kept
    assert digest([Span(path, 0, 4000)], tmp_path) != digest([Span(path, 0, 4001)], tmp_path)
    # Of much text, blocks at the ends and in between are read.
    monkeypatch.setattr(spans, "_SAMPLED", 4)
    monkeypatch.setattr(spans, "_LOOK", 100)
    kept = now()
    for name, at in (("a.txt", 0), ("a.txt", 3333), ("b.txt", 1667), ("b.txt", 4999)):
        content = (tmp_path / name).read_text()
        (tmp_path / name).write_text(content[:at] + "?" + content[at + 1 :])
        assert now() != kept
        (tmp_path / name).write_text(content)
    (tmp_path / "b.txt").rename(tmp_path / "c.txt")
    assert now() != kept
