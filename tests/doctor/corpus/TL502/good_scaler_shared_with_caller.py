import torch
from torch import nn


def optimizer_step(loss, optimizer, scaler, parameters, max_norm):
    """One backward and one step; whoever calls updates the scaler."""
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(parameters, max_norm)
    scaler.step(optimizer)


def train(model, data, device):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler(device, init_scale=16.0)
    for x, y in data:
        with torch.autocast(device, dtype=torch.float16):
            loss = nn.functional.mse_loss(model(x).float(), y)
        optimizer_step(loss, optimizer, scaler, model.parameters(), max_norm=1.0)
        scaler.update()
    return loss.item()


if __name__ == "__main__":
    torch.manual_seed(0)
    data = [(torch.randn(8, 3), torch.randn(8, 1)) for _ in range(8)]
    print(train(nn.Linear(3, 1), data, "cpu"))
