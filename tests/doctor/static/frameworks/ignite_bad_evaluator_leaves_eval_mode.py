import torch
from ignite.engine import Engine, Events, create_supervised_evaluator
from ignite.metrics import Accuracy
from torch import nn

net = nn.Sequential(nn.Linear(16, 64), nn.Dropout(0.4), nn.Linear(64, 4))
optimizer = torch.optim.Adam(net.parameters())
train_loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(torch.randn(640, 16), torch.randint(0, 4, (640,))),
    batch_size=32,
    shuffle=True,
)
val_loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(torch.randn(96, 16), torch.randint(0, 4, (96,))), batch_size=32
)


def step(engine, batch):
    inputs, targets = batch
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(inputs), targets)  # <- TL201
    loss.backward()
    optimizer.step()
    return loss.item()


trainer = Engine(step)
evaluator = create_supervised_evaluator(net, metrics={"accuracy": Accuracy()})


@trainer.on(Events.EPOCH_COMPLETED)
def validate(engine):
    evaluator.run(val_loader)
    print(engine.state.epoch, evaluator.state.metrics["accuracy"])


trainer.run(train_loader, max_epochs=10)
