import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(60, 8), torch.randint(0, 3, (60,))), batch_size=12, shuffle=True)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)

for epoch in range(2):
    for images, labels in loader:
        optimizer.zero_grad()
        with torch.autocast(device_type="cpu", dtype=torch.float16):
            outputs = model(images)
            loss = criterion(outputs, labels)
        scaler.scale(loss).backward()
        optimizer.step()  # <- TL503
    print(f"Epoch [{epoch + 1}/2], Loss: {loss.item():.4f}")
