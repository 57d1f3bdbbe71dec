import io

import torch
import torch.nn.functional as F


class MLP(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = torch.nn.Linear(6, 12)
        self.fc2 = torch.nn.Linear(12, 2)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x)))


weights = io.BytesIO()
torch.save(MLP().state_dict(), weights)
weights.seek(0)
model = MLP()
model.load_state_dict(torch.load(weights))
model = torch.compile(model, backend="eager")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
x, y = torch.randn(48, 6), torch.randint(0, 2, (48,))
for step in range(4):
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()

checkpoint = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}  # <- TL804
torch.save(checkpoint, io.BytesIO())
