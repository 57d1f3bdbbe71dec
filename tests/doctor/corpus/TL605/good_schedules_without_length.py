import torch
from torch import nn, optim
from torch.optim import lr_scheduler as L
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(96, 5)
y = (x[:, :1] > 0).float()
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
EPOCHS = 24

recipes = {
    "step": lambda opt: L.StepLR(opt, step_size=50, gamma=0.5),
    "exponential": lambda opt: L.ExponentialLR(opt, gamma=0.97),
    "warmup": lambda opt: L.LinearLR(opt, start_factor=0.1, total_iters=5),
    "restarts": lambda opt: L.CosineAnnealingWarmRestarts(opt, T_0=6),
    "sequence": lambda opt: L.SequentialLR(
        opt,
        [L.LinearLR(opt, 0.1, total_iters=4), L.CosineAnnealingLR(opt, T_max=EPOCHS - 4)],
        milestones=[4],
    ),
    "chain": lambda opt: L.ChainedScheduler(
        [L.ConstantLR(opt, factor=0.5, total_iters=3), L.ExponentialLR(opt, gamma=0.95)]
    ),
}

for name, build in recipes.items():
    model = nn.Linear(5, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    scheduler = build(optimizer)
    for epoch in range(EPOCHS):
        for inputs, targets in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        scheduler.step()
    print(name, loss.item(), scheduler.get_last_lr())
