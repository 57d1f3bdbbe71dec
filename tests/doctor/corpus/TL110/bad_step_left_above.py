import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
painter = nn.Linear(3, 4)
judge = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
painter_opt = torch.optim.SGD(painter.parameters(), lr=0.01)
judge_opt = torch.optim.SGD(judge.parameters(), lr=0.01)
bce = nn.BCEWithLogitsLoss()
paintings = torch.utils.data.DataLoader(torch.randn(40, 4), batch_size=8)

for epoch in range(2):
    for genuine in paintings:
        yes, no = torch.ones(len(genuine), 1), torch.zeros(len(genuine), 1)
        painter_opt.zero_grad()
        forged = painter(torch.randn(len(genuine), 3))
        fooled = bce(judge(forged), yes)
        fooled.backward()
        painter_opt.step()
        judge_opt.step()  # <- TL110
        judge_opt.zero_grad()
        caught = bce(judge(genuine), yes) + bce(judge(forged.detach()), no)
        caught.backward()
    print(epoch, fooled.item(), caught.item())
