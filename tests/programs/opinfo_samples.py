"""Run in torch's interpreter: samples of PyTorch's OpInfo as programs, with torch's answers.

    python opinfo_samples.py EXPORTER.py KEPT.txt OUT FIRST STEP MOST

For every STEP-th operator of the data base from FIRST on, up to MOST samples of float64: OUT/k.json
with the program, OUT/k.npz with its arrays, the inputs x0, x1, ... and the outputs y0, y1, ...
"""

import importlib.util
import json
import sys
import types
import unittest
import warnings
from pathlib import Path

import numpy as np
import torch

# torch's own tests need it for strings that they keep in their sources, which samples are not.
sys.modules.setdefault("expecttest", types.ModuleType("expecttest")).TestCase = unittest.TestCase

from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402
from torch.utils import _pytree as pytree  # noqa: E402

LARGEST = 20_000


def program_of(sample, op, exporter, kept):
    """The document, the arrays and what torch gives, or None for a sample without floats."""
    leaves, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    places = [k for k, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    tensors = [leaves[k].detach().clone() for k in places]
    if not tensors or sum(t.numel() for t in tensors) > LARGEST:
        return None

    def function(*given):
        filled = list(leaves)
        for k, tensor in zip(places, given, strict=True):
            filled[k] = tensor
        first, args, kwargs = pytree.tree_unflatten(filled, spec)
        return op.op(first, *args, **kwargs)

    answers = [y for y in pytree.tree_leaves(function(*tensors)) if isinstance(y, torch.Tensor)]
    if not answers or not all(y.is_floating_point() for y in answers):
        return None
    document, arrays = exporter.exported(function, [t.clone() for t in tensors], {}, kept)
    arrays.update({f"x{k}": t.numpy() for k, t in enumerate(tensors)})
    arrays.update({f"y{k}": y.detach().numpy() for k, y in enumerate(answers)})
    return document, arrays


def main(exporter_file, kept_file, out, first, step, most):
    warnings.simplefilter("ignore")
    spec = importlib.util.spec_from_file_location("exporter", exporter_file)
    exporter = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(exporter)
    kept = frozenset(Path(kept_file).read_text().split())
    number = 0
    for op in op_db[int(first) :: int(step)]:
        if torch.float64 not in op.dtypes:
            continue
        torch.manual_seed(0)
        for place, sample in enumerate(op.sample_inputs("cpu", torch.float64)):
            if place >= int(most):
                break
            try:
                found = program_of(sample, op, exporter, kept)
            except Exception as error:  # what torch.export cannot read is no matter of this test
                found = {"error": f"{type(error).__name__}: {error}"}, {}
            if found is None:
                continue
            document, arrays = found
            document["sample"] = (
                f"{op.name}{'.' + op.variant_test_name if op.variant_test_name else ''}[{place}]"
            )
            (Path(out) / f"{number}.json").write_text(json.dumps(document))
            np.savez(Path(out) / f"{number}.npz", **arrays)
            number += 1


if __name__ == "__main__":
    main(*sys.argv[1:])
