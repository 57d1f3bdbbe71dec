import torch

weight = torch.nn.Parameter(torch.zeros(1))
optimizer = torch.optim.SGD([weight], lr=1.0)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)  # four epochs

for epoch in range(4):
    for _batch in range(3):
        optimizer.step()
        print(f"epoch {epoch}: learning rate {scheduler.get_last_lr()[0]:.2f}")
        scheduler.step()
