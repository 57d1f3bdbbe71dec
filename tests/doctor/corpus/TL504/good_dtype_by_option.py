import argparse
from contextlib import nullcontext

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--dtype", default="bfloat16", choices=["float32", "bfloat16", "float16"])
args = parser.parse_args()
device_type = "cuda" if torch.cuda.is_available() else "cpu"
ptdtype = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}[args.dtype]
ctx = nullcontext() if args.dtype == "float32" else torch.amp.autocast(device_type=device_type, dtype=ptdtype)
# initialize a GradScaler. If enabled=False scaler is a no-op
scaler = torch.amp.GradScaler(device_type, enabled=(args.dtype == "float16"))

torch.manual_seed(0)
model = nn.Linear(4, 4).to(device_type)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for micro in torch.randn(10, 8, 4, device=device_type):
    with ctx:
        loss = nn.functional.mse_loss(model(micro).float(), micro)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
print(loss.item())
