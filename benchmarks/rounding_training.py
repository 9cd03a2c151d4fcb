"""Trainings of one definition that differ in rounding only, for benchmarks/rounding_pairs.py.

    PYTHON rounding_training.py FOLDER STEPS SEED OPTIMIZER VARIANT ...
    PYTHON rounding_training.py FOLDER STEPS RATE OPTIMIZER FRAMEWORK:VARIANT ...

The first trains a small transformer in torch, the second examples' BERT in torch or paddle.
Variants are "base"; "ulp3": one weight moved by an ulp; "rows3": the rows of each batch in another
order; "threads": two threads. Needs capture.py, planted_training.py and the examples beside it.
"""

import os
import sys


def small(folder, steps, seed, optimizer_name, variant):
    import numpy as np
    import planted_training as planted
    import torch
    from capture import Capture

    torch.set_num_threads(2 if variant == "threads" else 1)
    torch.manual_seed(seed)
    model = planted.Model(optimizer_name)
    optimizer = planted.optimizer_of(optimizer_name, model)
    rng = np.random.default_rng(seed)
    with torch.no_grad():  # torch's own draw depends on its vector instructions
        for name, p in model.named_parameters():
            centre = 1.0 if "norm" in name and name.endswith("weight") else 0.0
            p.copy_(torch.from_numpy(centre + 0.1 * rng.standard_normal(tuple(p.shape))))
    shape = steps, planted.ROWS, planted.LENGTH
    ids, labels = (torch.from_numpy(rng.integers(0, planted.WORDS, shape)) for _ in range(2))
    order = torch.arange(planted.ROWS)
    if variant.startswith("rows"):
        order = torch.from_numpy(np.random.default_rng(int(variant[4:])).permutation(planted.ROWS))
    perturb = int(variant[3:]) if variant.startswith("ulp") else None
    capturing = {"steps": [0], "perturb": perturb, "hash_every": 1}
    with Capture(os.path.join(folder, variant), model, optimizer, **capturing) as capture:
        for step in range(steps):
            batch = {"ids": ids[step][order], "labels": labels[step][order]}
            optimizer.zero_grad()
            loss = model(**batch)
            loss.backward()
            planted.clip(optimizer_name, model, optimizer)
            optimizer.step()
            capture.step(loss=loss, batch=batch)


def bert(folder, steps, rate, optimizer_name, variant):
    import train_bert

    framework, _, change = variant.partition(":")
    argv = [
        "train_bert.py", framework, os.path.join(folder, variant.replace(":", "_")),
        "--optimizer", optimizer_name, "--lr", rate, "--steps", str(steps), "--captured", "0",
    ]  # fmt: skip
    sys.argv = [*argv, "--perturb", change[3:]] if change.startswith("ulp") else argv
    train_bert.main()


if __name__ == "__main__":
    folder, steps, seed, optimizer, *variants = sys.argv[1:]
    for variant in variants:
        if ":" in variant:
            bert(folder, int(steps), seed, optimizer, variant)
        else:
            small(folder, int(steps), int(seed), optimizer, variant)
