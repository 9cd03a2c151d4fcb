"""Which growth plots are drawn: their axes are parameters of cases, and the ops that grow most."""

import copy

import pytest
import synthetic

from refkernels import registry
from refkernels.reporting.measure.series import FEWEST_POINTS, MOST_OPS, PLOTS, Growth, growth_plots
from refkernels.reporting.measure.study import Study


@pytest.mark.parametrize("growth", PLOTS, ids=[plot.regime for plot in PLOTS])
def test_every_axis_is_a_parameter_that_varies_in_some_op(growth: Growth) -> None:
    values = {
        op.name: {
            float(case.parameters[growth.parameter])
            for case in op.cases()
            if case.regime == growth.regime and growth.parameter in case.parameters
        }
        for op in registry.ops().values()
    }
    assert max(map(len, values.values())) > 1


@pytest.mark.parametrize(
    ("regime", "parameter", "ops"),
    [
        ("rows", "rows", "cross_entropy mse l1 huber smooth_l1 kl_div bce_with_logits"),
        ("spread", "spread", "softmax log_softmax logsumexp cross_entropy"),
        ("k_sweep", "K", "matmul linear"),
        ("products", "products", "conv1d conv2d scaled_matmul"),
        ("row_length", "n", "layernorm rms_norm sum mean var std norm prod softmax log_softmax"),
        ("elements", "n", "sum mean var std norm cumsum"),
        ("offset", "mean", "batch_norm group_norm instance_norm"),
        ("length", "keys", "attention"),
        ("logits", "size", "attention"),
        ("positions", "from", "rotary"),
    ],
)
def test_what_an_error_grows_with_varies_in_the_cases(
    regime: str, parameter: str, ops: str
) -> None:
    """Rows, the logits' range, the terms of a sum."""
    for name in ops.split():
        cases = [case for case in registry.get(name).cases() if case.regime == regime]
        values = {case.parameters[parameter] for case in cases if parameter in case.parameters}
        assert len(values) >= FEWEST_POINTS, name


def test_the_ops_whose_errors_grow_most_in_a_regime_are_drawn() -> None:
    of_sin = [record for record in synthetic.records() if record.get("op") == "sin"]
    measured = [record for record in of_sin if record["kind"] == "measurement"]
    ranges = [record for record in measured if record["case"]["regime"] == "range"]
    names = [f"op{k}" for k in range(MOST_OPS + 2)]
    records = []
    for k, name in enumerate(names):
        for record in copy.deepcopy(ranges):
            record["op"] = name
            high = record["case"]["parameters"]["high"]
            if record.get("ulp"):
                record["ulp"]["max"] = 10.0**k if high > 1.0 else 1.0
            records.append(record)
    drawn = [plot.op for plot in growth_plots(Study.of(records)) if plot.growth.regime == "range"]
    assert drawn == names[-MOST_OPS:]
