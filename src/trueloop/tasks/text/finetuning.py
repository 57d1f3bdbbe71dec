"""Training on from a published model: `--init FOLDER`, all weights or LoRA adapters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trueloop import lora
from trueloop.errors import ConfigError, RunError
from trueloop.option import option
from trueloop.tasks.limits import check_range
from trueloop.tasks.option_docs import documented
from trueloop.tasks.recipe import Recipe
from trueloop.tasks.text import pretrained, subwords
from trueloop.tasks.text.chat_template import template_of
from trueloop.tasks.text.tokenizer import Tokenizer, tokenizer_from_state
from trueloop.tasks.text.transformer import Transformer
from trueloop.tasks.text.transformer_config import TransformerConfig

LAYERS = ("query", "key", "value", "output", "up", "gate", "down")
"""Linear layers of a block."""
_MOST_RANK = 65_536
_EPOCHS, _LR, _LR_OF_LORA = 3, 1e-4, 1e-3
_OF_A_RUN = "environment.json"


@documented
@dataclass(frozen=True, kw_only=True)
class FineTuning:
    """The pretrained model to start from, and the weights to train."""

    init: Path | None = option(None, usual=True, group="fine-tuning", unset="random weights")
    """Published model to start from. A folder of a model of the GPT-2 or Llama family, with its
    tokenizer: config.json, model.safetensors, tokenizer.json."""
    lora: list[str] | None = option(None, usual=True, choices=LAYERS, unset="none")
    """Layers with LoRA adapters. All other weights are frozen; without adapters, all weights are
    trained."""
    lora_rank: int = option(8)
    """Rank of the adapters."""
    lora_alpha: float = option(16.0)
    """The adapters are scaled by alpha / rank."""
    lora_dropout: float = option(0.0)
    """Dropout probability of the adapters' inputs."""

    def suited(self, recipe: Recipe) -> Recipe:
        """A task's recipe for a pretrained model: few epochs, at a small learning rate, and of only
        adapters at ten times that."""
        lr = _LR if self.lora is None else _LR_OF_LORA
        return replace(
            recipe, epochs=_EPOCHS, tokens=None, optimizer="adamw", lr=lr, weight_decay=0.0
        )

    def check(self, of_shape: Sequence[str]) -> None:
        """Raise `ConfigError` for values that cannot work; `of_shape` are options of the model's
        shape that were given."""
        if self.init is not None and of_shape:
            option = "--" + of_shape[0].replace("_", "-")
            raise ConfigError(
                f"{option} and --init exclude each other: leave out {option}, the folder defines "
                "the model"
            )
        check_range("--lora-rank", self.lora_rank, 1, _MOST_RANK, example=8)
        check_range("--lora-alpha", self.lora_alpha, 0, 1e6, example=16, open_below=True)
        check_range("--lora-dropout", self.lora_dropout, 0, 0.99, example=0.05)
        if self.lora is None:
            return
        if self.init is None:
            raise ConfigError(
                "--lora adapts a pretrained model: name its folder with --init, or leave --lora out"
            )
        if not self.lora:
            raise ConfigError("--lora names no layers: write e.g. --lora query,value")


@dataclass(frozen=True)
class Start:
    """The model that a training starts from."""

    config: TransformerConfig
    tokenizer: Tokenizer
    chat_template: str | None
    weights: pretrained.Pretrained | None
    """None for a resumed run: the weights are in its checkpoint."""

    @classmethod
    def of(cls, folder: Path, resumed: Mapping[str, Any] | None, dropout: float) -> Start:
        """A published model, or for a resumed run what its state contains of it.

        Raises `RunError` and `DataError` if the folder is incomplete.
        """
        if resumed is not None:
            config = TransformerConfig(**resumed["config"])
            tokenizer = padded(tokenizer_from_state(resumed["tokenizer"]), config)
            return cls(config, tokenizer, resumed.get("chat_template"), None)
        if (folder / _OF_A_RUN).exists():
            raise RunError(
                f"{folder} is a run: write trueloop export {folder} --out FOLDER first, and --init "
                "FOLDER then"
            )
        found = pretrained.open_folder(folder)
        tokenizer = subwords.from_file(folder)
        if tokenizer.vocab_size > found.config.vocab_size:
            raise RunError(
                f"{folder}: its tokenizer.json has {tokenizer.vocab_size:,} ids, and config.json "
                f"{found.config.vocab_size:,}: download both again"
            )
        config = replace(found.config, dropout=dropout)
        return cls(config, padded(tokenizer, config), template_of(folder), found)


def padded(tokenizer: Tokenizer, config: TransformerConfig) -> Tokenizer:
    """The tokenizer with as many ids as the model: published models often have some beyond the
    vocabulary, without any text."""
    if isinstance(tokenizer, subwords.SubwordTokenizer):
        tokenizer.vocab_size = max(tokenizer.vocab_size, config.vocab_size)
    return tokenizer


def new_model(config: TransformerConfig, options: FineTuning, start: Start | None) -> Transformer:
    """The model as it trains: with random weights, or those of `start`, and the adapters.

    Raises `ConfigError` for layers that the model does not have.
    """
    model = Transformer(config)
    if start is not None and start.weights is not None:
        if model.embedding.weight.is_meta:
            start.weights.fill_when_made(model)
        else:
            start.weights.fill(model)
    if options.lora is not None:
        lora.apply(
            model,
            options.lora,
            rank=options.lora_rank,
            alpha=options.lora_alpha,
            dropout=options.lora_dropout,
        )
    return model
