import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(24, 4), torch.randn(24, 1)), 8, shuffle=True)
regressor = nn.Linear(4, 1).to(device)
opt = torch.optim.AdamW(regressor.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler(device, enabled=False)

step = 0
while step < 6:
    for x, y in loader:
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = nn.functional.mse_loss(regressor(x.to(device)).float(), y.to(device))
        scaler.scale(loss)
        scaler.step(opt)  # <- TL108
        scaler.update()
        opt.zero_grad(set_to_none=True)
        step += 1
