import torch
from ignite.engine import Engine
from torch import nn


def get_trainer(config):
    model = nn.LSTM(20, 40)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=config.lr)

    def process(engine, batch):
        model.train()
        found, _ = model(batch["series"])
        loss = nn.functional.mse_loss(found, batch["target"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # <- TL105
        return loss.item()

    return Engine(process)
