"""transformers: `Trainer` with `save_steps`, and `train(resume_from_checkpoint=...)` to go on.

Its defaults skip the batches that were seen and restore the generators. `full_determinism` is what
`TrainingArguments` offers beyond.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset
from toy import BATCH, EPOCHS, LR, SEED, STOP, Trial
from transformers import Trainer, TrainingArguments, set_seed


class WithLoss(nn.Module):
    """A model as `Trainer` expects it: it returns its loss itself."""

    def __init__(self, trial: Trial) -> None:
        super().__init__()
        self.model = trial.model()
        self.criterion = trial.criterion

    def forward(self, points: Tensor, labels: Tensor) -> dict[str, Tensor]:
        logits = self.model(points)
        return {"loss": self.criterion(logits, labels), "logits": logits}


class Rows(Dataset[dict[str, Tensor]]):
    """The same samples under the names of `forward`."""

    def __init__(self, trial: Trial) -> None:
        self.samples = trial.samples()

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        point, label = self.samples[index]
        return {"points": point, "labels": label}


def main() -> None:
    trial = Trial("default", "full_determinism")
    set_seed(SEED)
    model = WithLoss(trial)
    arguments = TrainingArguments(
        output_dir=str(trial.folder),
        per_device_train_batch_size=BATCH,
        num_train_epochs=EPOCHS,
        learning_rate=LR,
        lr_scheduler_type="constant",
        max_grad_norm=0.0,  # no clipping: the others do not clip
        save_strategy="steps",
        save_steps=STOP,
        seed=SEED,
        full_determinism=trial.way == "full_determinism",
        use_cpu=True,
        report_to="none",
        logging_strategy="no",
        disable_tqdm=True,
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=LR)
    trainer = Trainer(model, arguments, train_dataset=Rows(trial), optimizers=(optimizer, None))
    trainer.train(resume_from_checkpoint=trial.resumes)
    trial.finish(model.model)


if __name__ == "__main__":
    main()
