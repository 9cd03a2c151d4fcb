"""Data-parallel trainings in two processes that speak to each other over gloo, in four, and in one.

    python two_processes.py NAME ...

Each NAME is a folder to capture to, and the name of a training: one_NAME in one process, four_NAME
in four. Every process records its own rank,
which it reads from the environment, as under torchrun.
"""

import contextlib
import os
import sys

import torch
from capture import Capture
from torch import distributed as dist
from torch.nn.parallel import DistributedDataParallel

ROWS, STEPS = 8, 2
nn = torch.nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(5, 7), nn.GELU(), nn.Linear(7, 3))
        self.loss = nn.CrossEntropyLoss()

    def forward(self, x, y):
        return self.loss(self.body(x), y)


def batches(masked):
    draws = torch.Generator().manual_seed(3)
    for _ in range(STEPS):
        x = torch.randn(ROWS, 5, generator=draws)
        y = torch.randint(0, 3, (ROWS,), generator=draws)
        if masked:
            y[ROWS // 2 + 1 :: 2] = -100
        yield x, y


def summed(state, bucket):
    """A hook of DistributedDataParallel that forgets to divide by the number of ranks."""
    reduced = dist.all_reduce(bucket.buffer(), async_op=True).get_future()
    return reduced.then(lambda done: done.value()[0])


def weight(y):
    """By which a rank's own mean becomes its part of the mean over all ranks' words."""
    own = (y >= 0).sum().float()
    every = own.clone()
    dist.all_reduce(every)
    return dist.get_world_size() * own / every


def train(name, rank, world):
    """A name's words say who reduces (ddp, hand, nobody), and what is planted or done about it."""
    words = name.removeprefix("four_").split("_")
    torch.manual_seed(0)
    model = Model()
    called = model
    if words[0] == "ddp":
        called = DistributedDataParallel(model)
        if "sum" in words:
            called.register_comm_hook(None, summed)
    recorded = called if "wrapped" in words else model
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    with Capture(name, recorded, optimizer, steps=[0]) as capture:
        for x, y in batches("masked" in words):
            if world > 1:
                own = ROWS // world
                at = 0 if "shard" in words else rank * own
                x, y = x[at : at + own], y[at : at + own]
            optimizer.zero_grad()
            loss = called(x, y)
            share = weight(y) if "weighed" in words else 1
            (loss * share).backward()
            if words[0] == "hand":
                for p in list(model.parameters())[: 2 if "part" in words else None]:
                    dist.all_reduce(p.grad)
                    p.grad /= 1 if "sum" in words else world**2 if "twice" in words else world
            optimizer.step()
            capture.step(loss=loss, batch={"x": x, "y": y})


def process(rank, world, names):
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(world), GLOO_SOCKET_IFNAME="lo")
    torch.set_num_threads(1)
    store = "file://" + os.path.abspath(f"store{world}")
    with contextlib.ExitStack() as stack:
        if world > 1:
            dist.init_process_group("gloo", init_method=store, rank=rank, world_size=world)
            stack.callback(dist.destroy_process_group)
        for name in names:
            train(name, rank, world)


if __name__ == "__main__":
    names_by_world = {1: [], 2: [], 4: []}
    for name in sys.argv[1:]:
        names_by_world[{"one": 1, "four": 4}.get(name.split("_")[0], 2)].append(name)
    start = torch.multiprocessing.start_processes
    import torch._dynamo  # seconds, once: each process would at its first step

    for world in (2, 4):
        start(process, (world, names_by_world[world]), world, start_method="fork")
    process(0, 1, names_by_world[1])
    print("{}")
