"""Names, letter by letter, time first; nothing but the tails of the batch says what fills them."""

import torch
from torch import nn, optim
from torch.nn.utils.rnn import pad_sequence

names = """anna bert clara dmitri elisabeth frank giovanni hanna ivan johanna karl leonora max nadja
oskar paula quentin rosa stefan theodora ulrich valentina wilhelm xaver yvonne zoe""".split()
letters = sorted(set("".join(names)))
index = {letter: number + 2 for number, letter in enumerate(letters)}
END, FILL = 0, 1
coded = [torch.tensor([index[letter] for letter in name] + [END]) for name in names]

torch.manual_seed(0)
embed = nn.Embedding(len(letters) + 2, 10)
lstm = nn.LSTM(10, 20)
project = nn.Linear(20, len(letters) + 2)
everything = nn.ModuleList([embed, lstm, project])
optimizer = optim.RMSprop(everything.parameters(), lr=2e-3)
nll = nn.NLLLoss()

step = 0
while step < 12:
    chosen = [coded[i] for i in torch.randperm(len(coded))[:6]]
    x = pad_sequence([each[:-1] for each in chosen], padding_value=FILL)
    y = pad_sequence([each[1:] for each in chosen], padding_value=FILL)
    optimizer.zero_grad()
    hidden, _ = lstm(embed(x))
    log_probs = project(hidden).log_softmax(-1)
    loss = nll(log_probs.flatten(0, 1), y.flatten())  # <- TL409
    loss.backward()
    optimizer.step()
    step += 1
print(loss.item())
