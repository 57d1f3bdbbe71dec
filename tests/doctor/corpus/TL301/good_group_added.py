# A wider head joins later, and the optimizer is told.
import torch
import torch.nn as nn

torch.manual_seed(0)
x = torch.randn(60, 5)
y = torch.randint(0, 4, (60,))
model = nn.Sequential(nn.Linear(5, 20), nn.ReLU(), nn.Linear(20, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(5):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y % 2)
    loss.backward()
    optimizer.step()

model[2] = nn.Linear(20, 4)
optimizer.add_param_group({"params": model[2].parameters(), "lr": 1e-2})
model[0] = nn.Sequential(model[0], nn.Dropout(0.1))
for step in range(5):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
print(loss.item())
