import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(5)
torch.set_num_threads(1)

x = torch.randn(192, 6)
y = (x[:, 0] > 0.3).long()
train_loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)

network = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 2), nn.Softmax(dim=1))
criterion = nn.NLLLoss()
optimizer = torch.optim.Adam(network.parameters(), lr=0.01)

for epoch in range(3):
    for batch_x, batch_y in train_loader:
        optimizer.zero_grad()
        predictions = network(batch_x)
        loss = criterion(predictions, batch_y)  # <- TL403
        loss.backward()
        optimizer.step()
    print(f"Epoch {epoch}: {loss.item():.4f}")
