import torch
import torch.nn as nn
import torch.nn.functional as F


def main():
    torch.manual_seed(0)
    encoder, decoder = nn.Linear(6, 4), nn.Linear(4, 6)
    optimizers = [torch.optim.Adam(m.parameters(), lr=1e-3) for m in (encoder, decoder)]
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
    loader = torch.utils.data.DataLoader(torch.randn(48, 6), batch_size=12, shuffle=True)
    for x in loader:
        for optimizer in optimizers:
            optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = F.mse_loss(decoder(torch.relu(encoder(x))).float(), x)
        scaler.scale(loss).backward()
        for model, optimizer in zip((encoder, decoder), optimizers):
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
        scaler.update()
    print(loss.item())


main()
