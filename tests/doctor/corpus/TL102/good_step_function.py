"""The update lives in one function, the clearing in its caller."""
import torch
import torch.nn as nn


def update(model, optimizer, loss):
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()


def train(model, optimizer, batches):
    for x, y in batches:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        update(model, optimizer, loss)
    return loss.item()


def main():
    model = nn.Linear(4, 1)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
    batches = [(torch.randn(8, 4), torch.randn(8, 1)) for _ in range(12)]
    print(train(model, optimizer, batches))


main()
