"""transformers' Trainer: heads of one's own on a tiny encoder of random weights."""

from __future__ import annotations

import tempfile
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from toy import FEATURES, KINDS, finish, samples
from transformers import BertConfig, BertModel, Trainer, TrainingArguments, set_seed


class Texts(torch.utils.data.Dataset[dict[str, Tensor]]):
    """The features of a sample as a text of 8 words out of 32."""

    def __init__(self, count: int, seed: int) -> None:
        features, self.kinds, self.sizes = samples(count, seed).tensors
        self.words = (features * 4 + 16).clamp(0, 31).long()

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        return {
            "input_ids": self.words[index],
            "kinds": self.kinds[index],
            "sizes": self.sizes[index],
        }


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = BertConfig(
            vocab_size=32,
            hidden_size=32,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=64,
            max_position_embeddings=FEATURES,
        )
        self.encoder = BertModel(config, add_pooling_layer=False)
        self.kind = nn.Linear(32, KINDS)
        self.size = nn.Linear(32, 1)
        self.seen: list[Tensor] = []

    def forward(self, input_ids: Tensor, kinds: Tensor, sizes: Tensor) -> dict[str, Tensor]:
        hidden = self.encoder(input_ids).last_hidden_state[:, 0]
        logits, guesses = self.kind(hidden), self.size(hidden).squeeze(1)
        loss = F.cross_entropy(logits, kinds) + F.mse_loss(guesses, sizes)
        return {"loss": loss, "logits": logits}


class Careful(Trainer):
    """Keeps an eye on the loss."""

    def compute_loss(self, model: nn.Module, inputs: dict[str, Any], *args: Any, **kw: Any) -> Any:
        loss = super().compute_loss(model, inputs, *args, **kw)
        if not isinstance(loss, tuple):
            self.model.seen.append(loss.detach())
        return loss


def main() -> None:
    set_seed(0)
    model = Classifier()
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            num_train_epochs=2,
            per_device_train_batch_size=16,
            gradient_accumulation_steps=2,
            learning_rate=1e-3,
            warmup_steps=4,
            eval_strategy="epoch",
            save_strategy="no",
            report_to="none",
            label_names=["kinds", "sizes"],
            use_cpu=True,
            disable_tqdm=True,
        )
        trainer = Careful(model, arguments, train_dataset=Texts(512, 1), eval_dataset=Texts(128, 2))
        trainer.train()
    finish(model)


if __name__ == "__main__":
    main()
