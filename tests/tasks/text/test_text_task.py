"""The task `text` as the command line uses it: data, model, loss, scores, options."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from trueloop.errors import ConfigError, DataError, UserError
from trueloop.evaluation import evaluate, predict
from trueloop.feed import Feed
from trueloop.metrics._base import MetricSet
from trueloop.records import EvalRecord
from trueloop.run import Figures
from trueloop.step import Step
from trueloop.tasks import limits
from trueloop.tasks.text import Text
from trueloop.tasks.text.text_scores import TextScores, row_sums
from trueloop.tasks.text.transformer import Transformer

SMALL: dict[str, Any] = {"layers": 2, "width": 16, "heads": 2, "context": 12, "sample_tokens": 9}


@pytest.fixture
def text_file(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    draws = random.Random(0)
    words = [draws.choice(["to", "be", "or", "not", "é"]) for _ in range(600)]
    path.write_text(" ".join(words), encoding="utf-8")
    return path


def task_on(path: Path | None, **options: Any) -> Text:
    return Text(Text.Options(**{**SMALL, **options}), data=path, seed=3)


def test_its_scores_are_those_of_the_whole_validation_part_summed_in_float64(
    text_file: Path,
) -> None:
    task = task_on(text_file)
    splits = task.splits()
    torch.manual_seed(0)
    model = task.model().eval()
    found = evaluate(model, Feed(splits.val, 5), task.loss_fn(), task.metrics(), collect=True)

    ids = torch.tensor(task.encode(text_file.read_text("utf-8")))
    ids = ids[len(splits.train.tokens) :]
    nats, size = 0.0, 0
    for start in range(0, len(ids) - 1, 12):
        window = ids[start : start + 13]
        with torch.no_grad():
            log_probs = model(window[None, :-1])[0].double().log_softmax(-1)
        nats -= float(log_probs.gather(1, window[1:, None]).sum())
        size += len(task.decode(window[1:].tolist()).encode())
    tokens = len(ids) - 1
    assert found["loss"] == pytest.approx(nats / tokens, rel=1e-6)
    assert found["perplexity"] == pytest.approx(math.exp(nats / tokens), rel=1e-6)
    assert found["bits_per_byte"] == pytest.approx(nats / size / math.log(2), rel=1e-6)
    assert size > tokens, "é takes two bytes"
    # What an evaluation collects is a few numbers of each window, and no logits.
    assert found.details["outputs"].shape == (len(splits.val),)
    assert found.details["targets"].shape == (len(splits.val), 2)


def test_the_scores_of_ranks_add_up() -> None:
    torch.manual_seed(0)
    logits, targets = torch.randn(6, 5, 7), torch.randint(7, (6, 5))
    targets[0, 2:] = -100
    sizes = torch.tensor([1, 2, 3, 1, 1, 0, 4])
    whole, halves = TextScores(), [TextScores(), TextScores()]
    for part, sets in ((slice(0, 3), halves[0]), (slice(3, 6), halves[1])):
        sums = row_sums(logits[part], targets[part], sizes)
        for scores in (whole, sets):
            scores.update(sums.nats, sums.counts)
    together: MetricSet = TextScores()
    together._load_local(together._merged([half._local() for half in halves]))
    assert together.compute() == pytest.approx(whole.compute(), rel=1e-12)
    losses = F.cross_entropy(logits.flatten(0, 1).double(), targets.flatten())
    assert whole.compute()["perplexity"] == pytest.approx(math.exp(losses), rel=1e-6)
    assert all(math.isnan(value) for value in TextScores().compute().values())


def test_a_loss_is_weighted_by_its_targets(text_file: Path) -> None:
    """Two micro-batches of 12 and 3 targets make the gradient of their union."""
    task = task_on(text_file)
    task.splits()
    tokens = torch.randint(task.tokenizer.vocab_size, (2, 12))
    targets = torch.randint(task.tokenizer.vocab_size, (2, 12))
    targets[1, 3:] = -100

    def gradients(batches: list[Any], accumulate: int) -> list[torch.Tensor]:
        torch.manual_seed(0)
        model = task.model()
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        before = [p.detach().clone() for p in model.parameters()]
        step = Step(model, optimizer, task.loss_fn(), accumulate=accumulate)
        for batch in batches:
            step(batch)
        after = model.parameters()
        return [a - b.detach() for a, b in zip(before, after, strict=True)]

    one = gradients([(tokens, targets)], 1)
    two = gradients([(tokens[:1], targets[:1]), (tokens[1:], targets[1:])], 2)
    for a, b in zip(one, two, strict=True):
        assert torch.allclose(a, b, rtol=1e-4, atol=1e-6)


def test_z_loss_is_a_part_of_the_training_loss_alone(text_file: Path) -> None:
    task = task_on(text_file, z_loss=0.5)
    splits = task.splits()
    model = task.model()
    batch = next(Feed(splits.val, 4).epoch(0))
    loss_fn = task.loss_fn()
    trained, evaluated = loss_fn(model.train(), batch), loss_fn(model.eval(), batch)
    assert float(trained.parts["z_loss"]) > 0
    assert float(trained.loss.detach() - trained.parts["z_loss"]) == pytest.approx(
        float(evaluated.loss.detach())
    )
    assert not evaluated.parts


def test_options_change_the_preset(text_file: Path) -> None:
    task = task_on(text_file, kv_heads=1, activation="relu2", norm="layer", tied=False)
    task.splits()
    model = task.model()
    assert isinstance(model, Transformer)
    assert model.config.vocab_size == task.tokenizer.vocab_size
    assert (model.config.kv_heads, model.config.norm, model.config.tied) == (1, "layer", False)
    again = Text(task.options)
    again.restore(task.state())
    assert again.config == task.config
    assert again.encode("to be") == task.encode("to be")


def test_batch_tokens_become_equal_micro_batches(text_file: Path) -> None:
    task = task_on(text_file, batch_tokens=12 * 60)
    task.splits()
    recipe = task.settle(replace(task.recipe, batch_size=16))
    assert (recipe.batch_size, recipe.accumulate) == (15, 4)
    assert task.settle(recipe) == recipe, "a run that is resumed is settled as before"
    assert task.settle(replace(task.recipe, batch_size=100)).batch_size == 60
    with pytest.raises(ConfigError, match="leave out --accumulate"):
        task.settle(replace(task.recipe, batch_size=16, accumulate=3))
    task = task_on(text_file, batch_tokens=100)
    task.splits()
    with pytest.raises(ConfigError, match="write --batch-tokens 96 or 108"):
        task.settle(task.recipe)


def test_texts_are_scored_one_by_one(text_file: Path, tmp_path: Path) -> None:
    task = task_on(text_file)
    task.splits()
    torch.manual_seed(1)
    model = task.model().eval()
    folder = tmp_path / "new"
    folder.mkdir()
    texts = {"a.txt": "to be or not to be or not to be", "b.txt": "not é", "c.txt": "t"}
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    for unseen in (task.unseen(folder), task.unseen_in_memory(list(texts.values()))):
        found = unseen.table(task.predictions(predict(model, Feed(unseen.inputs, 2), task.outputs)))
        assert next(iter(found.values())) in (["a.txt", "b.txt", "c.txt"], [1, 2, 3])
        for row, text in enumerate(list(texts.values())[:2]):
            ids = torch.tensor(task.encode(text))
            nats = 0.0
            for start in range(0, len(ids) - 1, 12):
                part = ids[start : start + 13]
                with torch.no_grad():
                    nats += float(F.cross_entropy(model(part[None, :-1])[0], part[1:])) * (
                        len(part) - 1
                    )
            assert found["tokens"][row] == len(ids) - 1
            assert found["log_likelihood"][row] == pytest.approx(-nats, rel=1e-5)
            assert found["loss"][row] == pytest.approx(nats / (len(ids) - 1), rel=1e-5)
        assert found["loss"][2] is None
        assert "2 tokens" in found["error"][2]


def test_what_it_writes_goes_into_the_album(text_file: Path, tmp_path: Path) -> None:
    task = task_on(text_file, sample_prompt="to be")
    task.splits()
    model = task.model()
    state = torch.get_rng_state()
    task.after_evaluation(model, EvalRecord({}, 0, epoch=0, update=40), Figures(tmp_path))
    text = (tmp_path / "texts" / "written" / "000000040.txt").read_text("utf-8")
    assert text.startswith("to be")
    assert len(text) == len("to be") + 9
    assert torch.equal(state, torch.get_rng_state())
    task = task_on(text_file, sample_tokens=0)
    task.splits()
    task.after_evaluation(model, EvalRecord({}, 0, epoch=0, update=41), Figures(tmp_path))
    assert len(list((tmp_path / "texts" / "written").iterdir())) == 1


def test_packed_documents_are_trained_on_apart(tmp_path: Path) -> None:
    path = tmp_path / "docs.txt"
    path.write_text("\n\n".join(["to be or not"] * 60), encoding="utf-8")
    task = task_on(path, pack=True, document_separator="\\n\\n")
    splits = task.splits()
    batch = next(Feed(splits.train, 4, shuffle=True).epoch(0))
    assert len(batch) == 3
    output = task.loss_fn()(task.model(), batch)
    assert int(output.count) == int((batch[1] != -100).sum()) < batch[1].numel()
    task.after_evaluation(task.model(), EvalRecord({}, 0, epoch=0, update=1), Figures(tmp_path))


def test_the_run_is_as_long_as_model_and_text_call_for(text_file: Path) -> None:
    task = task_on(text_file)
    splits = task.splits()
    assert task.recipe.tokens == 12 * len(splits.train.tokens)
    little = task_on(text_file, width=4, heads=1, layers=1)
    little.splits()
    assert little.recipe.tokens == 20 * sum(p.numel() for p in little.model().parameters())
    recipe = task.settle(task.recipe)
    assert recipe.eval_every == f"{-(-recipe.tokens // 10)} tokens"
    assert task.settle(replace(recipe, eval_every="7 updates")).eval_every == "7 updates"
    in_epochs = replace(task.recipe, tokens=None, epochs=2)
    assert task.settle(in_epochs).eval_every is None


def test_memory_of_the_logits_counts() -> None:
    """A vocabulary of 50,000 takes more than the model does: 12 bytes for each logit."""

    def build() -> torch.nn.Module:
        return torch.nn.Embedding(10, 1000)

    tokens = torch.zeros(8, 64, dtype=torch.int64)
    weights = 10 * 1000 * 4
    needed = limits.training_memory(build, lambda: (tokens.to("meta"),))
    assert needed >= 4 * weights + 3 * 8 * 64 * 1000 * 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"preset": "huge"}, "no preset is called 'huge'"),
        ({"context": 0}, "--context must be 1 to"),
        (
            {"heads": 3},
            "--width 16 cannot be divided by --heads 3: write e.g. --width 18 or --heads 1",
        ),
        ({"layers": 100_000}, "--layers must be 1 to"),
        ({"z_loss": -1.0}, "--z-loss must be 0 to 1"),
        ({"sample_prompt": "Ω"}, "--sample-prompt: "),
        ({"sample_prompt": "to be or not to be"}, "--sample-prompt has 18 tokens, and the context"),
        ({"activation": "silu"}, "--activation 'silu' is unknown"),
        ({"context": 100_000}, "needs 100,001: write --context"),
    ],
)
def test_bad_options_are_refused_in_one_line(
    text_file: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError) as raised:
        task_on(text_file, **options).splits()
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_no_data_is_refused() -> None:
    with pytest.raises(ConfigError, match="write --data FILE"):
        task_on(None).splits()


def test_what_is_no_text_cannot_be_scored(text_file: Path) -> None:
    task = task_on(text_file)
    task.splits()
    for data, message in (([], "nothing to predict"), (3, "is a int"), (["t"], "no text can be")):
        with pytest.raises(DataError, match=message):
            task.unseen_in_memory(data)
