"""The order of a summation: trees, how to reveal them from outside, and how to replay them.

tree = reveal(box, 64)              # the tree of a black box that sums 64 values
replay(tree, a, b)                  # the same order on any data, bit for bit
known.name_of(tree)                 # "blocks of 384 in sequence, FMA"
"""

from refkernels.diagnosis.summation.replay import replay
from refkernels.diagnosis.summation.reveal import RevealError, reveal, reveal_fused
from refkernels.diagnosis.summation.tree import SummationTree

__all__ = ["RevealError", "SummationTree", "replay", "reveal", "reveal_fused"]
