"""The prefix is taken off the keys before they are written."""
import io

import torch
import torch.nn as nn


def clean_state_dict(model):
    state = model.state_dict()
    return {key.replace("module.", "", 1): value for key, value in state.items()}


def main():
    model = nn.DataParallel(nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = torch.randn(20, 3), torch.randn(20, 1)
    for _ in range(3):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    torch.save(clean_state_dict(model), io.BytesIO())


if __name__ == "__main__":
    main()
