# %% notebook-style cells
import torch
import torch.nn as tnn
import torch.optim as O
import torch.nn.functional as nnf

torch.manual_seed(7)
torch.set_num_threads(1)

# %% data: one-hot words of a toy language
vocab, classes, length = 20, 5, 6
tokens = torch.randint(0, vocab, (240, length))
labels = tokens[:, 0] % classes
dataset = torch.utils.data.TensorDataset(tokens, labels)
batches = torch.utils.data.DataLoader(dataset, batch_size=24, shuffle=True)


# %% model
class Classifier(tnn.Module):
    def __init__(self):
        super().__init__()
        self.embed = tnn.Embedding(vocab, 16)
        self.rnn = tnn.GRU(16, 24, batch_first=True)
        self.out = tnn.Linear(24, classes)

    def forward(self, tokens):
        states, _ = self.rnn(self.embed(tokens))
        return self.out(states[:, -1])


net = Classifier()
opt = O.Adam(net.parameters(), lr=3e-3)
loss_fn = tnn.CrossEntropyLoss(label_smoothing=0.1)

# %% training
history = []
for epoch in range(3):
    net.train()
    for xb, yb in batches:
        probs = nnf.softmax(net(xb), dim=-1)
        loss = loss_fn(probs, yb)  # <- TL401
        acc = (probs.argmax(dim=-1) == yb).float().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        history.append((loss.item(), acc.item()))
print(history[-1])
