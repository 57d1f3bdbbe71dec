import torch
import torch.nn as nn
from torch.cuda import amp
from torch.utils.data import DataLoader, TensorDataset


def train(model, loader, criterion, optimizer, scaler, device, use_amp):
    model.train()
    for inputs, labels in loader:
        inputs, labels = inputs.to(device), labels.to(device)
        optimizer.zero_grad()
        with amp.autocast(enabled=use_amp):
            loss = criterion(model(inputs), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)  # <- TL502
    return loss.item()


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    use_amp = device.type == "cuda"
    ds = TensorDataset(torch.randn(40, 6), torch.randint(0, 2, (40,)))
    loader = DataLoader(ds, batch_size=10, shuffle=True)
    model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 2)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = amp.GradScaler(enabled=use_amp)
    for epoch in range(2):
        print(train(model, loader, nn.CrossEntropyLoss(), optimizer, scaler, device, use_amp))


if __name__ == "__main__":
    main()
