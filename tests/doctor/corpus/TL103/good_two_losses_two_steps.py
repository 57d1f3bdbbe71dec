import torch
from torch import nn

torch.manual_seed(0)
encoder = nn.Linear(8, 4)
decoder = nn.Linear(4, 8)
opt_enc = torch.optim.Adam(encoder.parameters(), lr=1e-3)
opt_dec = torch.optim.Adam(decoder.parameters(), lr=1e-3)
mse = nn.MSELoss()

for step, x in enumerate(torch.randn(40, 16, 8)):
    code = encoder(x)
    opt_enc.zero_grad()
    opt_dec.zero_grad()

    # the decoder learns from a detached code first, the encoder from what is left
    loss_dec = mse(decoder(code.detach()), x)
    loss_dec.backward()
    opt_dec.step()

    loss_enc = mse(decoder(code), x) + 1e-3 * code.pow(2).mean()
    loss_enc.backward()
    opt_enc.step()
print(loss_enc.item())
