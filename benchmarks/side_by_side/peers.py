"""The same job by other trainers, each as its documentation has it, without loggers, checkpoints
and progress bars.

Of those that own the loop, the seconds are from the beginning of the first epoch to the end of the
last; what they do before and after it is not counted.
"""

from __future__ import annotations

import os
import tempfile
import time
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

from side_by_side.loops import Epochs, Job, timed


def fabric(job: Job) -> Epochs:
    from lightning.fabric import Fabric

    one = Fabric(accelerator="cpu", devices=1)
    bare, criterion = job.model(), nn.CrossEntropyLoss()
    model, optimizer = one.setup(bare, torch.optim.Adam(bare.parameters(), lr=job.lr))
    batches = one.setup_dataloaders(job.loader())

    def epoch(number: int) -> None:
        for inputs, targets in batches:
            optimizer.zero_grad()
            loss = criterion(model(inputs), targets)
            one.backward(loss)
            one.clip_gradients(model, optimizer, max_norm=job.clip)
            optimizer.step()

    return timed(epoch)


def accelerate(job: Job) -> Epochs:
    from accelerate import Accelerator

    one = Accelerator(cpu=True)
    bare, criterion = job.model(), nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(bare.parameters(), lr=job.lr)
    model, optimizer, batches = one.prepare(bare, optimizer, job.loader())

    def epoch(number: int) -> None:
        for inputs, targets in batches:
            optimizer.zero_grad()
            loss = criterion(model(inputs), targets)
            one.backward(loss)
            one.clip_grad_norm_(model.parameters(), job.clip)
            optimizer.step()

    return timed(epoch)


def lightning(job: Job) -> Epochs:
    import lightning as L

    class Module(L.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model, self.criterion = job.model(), nn.CrossEntropyLoss()

        def training_step(self, batch: Any, number: int) -> Tensor:
            inputs, targets = batch
            loss: Tensor = self.criterion(self.model(inputs), targets)
            return loss

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.Adam(self.parameters(), lr=job.lr)

    class Clock(L.Callback):  # type: ignore[misc]
        started = seconds = 0.0

        def on_train_epoch_start(self, trainer: Any, module: Any) -> None:
            self.started = self.started or time.perf_counter()

        def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
            self.seconds = time.perf_counter() - self.started

    module, batches = Module(), job.loader()

    def epochs(count: int) -> float:
        clock = Clock()
        trainer = L.Trainer(
            max_epochs=count,
            gradient_clip_val=job.clip,
            accelerator="cpu",
            devices=1,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            callbacks=[clock],
        )
        trainer.fit(module, batches)
        return clock.seconds

    return epochs


def ignite(job: Job) -> Epochs:
    from ignite.engine import Engine, Events

    model, criterion, batches = job.model(), nn.CrossEntropyLoss(), job.loader()
    optimizer = torch.optim.Adam(model.parameters(), lr=job.lr)

    def update(engine: Any, batch: Any) -> float:
        model.train()
        optimizer.zero_grad()
        inputs, targets = batch
        loss = criterion(model(inputs), targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), job.clip)
        optimizer.step()
        return float(loss.item())

    def epochs(count: int) -> float:
        trainer, at = Engine(update), []
        trainer.add_event_handler(Events.STARTED, lambda _: at.append(time.perf_counter()))
        trainer.run(batches, max_epochs=count)
        return time.perf_counter() - at[0]

    return epochs


def skorch(job: Job) -> Epochs:
    from skorch import NeuralNetClassifier
    from skorch.callbacks import GradientNormClipping

    net = NeuralNetClassifier(
        job.model(),
        criterion=nn.CrossEntropyLoss,
        optimizer=torch.optim.Adam,
        lr=job.lr,
        batch_size=job.batch,
        iterator_train__shuffle=True,
        train_split=None,
        callbacks=[GradientNormClipping(job.clip)],
        verbose=0,
    ).initialize()
    inputs, targets = job.data()

    def epochs(count: int) -> float:
        started = time.perf_counter()
        net.partial_fit(inputs, targets, epochs=count)
        return time.perf_counter() - started

    return epochs


def keras(job: Job) -> Epochs:
    os.environ["KERAS_BACKEND"] = "torch"
    import keras

    inner = [keras.layers.Dense(width, activation="relu") for width in job.sizes[1:-1]]
    ends = (keras.Input((job.sizes[0],)), keras.layers.Dense(job.sizes[-1]))
    model = keras.Sequential([ends[0], *inner, ends[1]])
    model.compile(
        optimizer=keras.optimizers.Adam(job.lr, global_clipnorm=job.clip),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    inputs, targets = job.data()

    class Clock(keras.callbacks.Callback):  # type: ignore[misc]
        started = seconds = 0.0

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            self.started = self.started or time.perf_counter()

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            self.seconds = time.perf_counter() - self.started

    def epochs(count: int) -> float:
        clock = Clock()
        model.fit(inputs, targets, batch_size=job.batch, epochs=count, verbose=0, callbacks=[clock])
        return clock.seconds

    return epochs


class _Rows(Dataset[dict[str, Tensor]]):
    def __init__(self, inputs: Tensor, labels: Tensor) -> None:
        self.inputs, self.labels = inputs, labels

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        return {"inputs": self.inputs[index], "labels": self.labels[index]}


class _WithLoss(nn.Module):
    """A model as transformers' Trainer takes it: it computes its own loss."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model, self.criterion = model, nn.CrossEntropyLoss()

    def forward(self, inputs: Tensor, labels: Tensor) -> dict[str, Tensor]:
        logits = self.model(inputs)
        return {"loss": self.criterion(logits, labels), "logits": logits}


def transformers(job: Job) -> Epochs:
    import transformers as hf

    model, rows = _WithLoss(job.model()), _Rows(*job.data())
    folder = tempfile.TemporaryDirectory()

    class Clock(hf.TrainerCallback):  # type: ignore[misc]
        started = seconds = 0.0

        def on_epoch_begin(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
            self.started = self.started or time.perf_counter()

        def on_epoch_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
            self.seconds = time.perf_counter() - self.started

    def epochs(count: int) -> float:
        clock = Clock()
        arguments = hf.TrainingArguments(
            output_dir=folder.name,
            num_train_epochs=count,
            per_device_train_batch_size=job.batch,
            learning_rate=job.lr,
            lr_scheduler_type="constant",
            max_grad_norm=job.clip,
            optim="adamw_torch",
            use_cpu=True,
            report_to="none",
            save_strategy="no",
            logging_strategy="no",
            disable_tqdm=True,
            dataloader_pin_memory=False,
            remove_unused_columns=False,
        )
        trainer = hf.Trainer(model=model, args=arguments, train_dataset=rows, callbacks=[clock])
        trainer.remove_callback(hf.PrinterCallback)
        trainer.train()
        return clock.seconds

    return epochs


PEERS = {
    "Fabric": fabric,
    "Lightning": lightning,
    "Accelerate": accelerate,
    "Ignite": ignite,
    "skorch": skorch,
    "Keras on torch": keras,
    "transformers' Trainer": transformers,
}
