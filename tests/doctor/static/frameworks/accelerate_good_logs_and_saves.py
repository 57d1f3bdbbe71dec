import torch
from accelerate import Accelerator
from torch import nn

accelerator = Accelerator(log_with="tensorboard", project_dir="out")
accelerator.init_trackers("run")
model = nn.Sequential(nn.Linear(20, 40), nn.Dropout(0.1), nn.Linear(40, 5))
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
data = torch.utils.data.TensorDataset(torch.randn(640, 20), torch.randint(0, 5, (640,)))
model, opt, batches = accelerator.prepare(
    model, opt, torch.utils.data.DataLoader(data, batch_size=16, shuffle=True)
)
total = 0
for epoch in range(5):
    model.train()
    for x, y in batches:
        loss = nn.functional.cross_entropy(model(x), y)
        total += loss.detach().float()
        accelerator.backward(loss)
        norm = accelerator.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad(set_to_none=True)
        accelerator.log({"loss": loss.item(), "norm": norm})
    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        torch.save(accelerator.unwrap_model(model).state_dict(), "best.pt")
    accelerator.save_state("state")
accelerator.end_training()
