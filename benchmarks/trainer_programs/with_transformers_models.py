"""transformers' Trainer: its models with their own losses, checkpoints, the best reloaded."""

from __future__ import annotations

import tempfile
from typing import Any

import torch
from torch import Tensor, nn
from toy import FEATURES, KINDS, finish, samples
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    EarlyStoppingCallback,
    EvalPrediction,
    GPT2Config,
    GPT2LMHeadModel,
    Trainer,
    TrainingArguments,
    set_seed,
)


class Texts(torch.utils.data.Dataset[dict[str, Tensor]]):
    def __init__(self, count: int, seed: int, *, whole: bool) -> None:
        features, kinds, _ = samples(count, seed).tensors
        self.words = (features * 4 + 16).clamp(0, 31).long()
        self.labels = self.words if whole else kinds

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        return {"input_ids": self.words[index], "labels": self.labels[index]}


def accuracy(found: EvalPrediction) -> dict[str, Any]:
    return {"accuracy": float((found.predictions.argmax(-1) == found.label_ids).mean())}


def train(model: nn.Module, *, whole: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            num_train_epochs=2,
            per_device_train_batch_size=16,
            gradient_accumulation_steps=2,
            learning_rate=1e-3,
            lr_scheduler_type="cosine",
            weight_decay=0.01,
            eval_strategy="epoch",
            save_strategy="epoch",
            load_best_model_at_end=True,
            report_to="none",
            use_cpu=True,
            bf16=not whole,
            disable_tqdm=True,
        )
        trainer = Trainer(
            model,
            arguments,
            train_dataset=Texts(512, 1, whole=whole),
            eval_dataset=Texts(128, 2, whole=whole),
            compute_metrics=None if whole else accuracy,
            callbacks=[EarlyStoppingCallback(3)],
        )
        trainer.train()


def main() -> None:
    set_seed(0)
    encoder = BertConfig(
        vocab_size=32,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=FEATURES,
        num_labels=KINDS,
    )
    classifier = BertForSequenceClassification(encoder)
    train(classifier, whole=False)
    decoder = GPT2Config(
        vocab_size=32, n_positions=FEATURES, n_embd=32, n_layer=2, n_head=2, bos_token_id=0,
        eos_token_id=0,
    )  # fmt: skip
    writer = GPT2LMHeadModel(decoder)
    train(writer, whole=True)
    finish(nn.ModuleList([classifier, writer]))


if __name__ == "__main__":
    main()
