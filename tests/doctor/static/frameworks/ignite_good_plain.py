import torch
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import EarlyStopping, LRScheduler, ModelCheckpoint, ProgressBar
from ignite.metrics import Accuracy, Loss, RunningAverage
from torch import nn

net = nn.Sequential(nn.Linear(16, 64), nn.Dropout(0.4), nn.Linear(64, 4))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(net.parameters())
train_loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(torch.randn(640, 16), torch.randint(0, 4, (640,))),
    batch_size=32,
    shuffle=True,
)
val_loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(torch.randn(96, 16), torch.randint(0, 4, (96,))), batch_size=32
)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=10)
trainer = create_supervised_trainer(net, optimizer, criterion, device="cpu")
evaluator = create_supervised_evaluator(
    net, metrics={"accuracy": Accuracy(), "loss": Loss(criterion)}, device="cpu"
)
RunningAverage(output_transform=lambda x: x).attach(trainer, "loss")
ProgressBar().attach(trainer, ["loss"])
trainer.add_event_handler(Events.EPOCH_STARTED, LRScheduler(schedule))


@trainer.on(Events.EPOCH_COMPLETED)
def validate(engine):
    evaluator.run(val_loader)
    print(engine.state.epoch, evaluator.state.metrics)


best = ModelCheckpoint("out", score_function=lambda e: e.state.metrics["accuracy"], n_saved=1)
evaluator.add_event_handler(Events.COMPLETED, best, {"model": net})
evaluator.add_event_handler(
    Events.COMPLETED,
    EarlyStopping(3, lambda e: -e.state.metrics["loss"], trainer),
)
trainer.run(train_loader, max_epochs=30)
