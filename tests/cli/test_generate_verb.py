"""`trueloop generate`: the text that the model writes, on stdout or in a file, and its scores."""

from __future__ import annotations

import io
import json
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from trueloop.cli import main
from trueloop.generate import generate, score
from trueloop.tasks.text.publish import write_folder
from trueloop.tasks.text.tokenizer import tokenizer_for
from trueloop.tasks.text.transformer import Transformer
from trueloop.tasks.text.transformer_config import TransformerConfig

Command = Callable[..., Any]
TEXT = "The quick brown fox jumps over the lazy dog, naïvely – again and again."
TOKENIZER = tokenizer_for("byte", [TEXT])


@pytest.fixture(scope="module")
def model() -> Transformer:
    """Random weights that make peaked logits of bytes."""
    torch.manual_seed(0)
    config = TransformerConfig(vocab_size=256, context=48, layers=2, width=16, heads=2)
    found = Transformer(config)
    with torch.no_grad():
        for parameter in found.parameters():
            if parameter.ndim > 1:
                parameter.mul_(20)
        # Letters and spaces, most of the time.
        found.embedding.weight[:, 0] += torch.tensor([4.0 * (32 <= k < 127) for k in range(256)])
    return found.eval()


@pytest.fixture(scope="module")
def folder(model: Transformer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("published") / "model", model, TOKENIZER)


@pytest.fixture(scope="module")
def talker(model: Transformer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same model with a chat template."""
    source = "{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}" + (
        "{% if add_generation_prompt %}[assistant] {% endif %}"
    )
    place = tmp_path_factory.mktemp("published") / "talker"
    return write_folder(place, model, TOKENIZER, chat_template=source)


def library(model: Transformer, prompt: str, **options: Any) -> list[str]:
    options = {"tokenizer": TOKENIZER, "end_of_text": TOKENIZER.end_of_text, **options}
    texts = generate(model, [TOKENIZER.encode(prompt)], **options).texts
    assert texts is not None
    return texts


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("--temperature 0", {"temperature": 0}),
        ("--seed 3", {"seed": 3}),
        ("--temperature 0.5 --top-k 5 --seed 1", {"temperature": 0.5, "top_k": 5, "seed": 1}),
        ("--top-p 0.7 --min-p 0.01", {"top_p": 0.7, "min_p": 0.01}),
        ("--typical 0.8 --repetition-penalty 1.4", {"typical": 0.8, "repetition_penalty": 1.4}),
        ("--beams 3 --max-new-tokens 40", {"beams": 3, "max_new_tokens": 40}),
        ("--preset code", {"temperature": 0.2, "top_p": 0.95}),
        (
            "--preset factual --repetition-penalty 1.0 --top-p 0.5",
            {"temperature": 0.3, "top_p": 0.5},
        ),
        ("--stop e", {"stop": "e"}),
        ("--stop ab o", {"stop": ["ab", "o"]}),
    ],
)
def test_the_text_is_that_of_the_library(
    command: Command, model: Transformer, folder: Path, words: str, options: dict[str, Any]
) -> None:
    done = command(
        "generate", folder, "--prompt", "The fox", "--max-new-tokens", 70, *words.split()
    )
    assert (done.status, done.err) == (0, "")
    assert done.out == library(model, "The fox", **{"max_new_tokens": 70, **options})[0] + "\n"


def test_several_samples(command: Command, model: Transformer, folder: Path) -> None:
    words = ("--prompt", "a", "--max-new-tokens", 9)
    done = command("generate", folder, *words, "--num-samples", 2, "--echo")
    texts = library(model, "a", max_new_tokens=9, num_samples=2)
    assert done.out == f"--- 1\na{texts[0]}\n--- 2\na{texts[1]}\n"
    echoed = command("generate", folder, *words, "--echo", "--temperature", "0")
    assert echoed.out == f"a{library(model, 'a', max_new_tokens=9, temperature=0)[0]}\n"


def test_prompt_on_stdin(
    command: Command, model: Transformer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("generate", folder, "--prompt", "-", "--max-new-tokens", "9")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("The\nföx\n".encode())))
    assert command(*words).out == library(model, "The\nföx", max_new_tokens=9)[0] + "\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"ok \xff")))
    said = command(*words)
    assert said.status == 2
    assert "the prompt on stdin is not UTF-8 (byte 4)" in said.complaint


def test_prompts_of_a_file(command: Command, model: Transformer, folder: Path) -> None:
    prompts = ["The quick", "fox", "naïvely"] * 12
    Path("p.txt").write_text("\n\n".join(prompts) + "\n")
    words = ("generate", folder, "--prompts", "p.txt", "--max-new-tokens", "8", "--seed", "5")
    lines = [json.loads(line) for line in command(*words).out.splitlines()]
    assert [line["prompt"] for line in lines] == prompts
    for k in (0, 1, 2, 33, 35):  # of two batches
        assert [lines[k]["text"]] == library(model, prompts[k], max_new_tokens=8, seed=5 + k)
        assert lines[k] | {"text": ""} == {
            "prompt": prompts[k], "sample": 0, "text": "", "tokens": 8, "ended": "length",
        }  # fmt: skip
    Path("p.jsonl").write_text("".join(json.dumps({"prompt": each}) + "\n" for each in prompts))
    words = ("generate", folder, "--prompts", "p.jsonl", "--max-new-tokens", "8", "--seed", "5")
    done = command(*words, "--out", "o.jsonl")
    assert done.out == f"36 texts in {Path('o.jsonl').absolute()}\n"
    assert [json.loads(line) for line in Path("o.jsonl").read_text().splitlines()] == lines
    said = command(*words, "--out", "o.jsonl")
    assert said.status == 2
    assert "--force" in said.complaint
    assert command(*words, "--out", "o.jsonl", "--force", "--num-samples", 2).status == 0
    assert Path("o.jsonl").read_text().count("\n") == 72


def test_a_prompt_is_a_message_to_a_model_with_a_template(
    command: Command, model: Transformer, talker: Path
) -> None:
    chat = {"temperature": 0.7, "top_p": 0.9, "stop": "\n[user]", "max_new_tokens": 9}
    words = ("generate", talker, "--preset", "chat", "--max-new-tokens", 9)
    done = command(*words, "--prompt", "fox")
    wanted = "[user] fox\n[assistant] "
    assert (done.status, done.err) == (0, "")
    assert done.out == library(model, wanted, **chat)[0] + "\n"
    done = command(*words, "--prompt", "fox", "--system", "Be.", "--echo", "--stop", "e")
    wanted = f"[system] Be.\n{wanted}"
    assert (
        done.out == wanted + library(model, wanted, **chat | {"stop": ["e", "\n[user]"]})[0] + "\n"
    )
    messages = [{"role": role, "content": "a"} for role in ("user", "assistant", "user")]
    Path("p.jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in ({"prompt": "fox"}, {"messages": messages}))
    )
    first, second = map(json.loads, command(*words, "--prompts", "p.jsonl").out.splitlines())
    assert first["prompt"] == "fox"
    assert first["text"] == library(model, "[user] fox\n[assistant] ", **chat)[0]
    assert second["messages"] == messages
    wanted = "[user] a\n[assistant] a\n[user] a\n[assistant] "
    assert second["text"] == library(model, wanted, **chat, seed=1)[0]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--preset chat --prompt=", "the message is empty"),
        ("--preset chat --score a", "--score scores a text unchanged: leave out --preset"),
        ("--preset chat --prompt a --choices b", "and --choices scores a text unchanged"),
        ("--system a --prompt b", "--system is part of a conversation: add --preset chat"),
        (
            "--prompts own.jsonl",
            "own.jsonl, line 1 contains messages: add --preset chat",
        ),
        ("--preset chat --prompts own.jsonl --system b", "already has a system message"),
        ("--preset chat --prompts over.jsonl", "over.jsonl, line 1: it ends with a response"),
        ("--preset chat --prompts bad.jsonl", "bad.jsonl, line 1: message 1 has the unknown role"),
    ],
)
def test_mistakes_with_messages(command: Command, talker: Path, words: str, expected: str) -> None:
    for name, roles in (("own", "system user"), ("over", "user assistant"), ("bad", "usr")):
        messages = [{"role": role, "content": "a"} for role in roles.split()]
        Path(f"{name}.jsonl").write_text(json.dumps({"messages": messages}) + "\n")
    said = command("generate", talker, *words.split())
    assert said.status == 2
    assert expected in said.complaint
    assert said.out == ""


def test_scores(command: Command, model: Transformer, folder: Path) -> None:
    done = command("generate", folder, "--score", "a\nfo\x1b")
    ids = TOKENIZER.encode("a\nfo\x1b")
    found = score(model, ids)
    lines = done.out.splitlines()
    assert [line.split()[1] for line in lines[1:-1]] == ["a", "\\n", "f", "o", "\\x1b"]
    values = [float(line.split()[0]) for line in lines[2:-1]]
    assert values == pytest.approx(found.log_probs[0, 1:].tolist(), abs=1e-3)
    mean = float(found.sums[0]) / 4
    assert lines[1].split()[0] == "-"
    assert f"4 tokens: {mean:.4f} a token, perplexity {math.exp(-mean):.3f}" in lines[-1]


def test_choices(command: Command, model: Transformer, folder: Path) -> None:
    done = command("generate", folder, "--prompt", "The ", "--choices", "fox", "dög", "a")
    rows = {line.split()[2]: line.split()[:2] for line in done.out.splitlines()[1:]}
    for choice in ("fox", "dög", "a"):
        ids = TOKENIZER.encode(choice)
        total = float(score(model, ids, after=TOKENIZER.encode("The ")).sums[0])
        assert float(rows[choice][0]) == pytest.approx(total, abs=1e-3)
        assert float(rows[choice][1]) == pytest.approx(total / len(ids), abs=1e-3)
    sums = [float(each[0]) for each in rows.values()]
    assert sums == sorted(sums, reverse=True)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_control_characters_do_not_reach_a_terminal(
    command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("generate", folder, "--max-new-tokens", "4", "--echo", "--prompt", "\x1b[2Ja\tb\nc\r")
    plain = command(*words).out
    assert plain.startswith("\x1b[2Ja\tb\nc\r")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    command(*words)
    assert terminal.getvalue().startswith("\\x1b[2Ja\tb\nc\\r")


def test_ctrl_c_leaves_what_was_written(
    command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import trueloop.generate as room

    real = room.stream

    def interrupted(*arguments: Any, **options: Any) -> Iterator[Any]:
        for number, piece in enumerate(real(*arguments, **options)):
            if number == 3:
                raise KeyboardInterrupt
            yield piece

    monkeypatch.setattr(room, "stream", interrupted)
    done = command("generate", folder, "--prompt", "The", "--stop", "zzzz")
    assert done.status == 130
    assert done.err == "trueloop: interrupted\n"
    assert done.out.endswith("\n")
    assert len(done.out) >= 3


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", "a prompt is missing: write --prompt TEXT"),
        ("--prompt a --temperature -1", "--temperature -1.0 must not be below 0"),
        ("--prompt a --top-p 0", "--top-p 0.0 must be above 0 and at most 1"),
        ("--prompt a --top-p 1.5", "--top-p 1.5 must be above 0 and at most 1"),
        ("--prompt a --typical 2", "--typical 2.0 must be above 0"),
        ("--prompt a --top-k 0", "--top-k 0 is not an integer of at least 1"),
        ("--prompt a --min-p -0.1", "--min-p -0.1 must be from 0 to 1"),
        ("--prompt a --max-new-tokens 0", "--max-new-tokens 0 is not an integer"),
        ("--prompt a --max-new-tokens many", "--max-new-tokens must be a whole number"),
        ("--prompt a --seed -1", "--seed -1 is not an integer from 0"),
        (
            "--prompt a --beams 2 --top-k 3",
            "--beams 2 searches for the most probable text, and --top",
        ),
        ("--prompt a --temperature 0 --top-p 0.5", "--temperature 0 is greedy, and --top-p"),
        ("--prompt a --beams 2 --max-new-tokens 50", "beyond which beams cannot go"),
        ("--prompt a --preset chat", "model has no chat template, which --preset chat needs"),
        ("--prompt a --preset poet", "unknown preset 'poet'"),
        ("--prompt a --preset code --beams 4", "leave one of them out"),
        ("--prompt a --temprature 1", "did you mean '--temperature'?"),
        ("--prompt a --prompts p.txt", "--prompt and --prompts do not go together"),
        ("--choices a b", "write --prompt TEXT"),
        ("--prompt a --out x.jsonl", "leave out --out"),
        ("--prompt=", "the prompt is empty, and this model has no token"),
        ("--prompts none.txt", "none.txt"),
        ("--prompts empty.txt", "contains no prompt"),
        ("--prompts latin.txt", "is not UTF-8 (byte 4)"),
        ("--prompts bad.jsonl", "bad.jsonl, line 2 is not JSON"),
        ("--prompts other.jsonl", "line 1 has no text called prompt"),
        (f"--prompt {'x' * 49}", "a prompt has 49 tokens, and the model's context is 48"),
        ("--score a", "one token has nothing before it"),
        ("--prompt a --device gpu9", "unknown device 'gpu9'"),
    ],
)
def test_mistakes(command: Command, folder: Path, words: str, expected: str) -> None:
    Path("empty.txt").write_text("\n\n")
    Path("latin.txt").write_bytes(b"abc\xe9\n")
    Path("bad.jsonl").write_text('{"prompt": "a"}\n{"prompt"\n')
    Path("other.jsonl").write_text('{"text": "a"}\n')
    said = command("generate", folder, *words.split())
    assert said.status == 2
    assert expected in said.complaint
    assert said.out == ""
    assert not list(Path().glob("x.jsonl"))


def test_folders_that_write_no_text(command: Command, spiral_run: Path, folder: Path) -> None:
    said = command("generate", spiral_run, "--prompt", "a")
    assert said.status == 2
    assert "is a run of the task 'spiral', which writes no text" in said.complaint
    missing = command("generate", "nowhere", "--prompt", "a")
    assert missing.status == 2
    assert "nowhere" in missing.complaint


@pytest.fixture(scope="module")
def text_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of single characters, trained for two updates."""
    folder = tmp_path_factory.mktemp("text")
    (folder / "text.txt").write_text("The quick brown fox jumps over the lazy dog.\n" * 40)
    words = (
        f"--data {folder}/text.txt --tokenizer char --context 16 --layers 1 --width 16 --heads 2"
    )
    rest = "--heads 2 --updates 2 --batch-size 4 --quiet --no-doctor --run"
    with torch.random.fork_rng(devices=[]):
        assert main(["train", "text", *words.split(), *rest.split(), str(folder / "run")]) == 0
    return folder / "run"


def test_a_run_of_the_text_task(command: Command, text_run: Path) -> None:
    words = ("generate", text_run, "--prompt", "The fox", "--max-new-tokens", "40", "--seed", "2")
    done = command(*words)
    assert (done.status, done.err) == (0, "")
    assert len(done.out) == 41  # beyond the context of 16
    assert set(done.out) <= set("The quick brown fox jumps over the lazy dog.\n")
    assert command(*words).out == done.out
    assert command(*words[:-1], "3").out != done.out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--prompt", "The föx"), "'ö'"),
        (("--score", "Zebra"), "'Z'"),
        (("--prompt", "The ", "--choices", "fox", "Zoo"), "'Z'"),
        (("--prompts", "p.txt"), "prompt 2 of"),
        (("--prompt", "The fox jumps over the lazy dog."), "the model's context is 16"),
    ],
)
def test_characters_that_the_run_does_not_know(
    command: Command, text_run: Path, words: tuple[str, ...], expected: str
) -> None:
    Path("p.txt").write_text("fox\nZoo\n")
    said = command("generate", text_run, *words)
    assert said.status == 2
    assert expected in said.complaint
    assert said.out == ""
