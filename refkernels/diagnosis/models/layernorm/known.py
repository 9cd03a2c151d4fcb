"""LayerNorm, as `models.of` gives it."""

from refkernels.diagnosis.models.known import Known
from refkernels.diagnosis.models.layernorm import algorithms

KNOWN = Known(
    rounded=(algorithms.find,),
    run=algorithms.run,
    rows=32,  # cores earn 8 bits each
)
