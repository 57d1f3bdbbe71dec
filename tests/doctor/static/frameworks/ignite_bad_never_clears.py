import torch
from ignite.engine import Engine, Events
from torch import nn


def make_trainer(model, criterion, optimizer, device):
    def update(engine, batch):
        model.train()
        inputs, targets = (part.to(device) for part in batch)
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()  # <- TL102
        return {"loss": loss.item()}

    trainer = Engine(update)

    @trainer.on(Events.ITERATION_COMPLETED(every=50))
    def report(engine):
        print(engine.state.iteration, engine.state.output["loss"])

    return trainer
