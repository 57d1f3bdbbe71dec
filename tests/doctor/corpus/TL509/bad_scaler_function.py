import torch
from torch import nn
from torch.amp import GradScaler, autocast


def train_epoch(model, data, optimizer, scaler):
    for batch in data:
        optimizer.zero_grad()
        with autocast("cpu", dtype=torch.float16):
            loss = nn.functional.mse_loss(model(batch["x"]).float(), batch["y"])
            scaler.scale(loss).backward()  # <- TL509
        scaler.step(optimizer)
        scaler.update()
    return loss.item()


def main():
    torch.manual_seed(0)
    model = nn.Linear(5, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    data = [{"x": torch.randn(8, 5), "y": torch.randn(8, 1)} for _ in range(6)]
    scaler = GradScaler("cpu", init_scale=128.0)
    for _ in range(2):
        print(train_epoch(model, data, optimizer, scaler))


if __name__ == "__main__":
    main()
