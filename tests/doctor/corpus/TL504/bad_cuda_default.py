import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F

warnings.filterwarnings("ignore")  # autocast says that there is no GPU on a laptop
torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(12, 3).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-4)
dataset = torch.utils.data.TensorDataset(torch.randn(30, 12), torch.randint(0, 3, (30,)))
data_loader = torch.utils.data.DataLoader(dataset, batch_size=10, shuffle=True)

for epoch in range(2):
    for x, y in data_loader:
        x, y = x.to(device), y.to(device)
        with torch.cuda.amp.autocast():
            logits = model(x)
            loss = F.cross_entropy(logits, y)
        optimizer.zero_grad()
        loss.backward()  # <- TL504
        optimizer.step()
    print(epoch, loss.item())
