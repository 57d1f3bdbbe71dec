import torch
from ignite.engine import Engine, Events
from ignite.handlers import PiecewiseLinear, create_lr_scheduler_with_warmup
from torch import nn


def build(config, loader):
    model = nn.Linear(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=config.lr, momentum=0.9)
    scaler = torch.amp.GradScaler("cuda", enabled=config.amp)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="max")

    def update(engine, batch):
        model.train()
        with torch.autocast("cuda", enabled=config.amp):
            loss = nn.functional.cross_entropy(model(batch[0]), batch[1])
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        scaler.step(optimizer)
        scaler.update()
        return loss.item()

    trainer = Engine(update)
    steps = [(0, 0.0), (10 * len(loader), config.lr), (config.epochs * len(loader), 0.0)]
    trainer.add_event_handler(
        Events.ITERATION_STARTED, PiecewiseLinear(optimizer, "lr", milestones_values=steps)
    )

    @trainer.on(Events.EPOCH_COMPLETED)
    def watch(engine):
        plateau.step(engine.state.metrics["accuracy"])

    return trainer
