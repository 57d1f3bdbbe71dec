import torch
import torch.nn as nn
from torch.nn import functional as F

# hyperparameters
batch_size = 8
block_size = 6
max_iters = 30
learning_rate = 1e-2
n_embd = 16
vocab_size = 15
grad_clip = 1.0
# ------------

torch.manual_seed(1337)
data = torch.randint(vocab_size, (500,))


def get_batch():
    ix = torch.randint(len(data) - block_size, (batch_size,))
    x = torch.stack([data[i:i + block_size] for i in ix])
    y = torch.stack([data[i + 1:i + block_size + 1] for i in ix])
    return x, y


class BigramLanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.token_embedding_table = nn.Embedding(vocab_size, n_embd)
        self.lm_head = nn.Linear(n_embd, vocab_size)

    def forward(self, idx, targets):
        logits = self.lm_head(self.token_embedding_table(idx))
        B, T, C = logits.shape
        loss = F.cross_entropy(logits.view(B * T, C), targets.view(B * T))
        return logits, loss


model = BigramLanguageModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)

for iter in range(max_iters):
    xb, yb = get_batch()
    logits, loss = model(xb, yb)
    optimizer.zero_grad(set_to_none=True)
    torch.nn.utils.clip_grad_norm_(model.parameters(), grad_clip)  # <- TL104
    loss.backward()
    optimizer.step()
    if iter % 10 == 0:
        print(f"step {iter}: {loss.item():.4f}")
