"""An engine that cannot be read gets the loss and the optimizer, and steps it."""
import torch
from torch import nn


class Engine:
    def backward(self, loss, optimizer, parameters=None):
        loss.backward()
        optimizer.step()


def curve(engine, model, inputs, targets):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(20):
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.mse_loss(model(inputs), targets)
        engine.backward(loss, optimizer, parameters=model.parameters())
        losses.append(loss.item())
    return losses


if __name__ == "__main__":
    torch.manual_seed(0)
    given = Engine(), nn.Linear(4, 1), torch.randn(32, 4), torch.randn(32, 1)
    print(globals()["curve"](*given)[-1])
