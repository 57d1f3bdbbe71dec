"""bfloat16 under autocast with a gradient scaler, which it does not need.

Two tasks: one sorts points into four classes (cross-entropy over a batch of 64), the other
predicts 64 displacements of a tenth of a millimetre, in metres (a squared error, averaged over the
outputs of 256 samples), so that each gradient is tiny.
"""

import json
import sys

import torch
from torch import nn

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)


def train(x, y, loss_of, outputs, batch, lr):
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, outputs))
    for parameter in model[-1].parameters():
        nn.init.zeros_(parameter)
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    scaler = torch.amp.GradScaler("cpu")
    losses, zeros = [], []
    for _ in range(150):
        chosen = torch.randint(0, len(x), (batch,))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            output = model(x[chosen])
            loss = loss_of(output.float(), y[chosen])
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        gradient = torch.cat([p.grad.flatten() for p in model.parameters()])
        zeros.append((gradient == 0).float().mean().item())
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    return losses, sum(zeros) / len(zeros)


x = torch.randn(1024, 16)
kinds = (x @ torch.randn(16, 4)).argmax(1)
classify, classify_zeros = train(x, kinds, nn.functional.cross_entropy, 4, 64, 1e-2)
moves = 1e-4 * torch.tanh(x @ torch.randn(16, 64) / 4)
regress, regress_zeros = train(x, moves, nn.functional.mse_loss, 64, 256, 3e-4)
print(
    json.dumps(
        {
            "classify_zeros": classify_zeros,
            "classify_loss": sum(classify[-10:]) / 10,
            "regress_zeros": regress_zeros,
            "regress_error": (sum(regress[-10:]) / 10) ** 0.5 / moves.std().item(),
            "loss": regress,
        }
    )
)
