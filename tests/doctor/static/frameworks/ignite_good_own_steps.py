import torch
from ignite.engine import Engine, Events
from torch import nn


def main(dataset, valset, epochs=12):
    net = nn.Sequential(nn.Linear(16, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 4))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    train_loader = torch.utils.data.DataLoader(dataset, batch_size=32, shuffle=True)
    val_loader = torch.utils.data.DataLoader(valset, batch_size=32)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)

    def train_step(engine, batch):
        net.train()
        inputs, targets = batch
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(net(inputs), targets)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        return {"loss": loss.item()}

    @torch.no_grad()
    def eval_step(engine, batch):
        net.eval()
        inputs, targets = batch
        return net(inputs), targets

    trainer, evaluator = Engine(train_step), Engine(eval_step)

    @trainer.on(Events.STARTED | Events.EPOCH_COMPLETED)
    def validate():
        evaluator.run(val_loader)

    @trainer.on(Events.EPOCH_COMPLETED)
    def tick():
        cosine.step()

    trainer.run(train_loader, max_epochs=epochs)
