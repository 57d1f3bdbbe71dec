import logging
import math

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

logger = logging.getLogger(__name__)


def train_one_epoch(model, criterion, data_loader, optimizer, device, max_norm=0.1):
    model.train()
    skipped = 0
    for samples, targets in data_loader:
        samples, targets = samples.to(device), targets.to(device)
        loss = criterion(model(samples), targets)
        loss_value = loss.item()
        if not math.isfinite(loss_value):
            logger.warning("Loss is %s, batch skipped", loss_value)
            optimizer.zero_grad()
            skipped += 1
            continue
        loss.backward()
        grad_norm = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if not torch.isfinite(grad_norm):
            logger.warning("gradient is %s, update dropped", grad_norm)
            optimizer.zero_grad()
        optimizer.step()
        optimizer.zero_grad()
    return skipped


def main():
    torch.manual_seed(3)
    ds = TensorDataset(torch.randn(48, 6), torch.randn(48, 2))
    loader = DataLoader(ds, batch_size=12, shuffle=True)
    model = nn.Sequential(nn.Linear(6, 12), nn.GELU(), nn.Linear(12, 2))
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(2):
        train_one_epoch(model, nn.SmoothL1Loss(), loader, opt, torch.device("cpu"))


if __name__ == "__main__":
    main()
