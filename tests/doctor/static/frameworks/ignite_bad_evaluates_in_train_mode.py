import torch
from ignite.engine import Engine, Events, create_supervised_trainer
from torch import nn

net = nn.Sequential(nn.Linear(16, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 4))
optimizer = torch.optim.Adam(net.parameters())
train_loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(torch.randn(640, 16), torch.randint(0, 4, (640,))),
    batch_size=32,
    shuffle=True,
)
val_loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(torch.randn(96, 16), torch.randint(0, 4, (96,))), batch_size=32
)
trainer = create_supervised_trainer(net, optimizer, nn.CrossEntropyLoss())


def score(engine, batch):
    inputs, targets = batch
    with torch.no_grad():
        return net(inputs), targets  # <- TL202


evaluator = Engine(score)
trainer.add_event_handler(Events.EPOCH_COMPLETED, lambda _: evaluator.run(val_loader))
trainer.run(train_loader, max_epochs=10)
