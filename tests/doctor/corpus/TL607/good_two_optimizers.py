import torch
import torch.nn as nn

torch.manual_seed(0)
torch.set_num_threads(1)

generator = nn.Linear(4, 2)
discriminator = nn.Linear(2, 1)
optimizer_G = torch.optim.Adam(generator.parameters(), lr=1e-3)
optimizer_D = torch.optim.Adam(discriminator.parameters(), lr=1e-3)
scheduler_G = torch.optim.lr_scheduler.LambdaLR(optimizer_G, lambda epoch: 0.9**epoch)
scheduler_D = torch.optim.lr_scheduler.LambdaLR(optimizer_D, lambda epoch: 0.9**epoch)
criterion = nn.MSELoss()
loader = torch.utils.data.DataLoader(torch.randn(128, 2), batch_size=16, shuffle=True)
n_critic = 2

for epoch in range(3):
    for i, real in enumerate(loader):
        fake = generator(torch.randn(len(real), 4))
        optimizer_D.zero_grad()
        loss_D = criterion(discriminator(real), torch.ones(len(real), 1))
        loss_D = loss_D + criterion(discriminator(fake.detach()), torch.zeros(len(real), 1))
        loss_D.backward()
        optimizer_D.step()
        if i % n_critic == 0:
            optimizer_G.zero_grad()
            loss_G = criterion(discriminator(fake), torch.ones(len(real), 1))
            loss_G.backward()
            optimizer_G.step()
    scheduler_G.step()
    scheduler_D.step()
    print(epoch, loss_D.item(), loss_G.item())
