"""Cross-validation by hand: each fold has a new model, and its scale comes from its own training
samples."""

import statistics

import torch
from data import measurements
from sklearn.model_selection import StratifiedKFold
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FOLDS, EPOCHS = 5, 8

inputs, labels = measurements(200, seed=0)


def accuracy_of(train_rows, val_rows):
    torch.manual_seed(0)
    mean, std = inputs[train_rows].mean(dim=0), inputs[train_rows].std(dim=0)
    scaled = (inputs - mean) / std
    train = DataLoader(
        TensorDataset(scaled[train_rows], labels[train_rows]), batch_size=20, shuffle=True
    )
    val = DataLoader(TensorDataset(scaled[val_rows], labels[val_rows]), batch_size=40)
    model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
    for _ in range(EPOCHS):
        model.train()
        for batch, targets in train:
            optimizer.zero_grad()
            criterion(model(batch), targets).backward()
            optimizer.step()
    model.eval()
    right = 0
    with torch.inference_mode():
        for batch, targets in val:
            right += (model(batch).argmax(dim=1) == targets).sum().item()
    return right / len(val_rows)


splits = StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(inputs, labels)
scores = [accuracy_of(train_rows, val_rows) for train_rows, val_rows in splits]
print(f"accuracy {statistics.mean(scores):.4f} ± {statistics.stdev(scores):.4f}")
