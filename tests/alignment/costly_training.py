"""What a captured step costs: six layers of attention, 5.9 million weights, on one thread.

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

D, WORDS, SHAPE = 256, 4000, (4, 128)


def main(rounds):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    layers = [nn.TransformerEncoderLayer(D, 8, 688, 0.0, batch_first=True) for _ in range(6)]
    model = nn.Sequential(nn.Embedding(WORDS, D), *layers, nn.Linear(D, WORDS))
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
