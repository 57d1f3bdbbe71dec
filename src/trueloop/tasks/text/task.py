"""Text: a language model of any text, or of token ids."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trueloop import lora
from trueloop.errors import ConfigError, DataError
from trueloop.generate import generate
from trueloop.losses import z_loss
from trueloop.option import option
from trueloop.records import EvalRecord, LossOutput
from trueloop.run import Figures
from trueloop.tasks.base import LossFn, PredictInput, Splits, Task
from trueloop.tasks.limits import MOST_BATCH, MOST_UNITS, check_range
from trueloop.tasks.option_docs import documented
from trueloop.tasks.recipe import Recipe
from trueloop.tasks.text.chat import (
    ChatData,
    ChatSamples,
    encode,
    is_chat,
    opening,
    read_chat,
    read_conversations,
    read_each_conversation,
    samples_of,
)
from trueloop.tasks.text.chat_template import PLAIN, ChatTemplate, Message
from trueloop.tasks.text.context_windows import IGNORE, WindowDataset
from trueloop.tasks.text.finetuning import FineTuning, Start, new_model, padded
from trueloop.tasks.text.publish import write_folder
from trueloop.tasks.text.scored_documents import (
    Scorable,
    documents_in,
    windows_of,
    windows_of_conversations,
)
from trueloop.tasks.text.text_data import TextData, TextOptions, read_text, read_windows
from trueloop.tasks.text.text_scores import RowSums, TextScores, row_sums, scores
from trueloop.tasks.text.tokenizer import Tokenizer, tokenizer_from_state
from trueloop.tasks.text.transformer import Transformer
from trueloop.tasks.text.transformer_config import (
    ACTIVATIONS,
    NORMS,
    POSITIONS,
    PRESETS,
    TransformerConfig,
    preset,
)

MOST_CONTEXT = 1_048_576
MOST_DEPTH = 256
_BY_PRESET = "by the preset"
_SHAPE = (
    "context", "layers", "width", "heads", "kv_heads", "hidden", "norm", "positions", "activation",
    "tied", "qk_norm", "dropout",
)  # fmt: skip
"""Options that change a preset."""
_OF_SHAPE = [name for name in (*_SHAPE, "tokenizer") if name not in ("context", "dropout")]
"""Options that a published model decides."""
USUAL_CONTEXT = 1024
"""Tokens of a context, of published models that could take more."""
_TOKENS_PER_PARAMETER = 20
"""Hoffmann et al. 2022 ("Chinchilla"): about what a model of a given size is trained on where
compute is what is scarce."""
_MOST_EPOCHS = 12
"""On little text more passes than these only teach it by heart."""
_EPOCHS_OF_CHAT = 10
_EVALUATIONS = 10
"""The default."""


def _as_typed(message: str) -> str:
    """A message about the fields of a `TransformerConfig`, with the options as they are typed."""
    fields = "|".join(sorted(_SHAPE, key=len, reverse=True))
    return re.sub(
        rf"\b({fields})=(?=\S)", lambda found: f"--{found[1].replace('_', '-')} ", message
    )


class Text(Task):
    """A language model of any text: a file, a folder of files, or token ids."""

    kind = "language"
    recipe = Recipe(
        epochs=None,
        tokens=16_000_000,
        batch_size=8,
        optimizer="muon",
        lr=4e-3,
        weight_decay=0.1,
        schedule="warmup_stable_decay",
        warmup="2%",
        decay="50%",
        clip_norm=1.0,
        monitor="val_loss",
    )
    smaller = "--batch-size, --context, --width or --layers"

    @documented
    @dataclass(frozen=True, kw_only=True)
    class Options(FineTuning, TextOptions):
        """Options of the text task."""

        preset: str = option("tiny", usual=True, group="network", choices=tuple(PRESETS))
        """Network's size. tiny has 0.8 million weights and context 256, small 14 million and
        512, gpt2-124m context 1024."""
        context: int | None = option(None, usual=True, unit="tokens", unset=_BY_PRESET)
        """Context length."""
        layers: int | None = option(None, unset=_BY_PRESET)
        """Blocks of attention and MLP."""
        width: int | None = option(None, unset=_BY_PRESET)
        """Embedding dimension."""
        heads: int | None = option(None, unset=_BY_PRESET)
        """Attention heads."""
        kv_heads: int | None = option(None, unset=_BY_PRESET)
        """Heads of keys and values; fewer than heads means grouped-query attention."""
        hidden: int | None = option(None, unset=_BY_PRESET)
        """Hidden dimension of the MLP."""
        norm: str | None = option(None, choices=NORMS, unset=_BY_PRESET)
        """Kind of normalisation layer."""
        positions: str | None = option(None, choices=POSITIONS, unset=_BY_PRESET)
        """How positions enter the network."""
        activation: str | None = option(None, choices=ACTIVATIONS, unset=_BY_PRESET)
        """Activation of the MLP."""
        tied: bool | None = option(None, unset=_BY_PRESET)
        """Whether the head shares the embedding's matrix."""
        qk_norm: bool | None = option(None, unset=_BY_PRESET)
        """Whether queries and keys are normalised."""
        dropout: float | None = option(None, unset=_BY_PRESET)
        """Dropout probability of embeddings, attention weights and sublayers."""
        z_loss: float = option(0.0)
        """Weight of the term that keeps the logits' normaliser near 1; 1e-4 is usual in bf16."""
        batch_tokens: int | None = option(None, unit="tokens")
        """Size of an update over all ranks. It sets the number of micro-batches of --batch-size
        contexts; null uses --batch-size and --accumulate."""
        sample_prompt: str | None = option(
            None, group="texts in the report", unset="a new line, or document"
        )
        """The prompt of the texts in the report."""
        sample_tokens: int = option(256, unit="tokens")
        """Length of the text that the model writes for the report after each evaluation; 0 for
        none."""

    options: Options
    tokenizer: Tokenizer
    config: TransformerConfig
    context: int
    """Tokens of a context in training: at most as many as the model's."""
    chat: ChatTemplate | None = None
    """How conversations become text; None where neither the data nor the model have such."""
    _origin: Start | None = None
    _shown: list[Message] | None = None
    """A conversation that validates, whose first response the report has the model write."""

    def splits(self) -> Splits:
        self._check_options()
        if self.data is None:
            raise ConfigError("the text task needs a text: write --data FILE or --data FOLDER")
        self._origin = self._opened()
        self.random_weights = self._origin is None
        self.context = self._window()
        found = self._read(self.data)
        self.tokenizer = found.tokenizer
        self.config = self._config(found.tokenizer.vocab_size)
        self.digest = found.digest
        self._check_prompt()
        self.recipe = self._suited(found.tokens)
        facts = {**found.facts, "context": self.context}
        return Splits(
            train=found.train,
            val=found.val,
            test=found.test,
            facts=facts,
            findings=found.findings,
        )

    def _opened(self) -> Start | None:
        """The published model of `--init`."""
        if self.options.init is None:
            return None
        return Start.of(self.options.init, self.resumed, self.options.dropout or 0.0)

    def _read(self, data: Path) -> TextData | ChatData:
        origin, options = self._origin, self.options
        known = None if origin is None else origin.tokenizer
        template = None if origin is None else origin.chat_template
        if not is_chat(data):
            if known is not None and template is not None:
                self.chat = ChatTemplate(template, known)
            return read_text(
                data, self.context, options, tokenizer=known, seed=self.seed, quiet=self.quiet
            )
        found = read_chat(
            data, self.context, options, tokenizer=known, template=template, seed=self.seed
        )
        self.chat, self._shown = found.template, found.example
        return found

    def _window(self) -> int:
        """Tokens of a context: `--context`, or the model's, of a published one the usual."""
        stated, most = self.options.context, self._config(1).context
        if self._origin is None:
            return most
        check_range("--context", stated, 1, most, unit="tokens, the model's", example=most)
        return stated or min(most, USUAL_CONTEXT)

    def _config(self, vocab_size: int) -> TransformerConfig:
        if self._origin is not None:
            return self._origin.config
        changes = {name: getattr(self.options, name) for name in _SHAPE}
        stated = {name: value for name, value in changes.items() if value is not None}
        try:
            return preset(self.options.preset, vocab_size, **stated)
        except ConfigError as error:
            raise ConfigError(_as_typed(str(error))) from None

    def _suited(self, tokens: int) -> Recipe:
        """The recipe for so many training tokens: 20 tokens for each weight, but on little text at
        most 12 epochs of it; of conversations, and from a published model, a few epochs."""
        recipe, batch = type(self).recipe, tokens // self.context - 1
        if self._shown is not None:
            recipe = replace(recipe, epochs=_EPOCHS_OF_CHAT, tokens=None)
        elif self._origin is None:
            with torch.device("meta"):
                weights = sum(p.numel() for p in Transformer(self.config).parameters())
            length = min(_TOKENS_PER_PARAMETER * weights, _MOST_EPOCHS * tokens)
            recipe = replace(recipe, tokens=length)
        if self._origin is not None:
            recipe = self.options.suited(recipe)
        return replace(recipe, batch_size=max(1, min(recipe.batch_size, batch)))

    def settle(self, recipe: Recipe) -> Recipe:
        """Ten evaluations of a run whose length is not in epochs, unless `eval_every` is given, and
        `--batch-tokens` as micro-batches."""
        if recipe.eval_every is None:
            for unit in ("updates", "tokens"):
                if length := getattr(recipe, unit):
                    recipe = replace(recipe, eval_every=f"{-(-length // _EVALUATIONS)} {unit}")
        return self._with_batch_tokens(recipe)

    def _with_batch_tokens(self, recipe: Recipe) -> Recipe:
        """`--batch-tokens` as micro-batches of at most `batch_size` contexts, all equal."""
        tokens, context = self.options.batch_tokens, self.context
        if tokens is None:
            return recipe
        if tokens % context:
            below = tokens // context * context
            remedy = " or ".join(f"{n}" for n in (below, below + context) if n)
            raise ConfigError(
                f"--batch-tokens {tokens} is not a whole number of contexts of {context} tokens: "
                f"write --batch-tokens {remedy}"
            )
        rows = tokens // context
        most = min(recipe.batch_size, rows)
        size = next(n for n in range(most, 0, -1) if rows % n == 0)
        if recipe.accumulate not in (1, rows // size):
            raise ConfigError(
                f"--batch-tokens {tokens} and --accumulate {recipe.accumulate} both set the number "
                "of micro-batches per update: leave out --accumulate"
            )
        return replace(recipe, batch_size=size, accumulate=rows // size)

    def model(self) -> nn.Module:
        return new_model(self.config, self.options, self._origin)

    def inference_model(self, model: nn.Module) -> nn.Module:
        return lora.merge(model)

    def export(self, model: nn.Module, folder: Path, *, dtype: str) -> None:
        assert isinstance(model, Transformer)
        template = None if self.chat is None else self.chat.source
        write_folder(folder, model, self.tokenizer, dtype=dtype, chat_template=template)

    def example_inputs(self, samples: int) -> tuple[Tensor, ...]:
        return (torch.zeros(samples, self.context, dtype=torch.int64),)

    def loss_fn(self) -> LossFn:
        weight, sums = self.options.z_loss, self._row_sums

        def loss_fn(model: nn.Module, batch: Any) -> LossOutput:
            logits, targets = logits_of(model, batch)
            # On the device: reading it would wait. A mean over no target at all is 0, not NaN.
            count = (targets != IGNORE).sum()
            total = F.cross_entropy(
                logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORE, reduction="sum"
            )
            loss, parts = total / count.clamp(min=1), {}
            if weight and model.training:
                extra = z_loss(logits, targets, weight=weight, ignore_index=IGNORE)
                loss, parts = loss + extra, {"z_loss": extra.detach()}
            if model.training:
                return LossOutput(loss, count, parts=parts)
            rows = sums(logits, targets)
            return LossOutput(loss, count, outputs=rows.nats, targets=rows.counts)

        return loss_fn

    def _row_sums(self, logits: Tensor, targets: Tensor) -> RowSums:
        return row_sums(logits, targets, self._bytes_on(logits.device))

    def _bytes_on(self, device: torch.device) -> Tensor:
        kept: Tensor | None = getattr(self, "_bytes", None)
        if kept is None or kept.device != device:
            self._bytes = kept = self.tokenizer.bytes_per_token().to(device)
        return kept

    def metrics(self) -> TextScores:
        return TextScores()

    def state(self) -> dict[str, Any]:
        return {
            **super().state(),
            "tokenizer": self.tokenizer.state(),
            "config": asdict(self.config),
            "context": self.context,
            "chat_template": None if self.chat is None else self.chat.source,
            "digest": self.digest,
        }

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self.config = TransformerConfig(**state["config"])
        self.tokenizer = padded(tokenizer_from_state(state["tokenizer"]), self.config)
        self.context = state.get("context", self.config.context)
        template = state.get("chat_template")
        self.chat = None if template is None else ChatTemplate(template, self.tokenizer)
        self.digest = state.get("digest")

    def encode(self, text: str) -> list[int]:
        """The ids of a text. Raises `DataError` for text that has no id."""
        return self.tokenizer.encode(text)

    def decode(self, ids: Any) -> str:
        """The text of ids."""
        return self.tokenizer.decode(ids)

    def read(self, path: Path) -> WindowDataset | ChatSamples:
        """Text, or token ids, in windows of the training's context, each token predicted once;
        conversations, of which the responses are."""
        if is_chat(path):
            found = encode(read_conversations(path), self._template(), self.context)
            return samples_of(found, self.context, self.options.pack)
        context = self.context
        return read_windows(path, context, self.options, self.tokenizer, quiet=self.quiet)

    def unseen(self, path: Path) -> PredictInput:
        """The documents at `path`: of a folder its files, of a file what the separator divides; of
        JSON lines the conversations, whose responses are scored."""
        if is_chat(path):
            numbers, conversations, errors = read_each_conversation(path)
            found = windows_of_conversations(conversations, errors, self._template(), self.context)
            return self._unseen("line", numbers, found)
        names, texts = documents_in(path, self.options.separator)
        return self._unseen("document", names, self._windows(texts))

    def unseen_in_memory(self, data: Any) -> PredictInput:
        """A text, or a list of texts."""
        texts = [data] if isinstance(data, str) else data
        if not isinstance(texts, (list, tuple)) or not all(isinstance(t, str) for t in texts):
            raise DataError(
                f"the data to predict is a {type(data).__name__}: give a text, a list of texts, or "
                "a path"
            )
        if not texts:
            raise DataError("there is nothing to predict: give at least one text")
        names = list(range(1, len(texts) + 1))
        return self._unseen("row", names, self._windows(list(texts)))

    def _windows(self, texts: list[str]) -> Scorable:
        return windows_of(texts, self.tokenizer, self.context, self._start)

    def _unseen(self, what: str, names: list[Any], found: Scorable) -> PredictInput:
        if not found.scored:
            remedy = (
                "conversations with responses" if what == "line" else "text of 2 tokens or more"
            )
            raise DataError(f"no text can be scored ({found.errors[0]}): give {remedy}")
        self._owners, self._scored = found.owners, found.scored
        return PredictInput(inputs=found.windows(), names={what: names}, errors=found.errors)

    def _template(self) -> ChatTemplate:
        return self.chat or ChatTemplate(PLAIN, self.tokenizer)

    def outputs(self, model: nn.Module, batch: Any) -> Tensor:
        """Nats, predicted tokens and their bytes of each window: float64 (windows, 3)."""
        rows = self._row_sums(*logits_of(model, batch))
        return torch.cat((rows.nats[:, None], rows.counts.to(rows.nats.dtype)), dim=1)

    def predictions(self, outputs: Tensor) -> dict[str, list[Any]]:
        """How well the model predicts each text: its tokens, log-likelihood and scores."""
        sums = torch.zeros(len(self._scored), 3, dtype=torch.float64)
        sums.index_add_(0, torch.tensor(self._owners), outputs.double().cpu())
        columns: dict[str, list[Any]] = {
            name: [] for name in ("tokens", "log_likelihood", "loss", "perplexity", "bits_per_byte")
        }
        for nats, tokens, size in sums.tolist():
            found = scores(nats, int(tokens), int(size))
            row = {"tokens": int(tokens), "log_likelihood": -nats, "loss": nats / tokens, **found}
            for name, value in row.items():
                columns[name].append(value)
        return columns

    def after_evaluation(self, model: nn.Module, record: EvalRecord, album: Figures) -> None:
        """The texts of the model, for the report."""
        if not self.options.sample_tokens:
            return
        prompt, shown = self._prompt()
        found = generate(
            model,
            torch.tensor([prompt], device=next(model.parameters()).device),
            max_new_tokens=self.options.sample_tokens,
            temperature=0.8,
            top_p=0.95,
            seed=self.seed,
            tokenizer=self.tokenizer,
            end_of_text=self.tokenizer.end_of_text,
            context=self.config.context,
        )
        assert found.texts is not None
        album.text("written", shown + found.texts[0], record.update or 0)

    @property
    def _start(self) -> int | None:
        """The id that begins a text: the end of the one before, unless documents are kept apart."""
        return None if self.options.pack else self.tokenizer.end_of_text

    def _prompt(self) -> tuple[list[int], str]:
        """The ids of the prompt of a text in the report, and the part of it that is shown."""
        stated = self.options.sample_prompt
        if self.chat is not None and self._shown is not None:
            messages = [{"role": "user", "content": stated}] if stated else opening(self._shown)
            return self.chat.prompt(messages), self.chat.shown(messages)
        if stated:
            return self.encode(stated), stated
        if self._start is not None:
            return [self._start], ""
        try:
            return self.encode("\n") or [0], ""
        except DataError:  # a vocabulary without line ends
            return [0], ""

    def _check_prompt(self) -> None:
        try:
            length = len(self._prompt()[0])
        except DataError as error:
            raise ConfigError(f"--sample-prompt: {error}") from None
        if length >= self.config.context:
            raise ConfigError(
                f"--sample-prompt has {length:,} tokens, and the context {self.config.context:,}: "
                "write a shorter one"
            )

    def _check_options(self) -> None:
        options = self.options
        options.check([name for name in _OF_SHAPE if getattr(options, name) is not None])
        check_range("--context", options.context, 1, MOST_CONTEXT, unit="tokens", example=256)
        check_range("--layers", options.layers, 1, MOST_DEPTH, unit="layers", example=4)
        for name in ("width", "heads", "kv_heads"):
            option = "--" + name.replace("_", "-")
            check_range(option, getattr(options, name), 1, MOST_UNITS, example=4)
        check_range("--hidden", options.hidden, 1, 16 * MOST_UNITS, example=512)
        check_range("--z-loss", options.z_loss, 0, 1, example=1e-4)
        check_range("--sample-tokens", options.sample_tokens, 0, MOST_CONTEXT, example=256)
        most = MOST_BATCH * MOST_CONTEXT
        check_range("--batch-tokens", options.batch_tokens, 1, most, unit="tokens", example=65_536)


def logits_of(model: nn.Module, batch: Any) -> tuple[Tensor, Tensor]:
    """The model's logits for a batch (tokens, targets) or (tokens, targets, documents), and the
    targets."""
    tokens, targets, *documents = batch.values() if isinstance(batch, Mapping) else batch
    logits = model(tokens, documents=documents[0]) if documents else model(tokens)
    return logits, targets
