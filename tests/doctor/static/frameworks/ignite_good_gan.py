import torch
from ignite.engine import Engine, Events
from torch import nn

maker = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 2))
judge = nn.Sequential(nn.Linear(2, 64), nn.LeakyReLU(), nn.Linear(64, 1))
maker_opt = torch.optim.Adam(maker.parameters(), lr=2e-4)
judge_opt = torch.optim.Adam(judge.parameters(), lr=2e-4)
bce = nn.BCEWithLogitsLoss()
points = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(torch.randn(1024, 2)), batch_size=64, shuffle=True
)
fixed = torch.randn(8, 16)


def step(engine, batch):
    (real,) = batch
    judge_opt.zero_grad()
    right = judge(real)
    loss_right = bce(right, torch.ones_like(right))
    loss_right.backward()
    fake = maker(torch.randn(len(real), 16))
    wrong = judge(fake.detach())
    loss_wrong = bce(wrong, torch.zeros_like(wrong))
    loss_wrong.backward()
    judge_opt.step()
    maker_opt.zero_grad()
    verdict = judge(fake)
    loss = bce(verdict, torch.ones_like(verdict))
    loss.backward()
    maker_opt.step()
    return {"judge": (loss_right + loss_wrong).item(), "maker": loss.item()}


trainer = Engine(step)


@trainer.on(Events.EPOCH_COMPLETED)
@torch.no_grad()
def show(engine):
    print(maker(fixed))


trainer.run(points, max_epochs=50)
