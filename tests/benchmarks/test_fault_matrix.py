"""The benchmark plants what any op may have, and it is named."""

import fault_matrix
import pytest

from refkernels import registry


@pytest.mark.parametrize("fault", ["lost tail", "clamped value", "narrow value"])
def test_what_any_op_may_have_is_planted_and_named(fault: str) -> None:
    op = registry.get("embedding" if fault == "clamped value" else "log_softmax")
    assert fault_matrix.cell(op, "backward", fault)["state"] == "proven"
