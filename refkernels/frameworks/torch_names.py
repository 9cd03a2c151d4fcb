"""torch's names of ops, where they differ from ours, and its functions that round nothing."""

SAME = {
    "mm": "matmul", "bmm": "matmul", "scaled_dot_product_attention": "attention",
    "binary_cross_entropy_with_logits": "bce_with_logits", "nll_loss": "nll", "mse_loss": "mse",
    "l1_loss": "l1", "huber_loss": "huber", "smooth_l1_loss": "smooth_l1", "logsigmoid":
    "log_sigmoid",
}  # fmt: skip
"""The functions of torch whose name differs from their op's."""
NO_ROUNDING = frozenset((
    "view", "reshape", "flatten", "transpose", "permute", "contiguous", "squeeze", "unsqueeze",
    "expand", "t", "chunk", "split", "cat", "stack", "relu", "max_pool1d", "max_pool2d",
    "max_pool3d", "clamp", "neg", "abs", "argmax", "argmin", "sign",
))  # fmt: skip
"""Those that only move, choose or compare numbers."""
