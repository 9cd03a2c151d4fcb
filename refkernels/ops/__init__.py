"""What an op is: its formulas, its index letters, and what follows from them.

    formula_op(name, signature, forms=..., ...) -> Op        oracle(formula, signature) -> Oracle

`letters`            the axes of its arrays, and what an element depends on
`formula`            one way to compute it, written once for all contexts; its faults
`domains`            the values that a numeric param may take
`canonical`          how a formula sees inputs of any shape
`readings`           a formula read in a context, in blocks; `formulas`, all of an op's
`refine`             the certified answer to a question; `selection`, for some elements
`reference_kernel`   an oracle from a user's own formula; `tree`, the form of its results
"""

from refkernels.contexts.value import Mask
from refkernels.ops.canonical import Prepared, Shared
from refkernels.ops.domains import Domain
from refkernels.ops.formula import Fault, PerOutput, Sliced, TwoStage
from refkernels.ops.formula_op import formula_op, formulas_of
from refkernels.ops.reference_kernel import Oracle, oracle

__all__ = [
    "Domain",
    "Fault",
    "Mask",
    "Oracle",
    "PerOutput",
    "Prepared",
    "Shared",
    "Sliced",
    "TwoStage",
    "formula_op",
    "formulas_of",
    "oracle",
]
