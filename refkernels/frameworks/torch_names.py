"""torch's names of ops and of their arguments, where they differ from ours, and its functions that
round nothing."""

SAME = {
    "mm": "matmul", "bmm": "matmul", "scaled_dot_product_attention": "attention",
    "binary_cross_entropy_with_logits": "bce_with_logits", "nll_loss": "nll", "mse_loss": "mse",
    "l1_loss": "l1", "huber_loss": "huber", "smooth_l1_loss": "smooth_l1", "logsigmoid":
    "log_sigmoid",
}  # fmt: skip
"""The functions of torch whose name differs from their op's."""
_CONVOLUTION = ("input", "weight", "bias", "stride", "padding", "dilation", "groups")
ARGUMENTS = {
    "linear": ("input", "weight", "bias"),
    "conv1d": _CONVOLUTION,
    "conv2d": _CONVOLUTION,
    "layer_norm": ("input", "normalized_shape", "weight", "bias", "eps"),
    "rms_norm": ("input", "normalized_shape", "weight", "eps"),
    "group_norm": ("input", "num_groups", "weight", "bias", "eps"),
}
"""The names of a function's arguments, in order."""
NO_ROUNDING = frozenset((
    "view", "reshape", "flatten", "transpose", "permute", "contiguous", "squeeze", "unsqueeze",
    "expand", "t", "chunk", "split", "cat", "stack", "relu", "max_pool1d", "max_pool2d",
    "max_pool3d", "clamp", "neg", "abs", "argmax", "argmin", "sign",
))  # fmt: skip
"""The functions that only move, choose or compare numbers."""
