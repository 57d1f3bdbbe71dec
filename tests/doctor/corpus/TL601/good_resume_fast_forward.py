import argparse
import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", default=4, type=int)
    parser.add_argument("--start-epoch", default=0, type=int)
    parser.add_argument("--resume", default="", type=str)
    return parser.parse_args()


def main(args, folder):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(128, 4)
    y = (x[:, :1] > 0).float()
    train_loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)

    model = nn.Linear(4, 1)
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[2, 3], gamma=0.1)

    if args.resume:
        checkpoint = torch.load(args.resume, weights_only=True)
        args.start_epoch = checkpoint["epoch"]
        model.load_state_dict(checkpoint["state_dict"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        for _ in range(args.start_epoch):
            scheduler.step()

    for epoch in range(args.start_epoch, args.epochs):
        model.train()
        for images, target in train_loader:
            output = model(images)
            loss = criterion(output, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        scheduler.step()
        state = {
            "epoch": epoch + 1,
            "state_dict": model.state_dict(),
            "optimizer": optimizer.state_dict(),
        }
        torch.save(state, folder / "checkpoint.pt")
        print(epoch, loss.item())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        main(parse_args(), Path(name))
