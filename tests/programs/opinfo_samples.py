"""Run in torch's interpreter: blocks of models, and samples of PyTorch's OpInfo, as programs, with
torch's answers.

    python opinfo_samples.py EXPORTER.py KEPT.txt OUT FIRST STEP MOST

For every STEP-th operator of the data base from FIRST on, up to MOST samples of float64: OUT/k.json
with the program, OUT/k.npz with its arrays, the inputs x0, x1, ..., the outputs y0, y1, ..., the
cotangent dy of y0, and its gradients g0, g1, ... by the inputs of floats.
"""

import importlib.util
import json
import sys
import types
import unittest
import warnings
from pathlib import Path

import numpy as np
import programs_of_users as users
import torch

# torch's own tests need it for strings that they keep in their sources, which samples are not.
sys.modules.setdefault("expecttest", types.ModuleType("expecttest")).TestCase = unittest.TestCase

from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402
from torch.utils import _pytree as pytree  # noqa: E402

LARGEST = 20_000


def sample_of(sample, op, exporter, kept):
    """As `program_of`, or None for a sample without floats."""
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

    return program_of(function, tensors, exporter, kept)


def block_of(module, x, exporter, kept):
    """As `program_of`, of a module whose parameters are inputs too."""
    weights = dict(module.double().named_parameters())

    def function(*given):
        named = dict(zip(weights, given[1:], strict=True))
        return torch.func.functional_call(module, named, given[:1])

    return program_of(function, [x, *(w.detach() for w in weights.values())], exporter, kept)


def program_of(function, tensors, exporter, kept):
    """The document, the arrays and what torch gives, or None where that is nothing."""
    leaves = [t.clone().requires_grad_(t.is_floating_point()) for t in tensors]
    given = [t.clone() for t in leaves]  # some operators write to their operands
    answers = [y for y in pytree.tree_leaves(function(*given)) if isinstance(y, torch.Tensor)]
    if not answers or any(y.is_complex() for y in answers):
        return None
    document, arrays = exporter.exported(function, [t.clone() for t in tensors], {}, kept)
    arrays.update({f"x{k}": t.numpy() for k, t in enumerate(tensors)})
    arrays.update({f"y{k}": y.detach().numpy() for k, y in enumerate(answers)})
    if answers[0].requires_grad:
        dy = torch.cos(torch.arange(answers[0].numel(), dtype=torch.float64))
        dy = dy.reshape(answers[0].shape)
        floats = [t for t in leaves if t.requires_grad]
        gradients = torch.autograd.grad(answers[0], floats, dy, allow_unused=True)
        arrays["dy"] = dy.numpy()
        for k, gradient in enumerate(gradients):
            if gradient is not None:
                arrays[f"g{k}"] = gradient.numpy()
    return document, arrays


def samples(exporter, kept, first, step, most):
    """The name of each sample, and what `program_of` makes of it."""
    for kind in users.BLOCKS:
        torch.manual_seed(0)
        x = torch.randn(2, 5, 12, dtype=torch.float64)
        yield kind.__name__, block_of(kind(), x, exporter, kept)
    for op in op_db[int(first) :: int(step)]:
        if torch.float64 not in op.dtypes:
            continue
        torch.manual_seed(0)
        for place, sample in enumerate(op.sample_inputs("cpu", torch.float64)):
            if place >= int(most):
                break
            try:
                found = sample_of(sample, op, exporter, kept)
            except Exception as error:  # what torch.export cannot read is no matter of this test
                found = {"error": f"{type(error).__name__}: {error}"}, {}
            if found is None:
                continue
            variant = "." + op.variant_test_name if op.variant_test_name else ""
            yield f"{op.name}{variant}[{place}]", found


def main(exporter_file, kept_file, out, *numbers):
    warnings.simplefilter("ignore")
    spec = importlib.util.spec_from_file_location("exporter", exporter_file)
    exporter = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(exporter)
    kept = frozenset(Path(kept_file).read_text().split())
    found = samples(exporter, kept, *numbers)
    for number, (name, (document, arrays)) in enumerate(found):
        (Path(out) / f"{number}.json").write_text(json.dumps({**document, "sample": name}))
        np.savez(Path(out) / f"{number}.npz", **arrays)


if __name__ == "__main__":
    main(*sys.argv[1:])
