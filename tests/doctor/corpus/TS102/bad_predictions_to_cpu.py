"""Predictions are brought to the CPU in every step, for an accuracy that is printed once."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def train(model, optimizer, device, steps=120):
    x, y = torch.randn(steps, 512, 64), torch.randint(0, 5, (steps, 512))
    right = []
    for inputs, labels in zip(x.to(device), y.to(device)):
        scores = model(inputs)
        loss = F.cross_entropy(scores, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        guesses = scores.detach().argmax(1).cpu()  # <- TS102
        table = np.zeros((5, 5))
        for guess in guesses.numpy():
            table[guess, guess] += 1
        right.append(table)
    return np.sum(right, axis=0)


if __name__ == "__main__":
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    width = 2048 if device == "cuda" else 8
    model = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.Linear(width, 5))
    model.to(device)
    print(train(model, torch.optim.SGD(model.parameters(), lr=0.01, fused=True), device))
