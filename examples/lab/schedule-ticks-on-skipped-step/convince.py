import torch

weight = torch.nn.Parameter(torch.tensor([300.0]))
optimizer = torch.optim.SGD([weight], lr=1e-4)
scaler = torch.amp.GradScaler("cpu")

for update in range(12):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = torch.nn.functional.linear(torch.ones(1, 1), weight[None]).square().mean()
    scaler.scale(loss).backward()
    before = weight.item()
    scaler.step(optimizer)
    scaler.update()
    made = "made" if weight.item() != before else "skipped"
    print(f"step {update}: {made}, scale now {scaler.get_scale():.0f}")
