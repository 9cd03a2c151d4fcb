"""Which growth plots are drawn: their axes are parameters of cases, and the ops that grow most."""

import copy

import pytest
import synthetic

from refkernels import registry
from refkernels.reporting.measure.series import MOST_OPS, PLOTS, Growth, growth_plots
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
