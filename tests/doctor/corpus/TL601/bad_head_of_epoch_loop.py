import torch
import torch.nn as nn
import torch.optim as optim
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, TensorDataset


def train_model(model, loader, criterion, optimizer, scheduler, num_epochs=6):
    for epoch in range(num_epochs):
        print(f"Epoch {epoch}/{num_epochs - 1}")
        scheduler.step()  # <- TL601
        model.train()
        running_loss, running_corrects = 0.0, 0
        for inputs, labels in loader:
            optimizer.zero_grad()
            outputs = model(inputs)
            _, preds = torch.max(outputs, 1)
            loss = criterion(outputs, labels)
            loss.backward()
            optimizer.step()
            running_loss += loss.item() * inputs.size(0)
            running_corrects += torch.sum(preds == labels.data).item()
        size = len(loader.dataset)
        print(f"Loss: {running_loss / size:.4f} Acc: {running_corrects / size:.4f}")
    return model


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(192, 8)
    y = (x[:, 0] > 0).long()
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    model_ft = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
    optimizer_ft = optim.SGD(model_ft.parameters(), lr=0.1, momentum=0.9)
    exp_lr_scheduler = lr_scheduler.StepLR(optimizer_ft, step_size=2, gamma=0.5)
    train_model(model_ft, loader, nn.CrossEntropyLoss(), optimizer_ft, exp_lr_scheduler)
