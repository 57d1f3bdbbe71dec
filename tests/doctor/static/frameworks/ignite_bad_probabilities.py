import torch
from ignite.engine import create_supervised_trainer
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(16, 4)

    def forward(self, x):
        return nn.functional.softmax(self.out(x), dim=1)


net = Net()
trainer = create_supervised_trainer(  # <- TL401
    net, torch.optim.Adam(net.parameters()), loss_fn=nn.CrossEntropyLoss()
)
data = torch.utils.data.TensorDataset(torch.randn(640, 16), torch.randint(0, 4, (640,)))
trainer.run(torch.utils.data.DataLoader(data, batch_size=32, shuffle=True), max_epochs=3)
