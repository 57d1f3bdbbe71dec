import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
loss_fn = torch.nn.MSELoss(reduction="sum")
x, y = torch.randn(30, 3), torch.randn(30, 1)
learning_rate = 1e-4
for t in range(50):
    y_pred = model(x)
    loss = loss_fn(y_pred, y)
    if t % 10 == 9:
        print(t, loss.item())
    model.zero_grad()
    loss.backward()
    # Update the weights using gradient descent.
    with torch.no_grad():
        for param in model.parameters():
            param -= learning_rate * param.grad
