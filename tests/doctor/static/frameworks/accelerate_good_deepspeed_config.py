import torch
from accelerate import Accelerator
from transformers import AutoModelForCausalLM, get_cosine_schedule_with_warmup


def main(args, dataset):
    accelerator = Accelerator(gradient_accumulation_steps=args.accumulate)
    model = AutoModelForCausalLM.from_pretrained(args.model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    loader = torch.utils.data.DataLoader(dataset, batch_size=args.batch, shuffle=True)
    schedule = get_cosine_schedule_with_warmup(optimizer, 100, args.steps * accelerator.num_processes)
    model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
    done = 0
    while done < args.steps:
        for batch in loader:
            with accelerator.accumulate(model):
                loss = model(**batch).loss
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), args.clip)
                    done += 1
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
            if done >= args.steps:
                break
