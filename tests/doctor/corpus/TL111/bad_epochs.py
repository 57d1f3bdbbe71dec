import torch
from torch import nn, optim


def fit(model, data, num_epochs=10):
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    history = []
    for epoch in range(num_epochs):
        running_loss = 0.0
        for x, y in data:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            running_loss += loss.item()
        history.append(running_loss / len(data))
        print(f"epoch {epoch + 1}: {history[-1]:.4f}")
        return history  # <- TL111


torch.manual_seed(0)
torch.set_num_threads(1)
samples = torch.utils.data.TensorDataset(torch.randn(32, 3), torch.randint(0, 2, (32,)))
fit(nn.Linear(3, 2), torch.utils.data.DataLoader(samples, batch_size=8, shuffle=True))
