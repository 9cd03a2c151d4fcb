"""LayerNorm: y = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias, with its gradients, certified.

`forward` and `backward` give Enclosures (`oracle`): `first_tier` answers, by `kernels.rows`, and
the tiers of all `formulas` the elements that it leaves open. `forward_bound` and `backward_bound`
bound the errors of the named forms, with sums in any order (`bounds` holds the proof);
`forward_condition` and `backward_condition` give the condition numbers. `naive`, `two_pass`,
`welford`, `chunked_welford`, `pairwise`, `layernorm` and `layernorm_backward` are the algorithms in
the working precision. Bounds and condition numbers are float64; they raise as `forward` and
`backward` do, and ValueError for an unknown format. `OPS` lists the op.
"""

from typing import TYPE_CHECKING

from refkernels.layernorm_ref.algorithms import (
    Moments,
    backward_plain,
    chunked_welford,
    forward_plain,
    layernorm,
    layernorm_backward,
    moments,
    naive,
    pairwise,
    two_pass,
    welford,
)
from refkernels.layernorm_ref.bounds import backward_bound, forward_bound
from refkernels.layernorm_ref.cases import cases
from refkernels.layernorm_ref.oracle import Backward, Forward, backward, forward
from refkernels.layernorm_ref.properties import (
    INVARIANTS,
    backward_condition,
    forward_condition,
)
from refkernels.layernorm_ref.solution import solution
from refkernels.op import DIRECTIONS, Op

if TYPE_CHECKING:
    from refkernels.ops.formulas import Formulas

__all__ = [
    "OPS",
    "Backward",
    "Forward",
    "Moments",
    "backward",
    "backward_bound",
    "backward_condition",
    "backward_plain",
    "cases",
    "chunked_welford",
    "forward",
    "forward_bound",
    "forward_condition",
    "forward_plain",
    "layernorm",
    "layernorm_backward",
    "moments",
    "naive",
    "pairwise",
    "two_pass",
    "welford",
]


def _definition() -> "Formulas":
    from refkernels.layernorm_ref.formulas import FORMULAS

    return FORMULAS


OPS = (
    Op(
        name="layernorm",
        inputs=("x", "weight", "bias"),
        optional=("weight", "bias"),
        outputs=("y", "mean", "rstd"),
        cotangent="dy",
        gradients=("dx", "dweight", "dbias"),
        params={"eps": 1e-5, "normalized_shape": None},
        forward=forward,
        backward=backward,
        forward_bound=forward_bound,
        backward_bound=backward_bound,
        forward_condition=forward_condition,
        backward_condition=backward_condition,
        forward_plain=forward_plain,
        backward_plain=backward_plain,
        solvers=dict.fromkeys(DIRECTIONS, solution),
        invariants=INVARIANTS,
        cases=cases,
        row_inputs=("x",),
        row_gradients=("dx",),
        means=("mean",),
        define=_definition,
    ),
)
