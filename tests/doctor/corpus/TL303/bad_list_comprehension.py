import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class MLP(nn.Module):
    def __init__(self, input_dim, hidden_dim, output_dim, num_layers):
        super(MLP, self).__init__()
        self.input_layer = nn.Linear(input_dim, hidden_dim)
        self.hidden = [nn.Linear(hidden_dim, hidden_dim) for _ in range(num_layers)]  # <- TL303
        self.output_layer = nn.Linear(hidden_dim, output_dim)

    def forward(self, x):
        x = F.relu(self.input_layer(x))
        for layer in self.hidden:
            x = F.relu(layer(x))
        return self.output_layer(x)


def main():
    torch.manual_seed(0)
    x, y = torch.randn(96, 10), torch.randint(0, 3, (96,))
    loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
    model = MLP(10, 16, 3, num_layers=2)
    print("parameters:", sum(p.numel() for p in model.parameters()))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(2):
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(inputs), labels)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
