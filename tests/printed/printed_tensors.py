"""Tensors as torch prints them."""

import numpy as np


def shown(name: str, array: np.ndarray, decimals: int = 4) -> str:
    """The array, its floats to that many decimals."""

    def rows(part: np.ndarray) -> str:
        if part.ndim:
            return f"[{', '.join(map(rows, part))}]"
        if part.dtype.kind != "f":
            return str(part.item())
        return f"{float(part):.{decimals}f}" + ("" if decimals else ".")

    return f"{name}: tensor({rows(array)}, dtype=torch.{array.dtype})\n"
