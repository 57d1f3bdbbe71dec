import lightning as L
import torch
from torch import nn


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(10, 3)

    def training_step(self, batch, batch_idx):
        x, y = batch
        return nn.functional.cross_entropy(self.net(x), y)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


fabric = L.Fabric()
module = Net()
optimizer = module.configure_optimizers()
module, optimizer = fabric.setup(module, optimizer)
module.mark_forward_method("training_step")
data = torch.utils.data.TensorDataset(torch.randn(320, 10), torch.randint(0, 3, (320,)))
loader = fabric.setup_dataloaders(torch.utils.data.DataLoader(data, batch_size=32, shuffle=True))
for epoch in range(10):
    for index, batch in enumerate(loader):
        optimizer.zero_grad()
        loss = module.training_step(batch, index)
        fabric.backward(loss)
        optimizer.step()
