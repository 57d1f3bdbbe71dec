import torch
from torch import nn

torch.manual_seed(0)
cuda = torch.cuda.is_available()
device = torch.device("cuda" if cuda else "cpu")
width = 1024 if cuda else 8
layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True)
model = nn.Sequential(nn.TransformerEncoder(layer, 2), nn.Linear(width, 10)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
x = torch.randn(32 if cuda else 4, 128 if cuda else 4, width, device=device)
y = torch.randint(0, 10, x.shape[:2], device=device)
for step in range(110):
    scores = model(x)  # <- TS107
    loss = nn.functional.cross_entropy(scores.flatten(0, 1), y.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
