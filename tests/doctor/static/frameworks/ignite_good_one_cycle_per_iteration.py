import ignite.distributed as idist
import torch
from ignite.engine import Events, create_supervised_trainer
from ignite.handlers.param_scheduler import LRScheduler
from torch import nn


def training(rank, config):
    model = idist.auto_model(nn.Linear(16, 4))
    optimizer = idist.auto_optim(torch.optim.SGD(model.parameters(), lr=0.05))
    data = torch.utils.data.TensorDataset(torch.randn(640, 16), torch.randint(0, 4, (640,)))
    loader = idist.auto_dataloader(data, batch_size=32, shuffle=True)
    cycle = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=0.5, epochs=config["epochs"], steps_per_epoch=len(loader)
    )
    trainer = create_supervised_trainer(model, optimizer, nn.CrossEntropyLoss())
    trainer.add_event_handler(Events.ITERATION_COMPLETED, LRScheduler(cycle))

    @trainer.on(Events.EPOCH_COMPLETED)
    def save():
        if idist.get_rank() == 0:
            torch.save(model.state_dict(), "model.pt")

    trainer.run(loader, max_epochs=config["epochs"])


with idist.Parallel(backend="nccl") as parallel:
    parallel.run(training, {"epochs": 8})
