"""Two programs in PyTorch are compared call by call: a right port is the same, whatever its layers,
fused kernels and order of calls; a mistake is told with its place and both values."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from captured import HERE, python_of, run_script
from hunting import one_in

from refkernels.alignment import align
from refkernels.alignment.align import conclude
from refkernels.alignment.local import LocalTruth
from refkernels.alignment.run import Run
from refkernels.alignment.traced import TRACES
from refkernels.reporting.alignment import page

pytestmark = pytest.mark.usefixtures("judged_once")
# name: the edit, what A and B have, in how many places
MISTAKES: dict[str, tuple[str, Any, Any, int]] = {
    "scale": ("constant", pytest.approx(8**-0.5), 1, 2),
    "eps": ("constant", 1e-6, 1e-3, 4),
    "fused_eps": ("constant", 1e-5, 1e-3, 1),  # of a norm that is one call in B
    "rope_base": ("constant", 10000.0, 500.0, 1),  # both blocks compute the same angles
    "window": ("added", None, None, 2),
    "untransposed": ("transposed", None, None, 2),
    "swapped": ("swapped", "gate", "up", 2),
    "values": ("swapped", "k", "v", 2),  # exchanged behind their projections, in front of RoPE
    "gelu": ("function", "silu", "gelu", 2),
    "other": ("replaced", "sigmoid", "tanh, exp", 2),  # a function that no edit makes
    "residual": ("left_out", None, None, 2),
    "other_sense": ("constant", 1, -1, 2),  # of a sum, of queries and keys, on one line
    "interleaved": ("order", None, None, 1),  # rotary pairs of neighbours, in one block
    "viewed": ("order", None, None, 2),  # queries, keys and values in another order
    "reused": ("reused", "blocks.1", "blocks.0", 1),
    "counted": ("constant", 27, 30, 1),  # the loss's sum over a number of words
}
TIED = {  # a model whose head has its embedding's weights: the verdict, what is found first, words
    # Rows of queries and keys in another order; one layer for three, and two parts of the batch.
    **dict.fromkeys(("tied", "pairs", "joined"), ("same", "", "")),
    "untied": ("different", "untied", ""),
    "late": ("different", "constant", "`start, end` is 0, -3"),  # the values come again, shifted
    "unmasked": ("different", "left_out", ""),
    "unshifted": ("different", "constant", ""),  # where a slice ends: each word is its own label
    "squared": ("different", "parts", "from there on A alone has log\\_softmax, nll\\_loss"),
    "summed": ("different", "constant", ""),  # its labels are padded, where A leaves out a word
}
TRIED, PAIRS = one_in(3, MISTAKES), one_in(2, TIED)  # the first pair is of a model with itself
MANY = """
import runpy, sys
without_compiler, traces, *names = sys.argv[1:]
runpy.run_path(without_compiler)
for name in names:
    step = "/rank_0/step_000000.safetensors"
    sys.argv = [traces, name + ".json", "right" + step, name + step]
    runpy.run_path(traces, run_name="__main__")
import edits, in_torch, layered, torch, unfused
assert not edits.same_constant(-torch.inf, -1e9)  # as masks have
ends = torch.tensor([3, 4, 8], dtype=torch.int32)
forms = [((8, 4), (3, 4, 12)), ((4, 8), (8, 12)), ((3, 4, 12), (12, 8))]
torch.set_default_dtype(torch.float32)
for a, b in ([torch.randn(shape) for shape in shapes] for shapes in forms):
    exact = in_torch.grouped(a.double(), b.double(), ends)
    torch.testing.assert_close(torch._grouped_mm(a, b, offs=ends), exact.float())
q, seen = torch.randn(1, 2, 5, 4, requires_grad=True), torch.ones(5, 5, dtype=torch.bool).tril()
seen[1] = False  # a query that sees no key has 0, and no gradient
for y in (torch.nn.functional.scaled_dot_product_attention(q, q, q, seen),
          unfused.attention(False, None, q, q, q, seen)[0]):
    torch.testing.assert_close(y[..., 1, :], torch.zeros(1, 2, 4))
    assert torch.autograd.grad(y.sum(), q)[0].isfinite().all()
lstm, x, state = torch.nn.LSTM(3, 4, bidirectional=True), torch.randn(5, 2, 3), torch.randn(2, 2, 4)
exact, weights = lstm(x, (state, state))[0], lstm.all_weights
made = [unfused.lstm(x, *weights[k], state[k], state[k], reverse=k)[0] for k in (0, 1)]
torch.testing.assert_close(torch.cat(made, -1), exact)
near = layered.Near([(0, layered.sums(x))], [x])  # an edit must leave little of what was apart
assert near.find_value(x * (1 + 2**-13)) == [0] and not near.find_value(x.flip(0))
assert not near.find_value(x * (1 + 2**-13), x * (1 + 2**-11))
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ported")
    names = ("right", "port", "fused", *PAIRS, *TRIED)
    run_script("torch", folder, "ported_training.py", *names).check_returncode()
    command = python_of("torch"), "-c", MANY, str(HERE.parent / "without_compiler.py"), str(TRACES)
    subprocess.run([*command, "fused", *TRIED], cwd=folder, check=True)
    return folder


def found(runs: Path, name: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((runs / f"{name}.json").read_text("utf-8"))
    assert (record["complete"], record["unseen"]) == (True, [])
    return record


def test_a_right_port_is_the_same(runs: Path) -> None:
    assert not found(runs, "fused")["differences"]
    alignment = align(runs / "right", runs / "port")
    assert alignment.verdict.word == "same", page.headline(alignment.to_dict())


@pytest.mark.parametrize("name", TRIED)
def test_a_mistake_of_a_port_is_found_wherever_it_is(name: str, runs: Path) -> None:
    edit, a, b, times = MISTAKES[name]
    differences = found(runs, name)["differences"]
    assert [one["edit"] for one in differences] == [edit] * times
    for one in differences:
        for expected, key in ((a, "a"), (b, "b")):
            told = one.get(key)
            if isinstance(told, str) and " (" in told:  # an operator, its module and line
                told = told.split(" (")[0].rpartition(".")[2]
            assert expected is None or told == expected


@pytest.mark.parametrize("name", PAIRS)
def test_weights_that_are_shared_joined_or_in_another_order(name: str, runs: Path) -> None:
    pair, nothing = (Run.read(runs / "tied"), Run.read(runs / name)), LocalTruth((), (), ())
    alignment = conclude(pair, (nothing, nothing))
    verdict, headline = alignment.verdict, page.headline(alignment.to_dict())
    told = verdict.first.kind.removeprefix("calls:") if verdict.first else ""
    word, kind, said = TIED[name]
    assert (verdict.word, told, said in headline) == (word, kind, True), headline


def test_the_headline_says_the_call_and_both_values(runs: Path) -> None:
    headline = page.headline(align(runs / "right", runs / "scale").to_dict())
    assert "`mul` in `blocks.0 (ported_training.py:56)` takes 0.353553391 in A" in headline
    assert "(B parts from A at `scaled_dot_product_attention: masked_fill` in" in headline
