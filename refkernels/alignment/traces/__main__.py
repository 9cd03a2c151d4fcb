"""Where two traced PyTorch programs part, and why: run by torch's interpreter.

    python traces OUT.json A.safetensors B.safetensors

The calls of both steps run again in float64, from their recorded weights and batches. So rounding
plays no part: values are partners where they have the same numbers in any order, whatever made
them. What B's loss depends on without a partner is where the programs part. The cause is an *edit*
of A's program that makes B's numbers, or of B's that makes A's. An edit that was found is kept,
and the search goes on behind it. Of another framework's run, the layers' tensors stand for it.
"""

import json
import os
import sys

import torch

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "profiling"))

from layered import compare_layers
from parting import compare
from replay import CALLS, opened


def main(out, path_a, path_b):
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)  # of a quotient of integers, say
    with open(out, "w", encoding="utf-8") as file:
        called = all(CALLS in opened(path)[0] for path in (path_a, path_b))
        json.dump((compare if called else compare_layers)(path_a, path_b), file)


if __name__ == "__main__":
    main(*sys.argv[1:])
