import torch
from ignite.engine import Engine, Events
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


def train_step(engine, batch):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(batch[0]), batch[1])
    loss.backward()
    optimizer.step()
    return loss.item()


def eval_step(engine, batch):
    with torch.no_grad():
        return net(batch[0]), batch[1]


trainer, evaluator = Engine(train_step), Engine(eval_step)
trainer.add_event_handler(Events.EPOCH_STARTED, lambda engine: net.train())
evaluator.add_event_handler(Events.STARTED, lambda engine: net.eval())
trainer.add_event_handler(Events.EPOCH_COMPLETED(every=3), lambda engine: evaluator.run(val_loader))
trainer.run(train_loader, max_epochs=9)
