import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data, target = torch.randn(120, 6), torch.randint(0, 2, (120,))
loaders = {
    "train": DataLoader(TensorDataset(data[:96], target[:96]), batch_size=16, shuffle=True),
    "val": DataLoader(TensorDataset(data[96:], target[96:]), batch_size=16),
}
model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

for epoch in range(3):
    for phase in ["train", "val"]:
        model.train(phase == "train")
        running_loss, running_corrects = 0.0, 0
        for inputs, labels in loaders[phase]:
            optimizer.zero_grad()
            with torch.set_grad_enabled(phase == "train"):
                outputs = model(inputs)
                _, preds = torch.max(outputs, 1)
                loss = criterion(outputs, labels)
                if phase == "train":
                    loss.backward()
                    optimizer.step()
            running_loss += loss.item() * inputs.size(0)
            running_corrects += torch.sum(preds == labels.data).item()
        size = len(loaders[phase].dataset)
        print(f"{epoch} {phase} loss {running_loss / size:.4f} acc {running_corrects / size:.4f}")
