"""Printed digits never prove a right kernel wrong, and they prove every fault that they show."""

import numpy as np
import pytest
from hunting import HUNT
from printed_tensors import shown

from refkernels import registry
from refkernels.arithmetic import formats
from refkernels.printed import reach, text, verdict
from refkernels.printed.digits import Intervals, intervals

ROUNDS = 25 * HUNT
Arrays = dict[str, np.ndarray]


def softmax(rng: np.random.Generator) -> Arrays:
    return {"x": rng.standard_normal((2, int(rng.integers(1, 9)))) * 10.0 ** rng.integers(-2, 2)}


def layernorm(rng: np.random.Generator) -> Arrays:
    n = int(rng.integers(2, 9))
    x = rng.standard_normal((3, n)) + rng.integers(-3, 4)
    return {"x": x, "weight": rng.standard_normal(n), "bias": rng.standard_normal(n)}


def matmul(rng: np.random.Generator) -> Arrays:
    m, k, n = rng.integers(1, 6, 3)
    return {"a": rng.standard_normal((m, k)), "b": rng.standard_normal((k, n))}


def gelu(rng: np.random.Generator) -> Arrays:
    return {"x": rng.standard_normal((2, 3)) * 10.0 ** rng.integers(-3, 2)}


DRAWS = {"softmax": softmax, "layernorm": layernorm, "matmul": matmul, "gelu": gelu}


def judged(op: str, inputs: Arrays, got: np.ndarray, decimals: int, **params: object) -> dict:
    thread = "".join(shown(name, array, decimals) for name, array in inputs.items())
    thread += shown("torch output", got, decimals)
    answer = verdict.explain_printed(op, text.tensors(thread), params=params)
    (output,) = answer["kernels"]["torch"]["outputs"].values()
    return output


def outside(op: str, inputs: Arrays, got: np.ndarray, decimals: int) -> np.ndarray:
    """Which elements are called wrong, without any cause."""
    box = {
        name: intervals(text.tensors(shown(name, array, decimals))[0])
        for name, array in inputs.items()
    }
    printed = intervals(text.tensors(shown("y", got, decimals))[0])
    record = registry.get(op)
    asked = reach.PrintedQuestion(record, "forward", box, record.params)
    return verdict.outside(printed, reach.reach(asked, formats.of(got))[record.outputs[0]])


@pytest.mark.parametrize("op", DRAWS)
def test_a_right_kernel_is_never_called_wrong(op: str) -> None:
    """Whatever digits of inputs and output are printed; in several formats."""
    rng = np.random.default_rng(20)
    for _ in range(ROUNDS):
        dtype = rng.choice(["float16", "float32", "float64"])
        decimals = int(rng.integers(1, 9))
        inputs = {name: array.astype(dtype) for name, array in DRAWS[op](rng).items()}
        record = registry.get(op)
        right = record.plain("forward", inputs, {}, formats.get(dtype))[record.outputs[0]]
        assert not outside(op, inputs, right, decimals).any(), (inputs, right, decimals)


@pytest.mark.parametrize("op", DRAWS)
def test_the_whole_answer_calls_a_right_kernel_right(op: str) -> None:
    rng = np.random.default_rng(24)
    for decimals in range(1, 8):
        inputs = {name: array.astype(np.float32) for name, array in DRAWS[op](rng).items()}
        record = registry.get(op)
        right = record.plain("forward", inputs, {}, formats.BINARY32)[record.outputs[0]]
        assert judged(op, inputs, right, decimals)["verdict"] == "within"


@pytest.mark.parametrize("op", DRAWS)
def test_an_error_beyond_what_the_digits_leave_open_is_called_wrong(op: str) -> None:
    rng = np.random.default_rng(21)
    for _ in range(ROUNDS // 2):
        inputs = {name: array.astype(np.float32) for name, array in DRAWS[op](rng).items()}
        record = registry.get(op)
        right = record.plain("forward", inputs, {}, formats.BINARY32)[record.outputs[0]]
        box = {
            name: intervals(text.tensors(shown(name, array, 4))[0])
            for name, array in inputs.items()
        }
        asked = reach.PrintedQuestion(record, "forward", box, record.params)
        reached = reach.reach(asked, formats.BINARY32)[record.outputs[0]]
        wrong = np.array(right)
        beyond = np.nextafter(np.float32(reached.high.reshape(-1)[0] + 1e-4), np.float32(np.inf))
        if not np.isfinite(beyond):
            continue
        wrong.reshape(-1)[0] = beyond
        assert np.flatnonzero(outside(op, inputs, wrong, 4)).tolist() == [0]


@pytest.mark.parametrize("op", ["softmax", "layernorm", "matmul", "gelu", "rms_norm", "mse"])
def test_every_point_of_the_box_answers_inside_the_reach(op: str) -> None:
    """Kernels at random points of wide boxes, and at their corners."""
    rng = np.random.default_rng(22)
    record = registry.get(op)
    cases = [case for case in record.cases() if "float32" in case.dtypes][:40]
    tried = 0
    for case in cases:
        inputs, params = case.build("float32")
        inputs = {name: inputs[name] for name in record.takes("forward") if name in inputs}
        if sum(array.size for array in inputs.values()) > 2000:
            continue
        width = 10.0 ** -rng.integers(1, 6)
        box = {}
        for name, array in inputs.items():
            wide = array.astype(np.float64)
            if not np.isfinite(wide).all() or np.abs(wide).max() > 1e30:
                break
            ends = [(wide - np.abs(wide) * width), (wide + np.abs(wide) * width)]
            low, high = (end.astype(np.float32).astype(np.float64) for end in ends)
            box[name] = Intervals(low, high, array, formats.BINARY32, False, 4)
        if len(box) < len(inputs):
            continue
        asked = reach.PrintedQuestion(record, "forward", box, {**record.params, **params})
        reached = reach.reach(asked, formats.BINARY32)
        for draw in range(6):
            point = {}
            for name, interval in box.items():
                share = rng.random(interval.low.shape)
                share = np.round(share) if draw % 2 else share
                with np.errstate(all="ignore"):
                    within = np.clip(
                        interval.low + (interval.high - interval.low) * share,
                        interval.low,
                        interval.high,
                    )
                point[name] = within.astype(np.float32)
            computed = record.plain("forward", point, params, formats.BINARY32)
            for name, interval in reached.items():
                values = np.asarray(computed[name], np.float64)
                inside = (values >= interval.low) & (values <= interval.high)
                assert (inside | ~interval.known).all(), (case.name, name)
                tried += int(interval.known.sum())
    assert tried > 1000


def test_a_fault_that_the_digits_show_is_named() -> None:
    rng = np.random.default_rng(23)
    x = rng.standard_normal((2, 6)).astype(np.float32)
    weight = rng.standard_normal(6).astype(np.float32)
    centred = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-6)
    judgement = judged("rms_norm", {"x": x, "weight": weight}, centred * weight, 4, eps=1e-6)
    assert judgement["verdict"] == "wrong"
    assert [cause["cause"] for cause in judgement["causes"]] == ["mean_subtracted"]


def test_another_eps_is_named_where_the_digits_show_it_and_otherwise_how_many_would() -> None:
    x = np.array([[0.01, -0.02, 0.005, 0.03]], np.float32)

    def normed(eps: float) -> np.ndarray:
        return (x - x.mean()) / np.sqrt(x.var() + np.float32(eps))

    judgement = judged("layernorm", {"x": x}, normed(1e-3), 6)
    assert judgement["verdict"] == "wrong"
    (cause,) = [cause for cause in judgement["causes"] if cause["cause"] == "eps_differs"]
    low, high = cause["details"]["interval"]
    assert (cause["details"]["eps"], low < 1e-3 < high, high - low < 1e-5) == (1e-3, True, True)
    hidden = judged("layernorm", {"x": x * 100}, normed(0.0), 2)
    assert hidden["verdict"] == "within"
    digits = {
        undecided["details"].get("eps"): undecided["digits"] for undecided in hidden["undecided"]
    }
    assert digits[1e-3] > hidden["digits"]
    assert digits[1e-12] is None  # roundings are larger


def test_a_factor_is_named() -> None:
    x = np.array([[0.5, -1.25, 2.0], [3.5, 0.25, -0.75]], np.float32)
    y = (x @ np.ones((3, 2), np.float32) * 0.5).astype(np.float32)
    b = np.array([[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]], np.float32)
    judgement = judged("matmul", {"a": x, "b": b}, y, 4)
    assert judgement["verdict"] == "wrong"
    (cause,) = judgement["causes"]
    assert (cause["cause"], cause["details"]["factor"]) == ("scale_factor", "1/2")


def test_nan_where_the_answer_is_a_number_is_wrong() -> None:
    thread = "x: tensor([[1.5000, 2.5000]])\ntorch: tensor([[nan, 0.7311]])"
    answer = verdict.explain_printed("softmax", text.tensors(thread))
    assert answer["kernels"]["torch"]["outputs"]["y"]["wrong"] == 1


def test_inputs_that_may_be_exact_are_judged_as_exact_too() -> None:
    """0.5 may be 0.45 to 0.55, and then this softmax may be right; of 0.5 itself it is not."""
    thread = "x = [[0.5, 1.5]]\nout = [[0.2600, 0.7400]]"
    answer = verdict.explain_printed("softmax", text.tensors(thread))
    assert answer["kernels"]["kernel"]["outputs"]["y"]["verdict"] == "within"
    assert answer["if_exact"]["kernels"]["kernel"]["outputs"]["y"]["verdict"] == "wrong"


ONEFLOW = """
x_np = np.array([[[[-1.83965693, -1.82964566]]]])
torch输出为[[[[-0.8428, 0.8428]]]],拼凑实现输出为[[[[-0.8454, 0.8454]]]]
Out is:  Tensor(shape=[1, 1, 1, 2], dtype=float32, place=CPUPlace, stop_gradient=False,
       [[[[-0.84543723,  0.84541708]]]])

X grad is:  [[[[-0.00143835  0.00143831]]]]
"""


def test_the_thread_on_oneflows_layernorm() -> None:
    """Its printed numbers alone: torch's cannot be right, the others may be."""
    answer = verdict.explain_printed("layernorm", text.tensors(ONEFLOW))
    verdicts = {
        kernel: record["outputs"]["y"]["verdict"] for kernel, record in answer["kernels"].items()
    }
    assert verdicts == {"torch": "wrong", "kernel": "within", "paddle": "within"}


def rotated(cause: str | None, position: int) -> dict:
    """Printed by torch, to 4 decimals: an embedding rotated right, or with a fault."""
    definition = registry.get("rotary").definition
    assert definition is not None
    x = np.random.default_rng(6).standard_normal((3, 8)).astype(np.float32)
    at = position + np.arange(3)
    faults = {fault.cause: fault.forward for fault in definition.faults}
    formula = faults.get(cause, definition.of("forward").forms["exact"])
    turned = {"x": x, "position": -at if cause == "rotated_backwards" else at}
    y = definition.computed("forward", formula, turned, {}, "float32")["y"]
    thread = f"position: tensor({at.tolist()})\n" + shown("x", x, 4) + shown("torch output", y, 4)
    answer = verdict.explain_printed("rotary", text.tensors(thread))
    return answer["kernels"]["torch"]["outputs"]["y"]


def test_whole_numbers_of_a_formula_are_not_printed_digits() -> None:
    assert rotated(None, 1000)["verdict"] == "within"
    for cause in ("rotated_backwards", "pairs_of_other_layout", "positions_from_one"):
        judgement = rotated(cause, 1000)
        assert (judgement["verdict"], [entry["cause"] for entry in judgement["causes"]]) == (
            "wrong",
            [cause],
        )


def test_a_fault_that_only_rounds_badly_is_named_where_no_digit_hides_it() -> None:
    judgement = rotated("angles_in_bfloat16", 1000)
    assert (judgement["verdict"], [entry["cause"] for entry in judgement["causes"]]) == (
        "wrong",
        ["angles_in_bfloat16"],
    )
    right = rotated("angles_in_float32", 1000)
    assert (right["verdict"], right["causes"]) == ("within", [])
    assert "angles_in_float32" not in [entry["cause"] for entry in right["undecided"]]


@pytest.mark.parametrize(("n", "decimals"), [(3, 4), (8, 4), (64, 4), (64, 7)])
def test_the_unbiased_variance_of_a_layernorm_is_named_and_no_factor(n: int, decimals: int) -> None:
    x = np.random.default_rng(n).standard_normal((2, n)).astype(np.float32)
    centred = x - x.mean(-1, keepdims=True)
    for y in (
        centred / np.sqrt(x.var(-1, keepdims=True, ddof=1) + np.float32(1e-5)),
        centred / (x.std(-1, keepdims=True, ddof=1) + np.float32(1e-5)),
    ):
        judgement = judged("layernorm", {"x": x}, y, decimals)
        assert judgement["verdict"] == "wrong"
        assert [cause["cause"] for cause in judgement["causes"]] == ["unbiased_variance"]


def test_a_factor_of_a_layernorm_that_no_variance_gives_stays_one() -> None:
    x = np.random.default_rng(3).standard_normal((2, 8)).astype(np.float32)
    y = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + np.float32(1e-5))
    judgement = judged("layernorm", {"x": x}, np.float32(0.75) * y, 4)
    assert [entry["cause"] for entry in judgement["causes"]] == ["scale_factor"]


def named(op: str, inputs: Arrays, got: np.ndarray, **params: object) -> list[str]:
    judgement = judged(op, inputs, got, 4, **params)
    assert judgement["verdict"] == "wrong"
    return [cause["cause"] for cause in judgement["causes"]]


def test_another_question_than_the_one_asked_is_named() -> None:
    rng = np.random.default_rng(29)
    x, weight = (rng.standard_normal((3, 3)).astype(np.float32) for _ in range(2))
    bias = rng.standard_normal(3).astype(np.float32)
    along_rows = np.exp(x) / np.exp(x).sum(0)
    assert named("softmax", {"x": x}, along_rows) == ["wrong_axes"]
    assert named("softmax", {"x": x}, np.exp(x) / np.exp(x).sum(1)[:, None], axis=0) == [
        "wrong_axes"
    ]
    assert named("linear", {"x": x, "weight": weight}, x @ weight) == ["transposed_weight"]
    y = x @ weight.T
    arrays = {"x": x, "weight": weight, "bias": bias}
    assert named("linear", arrays, y + bias + bias) == ["doubled_bias"]
    assert named("linear", arrays, y) == ["missing_bias"]
    assert named("matmul", {"a": x, "b": weight}, weight @ x) == ["inputs_exchanged"]
    param = {"param": bias, "grad": np.abs(bias)}
    decayed = bias - 0.5 * (np.abs(bias) + 0.1 * bias)
    assert named("sgd", param, decayed, lr=0.5, momentum=0.0) == ["decay_unasked"]


def test_swapped_gradients_are_named() -> None:
    rng = np.random.default_rng(31)
    x, dy = (rng.standard_normal((2, 5)).astype(np.float32) for _ in range(2))
    centred = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    dweight, dbias = (dy * centred).sum(0), dy.sum(0)
    ones = np.ones(5, np.float32)
    thread = "".join(
        shown(name, array, 4)
        for name, array in {
            "dy": dy, "x": x, "weight": ones, "bias": ones, "dweight": dbias, "dbias": dweight
        }.items()
    )  # fmt: skip
    answer = verdict.explain_printed(
        "layernorm", text.tensors(thread), ("dy=1", "x=2", "weight=3", "bias=4"),
        ("kernel:dweight=5", "kernel:dbias=6"), direction="backward",
    )  # fmt: skip
    for output in answer["kernels"]["kernel"]["outputs"].values():
        assert [cause["cause"] for cause in output["causes"]] == ["swapped_weight_bias_grad"]


def test_an_overflow_that_is_right_is_not_called_wrong_and_a_needless_one_is() -> None:
    x = np.array([[100.0, 1.0], [2.0, -3.0]], np.float32)
    with np.errstate(over="ignore"):
        y = np.exp(x)
    assert np.isinf(y[0, 0])
    judgement = judged("exp", {"x": x}, y, 4)
    assert judgement["verdict"] == "within"
    assert np.isfinite(judgement["worst"]["share"])
    y[1, 0] = np.inf
    judgement = judged("exp", {"x": x}, y, 4)
    assert (judgement["verdict"], judgement["wrong"]) == ("wrong", 1)
    assert judgement["worst"]["index"] == [1, 0]
    y[:, 0] = -np.inf, np.exp(2.0)
    assert judged("exp", {"x": x}, y, 4)["wrong"] == 1


def test_inputs_that_are_the_same_exchanged_or_transposed_are_no_other_question() -> None:
    a = np.array([[1.5, 0.25], [0.25, -2.5]], np.float32)
    assert judged("matmul", {"a": a, "b": a}, a @ a, 4)["undecided"] == []


def read(op: str, thread: str) -> dict:
    tensors = text.tensors(thread)
    numbers = text.numbers(thread, len(tensors) + 1)
    return verdict.explain_printed(op, [*tensors, *numbers])["kernels"]


def test_a_loss_that_is_printed_as_a_number_is_read() -> None:
    thread = "logits: tensor([[0.5000, 2.0000]])\ntarget: tensor([1])\nversion: 2.13\nsteps: 100\n"
    kernels = read("cross_entropy", f"{thread}loss_ours = 0.0\n- torch loss: 0.20141327381134033\n")
    found = {name: kernel["outputs"]["loss"]["verdict"] for name, kernel in kernels.items()}
    assert (found, text.numbers(" " * 10**6 + "x", 1)) == ({"ours": "wrong", "torch": "within"}, [])


X = np.random.default_rng(8).standard_normal((2, 6)).astype(np.float32)
SILU, FAST = (X / (1 + np.exp(-factor * X)) for factor in (np.float32(1), np.float32(1.702)))


def test_of_several_ways_to_read_a_text_the_one_with_a_right_answer_is_taken() -> None:
    kernels = read("silu", shown("states", X, 4) + shown("HF", SILU, 4) + shown("mine", FAST, 4))
    verdicts = [kernel["outputs"]["y"]["verdict"] for kernel in kernels.values()]
    assert sorted(verdicts) == ["within", "wrong"]
    with pytest.raises(ValueError, match="several ways fit"):
        read("silu", shown("states", X, 4) + shown("mine", FAST, 4))


def test_a_call_of_the_op_is_its_answer() -> None:
    thread = shown("x", X, 4) + shown("F.silu(x)", SILU, 4)
    assert read("silu", thread)["torch"]["outputs"]["y"]["verdict"] == "within"


@pytest.mark.parametrize(
    ("op", "got", "cause"),
    [
        ("silu", FAST, "function_for_another"),
        ("softmax", np.exp(X / 2) / np.exp(X / 2).sum(-1, keepdims=True), "part_multiplied"),
    ],
)
def test_an_edit_of_the_program_is_named_where_the_digits_show_it(
    op: str, got: np.ndarray, cause: str
) -> None:
    assert [found["cause"] for found in judged(op, {"x": X}, got, 4)["causes"]] == [cause]


def test_one_printed_number_shows_no_edit() -> None:
    assert judged("silu", {"x": X[:1, :1]}, FAST[:1, :1], 4)["causes"] == []
