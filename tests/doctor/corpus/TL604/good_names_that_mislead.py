import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


def dice_loss(logits, target):
    p = torch.sigmoid(logits)
    return 1 - (2 * (p * target).sum() + 1) / (p.sum() + target.sum() + 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", choices=["min", "max"], default="max")
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(96, 1, 8, 8)
    mask = (F.avg_pool2d(x, 3, stride=1, padding=1) > 0).float()
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(x, mask), batch_size=16, shuffle=True
    )
    model = nn.Conv2d(1, 1, 3, padding=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    falling = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "min", patience=2)
    chosen = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, args.mode, patience=5)
    for epoch in range(args.epochs):
        total, errors, seen = 0.0, 0, 0
        for images, target in loader:
            logits = model(images)
            loss = dice_loss(logits, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(images)
            errors += ((logits > 0).float() != target).sum().item()
            seen += target.numel()
        epoch_dice_loss = total / len(loader.dataset)
        score = 1 - errors / seen if args.mode == "max" else errors / seen
        falling.step(epoch_dice_loss)
        chosen.step(score)
        print(epoch, epoch_dice_loss, score)


if __name__ == "__main__":
    main()
