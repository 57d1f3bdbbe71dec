import torch
from ignite.engine import Engine, Events
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR

EPOCHS = 40


def main(dataset):
    model = nn.Linear(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    loader = torch.utils.data.DataLoader(dataset, batch_size=32, shuffle=True)
    schedule = CosineAnnealingLR(optimizer, T_max=EPOCHS)

    def update(engine, batch):
        model.train()
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(batch[0]), batch[1])
        loss.backward()
        optimizer.step()
        return loss.item()

    trainer = Engine(update)

    @trainer.on(Events.ITERATION_COMPLETED)
    def tick():
        schedule.step()  # <- TL602

    trainer.run(loader, max_epochs=EPOCHS)
