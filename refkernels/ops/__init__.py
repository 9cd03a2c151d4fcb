"""What an op is: its formulas, its index letters, and what follows from them.

    formula_op(name, signature, forms=..., ...) -> Op

`letters`   which axes its arrays have, and on what an element of an output depends (the cone)
`formula`   one way to compute it, written once for all contexts
`readings`  what the contexts make of its formulas: value, bound, condition, plain algorithm
`tree`      what an oracle returns
`reference_kernel`   oracle(): an oracle from a formula of one's own
`settle`    the certified answer to a question: one screen, one ladder, one pool for every op
"""

from refkernels.ops.canonical import Prepared
from refkernels.ops.formula import Fault, Staged
from refkernels.ops.formula_op import formula_op
from refkernels.ops.reference_kernel import Oracle, oracle

__all__ = ["Fault", "Oracle", "Prepared", "Staged", "formula_op", "oracle"]
