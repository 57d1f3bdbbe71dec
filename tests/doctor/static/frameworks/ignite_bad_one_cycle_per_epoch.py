import torch
from ignite.engine import Events, create_supervised_trainer
from ignite.handlers import LRScheduler
from torch import nn
from torch.optim.lr_scheduler import OneCycleLR

model = nn.Linear(16, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
data = torch.utils.data.TensorDataset(torch.randn(640, 16), torch.randint(0, 4, (640,)))
loader = torch.utils.data.DataLoader(data, batch_size=32, shuffle=True)
cycle = OneCycleLR(optimizer, max_lr=0.5, epochs=10, steps_per_epoch=len(loader))
trainer = create_supervised_trainer(model, optimizer, nn.CrossEntropyLoss())
trainer.add_event_handler(Events.EPOCH_COMPLETED, LRScheduler(cycle))  # <- TL603
trainer.run(loader, max_epochs=10)
