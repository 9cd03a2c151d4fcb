"""What an op is: its formulas, its index letters, and what follows from them.

    formula_op(name, signature, forms=..., ...) -> Op        oracle(formula, signature) -> Oracle

`letters`            which axes its arrays have, and on what an element depends (the cone)
`formula`            one way to compute it, written once for all contexts; its faults
`canonical`          how a formula sees inputs of any shape
`readings`           what a context makes of a formula, in blocks; `formulas`, of all of an op's
`settle`             the certified answer to a question; `selection`, to one about some elements
`reference_kernel`   an oracle from a formula of one's own; `tree`, what it returns
"""

from refkernels.contexts.value import Mask
from refkernels.ops.canonical import Prepared, Shared
from refkernels.ops.formula import Apart, Fault, Sliced, Staged
from refkernels.ops.formula_op import formula_op, formulas_of
from refkernels.ops.reference_kernel import Oracle, oracle

__all__ = [
    "Apart",
    "Fault",
    "Mask",
    "Oracle",
    "Prepared",
    "Shared",
    "Sliced",
    "Staged",
    "formula_op",
    "formulas_of",
    "oracle",
]
