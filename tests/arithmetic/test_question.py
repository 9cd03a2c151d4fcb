"""The questions to an oracle, and which elements an answer leaves open."""

import math
from typing import Any

import numpy as np
import pytest

from refkernels.arithmetic import formats
from refkernels.arithmetic.enclosure import Enclosure
from refkernels.arithmetic.question import Question


def test_the_three_questions_are_understood() -> None:
    assert Question.parse("enclosure").kind == "enclosure"
    assert Question.parse(("rounding", "bfloat16")) == Question("rounding", formats.BFLOAT16)
    assert Question.parse(("ulp", np.float32, 0.01)) == Question("ulp", formats.BINARY32, 0.01)
    parsed = Question.parse(("ulp", "float64", 1))
    assert Question.parse(parsed) is parsed


@pytest.mark.parametrize(
    "unknown",
    ["exact", ("rounding",), ("ulp", "float32"), ("ulp", "float32", 0.0), ("ulp", "float32", -1),
     None, ("rounding", "int8"), 3, ("rounding", None), ("rounding", np.ones(3)),
     (np.ones(2), "f4"), ("ulp", "float32", math.nan),
     np.array(["rounding", "float32"])],
    ids=repr,
)  # fmt: skip
def test_other_questions_are_refused(unknown: Any) -> None:
    with pytest.raises(ValueError, match=r"question|format"):
        Question.parse(unknown)


@pytest.mark.parametrize("uncertainty", [True, "1", 1j, None, np.ones(1)], ids=repr)
def test_an_uncertainty_is_a_real_number(uncertainty: Any) -> None:
    with pytest.raises(TypeError, match=r"uncertainty is .* real number"):
        Question.parse(("ulp", "float32", uncertainty))
    with pytest.raises(ValueError, match=r"uncertainty is .* float64 does not hold"):
        Question.parse(("ulp", "float32", 10**400))


def test_undecided_are_the_elements_too_wide_for_the_question() -> None:
    enclosure = Enclosure(
        np.array([1.0, 1.0 + 2.0**-24, 1.5, 0.0]), 0.0, np.array([2.0**-60, 2.0**-60, 0.0, np.inf])
    )
    assert Question.parse("enclosure").undecided(enclosure).tolist() == [False] * 4
    rounding = Question.parse(("rounding", "float32"))
    assert rounding.undecided(enclosure).tolist() == [False, True, False, True]
    # The first interval reaches below 1, where an ulp is 2^-24.
    ulp = Question.parse(("ulp", "float32", 2.0**-36))
    assert ulp.undecided(enclosure).tolist() == [False, False, False, True]
    assert Question.parse(("ulp", "float64", 1e-3)).undecided(enclosure).tolist() == [
        True, True, False, True,
    ]  # fmt: skip
