"""Which growth plots are drawn: their axes are parameters of cases, and the ops that grow most."""

import copy

import pytest
import synthetic

from refkernels import registry
from refkernels.reporting.measure.series import MOST_OPS, PLOTS, Growth, growth_plots
from refkernels.reporting.measure.study import Study


@pytest.mark.parametrize("growth", PLOTS, ids=[one.regime for one in PLOTS])
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


def test_of_one_regime_the_ops_that_grow_most_are_drawn() -> None:
    of_sin = [one for one in synthetic.records() if one.get("op") == "sin"]
    measured = [one for one in of_sin if one["kind"] == "measurement"]
    ranges = [one for one in measured if one["case"]["regime"] == "range"]
    names = [f"op{k}" for k in range(MOST_OPS + 2)]
    some = []
    for k, name in enumerate(names):
        for record in copy.deepcopy(ranges):
            record["op"] = name
            high = record["case"]["parameters"]["high"]
            if record.get("ulp"):
                record["ulp"]["max"] = 10.0**k if high > 1.0 else 1.0
            some.append(record)
    drawn = [plot.op for plot in growth_plots(Study.of(some)) if plot.growth.regime == "range"]
    assert drawn == names[-MOST_OPS:]
