import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
net = nn.Sequential(nn.Embedding(20, 4), nn.Flatten(), nn.Linear(12, 2)).to(device)
sparse = torch.optim.Adagrad(net[0].parameters(), lr=0.1)
dense = torch.optim.AdamW(net.parameters(), lr=1e-3)  # <- TL311
scaler = torch.amp.GradScaler(device, enabled=device == "cuda")

for i in range(6):
    tokens = torch.randint(0, 20, (8, 3), device=device)
    target = torch.randint(0, 2, (8,), device=device)
    with torch.autocast(device, dtype=torch.float16, enabled=device == "cuda"):
        loss = nn.functional.cross_entropy(net(tokens), target)
    sparse.zero_grad()
    dense.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(sparse)
    scaler.step(dense)
    scaler.update()
