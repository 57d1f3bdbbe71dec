"""`[tool.trueloop]`: which rules are asked for, and in which files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trueloop.doctor.config import Configs
from trueloop.doctor.rules.catalogue import BY_CODE
from trueloop.doctor.rules.selection import codes_of
from trueloop.errors import ConfigError


def project(folder: Path, table: str) -> Configs:
    folder.mkdir(exist_ok=True)
    text = f"[tool.trueloop]\n{table}\n"
    (folder / "pyproject.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    return Configs()


@pytest.mark.parametrize(
    ("word", "codes"),
    [
        ("TL101", {"TL101"}),
        (" tl101 ", {"TL101"}),
        ("missing-zero-grad", {"TL102"}),
        ("TL9", {code for code in BY_CODE if code.startswith("TL9")}),
        ("ALL", set(BY_CODE)),
    ],
)
def test_rules_by_code_name_and_group(word: str, codes: set[str]) -> None:
    assert codes_of([word], "--select") == codes


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("TL10l", "did you mean TL101 "),
        ("TL1010", "TL1 has TL101 zero-grad"),
        ("missing-zerograd", "did you mean TL102 .missing-zero-grad"),
        ("T", "write a code or a name"),
        ("", "write a code or a name"),
    ],
)
def test_an_unknown_rule_is_refused_with_the_nearest(word: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=f"^--select: unknown rule .*{hint}"):
        codes_of([word], "--select")


def test_select_ignore_and_per_file_ignores(tmp_path: Path) -> None:
    configs = project(
        tmp_path,
        'select = ["TL1", "TL203"]\nignore = ["TL102"]\n'
        'per-file-ignores = { "examples/*.py" = ["TL1"], "*_test.py" = ["ALL"] }',
    )
    train = str(tmp_path / "train.py")
    asked = [code for code in ("TL101", "TL102", "TL203", "TL805") if configs.wants(code, train)]
    assert asked == ["TL101", "TL203"]
    example = str(tmp_path / "examples" / "deep" / "train.py")
    assert not configs.wants("TL101", example)
    assert configs.wants("TL203", example)
    assert not configs.wants("TL203", str(tmp_path / "nets" / "x_test.py"))


@pytest.mark.parametrize(
    ("pattern", "excluded", "kept"),
    [
        ("third_party", ["third_party", "a/third_party", "third_party/x.py"], ["third_party2"]),
        ("./old/", ["old/x.py"], ["older.py"]),
        ("*_pb2.py", ["a/b/x_pb2.py"], ["pb2.py"]),
        ("src/gen", ["src/gen/x.py", "src/gen"], ["gen/x.py", "lib/src/gen/x.py"]),
        ("**/gen", ["a/gen/x.py", "gen"], ["general.py"]),
    ],
)
def test_patterns(tmp_path: Path, pattern: str, excluded: list[str], kept: list[str]) -> None:
    configs = project(tmp_path, f'exclude = ["{pattern}"]')
    assert all(configs.excludes(str(tmp_path / path)) for path in excluded)
    assert not any(configs.excludes(str(tmp_path / path)) for path in kept)


def test_the_nearest_table_counts_alone(tmp_path: Path) -> None:
    project(tmp_path, 'ignore = ["TL101"]')
    project(tmp_path / "inner", 'ignore = ["TL102"]')
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    configs = Configs()
    ignored = {
        folder: [
            c for c in ("TL101", "TL102") if not configs.wants(c, str(tmp_path / folder / "x"))
        ]
        for folder in ("", "inner", "plain")
    }
    assert ignored == {"": ["TL101"], "inner": ["TL102"], "plain": ["TL101"]}


def test_the_command_line_goes_before(tmp_path: Path) -> None:
    project(tmp_path, 'select = ["TL101"]\nignore = ["TL101"]\nexclude = ["old"]')
    path = str(tmp_path / "x.py")
    both = Configs(select=frozenset({"TL102"}), ignore=frozenset(), exclude=("new",))
    assert both.wants("TL102", path)
    assert not both.wants("TL101", path)
    assert both.excludes(str(tmp_path / "new" / "x.py"))
    assert not both.excludes(str(tmp_path / "old" / "x.py"))
    assert Configs(ignore=frozenset()).wants("TL101", path)


def test_files_of_no_project_can_be_excluded_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    configs = Configs(exclude=("old",))
    assert configs.excludes(os.path.abspath("old/x.py"))
    assert configs.excludes("/elsewhere/old/x.py")


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('selct = ["TL1"]', "unknown key 'selct': did you mean 'select'"),
        ('select = "TL1"', 'select must be a list of texts: write ."TL1".'),
        ("exclude = [3]", "exclude must be a list of texts"),
        ('select = ["TL19"]', "select: unknown rule 'TL19': TL1 has TL101"),
        ('per-file-ignores = ["a"]', "per-file-ignores must be a table"),
        ('per-file-ignores = { "a.py" = ["TL777"] }', "per-file-ignores: unknown rule 'TL777'"),
        ("select = [", "is not valid TOML"),
        ("select = " + "[" * 50_000, "is nested too deeply to be read: rewrite it"),
        ("x = " + "9" * 10_000, "is not valid TOML"),
        ('x = "\udcff"', "is not valid TOML"),
        ("x = 1 # " + "y" * 1_100_000, "it is larger than 1 MB"),
        ('select = ["' + "x" * 5_000 + '"]', "unknown rule 'xxx"),
    ],
)
def test_a_mistake_is_one_line_with_the_remedy(tmp_path: Path, table: str, said: str) -> None:
    configs = project(tmp_path, table)
    with pytest.raises(ConfigError, match=said) as caught:
        configs.wants("TL101", str(tmp_path / "x.py"))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500
    assert str(tmp_path / "pyproject.toml") in str(caught.value)


def test_a_table_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool]\ntrueloop = 3\n")
    with pytest.raises(ConfigError, match="must be a table"):
        Configs().excludes(str(tmp_path / "x.py"))


@pytest.mark.parametrize("content", ["[project\nname = 1", "dependencies = [\n[tool.other]\n"])
def test_a_mistake_in_a_file_without_the_table_is_not_ours(tmp_path: Path, content: str) -> None:
    (tmp_path / "pyproject.toml").write_text(content)
    assert Configs().wants("TL101", str(tmp_path / "x.py"))
