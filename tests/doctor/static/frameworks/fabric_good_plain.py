import torch
from lightning.fabric import Fabric
from torch import nn

fabric = Fabric(accelerator="cuda", devices=4, precision="16-mixed")
fabric.launch()
model = nn.Sequential(nn.Linear(10, 30), nn.Dropout(0.5), nn.Linear(30, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=20)
model, optimizer = fabric.setup(model, optimizer)
train = torch.utils.data.TensorDataset(torch.randn(320, 10), torch.randint(0, 3, (320,)))
valid = torch.utils.data.TensorDataset(torch.randn(96, 10), torch.randint(0, 3, (96,)))
train_loader = torch.utils.data.DataLoader(train, batch_size=32, shuffle=True)
val_loader = torch.utils.data.DataLoader(valid, batch_size=32)
train_loader, val_loader = fabric.setup_dataloaders(train_loader, val_loader)
for epoch in range(20):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        fabric.backward(loss)
        fabric.clip_gradients(model, optimizer, clip_val=0.5)
        optimizer.step()
    schedule.step()
    model.eval()
    right = 0
    with torch.no_grad():
        for x, y in val_loader:
            right += (model(x).argmax(1) == y).sum()
    fabric.log_dict({"accuracy": fabric.all_reduce(right, reduce_op="sum") / len(valid)})
    fabric.save("last.ckpt", {"model": model, "optimizer": optimizer, "epoch": epoch})
