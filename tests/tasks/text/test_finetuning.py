"""`--init`, `--lora` and conversations, as the command line uses them; a tiny published model."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from on_ranks import on_ranks
from trueloop import Feed, Run, Step, lora, optimizers
from trueloop.checkpoint import load_checkpoint
from trueloop.cli import main
from trueloop.errors import ConfigError, DataError, RunError
from trueloop.generate import score
from trueloop.tasks.text import Text, pretrained, publish
from trueloop.tasks.text.chat_template import ChatTemplate
from trueloop.tasks.text.subwords import learned
from trueloop.tasks.text.tokenizer import tokenizer_from_state
from trueloop.tasks.text.transformer import Transformer
from trueloop.tasks.text.transformer_config import TransformerConfig

LINE = "the king said to the queen that the day was long and the night was short.\n"
TEMPLATE = "{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}" + (
    "{% if add_generation_prompt %}[assistant] {% endif %}"
)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A published GPT-2 whose vocabulary has more rows than its tokenizer has ids."""
    tokenizer = learned([LINE * 40], 300)
    torch.manual_seed(0)
    config = TransformerConfig(
        vocab_size=320, context=48, layers=2, width=16, heads=2,
        norm="layer", positions="learned", activation="gelu_tanh", bias=True,
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("published") / "base"
    return publish.write_folder(folder, Transformer(config), tokenizer, chat_template=TEMPLATE)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "text.txt"
    path.write_text(LINE * 60)
    return path


@pytest.fixture(scope="module")
def chat(text: Path) -> Path:
    path = text.with_name("chat.jsonl")
    lines = [{"prompt": f"what is {k}?", "response": f"{k} is the king"} for k in range(40)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def train(run: Path, data: Path, *options: str) -> int:
    fixed = ["--quiet", "--sample-tokens", "4", "--threads", "1", "--batch-size", "4"]
    return main(["train", "text", "--data", str(data), "--run", str(run), *fixed, *options])


@pytest.fixture(scope="module")
def adapted(base: Path, text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of LoRA, whose published folder is gone since."""
    run = tmp_path_factory.mktemp("runs") / "adapted"
    gone = run.with_name("base")
    shutil.copytree(base, gone)
    options = ("--lora", "query,up", "--lora-rank", "3", "--lora-dropout", "0.1", "--epochs", "2")
    assert train(run, text, "--init", str(gone), *options) == 0
    shutil.rmtree(gone)
    return run


def ids() -> Tensor:
    return torch.randint(0, 299, (2, 20), generator=torch.Generator().manual_seed(0))


def test_a_run_of_lora_gives_the_merged_model(adapted: Path, base: Path) -> None:
    model = Run(adapted).model(device="cpu")
    assert isinstance(model, Transformer)
    assert not lora.adapters(model)
    kept = load_checkpoint(Run(adapted).checkpoints, which="best")["model"]
    before = dict(pretrained.open_folder(base).weights())
    changed = {name for name, value in model.named_parameters() if not value.equal(before[name])}
    assert changed == {
        f"blocks.{k}.{layer}.weight" for k in (0, 1) for layer in ("attention.query", "mlp.up")
    }
    name = "blocks.1.mlp.up"
    delta = kept[f"{name}.lora_b"].double() @ kept[f"{name}.lora_a"].double() * (16.0 / 3)
    expected = before[f"{name}.weight"].double() + delta
    torch.testing.assert_close(model.get_parameter(f"{name}.weight"), expected.float())


def test_frozen_weights_are_no_fault_to_the_doctor(adapted: Path) -> None:
    assert Run(adapted).findings == []
    state = load_checkpoint(Run(adapted).checkpoints, which="last")["step"]["optimizer"]["state"]
    assert len(state) == 8  # A and B of four layers


def test_what_is_exported_is_the_merged_model_and_its_tokenizer(
    adapted: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(["export", str(adapted), "--out", str(out)]) == 0
    assert str(out) in capsys.readouterr().out
    found = pretrained.open_folder(out)
    model = Transformer(found.config).eval()
    found.fill(model)
    with torch.no_grad():
        assert torch.equal(model(ids()), Run(adapted).model(device="cpu")(ids()))
    settings = json.loads((out / "tokenizer_config.json").read_text())
    assert settings["chat_template"] == TEMPLATE
    assert main(["export", str(adapted), "--out", str(out)]) == 2


def test_a_stopped_run_goes_on_bitwise_without_the_folder(
    adapted: Path, base: Path, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "base"
    shutil.copytree(base, gone)
    run = tmp_path / "stopped"
    options = ("--lora", "query,up", "--lora-rank", "3", "--lora-dropout", "0.1", "--epochs", "2")
    calls: list[int] = []
    plain = Text.after_evaluation

    def stop(self: Text, *args: Any) -> None:
        plain(self, *args)
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Text, "after_evaluation", stop)
        train(run, text, "--init", str(gone), *options, "--save-every", "1 updates")
    shutil.rmtree(gone)
    assert main(["resume", str(run), "--quiet"]) == 0
    straight = load_checkpoint(Run(adapted).checkpoints, which="last")
    resumed = load_checkpoint(Run(run).checkpoints, which="last")
    assert straight["model"].keys() == resumed["model"].keys()
    for name, value in straight["model"].items():
        assert torch.equal(value, resumed["model"][name]), name
    for key, value in straight["step"]["optimizer"]["state"].items():
        for part, tensor in value.items():
            assert torch.equal(tensor, resumed["step"]["optimizer"]["state"][key][part])


@pytest.fixture(scope="module")
def chatted(base: Path, chat: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("runs") / "chatted"
    assert train(run, chat, "--init", str(base), "--epochs", "1") == 0
    return run


def test_the_report_shows_the_template_and_what_is_masked(chatted: Path) -> None:
    facts = Run(chatted).data
    assert facts["conversations"] == {"training": 36, "validation": 4}
    assert facts["conversation"]["template"] == TEMPLATE
    first = facts["conversation"]["example"]
    assert [piece["learned"] for piece in first] == [False, True]
    page = (chatted / "report.html").read_text("utf-8")
    assert f"{first[0]['text']}<mark>{first[1]['text']}</mark>" in page
    assert page.index("<mark>") < page.index("<h2>", page.index("</mark>"))  # ahead of the charts
    assert page.index("<mark>") < page.index("<figure")


def test_a_file_of_conversations_is_scored_as_it_was_learned(
    chatted: Path, chat: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", str(chatted), "--data", str(chat), "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)["scores"]
    trained = Run(chatted).results["scores"]["val_loss"]
    assert next(iter(scores.values()))["loss"] == pytest.approx(trained, rel=0.05)


def test_predict_scores_the_responses_of_conversations(chatted: Path, tmp_path: Path) -> None:
    path, long = tmp_path / "new.jsonl", "the king said to the queen " * 12
    lines = [{"prompt": "what is 3?", "response": "3 is the king"}, {"prompt": "and 4?"}, {"a": 1}]
    lines.append({"prompt": "what is 5?", "response": long})
    path.write_text("\n\n".join(map(json.dumps, lines)) + "\n")
    run = Run(chatted)
    found = run.predict(path)
    assert found["line"].to_list() == [1, 3, 5, 7]
    assert found["error"][0] is None
    assert "no response, and only responses are" in found["error"][1]
    assert "neither 'messages' nor" in found["error"][2]
    assert found["tokens"][1] is found["loss"][2] is None
    model = run.model(device="cpu")
    template = ChatTemplate(TEMPLATE, tokenizer_from_state(run.task_state["tokenizer"]))
    messages = [
        {"role": "user", "content": lines[0]["prompt"]},
        {"role": "assistant", "content": lines[0]["response"]},
    ]
    encoded, predicted = template.encode(messages)
    scored = score(model, encoded.tolist()).log_probs[0][torch.from_numpy(predicted)]
    assert found["tokens"][0] == len(scored)
    assert found["log_likelihood"][0] == pytest.approx(float(scored.sum()), rel=1e-4)
    whole = template.encode([messages[0], {"role": "assistant", "content": long}])[1]
    assert found["tokens"][3] == int(whole.sum()) > 48  # beyond the context


def short_chat(path: Path) -> Path:
    """Twenty conversations of a few tokens, of different lengths."""
    lines = [{"prompt": "a" * (k % 7), "response": "b" * (1 + k % 11)} for k in range(20)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def _loss_on_a_rank(base: str, chat: str) -> tuple[float, float]:
    """Loss and gradient norm of one update over eight conversations of different lengths."""
    torch.manual_seed(0)
    task = Text(Text.Options(init=Path(base)), data=Path(chat), seed=0)
    splits = task.splits()
    model = task.model()
    optimizer = optimizers.sgd(model, 0.1, momentum=0.0)
    accumulate = 4 if torch.distributed.is_initialized() else 1
    step = Step(model, optimizer, task.loss_fn(), accumulate=accumulate, parallel="ddp")
    feed = Feed(splits.train, 8 // accumulate, shuffle=True, seed=1)
    for batch in feed.epoch(0):
        record = step(batch)
        if record.updated:
            break
    assert record.grad_norm is not None
    return float(record.loss), float(record.grad_norm)


def test_responses_weigh_by_their_tokens_across_micro_batches_and_ranks(
    base: Path, tmp_path: Path
) -> None:
    path = short_chat(tmp_path / "chat.jsonl")
    alone = _loss_on_a_rank(str(base), str(path))
    for together in on_ranks(2, _loss_on_a_rank, str(base), str(path)):
        assert together == pytest.approx(alone, rel=1e-5)


def test_packed_conversations_have_the_gradient_of_those_that_are_padded(
    base: Path, tmp_path: Path
) -> None:
    chat = short_chat(tmp_path / "chat.jsonl")
    found = []
    for pack in (False, True):
        torch.manual_seed(0)
        task = Text(Text.Options(init=base, pack=pack), data=chat)
        train = task.splits().train
        step = Step(model := task.model(), optimizers.sgd(model, 0.1), task.loss_fn())
        (batch,) = Feed(train, len(train)).epoch(0)
        record = step(batch)
        assert record.grad_norm is not None
        found.append((float(record.loss), float(record.grad_norm), tuple(batch[0].shape)))
    (padded, packed) = found
    assert packed[:2] == pytest.approx(padded[:2], rel=1e-5)
    assert padded[2][0] == 18 > packed[2][0]


def _sharded_on_a_rank(base: str, chat: str) -> list[Any]:
    """Of a model made on the CPU and one made on meta: whether its weights are the published ones,
    and the loss and gradient norm of an update."""
    published = dict(pretrained.open_folder(base).weights())
    found: list[Any] = []
    for device in ("cpu", "meta"):
        torch.manual_seed(torch.distributed.get_rank())  # each rank stands somewhere else
        task = Text(Text.Options(init=Path(base), lora=["query", "up"]), data=Path(chat))
        train = task.splits().train
        torch.manual_seed(0 if device == "cpu" else torch.distributed.get_rank())
        with torch.device(device):
            model = task.model()
        step = Step(model, optimizers.adamw(model, 1e-3), task.loss_fn(), parallel="fsdp")
        weights = {
            name.replace(".base.", "."): parameter.full_tensor()
            for name, parameter in step.model.named_parameters()
            if "lora_" not in name
        }
        found.append(all(value.equal(weights[name]) for name, value in published.items()))
        found.append(weights.keys() == published.keys())
        record = step(next(Feed(train, 8, seed=1).epoch(0)))
        found += [float(record.loss), float(record.grad_norm or 0) > 0]
    return found


def test_a_published_model_is_sharded_with_its_own_weights(base: Path, tmp_path: Path) -> None:
    path = short_chat(tmp_path / "chat.jsonl")
    one, two = on_ranks(2, _sharded_on_a_rank, str(base), str(path))
    assert one == two
    assert one[:2] == one[4:6] == [True, True]
    assert one[3] is one[7] is True
    assert one[6] == pytest.approx(one[2], rel=1e-6)  # B is zero: the published model's loss


def options(**values: Any) -> Callable[[Path, Path], Text]:
    def task(base: Path, text: Path) -> Text:
        return Text(Text.Options(**{"init": base, **values}), data=text)

    return task


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (options(init=None, lora=["query"]), ConfigError, "--lora adapts a pretrained model"),
        (options(lora=[]), ConfigError, "--lora names no layers"),
        (options(lora=["qery"]), ConfigError, "called 'qery': did you mean 'query'"),
        (options(lora=["query"], lora_rank=99), ConfigError, "rank=99 is more than"),
        (options(lora=["query"], lora_rank=0), ConfigError, "--lora-rank must be 1 to"),
        (options(layers=3), ConfigError, "leave out --layers, the folder defines the model"),
        (options(tokenizer="byte"), ConfigError, "leave out --tokenizer"),
        (options(context=49), ConfigError, "--context must be 1 to 48 tokens, the model's"),
        (options(init=Path("/no/where")), RunError, "no folder /no/where"),
    ],
)
def test_options_that_cannot_work_are_refused(
    make: Callable[[Path, Path], Text], error: type[Exception], message: str, base: Path, text: Path
) -> None:
    def begin() -> None:
        task = make(base, text)
        task.splits()
        task.model()

    with pytest.raises(error, match=message):
        begin()


def test_a_folder_that_is_not_whole_is_refused(base: Path, text: Path, tmp_path: Path) -> None:
    folder = tmp_path / "base"
    shutil.copytree(base, folder)
    (folder / "tokenizer.json").unlink()
    with pytest.raises(DataError, match=r"has no tokenizer\.json"):
        Text(Text.Options(init=folder), data=text).splits()
    larger = learned([LINE * 40 + "".join(chr(c) for c in range(200, 900)) * 2], 400)
    (folder / "tokenizer.json").write_text(larger.state()["tokenizer"])
    with pytest.raises(RunError, match=r"its tokenizer\.json has \d+ ids, and config\.json 320"):
        Text(Text.Options(init=folder), data=text).splits()


def test_a_run_is_not_a_published_model(adapted: Path, text: Path) -> None:
    with pytest.raises(RunError, match=r"is a run: write trueloop export .* --out FOLDER first"):
        Text(Text.Options(init=adapted), data=text).splits()


def test_few_conversations_are_refused(base: Path, tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    path.write_text('{"prompt": "a", "response": "b"}\n')
    with pytest.raises(DataError, match="has 1 conversations, which leave none for the validation"):
        Text(Text.Options(), data=path).splits()


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
