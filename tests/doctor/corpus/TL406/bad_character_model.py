"""Names, letter by letter, with weights drawn by hand."""

import torch
import torch.nn.functional as F

g = torch.Generator().manual_seed(2147483647)
text = torch.randint(0, 27, (400, 4), generator=g)
contexts, following = text[:, :3], text[:, 3]

C = torch.randn((27, 10), generator=g)
W1 = torch.randn((30, 200), generator=g)
b1 = torch.randn(200, generator=g)
W2 = torch.randn((200, 27), generator=g)
b2 = torch.randn(27, generator=g)
parameters = [C, W1, b1, W2, b2]
for p in parameters:
    p.requires_grad = True

for i in range(30):
    ix = torch.randint(0, len(contexts), (32,), generator=g)
    emb = C[contexts[ix]]
    h = torch.tanh(emb.view(emb.shape[0], -1) @ W1 + b1)
    logits = h @ W2 + b2
    loss = F.cross_entropy(logits, following[ix])  # <- TL406
    for p in parameters:
        p.grad = None
    loss.backward()
    for p in parameters:
        p.data += -0.1 * p.grad
