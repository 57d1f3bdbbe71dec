from lightning.fabric import Fabric


def main(build, data):
    fabric = Fabric(strategy="fsdp")
    fabric.launch()
    with fabric.init_module():
        model = build()
    model = fabric.setup_module(model)
    optimizer = fabric.setup_optimizers(model.make_optimizer())
    for step, batch in enumerate(data):
        loss = model(batch)
        fabric.backward(loss / 16)
        if (step + 1) % 16 == 0:
            fabric.clip_gradients(model, optimizer, max_norm=1.0)
            optimizer.step()
            optimizer.zero_grad()
