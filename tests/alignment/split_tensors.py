"""One training in OneFlow: on local tensors, and on global ones that two processes hold together.

    python split_tensors.py

Writes local_0 and local_1 (each process alone), data (the batch is split), tensor (the weights are
split) and moved (the same, with one weight moved by an ulp).
"""

import os
import socket
import subprocess
import sys

WORLD = 2


def processes():
    """This script in each of two processes, as OneFlow's launcher starts them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    started = []
    for rank in range(WORLD):
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(WORLD)}
        environ = {**os.environ, **place, "RANK": str(rank), "LOCAL_RANK": str(rank)}
        started.append(subprocess.Popen([sys.executable, __file__], env=environ))
    statuses = [process.wait() for process in started]
    assert not any(statuses)
    print("{}")


def train():
    import numpy as np
    import oneflow as flow
    from capture import Capture

    nn, split, broadcast = flow.nn, flow.sbp.split, flow.sbp.broadcast
    rank = flow.env.get_rank()
    everywhere = flow.placement("cpu", ranks=list(range(WORLD)))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.norm, self.down = nn.Linear(6, 8), nn.LayerNorm(8), nn.Linear(8, 4)
            self.loss = nn.CrossEntropyLoss()

        def forward(self, x, y):
            return self.loss(self.down(self.norm(self.up(x))), y)

    def spread(tensor, sbp):
        whole = tensor.to_global(placement=everywhere, sbp=broadcast)
        return whole.to_global(sbp=sbp)

    def run(folder, weights, rows, **options):
        draws = np.random.default_rng(0)
        model = Model()
        for parameter in model.parameters():
            parameter.data.copy_(flow.tensor(draws.normal(size=parameter.shape).astype("f4")))
        for name, sbp in weights.items():
            layer, word = name.split(".")
            layer = getattr(model, layer)
            setattr(layer, word, nn.Parameter(spread(getattr(layer, word).data, sbp)))
        optimizer = flow.optim.SGD(model.parameters(), 0.1, momentum=0.9)
        with Capture(folder, model, optimizer, steps=[0], **options) as capture:
            x = flow.tensor(draws.normal(size=(8, 6)).astype("f4"))
            y = flow.tensor(draws.integers(0, 4, 8))
            if weights:
                x, y = spread(x, rows), spread(y, rows)
            loss = model(x, y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            capture.step(loss=loss, batch={"x": x, "y": y})

    names = [name for name, _ in Model().named_parameters()]
    whole = dict.fromkeys(names, broadcast)
    parts = dict(whole, **{"up.weight": split(0), "up.bias": split(0), "down.weight": split(1)})
    run(f"local_{rank}", {}, None, rank=0, world_size=1)
    run("data", whole, split(0))
    run("tensor", parts, broadcast)
    run("moved", parts, broadcast, perturb=3)


if __name__ == "__main__":
    if "RANK" in os.environ:
        train()
    else:
        processes()
