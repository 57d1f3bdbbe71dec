import torch

model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(torch.load("data.pt"), batch_size=32, shuffle=True)
for inputs, targets in loader:
    loss = torch.nn.functional.mse_loss(model(inputs), targets)
    loss.backward()
    optimizer.zero_grad()
    optimizer.step()
