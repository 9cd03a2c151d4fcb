"""What a captured step costs: a Llama of 7 million weights, on one thread.

    python costly_training.py ROUNDS

Prints one JSON object: the sizes of the first two steps' files, over that of the weights, and the
median processor time of a chosen step over that of a plain one.
"""

import json
import os
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from capture import Capture
from torch import nn

D, HEADS, INNER, LAYERS, WORDS, SHAPE = 256, 8, 688, 6, 4000, (4, 128)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.after = nn.RMSNorm(D), nn.RMSNorm(D)
        self.q, self.k, self.v, self.o = (nn.Linear(D, D, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(D, INNER, bias=False) for _ in range(2))
        self.down = nn.Linear(INNER, D, bias=False)

    def forward(self, x, cos, sin):
        def heads(part):
            return part.view(*x.shape[:2], HEADS, -1).transpose(1, 2)

        def turned(part):
            a, b = part.chunk(2, -1)
            return part * cos + torch.cat((-b, a), -1) * sin

        n = self.before(x)
        q, k, v = heads(self.q(n)), heads(self.k(n)), heads(self.v(n))
        y = F.scaled_dot_product_attention(turned(q), turned(k), v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).reshape(x.shape))
        n = self.after(x)
        return x + self.down(F.silu(self.gate(n)) * self.up(n))


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.norm = nn.Embedding(WORDS, D), nn.RMSNorm(D)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.head = nn.Linear(D, WORDS, bias=False)

    def forward(self, ids):
        width = D // HEADS
        angles = torch.outer(torch.arange(SHAPE[1]), 1e4 ** (-torch.arange(0, width, 2) / width))
        angles = torch.cat((angles, angles), -1)
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x, angles.cos(), angles.sin())
        return self.head(self.norm(x))


def main(rounds):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = Llama()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    ids = torch.randint(WORDS, SHAPE)

    def train():
        loss = F.cross_entropy(model(ids).reshape(-1, WORDS), ids.roll(-1, 1).reshape(-1))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    seconds = {"plain": [], "chosen": []}
    chosen = range(rounds + 1)
    with Capture("costs", model, optimizer, steps=chosen) as capture:
        for step in range(2 * rounds + 1):
            began = time.process_time()
            capture.step(train(), batch=ids)
            if step:  # the first loads what later ones have
                seconds["chosen" if step in chosen else "plain"].append(time.process_time() - began)
    folder, plain = os.path.join("costs", "rank_0"), statistics.median(seconds["plain"])
    files = sorted(name for name in os.listdir(folder) if name.endswith(".safetensors"))
    weights = sum(p.numel() * p.element_size() for p in model.parameters())
    times_weights = [os.path.getsize(os.path.join(folder, name)) / weights for name in files[:2]]
    times_plain = statistics.median(seconds["chosen"]) / plain
    print(json.dumps({"times_weights": times_weights, "times_plain": times_plain}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
