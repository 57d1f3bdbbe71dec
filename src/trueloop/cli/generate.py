"""`trueloop generate RUN --prompt TEXT`: what a trained language model writes, and how probable it
finds a text."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueloop.cli import OK
from trueloop.cli._out_folder import check_out_folder
from trueloop.errors import ConfigError, DataError, RunError
from trueloop.names import printable, printable_text

if TYPE_CHECKING:
    from trueloop.tasks.text.chat_template import ChatTemplate, Message

    Prompt = str | list[Message]
    """A text, or the messages of a conversation that the model is to respond to."""

_EXAMPLE = (
    """example:
  trueloop generate runs/shakespeare --prompt "ROMEO:" --temperature 0.8 --max-new-tokens 300
  trueloop generate runs/shakespeare --prompts lines.txt --preset creative --out written.jsonl
  trueloop generate runs/shakespeare --prompt "To be, or not to " --choices be bee sea
  trueloop generate runs/assistant --preset chat --system "Be brief." --prompt "2+2?\""""
    ""
)
_AT_ONCE = 32
"""Prompts of a file that make one padded batch."""
_MODES = ("prompt", "prompts", "score")
CHAT = "chat"
"""The preset that writes responses, by the model's own template."""


def main(argv: Sequence[str]) -> int:
    """Write, or score; the exit status."""
    given = _parse(argv)
    _check(given)
    if given.out is not None and given.out.exists() and not given.force:
        raise ConfigError(
            f"{given.out} exists: choose a different --out, or replace it with --force"
        )
    if given.out is not None:
        check_out_folder(given.out)
    options = _options_of(given)
    writer = open_writer(given.run, given.device)
    if given.preset == CHAT:
        options["stop"] = (*options["stop"], *writer.converse(given.system))
    if given.score is not None:
        _print_scores(writer, given.score)
    elif given.choices:
        _print_choices(writer, _prompt(given.prompt), given.choices)
    elif given.prompts is not None:
        _write_many(writer, _prompts_in(given.prompts, writer.responds), options, given)
    else:
        _write_one(writer, _prompt(given.prompt), options, given)
    return OK


def _parse(argv: Sequence[str]) -> Any:
    from trueloop.cli.parser import DEVICES, Parser, add_dataclass, path_from
    from trueloop.generate import PRESETS, GenerationOptions

    parser = Parser(
        "trueloop generate",
        usage="trueloop generate RUN --prompt TEXT [options]",
        description="Continue a text with a trained language model, or score a text with it.",
        epilog=_EXAMPLE,
    )
    parser.add_option(
        "run", metavar="RUN", type=path_from, required=True,
        help="directory of a run of the text task, or a folder with a published model",
    )  # fmt: skip
    parser.add_option(
        "--prompt", metavar="TEXT", help="the text to continue; - reads it from stdin"
    )
    parser.add_option(
        "--prompts", type=path_from, metavar="FILE",
        help="prompts, one a line, or a .jsonl of objects with a prompt (with --preset chat also "
        "messages); writes JSON lines",
    )  # fmt: skip
    parser.add_option("--out", type=path_from, metavar="FILE", help="where --prompts writes to")
    parser.add_option("--force", action="store_true", help="replace FILE if it exists")
    parser.add_option("--echo", action="store_true", help="print the prompt before the text")
    parser.add_option("--score", metavar="TEXT", help="print the log-probability of each token")
    parser.add_option(
        "--choices", nargs="+", metavar="TEXT", help="score these continuations of the prompt"
    )
    parser.add_option(
        "--preset", metavar="NAME", choices=tuple(PRESETS),
        help="sampling options, which explicit ones override; chat also treats the prompt as a "
        "message, by the model's chat template",
    )  # fmt: skip
    parser.add_option("--system", metavar="TEXT", help="with --preset chat: the system message")
    parser.add_option("--stop", nargs="+", metavar="TEXT", help="end before any of these")
    parser.add_option("--seed", type=int, default=0, metavar="N", help="seed of the draws")
    parser.add_option(
        "--device", default="auto", metavar="NAME", choices=DEVICES, help="where the model runs"
    )
    add_dataclass(
        parser,
        "how tokens are chosen",
        GenerationOptions,
        left_out=("early_stopping",),
        usual=("max_new_tokens", "temperature", "top_k", "top_p", "beams", "num_samples"),
    )
    given = parser.parse(argv)
    words = {word.partition("=")[0] for word in parser.words}
    given.stated = [
        field.name
        for field in fields(GenerationOptions)
        if "--" + field.name.replace("_", "-") in words
    ]
    return given


def _check(given: Any) -> None:
    """Refuse options that do not go together."""
    modes = [name for name in _MODES if getattr(given, name) is not None]
    if not modes:
        raise ConfigError("a prompt is missing: write --prompt TEXT, or --prompts FILE")
    if len(modes) > 1:
        raise ConfigError(
            f"--{modes[0]} and --{modes[1]} do not go together: leave out one of them"
        )
    if given.choices and given.prompt is None:
        raise ConfigError("--choices are scored after a prompt: write --prompt TEXT")
    if given.out is not None and given.prompts is None:
        raise ConfigError("--out is for --prompts FILE; one text goes to stdout: leave out --out")
    if given.system is not None and given.preset != CHAT:
        raise ConfigError("--system is part of a conversation: add --preset chat")
    if given.preset == CHAT and (scored := _first(given, ("score", "choices"))):
        raise ConfigError(
            f"--preset chat writes a response, and --{scored} scores a text unchanged: leave "
            "out --preset"
        )


def _first(given: Any, names: Sequence[str]) -> str | None:
    return next((name for name in names if getattr(given, name)), None)


def _options_of(given: Any) -> dict[str, Any]:
    """The arguments of `generate`; those of the preset give way to those that are written."""
    from trueloop import _options
    from trueloop.generate import PRESETS, GenerationOptions
    from trueloop.seed import check_seed

    written = {name: getattr(given, name) for name in given.stated}
    if given.preset is not None:
        preset = PRESETS[_options.by_name("preset", given.preset, PRESETS)]
        written = {**preset, **written}
    names = [field.name for field in fields(GenerationOptions)]
    try:
        GenerationOptions(**written)
        check_seed(given.seed)
    except ConfigError as error:
        raise ConfigError(as_options(str(error), [*names, "seed"])) from None
    return {**written, "stop": given.stop or ()}


def as_options(message: str, names: Sequence[str]) -> str:
    """A message about arguments, as one about options: top_p=2 is --top-p 2."""
    for name in names:
        option = "--" + name.replace("_", "-")
        message = re.sub(rf"(?<![\w-]){name}=", f"{option} ", message)
        if "_" in name:
            message = re.sub(rf"(?<![\w-]){name}\b", option, message)
    return message


@dataclass
class Writer:
    """A model with the tokenizer that it was trained with."""

    model: Any
    tokenizer: Any
    template: ChatTemplate | None
    """The model's own; None where it has none."""
    name: str
    responds: bool = False
    """Whether a prompt is a user's message, to which the model responds."""
    system: str | None = None
    """The system message, before the user's."""

    def converse(self, system: str | None) -> list[str | int]:
        """Take prompts as messages from now on; returns what ends a response.

        Raises `ConfigError` for a model without a chat template.
        """
        if self.template is None:
            raise ConfigError(
                f"{self.name} has no chat template, which --preset chat needs: write --temperature "
                "0.7 --top-p 0.9 in its place, or name a model that has one"
            )
        self.responds, self.system = True, system
        return self.template.ends_of_response()

    def messages(self, prompt: Prompt) -> list[Message]:
        """The conversation that the model responds to."""
        messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
        if self.system is None:
            return list(messages)
        if messages[0]["role"] == "system":
            raise DataError("it already has a system message: leave out --system")
        return [{"role": "system", "content": self.system}, *messages]

    def ids(self, prompt: Prompt) -> list[int]:
        """The prompts that the model continues."""
        if not self.responds:
            return self.encode(str(prompt))
        assert self.template is not None
        if not prompt:
            raise DataError("the message is empty: write at least one character")
        return self.template.prompt(self.messages(prompt))

    def shown(self, prompt: Prompt) -> str:
        """The prompt as `--echo` prints it."""
        if not self.responds:
            return str(prompt)
        assert self.template is not None
        return self.template.shown(self.messages(prompt))

    def encode(self, text: str) -> list[int]:
        """The ids of a prompt; an empty one becomes the token for the start of a text, if there is
        one."""
        ids: list[int] = self.tokenizer.encode(text)
        if not ids and self.tokenizer.end_of_text is None:
            raise DataError(
                "the prompt is empty, and this model has no token for the start of a text: write "
                "at least one character"
            )
        return ids

    def arguments(self, options: dict[str, Any]) -> dict[str, Any]:
        """`options`, with what a tokenizer knows."""
        end = self.tokenizer.end_of_text
        return {**options, "tokenizer": self.tokenizer, "end_of_text": end}


def open_writer(path: Path, device: str) -> Writer:
    """The model of a run of the text task, or one as its authors publish it.

    Raises `RunError` for a folder that is neither.
    """
    from trueloop.cli._session import load_trained
    from trueloop.run import Run

    if any(path.glob("*.safetensors*")) and not (path / "checkpoints").exists():
        return _published(path, device)
    trained = load_trained(Run(path), device)
    tokenizer = getattr(trained.task, "tokenizer", None)
    if tokenizer is None:
        raise RunError(
            f"{path} is a run of the task {trained.settings.task!r}, which writes no text: name a "
            "run of the text task"
        )
    template = getattr(trained.task, "chat", None)
    return Writer(trained.model.eval(), tokenizer, template, str(path))


def _published(path: Path, device: str) -> Writer:
    from trueloop import device as devices
    from trueloop.tasks.text.chat_template import ChatTemplate, template_of
    from trueloop.tasks.text.pretrained import TOKENIZER, open_folder
    from trueloop.tasks.text.tokenizer import tokenizer_for
    from trueloop.tasks.text.transformer import Transformer

    where = devices.pick(device)
    found = open_folder(path)
    if not (path / TOKENIZER).exists():
        raise RunError(f"{path} has no {TOKENIZER}: put the model's tokenizer next to its weights")
    model = Transformer(found.config)
    found.fill(model)
    tokenizer, source = tokenizer_for(str(path / TOKENIZER), []), template_of(path)
    template = None if source is None else ChatTemplate(source, tokenizer)
    return Writer(model.to(where).eval(), tokenizer, template, str(path))


def _prompt(given: str) -> str:
    """The prompt; of stdin all, without its last line end."""
    if given != "-":
        return given
    try:
        text = sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"the prompt on stdin is not UTF-8 (byte {error.start + 1}): convert it to UTF-8"
        ) from None
    return text.removesuffix("\n").removesuffix("\r")


def _prompts_in(path: Path, responds: bool) -> list[Prompt]:
    """The prompts of a file: its lines, or of JSON lines the field `prompt` of each, or with
    `responds` the field `messages`."""
    from trueloop.files import read_text

    try:
        lines = read_text(path).splitlines()
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} is not UTF-8 (byte {error.start + 1}): convert it to UTF-8"
        ) from None
    numbered = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not numbered:
        raise DataError(f"{path} contains no prompt: write one per line")
    if path.suffix.lower() not in (".jsonl", ".ndjson"):
        return [line for _, line in numbered]
    return [_prompt_of(line, f"{path}, line {number}", responds) for number, line in numbered]


def _prompt_of(line: str, place: str, responds: bool) -> Prompt:
    from trueloop.tasks.text.chat import messages_to_answer

    try:
        found = json.loads(line)
    except ValueError as error:
        raise DataError(f'{place} is not JSON ({error}): write {{"prompt": "…"}}') from None
    values = found if isinstance(found, dict) else {}
    if isinstance(prompt := values.get("prompt"), str):
        return prompt
    if "messages" not in values:
        raise DataError(f'{place} has no text called prompt: write {{"prompt": "…"}}')
    if not responds:
        raise DataError(f"{place} contains messages: add --preset chat")
    try:
        return messages_to_answer(values["messages"])
    except DataError as error:
        raise DataError(f"{place}: {error}") from None


def _write_one(writer: Writer, prompt: str, options: dict[str, Any], given: Any) -> None:
    """Print what follows one prompt, as it is written where that can be."""
    from trueloop.generate import generate, stream

    ids, arguments = writer.ids(prompt), writer.arguments(options)
    if given.num_samples > 1 or given.beams > 1:
        done = generate(writer.model, [ids], seed=given.seed, **arguments)
        assert done.texts is not None
        for number, text in enumerate(done.texts, 1):
            if len(done.texts) > 1:
                _print(f"--- {number}\n")
            _print((writer.shown(prompt) if given.echo else "") + text + "\n")
        return
    pieces = stream(writer.model, [ids], seed=given.seed, **arguments)
    try:
        if given.echo:
            _print(writer.shown(prompt))
        for piece in pieces:
            assert piece.texts is not None
            if piece.texts[0]:
                _print(piece.texts[0])
    except KeyboardInterrupt:
        _print("\n")
        raise
    _print("\n")


def _print(text: str) -> None:
    """Print a piece at once. On a terminal, what would steer it comes as escapes."""
    print(printable_text(text) if sys.stdout.isatty() else text, end="", flush=True)


def _write_many(writer: Writer, prompts: list[Prompt], options: dict[str, Any], given: Any) -> None:
    """A JSON line for each text, in the order of the prompts."""
    from trueloop.checkpoint import write_atomic

    rows = []
    for number, prompt in enumerate(prompts, 1):
        try:
            rows.append(writer.ids(prompt))
        except DataError as error:
            raise DataError(f"prompt {number} of {given.prompts}: {error}") from None
    lines = _lines(writer, prompts, rows, options, given)
    if given.out is None:
        for line in lines:
            print(line, flush=True)
        return
    written = list(lines)
    write_atomic(given.out, "".join(f"{line}\n" for line in written).encode())
    print(f"{len(written):,} texts in {given.out}")


def _lines(
    writer: Writer,
    prompts: list[Prompt],
    rows: list[list[int]],
    options: dict[str, Any],
    given: Any,
) -> Iterator[str]:
    """Prompt k, from 0 on, draws with seed + k: what it gives does not depend on the others."""
    from trueloop.generate import generate

    for first in range(0, len(rows), _AT_ONCE):
        batch = rows[first : first + _AT_ONCE]
        seeds = [given.seed + first + k for k in range(len(batch))]
        done = generate(writer.model, batch, seed=seeds, **writer.arguments(options))
        assert done.texts is not None
        for k, (text, ended) in enumerate(zip(done.texts, done.ended, strict=True)):
            prompt = prompts[first + k // given.num_samples]
            line = {
                "prompt" if isinstance(prompt, str) else "messages": prompt,
                "sample": k % given.num_samples,
                "text": text,
                "tokens": int(done.lengths[k]),
                "ended": ended,
            }
            yield json.dumps(line, ensure_ascii=False)


def _print_scores(writer: Writer, text: str) -> None:
    """Each token with its log-probability, and the sum."""
    import math

    from trueloop.generate import score

    ids, end = writer.encode(text), writer.tokenizer.end_of_text
    if not ids or (len(ids) == 1 and end is None):
        raise DataError("one token has nothing before it, and no score: write a longer text")
    found = score(writer.model, ids, after=None if end is None else [end])
    print("log p      token")
    for position, (token, value) in enumerate(zip(ids, found.log_probs[0].tolist(), strict=True)):
        shown = f"{value:.4f}" if position or end is not None else "-"
        print(f"{shown:<10} {printable(writer.tokenizer.decode([token]))}")
    total, count = float(found.sums[0]), int(found.counts[0])
    print(
        f"{total:.4f} in all, {count:,} tokens: {total / count:.4f} a token, perplexity "
        f"{math.exp(min(-total / count, 700)):.3f}"
    )


def _print_choices(writer: Writer, prompt: str, choices: list[str]) -> None:
    """The choices with their log-probability and its mean per byte, the likeliest first."""
    from trueloop.generate import multiple_choice

    before = writer.encode(prompt) or [writer.tokenizer.end_of_text]
    rows = [writer.tokenizer.encode(choice) for choice in choices]
    if not all(rows):
        raise DataError("a choice is empty: write at least one character")
    sizes = [len(choice.encode()) for choice in choices]
    sums = multiple_choice(writer.model, before, rows)
    print("log p      a byte     choice")
    for total, size, choice in sorted(zip(sums, sizes, choices, strict=True), reverse=True):
        print(f"{total:<10.4f} {total / size:<10.4f} {printable(choice)}")
