"""Options and configuration files: what is understood, and every refusal in one line."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from trueloop.cli import options
from trueloop.cli._one_run import check_free, new_path
from trueloop.cli.options import settings_from, task_first, train_parser
from trueloop.errors import ConfigError, RunError
from trueloop.tasks import load

Command = Callable[..., Any]

BAD_OPTIONS = [
    ("--epoch 3", "unknown option --epoch: did you mean '--epochs'?"),
    ("--batchsize=8", "unknown option --batchsize: did you mean '--batch-size'"),
    ("--zzz 3", "unknown option --zzz: see --help"),
    ("--learning-rate 0.1", "unknown option --learning-rate: did you mean '--lr'?"),
    ("--learning_rate=0.1", "unknown option --learning_rate: did you mean '--lr'?"),
    ("--max-epochs 3", "did you mean '--epochs'?"),
    ("--bs 3", "did you mean '--batch-size'?"),
    ("--wd 3", "did you mean '--weight-decay'?"),
    ("--num-workers 3", "did you mean '--workers'?"),
    ("--gpu", "did you mean '--device'?"),
    ("--grad-clip 1", "did you mean '--clip-norm'?"),
    ("--max_grad_norm 1", "did you mean '--clip-norm'?"),
    ("--fp16", "did you mean '--precision'?"),
    ("--amp", "did you mean '--precision'?"),
    ("--gradient-accumulation-steps 4", "did you mean '--accumulate'?"),
    ("--lr-scheduler cosine", "did you mean '--schedule'?"),
    ("--early-stopping 3", "did you mean '--patience'?"),
    ("--output-dir out", "did you mean '--run'?"),
    ("--resume-from-checkpoint out", "did you mean '--resume'?"),
    ("--random-state 3", "did you mean '--seed'?"),
    ("--cfg run.yaml", "did you mean '--config'?"),
    ("spiral", "unexpected argument 'spiral'"),
    ("--epochs 0", "--epochs must be 1 to "),
    ("--epochs -3", "--epochs must be 1 to "),
    (
        "--epochs 1000000000",
        "--epochs must be 1 to 1,000,000 passes over the data, not 1,000,000,000",
    ),
    ("--batch-size 1000000000", "--batch-size must be 1 to 16,777,216 samples"),
    ("--accumulate 1000000000", "--accumulate must be 1 to 1,000,000 micro-batches"),
    ("--patience 1000000000", "--patience must be 1 to 1,000,000 evaluations, not"),
    ("--keep-last 1000000000", "--keep-last must be 1 to 1,000,000 checkpoints"),
    ("--lr 1e30", "--lr must be above 0, up to 1,000, not 1e+30: write --lr 0.001"),
    ("--clip-norm 1e30", "--clip-norm must be above 0, up to 1,000,000,000,000"),
    ("--weight-decay 1e30", "--weight-decay must be 0 to 1,000, not 1e+30"),
    ("--max-minutes 1e30", "--max-minutes must be above 0, up to 10,000,000"),
    ("--epochs ten", "--epochs must be a whole number, not 'ten'"),
    ("--epochs 2.5", "--epochs must be a whole number, not '2.5'"),
    ("--epochs", "--epochs needs a value"),
    ("--batch-size 0", "--batch-size must be 1 to "),
    ("--batch-size -1", "--batch-size must be 1 to "),
    ("--batch-size 2001", "--batch-size 2001 is more than the 2000 training samples"),
    ("--lr 0", "--lr must be above 0"),
    ("--lr -1e-3", "--lr must be above 0"),
    ("--lr nan", "--lr must be a"),
    ("--lr .nan", "--lr must be above 0"),
    ("--lr .inf", "--lr must be above 0"),
    ("--lr fast", "--lr must be a number, not 'fast': write e.g. --lr 0.001"),
    ("--clip-norm -1", "--clip-norm must be above 0"),
    ("--clip-norm 0", "or null for no clipping"),
    ("--clip-value -0.5", "--clip-value must be above 0"),
    ("--weight-decay -1", "--weight-decay must be 0 to "),
    ("--accumulate 0", "--accumulate must be 1 to "),
    ("--patience 0", "--patience must be 1 to "),
    ("--min-delta -1", "--min-delta must be 0 to "),
    ("--max-minutes 0", "--max-minutes must be above 0"),
    ("--profile 0", "--profile must be 1 to 10,000 updates, not 0: write --profile 20"),
    ("--profile -1", "--profile must be 1 to "),
    ("--profile some", "--profile must be a whole number"),
    ("--profile 3201", "--profile 3201 is more than the 3200 updates of the run: write"),
    ("--workers -1", "--workers must be 0 to "),
    ("--threads 0", "--threads must be 1 to "),
    ("--save-every often", "--save-every 'often' is not understood: write '5 updates', '2 epochs'"),
    ("--save-every 5", "--save-every: 5 of what? write '5 updates', '2 epochs' or '10 minutes'"),
    ("--keep-last 0", "--keep-last must be 1 to "),
    ("--on-save-error ignore", "unknown on-save-error 'ignore'"),
    ("--warmup 10%", "the schedule 'cosine' has no warm-up"),
    ("--schedule one_cycle --decay 10%", "the schedule 'one_cycle' does not take decay: leave it"),
    ("--schedule warmup_stable_decay --decay 5", "--decay: 5 of what? write '5 epochs', '300 upda"),
    ("--schedule warmup_stable_decay --decay-shape log", "unknown decay-shape 'log'"),
    ("--outliers drop", "--outliers: unknown outliers 'drop'"),
    ("--outlier-factor 1", "--outlier-factor must be above 1"),
    ("--schedule one_cycle --warmup soon", "--warmup 'soon' is not understood: write '5 epochs'"),
    ("--schedule one_cycle --warmup 5", "--warmup: 5 of what? write '5 epochs', '300 updates' or"),
    ("--schedule warmup_cosine --warmup=0", "--warmup '0' is not understood: write '5 epochs'"),
    ("--min-delta 0.1", "--min-delta is for early stopping"),
    ("--accumulate 33", "--accumulate 33 is more than the 32 batches"),
    ("--accumulate 1000000000000000000000000000000", "must be 1 to 1,000,000 micro-batches"),
    (
        "--threads 100000",
        "--threads must be 1 to 1,024 CPU threads, not 100,000: write --threads 1",
    ),
    ("--workers 100000", "--workers must be 0 to 1,024 processes, not 100,000: write --workers 2"),
    ("--workers many", "--workers must be a whole number"),
    ("--seed -1", "--seed must be from 0"),
    ("--seed 9223372036854775808", "--seed must be from 0 to 2^63 - 1"),
    ("--optimizer adamm", "unknown optimizer 'adamm': did you mean 'adam'"),
    ("--schedule cosin", "unknown schedule 'cosin': did you mean 'cosine'"),
    ("--schedule warmup_cosine --warmup soon", "'soon'"),
    ("--precision fp64", "unknown precision 'fp64': did you mean"),
    ("--matmul tf16", "--matmul: unknown matmul 'tf16'"),
    ("--on-oom split", "--on-oom: unknown on-oom 'split'"),
    ("--nonfinite stopp", "unknown nonfinite 'stopp': did you mean 'stop'?"),
    ("--monitor val_acuracy", "no score is called 'val_acuracy': did you mean 'val_accuracy'"),
    ("--deterministic maybe", "--deterministic must be yes or no, not 'maybe'"),
    ("--compile=3", "--compile: unknown compile '3': known: 'auto', 'default',"),
    ("--compile stepp", "--compile: unknown compile 'stepp': did you mean 'step'?"),
    ("--no-doctor=3", "--doctor must be yes or no, not '3'"),
    ("--print-config=yes", "--print-config takes no value, but got 'yes'"),
    ("--device tpu", "unknown device 'tpu'"),
    ("--device cpu:7", "there is one cpu only, no cpu:7: write cpu"),
    ("--run=", "'' is not a path: write the name of a file or folder"),
    ("--data .", "--data"),
    ("--config nowhere.yaml", "no configuration file"),
]


@pytest.mark.parametrize(("options", "words"), BAD_OPTIONS, ids=[o for o, _ in BAD_OPTIONS])
def test_bad_options_are_one_line_and_leave_nothing(
    command: Command, tmp_path: Path, options: str, words: str
) -> None:
    said = command("train", "spiral", "--run", "runs/new", *options.split())
    assert said.status == 2
    assert said.complaint.startswith("trueloop: error: ")
    assert words in said.complaint
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("task", ["spiral", "table", "images", "text"])
def test_what_a_mistyped_number_is_told_to_be_is_understood(
    task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The value in the message is one that the option takes, and may have."""
    # Made anew for each of a hundred command lines, it would take most of the time.
    monkeypatch.setattr(options, "train_parser", functools.cache(train_parser))
    numbers = [a.option_strings[0] for a in train_parser(task, load(task))._actions
               if a.metavar in ("N", "X")]  # fmt: skip
    assert len(numbers) > 25
    for option in numbers:
        with pytest.raises(ConfigError, match=f"{option} must be a .*, not 'fast': ") as said:
            settings_from(task, [option, "fast"])
        example = str(said.value).partition("write e.g. ")[2].split()
        needed = {"--fold": ["--folds", "9"], "--min-delta": ["--patience", "3"]}
        given = [*example, *needed.get(option, [])]
        settings_from(task, given)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is one")
def test_cuda_without_one(command: Command, tmp_path: Path) -> None:
    said = command("train", "spiral", "--device", "cuda")
    assert said.status == 2
    assert "--device cpu" in said.complaint
    assert list(tmp_path.iterdir()) == []


def test_unknown_task(command: Command) -> None:
    said = command("train", "spirals")
    assert said.status == 2
    assert "did you mean 'spiral'?" in said.complaint


def test_a_launcher_that_does_not_say_how_to_meet(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "4")
    said = command("train", "spiral")
    assert said.status == 2
    assert "has WORLD_SIZE=4 and no RANK: start the processes with torchrun" in said.complaint


def test_run_directory_that_holds_something(command: Command, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "notes.txt").write_text("mine")
    said = command("train", "spiral", "--run", taken)
    assert said.status == 2
    assert "exists and is not empty" in said.complaint
    assert [path.name for path in taken.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("path", ["a_file", "a_file/below"])
def test_run_directory_that_is_a_file(command: Command, tmp_path: Path, path: str) -> None:
    (tmp_path / "a_file").write_text("mine")
    said = command("train", "spiral", "--run", path)
    assert said.status == 2
    assert "a file" in said.complaint
    assert (tmp_path / "a_file").read_text() == "mine"


def test_run_directory_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The superuser may write anywhere, so the permission itself cannot be tested by every tester.
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)
    with pytest.raises(RunError, match="cannot be written; choose a different --run"):
        check_free(tmp_path / "new" / "run")


def test_new_paths_are_unique(tmp_path: Path) -> None:
    first = new_path("spiral", "Spiral")
    assert first.parts[0] == "runs"
    assert first.name.startswith("spiral-")
    (tmp_path / first).mkdir(parents=True)
    assert new_path("spiral", "Spiral") != first
    assert new_path("/somewhere/my task.py:MyTask", "MyTask").name.startswith("mytask-")


def test_recipe_file_and_command_line_in_that_order(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("batch-size: 32\nlr: 1e-2\nclip_norm: null\nseed: 7\ndeterministic: no\n")
    settings = settings_from("spiral", ["--config", str(file), "--seed", "8", "--compile"])
    assert settings.recipe.optimizer == "adam"
    assert settings.recipe.batch_size == 32
    assert settings.recipe.lr == 0.01
    assert settings.recipe.clip_norm is None
    assert settings.run.seed == 8
    assert settings.run.deterministic is False
    assert settings.run.compile is True


def test_a_runs_config_is_a_config_file(tmp_path: Path) -> None:
    settings = settings_from("spiral", ["--lr", "0.5", "--max-minutes", "2", "--data", "x"])
    file = tmp_path / "config.json"
    file.write_text(json.dumps(settings.config()))
    again = settings_from("spiral", ["--config", str(file)])
    assert again.config() == settings.config()
    assert again.run.data == tmp_path / "x"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("learning_rate: 1\n", "unknown key 'learning_rate': did you mean 'lr'?"),
        ("max-epochs: 1\n", "unknown key 'max-epochs': did you mean 'epochs'?"),
        ("lr: 1\nlr: 2\n", "'lr' is given twice"),
        ("print_config: yes\n", "unknown key 'print_config'"),
        ("no_doctor: yes\n", "unknown key 'no_doctor': did you mean 'doctor'"),
        ("seed: 2020-99-99\n", "cannot be read (month must be in 1..12)"),
        (f"seed: {'9' * 5000}\n", "cannot be read (Exceeds the limit"),
        ("[" * 5000, "cannot be read (too deep)"),
        ("task: [spiral]\n", "is for the task ['spiral']"),
        ("batch_sise: 1\n", "unknown key 'batch_sise': did you mean 'batch_size'?"),
        ("batch_size: 1\nbatch-size: 2\n", "given twice"),
        ("epochs: many\n", "--epochs must be a whole number, not 'many'"),
        ("epochs: 0\n", "--epochs must be 1 to "),
        ("task: table\n", "is for the task 'table'"),
        ("- epochs\n", "contains no options"),
        ("epochs: [1\n", "neither YAML nor JSON at line"),
        ("config: other.yaml\n", "unknown key 'config'"),
        ("warmup: 5\n", "--warmup: 5 of what? write '5 epochs', '300 updates' or '5%'"),
        ("save_every: 2.5\n", "--save-every '2.5' is not understood"),
        ('run: "a\\0b"\n', "is not a path"),
        ("", "config.yaml is empty: write `key: value` lines, one option each"),
        ("lr: {max: 1}\n", "'lr' has keys below it"),
        ("model: {lr: 1}\n", "'model' is a table of options"),
    ],
)
def test_bad_configuration_files(
    command: Command, tmp_path: Path, content: str, words: str
) -> None:
    (tmp_path / "config.yaml").write_text(content)
    said = command("train", "spiral", "--config", "config.yaml")
    assert said.status == 2
    assert words in said.complaint
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("name", ["config.yaml", "config.toml"])
def test_a_configuration_file_of_comments_changes_nothing(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"# epochs\n")
    with_file = settings_from("spiral", ["--config", name])
    assert with_file.config() == settings_from("spiral", []).config()


TOML = """
# A comment.
task = "spiral"
lr = 3e-3
epochs = 12
"batch-size" = 32
clip_norm = "none"
schedule = "none"
fsdp_blocks = ["Block", "Head"]
parallel = "fsdp"
deterministic = false
save_every = "10 minutes"
"""


def test_the_same_configuration_in_toml_yaml_and_json(tmp_path: Path) -> None:
    Path("c.toml").write_text("\ufeff" + TOML, encoding="utf-8")
    values = {
        "task": "spiral", "lr": 3e-3, "epochs": 12, "batch_size": 32, "clip_norm": None,
        "schedule": "none", "fsdp_blocks": ["Block", "Head"], "parallel": "fsdp",
        "deterministic": False, "save_every": "10 minutes",
    }  # fmt: skip
    Path("c.json").write_text(json.dumps(values))
    Path("c.yaml").write_text("".join(f"{k}: {json.dumps(v)}\n" for k, v in values.items()))
    of = {kind: settings_from("spiral", ["--config", f"c.{kind}"]) for kind in ("toml", "yaml")}
    of["json"] = settings_from(*task_first(["--config", "c.json"], "train"))
    assert of["toml"].config() == of["yaml"].config() == of["json"].config()
    assert of["toml"].stated == of["yaml"].stated
    assert (of["toml"].recipe.clip_norm, of["toml"].recipe.lr) == (None, 3e-3)
    assert settings_from("spiral", ["--config", "c.toml", "--lr", "1"]).recipe.lr == 1
    assert task_first(["--config=c.toml"], "train")[0] == "spiral"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("learning_rate = 1\n", "unknown key 'learning_rate': did you mean 'lr'?"),
        ("lr = 1\nlr = 2\n", "a key is given twice at line 2: leave one of them"),
        ("batch_size = 1\nbatch-size = 2\n", "given twice"),
        ("seed = 2020-01-01\n", "--seed must be a whole number, not"),
        ("seed = 2020-99-99\n", "is not TOML at line 1: write `key = value` lines"),
        ("epochs = 'many'\n", "--epochs must be a whole number, not 'many'"),
        ("epochs = 2.5\n", "--epochs must be a whole number"),
        ("lr = nan\n", "--lr must be above 0"),
        ("lr: 1\n", "is not TOML at line 1: write `key = value` lines"),
        ("lr = \n", "is not TOML at line 1"),
        ("[train]\nlr = 1\n", "'train' is a table of options, and options are at the top"),
        ("[lr]\nmax = 1\n", "'lr' has keys below it, and an option has one value: write lr"),
        ("task = 'table'\n", "is for the task 'table'"),
        ("", "config.toml is empty: write `key = value` lines"),
        (" \n\n", "config.toml is empty"),
        ("a = " + "[" * 5000, "config.toml"),
    ],
)
def test_bad_toml_is_refused_as_bad_yaml_is(command: Command, content: str, words: str) -> None:
    Path("config.toml").write_text(content)
    said = command("train", "spiral", "--config", "config.toml")
    assert said.status == 2
    assert words in said.complaint
    assert len(said.complaint) < 400
    Path("config.toml").write_bytes(b"lr = 1 # \xff\n")
    assert "config.toml is not UTF-8" in command("train", "--config", "config.toml").complaint


def test_a_configuration_file_that_is_no_text(command: Command, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_bytes(b"\xff\xfe\x00\x81")
    assert "not UTF-8" in command("train", "spiral", "--config", "config.yaml").complaint
    assert "it is a folder" in command("train", "spiral", "--config", ".").complaint


def test_help_of_a_task_shows_its_own_options_and_its_recipe(command: Command, line: str) -> None:
    shown = command("train", line, "--help").out
    assert "Points to train on (default: 64)" in shown
    assert "--names A,B" in shown
    assert "--epochs N" in shown
    assert "(default: 3)" in shown
    assert "example:\n  trueloop train line_task.py:Line" in shown
    assert 'Warm-up: "5%", "2 epochs"' in shown


def test_lists_are_words_with_commas(line: str) -> None:
    settings = settings_from(line, ["--names", "a, b,c"])
    assert settings.options.names == ["a", "b", "c"]
    quoted = settings_from(line, ["--names", '"Price, total", "a ""b""",c"d'])
    assert quoted.options.names == ["Price, total", 'a "b"', 'c"d']
    assert settings_from(line, []).options.names is None
    assert settings_from(line, [], {"names": ["a", 1]}, source="here").options.names == ["a", "1"]


def test_an_option_of_a_task_must_not_hide_another(tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text(
        "from dataclasses import dataclass\n"
        "import trueloop\n"
        "class Mine(trueloop.Task):\n"
        "    @dataclass(kw_only=True)\n"
        "    class Options:\n"
        "        lr: float = 1.0\n"
    )
    with pytest.raises(ConfigError, match="rename the field"):
        settings_from("t.py:Mine", [])


SWITCHES = ("compile", "deterministic", "doctor", "quiet")


@pytest.mark.parametrize("name", SWITCHES)
def test_every_switch_takes_its_bare_name_its_negative_and_yes_or_no(name: str) -> None:
    for words, value in (
        ([f"--{name}"], True),
        ([f"--no-{name}"], False),
        ([f"--{name}", "no"], False),
        ([f"--{name}=yes"], True),
    ):
        assert getattr(settings_from("spiral", words).run, name) is value


@pytest.mark.parametrize("how", ["step", "auto", "model", "reduce-overhead"])
def test_compile_takes_how(how: str) -> None:
    assert settings_from("spiral", ["--compile", how]).run.compile == how
    assert settings_from("spiral", [], {"compile": how}, source="here").run.compile == how


NULLABLE = ("clip-norm", "clip-value", "warmup", "patience", "max-minutes", "save-every", "threads")


@pytest.mark.parametrize("spelled", ["none", "None", "null", "NULL"])
def test_every_option_that_may_be_nothing_takes_none_and_null(spelled: str) -> None:
    words = [word for name in NULLABLE for word in (f"--{name}", spelled)]
    settings = settings_from("spiral", [*words, f"--data={spelled}", "--run", spelled])
    names = [name.replace("-", "_") for name in NULLABLE]
    found = {**settings.config(), "run": settings.run.run}
    assert [found[name] for name in [*names, "data", "run"]] == [None] * (len(names) + 2)
    file = dict.fromkeys([*names, "data"], spelled)
    assert settings_from("spiral", [], file, source="here").config() == settings.config()


def test_an_option_that_cannot_be_nothing_keeps_the_word() -> None:
    assert settings_from("table", ["--target", "none"]).options.target == "none"
    with pytest.raises(ConfigError, match="--batch-size must be a whole number"):
        settings_from("spiral", ["--batch-size", "none"])
    with pytest.raises(ConfigError, match="the length of the run is missing: write --epochs 20"):
        settings_from("spiral", ["--epochs", "none"])


def test_a_words_own_option_is_named(command: Command, tmp_path: Path) -> None:
    (tmp_path / "my houses.csv").write_text("a,b\n")
    for words, remedy in (
        (["table", "my houses.csv"], "write --data 'my houses.csv'"),
        (["table", "gone.parquet"], "write --data gone.parquet"),
        (["images", "."], "write --data ."),
        (["spiral", "run.yaml"], "write --config run.yaml"),
        (["spiral", "epochs=3"], "write --epochs 3"),
        (["spiral", "quiet"], "write --quiet"),
        (["spiral", "x" * 5000], "options start with --, see --help"),
    ):
        assert command("train", *words).complaint.endswith(f": {remedy}")
    for word, remedy in (
        ("my houses.csv", "trueloop train table --data 'my houses.csv' --target COLUMN"),
        (".", "trueloop train images --data ."),
        ("run.yaml", "trueloop train --config run.yaml"),
    ):
        assert command("train", word).complaint.endswith(f": write {remedy}")
    assert [path.name for path in tmp_path.iterdir()] == ["my houses.csv"]


READY = {
    "spiral": ["--lr", "0.5", "--clip-norm", "none"],
    "digits": ["--schedule", "one_cycle", "--warmup", "30%"],
    "table": ["--data", "a b.csv", "--target", "yes", "--drop", "x,007", "--clip-value", "1e-5"],
    "images": ["--data", "photos", "--size", "32", "--no-augment"],
}


@pytest.mark.parametrize("task", READY)
@pytest.mark.parametrize("verb", ["train", "verify-resume"])
def test_a_printed_configuration_is_the_same_settings(
    command: Command, task: str, verb: str
) -> None:
    words = READY[task]
    printed = command("train", task, *words, "--print-config")
    assert (printed.status, printed.err) == (0, "")
    Path("run.yaml").write_text(printed.out)
    options = ["--config", "run.yaml"]
    given = settings_from(task, words)
    again = settings_from(*task_first(options, verb))
    assert again.task == task
    assert again.config() == given.config()
    # What the task may choose by its data is left to it in both.
    recipe = replace(given.recipe, epochs=7, batch_size=3, lr=7.0)
    assert again.suited(recipe).config() == given.suited(recipe).config()
    assert command("train", "--config", "run.yaml", "--print-config").out == printed.out


def test_a_printed_configuration_of_an_own_task_with_the_place_of_its_run(
    command: Command, line: str, tmp_path: Path
) -> None:
    words = [line, "--run", "here", "--quiet", "--names", "a,b", "--data", "x"]
    Path("run.yaml").write_text(command("train", *words, "--print-config").out)
    again = settings_from(*task_first(["--config=run.yaml"], "train"))
    assert again.config() == settings_from(line, words[1:]).config()
    assert again.options.names == ["a", "b"]
    assert (again.run.run, again.run.quiet) == (tmp_path / "here", True)
    assert not Path("here").exists()


def test_a_configuration_file_names_the_task(command: Command, line: str) -> None:
    Path("line.yaml").write_text(f"task: {line}\nepochs: 1\nquiet: yes\nrun: from_file\n")
    assert command("train", "--run", "given", "--config", "line.yaml").status == 0
    assert Path("given/results.json").exists()
    Path("none.yaml").write_text("epochs: 1\n")
    for verb in ("train", "verify-resume"):
        said = command(verb, "--config", "none.yaml")
        assert said.status == 2
        assert f"write `task: spiral` into it, or trueloop {verb} TASK" in said.complaint
    assert "name the task first: trueloop train TASK --epochs" in (
        command("train", "--epochs", "3").complaint
    )
    assert "name the task first" in command("train", "--config").complaint


def test_a_configuration_file_that_is_not_a_regular_file(command: Command) -> None:
    os.mkfifo("fifo")
    assert "it is a FIFO" in command("train", "spiral", "--config", "fifo").complaint
