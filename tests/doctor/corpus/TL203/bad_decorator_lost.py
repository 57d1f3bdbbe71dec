import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def get_args():
    parser = argparse.ArgumentParser("toy segmentation")
    parser.add_argument("--epochs", default=2, type=int)
    parser.add_argument("--batch-size", default=8, type=int)
    parser.add_argument("--lr", default=1e-3, type=float)
    return parser.parse_args()


def train_one_epoch(model, data_loader, optimizer):
    model.train()
    for images, masks in data_loader:
        loss = F.binary_cross_entropy_with_logits(model(images), masks)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def evaluate(model, data_loader):
    model.eval()
    intersection, union = 0.0, 0.0
    for images, masks in data_loader:
        logits = model(images)  # <- TL203
        predictions = (logits > 0).float()
        intersection += (predictions * masks).sum().item()
        union += ((predictions + masks) > 0).float().sum().item()
    return intersection / max(union, 1.0)


def main(args):
    torch.manual_seed(0)
    images = torch.randn(48, 1, 8, 8)
    masks = (images > 0.5).float()
    data_loader_train = DataLoader(
        TensorDataset(images[:32], masks[:32]), batch_size=args.batch_size, shuffle=True
    )
    data_loader_val = DataLoader(TensorDataset(images[32:], masks[32:]), batch_size=args.batch_size)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 1, 1)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        train_one_epoch(model, data_loader_train, optimizer)
        print(f"epoch {epoch}: IoU {evaluate(model, data_loader_val):.3f}")


if __name__ == "__main__":
    main(get_args())
