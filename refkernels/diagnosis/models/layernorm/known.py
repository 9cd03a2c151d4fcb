"""LayerNorm, as `models.of` gives it."""

from refkernels.diagnosis.models.known import Known
from refkernels.diagnosis.models.layernorm import algorithms, questions, ranges, statistics

KNOWN = Known(
    questions=(
        questions.other_deviations,
        questions.other_gradients,
        questions.wrong_axes,
        questions.other_norm,
        questions.weight_plus_one,
        statistics.stored_statistics,
    ),
    algorithms=(algorithms.find,),
    specials=ranges.find,
    run=algorithms.run,
    rows=32,  # cores earn 8 bits each
)
