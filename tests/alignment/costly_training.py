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
    optimizer, ids = torch.optim.AdamW(model.parameters(), 1e-3), torch.randint(WORDS, SHAPE)
    seconds = []
    with Capture("costs", model, optimizer, steps=range(rounds + 1)) as capture:
        for _ in range(2 * rounds + 1):
            began = time.process_time()
            loss = F.cross_entropy(model(ids).reshape(-1, WORDS), ids.roll(-1, 1).reshape(-1))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            capture.step(loss, batch=ids)
            seconds.append(time.process_time() - began)
    files = [os.path.join("costs", "rank_0", f"step_{k:06d}.safetensors") for k in (0, 1)]
    weights = sum(p.numel() * p.element_size() for p in model.parameters())
    plain, chosen = map(statistics.median, (seconds[rounds + 1 :], seconds[1 : rounds + 1]))
    times_weights = [os.path.getsize(file) / weights for file in files]
    print(json.dumps({"times_weights": times_weights, "times_plain": chosen / plain}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
