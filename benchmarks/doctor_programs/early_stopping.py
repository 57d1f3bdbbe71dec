"""Early stopping by an object with a counter; the best weights are put back."""

import copy

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class EarlyStopping:
    def __init__(self, patience=3, min_delta=0.0):
        self.patience = patience
        self.min_delta = min_delta
        self.best = None
        self.counter = 0
        self.weights = None

    def __call__(self, value, model):
        if self.best is None or value < self.best - self.min_delta:
            self.best = value
            self.counter = 0
            self.weights = copy.deepcopy(model.state_dict())
        else:
            self.counter += 1
        return self.counter >= self.patience


def train_model(model, train_loader, valid_loader, patience, n_epochs):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    criterion = nn.BCEWithLogitsLoss()
    early_stopping = EarlyStopping(patience=patience)
    avg_train_losses, avg_valid_losses = [], []

    for epoch in range(1, n_epochs + 1):
        train_losses = []
        model.train()
        for data, target in train_loader:
            optimizer.zero_grad()
            output = model(data)
            loss = criterion(output, target)
            loss.backward()
            optimizer.step()
            train_losses.append(loss.item())

        total, count = 0.0, 0
        model.eval()
        with torch.no_grad():
            for data, target in valid_loader:
                output = model(data)
                loss = criterion(output, target)
                total += loss.item() * len(data)
                count += len(data)

        valid_loss = total / count
        avg_train_losses.append(np.mean(train_losses))
        avg_valid_losses.append(valid_loss)
        print(f"[{epoch}/{n_epochs}] train {avg_train_losses[-1]:.5f} valid {valid_loss:.5f}")
        if early_stopping(valid_loss, model):
            print("Early stopping")
            break

    model.load_state_dict(early_stopping.weights)
    return model, avg_train_losses, avg_valid_losses


torch.manual_seed(5)
points = torch.randn(96, 4)
classes = (points.norm(dim=1, keepdim=True) > 2).float()
train_loader = DataLoader(TensorDataset(points[:64], classes[:64]), batch_size=16, shuffle=True)
valid_loader = DataLoader(TensorDataset(points[64:], classes[64:]), batch_size=16)
network = nn.Sequential(nn.Linear(4, 20), nn.ReLU(), nn.Dropout(0.5), nn.Linear(20, 1))
train_model(network, train_loader, valid_loader, patience=2, n_epochs=8)
