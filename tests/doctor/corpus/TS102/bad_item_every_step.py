import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
data = TensorDataset(torch.randn(2048, 64), torch.randint(0, 5, (2048,)))
loader = DataLoader(data, batch_size=16, shuffle=True)
layers = [layer for _ in range(12) for layer in (nn.Linear(1024, 1024), nn.ReLU())]
model = nn.Sequential(nn.Linear(64, 1024), *layers, nn.Linear(1024, 5)).to(device)
if device.type == "cpu":
    model = nn.Linear(64, 5)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
running = 0.0
for inputs, labels in loader:
    inputs, labels = inputs.to(device), labels.to(device)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(inputs), labels)
    loss.backward()
    optimizer.step()
    running += loss.item()  # <- TS102
    text = " ".join(str(running * k) for k in range(10_000))  # a lengthy log line
print(running, len(text))
