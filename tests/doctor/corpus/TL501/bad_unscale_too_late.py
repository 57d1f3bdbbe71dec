import torch
from torch import nn


def train_one_epoch(model, criterion, optimizer, data_loader, scaler, clip_grad_norm=1.0):
    model.train()
    for image, target in data_loader:
        with torch.autocast("cpu", dtype=torch.float16):
            output = model(image)
            loss = criterion(output, target)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        nn.utils.clip_grad_norm_(model.parameters(), clip_grad_norm)  # <- TL501
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
    return loss.item()


def main():
    torch.manual_seed(0)
    ds = torch.utils.data.TensorDataset(torch.randn(48, 3, 6, 6), torch.randint(0, 5, (48,)))
    loader = torch.utils.data.DataLoader(ds, batch_size=12, shuffle=True)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 5))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=512.0)
    for _ in range(2):
        print(train_one_epoch(model, nn.CrossEntropyLoss(), optimizer, loader, scaler))


if __name__ == "__main__":
    main()
