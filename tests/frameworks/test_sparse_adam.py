"""PyTorch's SparseAdam on an embedding's gradient is named, every bit of it reproduced."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from plain_interpreter import PlainInterpreter

from refkernels import explain

SCRIPT = """
import sys
import numpy as np, torch
before = dict(np.load(sys.argv[1]))
param = torch.nn.Parameter(torch.tensor(before["param"]))
optimizer, rows = torch.optim.SparseAdam([param], lr=1e-3), before["grad"].any(1).nonzero()[0]
values, shape = torch.tensor(before["grad"][rows]), before["grad"].shape
param.grad = torch.sparse_coo_tensor(rows[None], values, shape, check_invariants=True).coalesce()
state = {"exp_avg": torch.tensor(before["m"]), "exp_avg_sq": torch.tensor(before["v"])}
optimizer.state[param] = {"step": 6, **state}
optimizer.step()
state = optimizer.state[param]
after = {"m": state["exp_avg"], "v": state["exp_avg_sq"], "param": param.detach()}
np.savez(sys.argv[2], **{name: array.numpy() for name, array in after.items()})
"""


def test_torch_s_sparse_adam_is_lazy_and_does_not_rescale_eps(
    plain: Callable[[str], PlainInterpreter], tmp_path: Path
) -> None:
    rng = np.random.default_rng(3)
    param, grad, m, v = rng.standard_normal((4, 12, 7)).astype(np.float32)
    size = np.float32(1e-7)
    before = {"param": param, "grad": size * grad, "m": size * m, "v": np.square(size * v)}
    before["grad"][[0, 3, 4, 9]] = 0
    start, got = tmp_path / "before.npz", tmp_path / "after.npz"
    np.savez(start, **before)
    plain("torch").run(SCRIPT, str(start), str(got))
    with np.load(got, allow_pickle=False) as archive:
        after = dict(archive)
    explanation = explain("adam", before, after, {"lr": 1e-3, "step": 7})
    assert (explanation.verdict, explanation.cause, explanation.confidence) == (
        "exceeds_bound",
        "lazy_rows",
        "proven",
    )
    (best, *_) = [candidate for candidate in explanation.candidates if candidate.output == "param"]
    assert dict(best.details) == {"with": "eps_hat"}
