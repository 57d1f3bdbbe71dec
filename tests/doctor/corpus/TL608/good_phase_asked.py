import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
data = {
    p: [(torch.randn(8, 5), torch.randint(0, 3, (8,))) for _ in range(3)] for p in ("fit", "check")
}
net = nn.Linear(5, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.05)
sched = torch.optim.lr_scheduler.StepLR(opt, 2)

for epoch in range(4):
    for phase in ("fit", "check"):
        net.train(phase == "fit")
        for inputs, labels in data[phase]:
            with torch.set_grad_enabled(phase == "fit"):
                loss = nn.functional.cross_entropy(net(inputs), labels)
            if phase == "fit":
                opt.zero_grad()
                loss.backward()
                opt.step()
        if phase == "fit":
            sched.step()
        print(epoch, phase, loss.item())
