import numpy as np
import torch
import torch.nn as nn

torch.manual_seed(7)
X = torch.from_numpy(np.random.RandomState(0).randn(120, 10, 3).astype("float32"))
y = X[:, :, 0].sum(dim=1, keepdim=True)
dataset = torch.utils.data.TensorDataset(X, y)
loader = torch.utils.data.DataLoader(dataset, batch_size=24, shuffle=True)


class LSTMRegressor(nn.Module):
    def __init__(self, hidden=8):
        super().__init__()
        self.lstm = nn.LSTM(3, hidden, batch_first=True)
        self.fc = nn.Linear(hidden, 1)

    def forward(self, seq):
        out, _ = self.lstm(seq)
        return self.fc(out[:, -1])


model = LSTMRegressor()
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

for epoch in range(3):
    for seq, target in loader:
        optimizer.zero_grad()
        output = model(seq)
        loss = criterion(output, target)
        loss.backward()
        optimizer.step()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)  # <- TL105
    print(f"Epoch: {epoch}, loss: {loss.item():1.5f}")
