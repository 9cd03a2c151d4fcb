"""`refkernels explain`: its arguments, pasted text too, its output and its status."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import planted_faults
import pytest
from command_helpers import refused, said

from refkernels import registry
from refkernels.diagnosis import casefile

X = np.random.default_rng(2).standard_normal((3, 5)).astype(np.float32)


refkernels_says = partial(said, "explain")
fakes = planted_faults.fixture("correct", "exception")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with x.npy, y.npy (right) and z.npy (wrong by far)."""
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", X)
    np.save("y.npy", np.sin(X))
    np.save("z.npy", np.sin(X) * np.float32(1.01))
    return tmp_path


def test_a_case_about_an_oracle_of_one_s_own_is_read_again_beside_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("own.py").write_text(
        "import refkernels\n\n\ndef half(xp, x):\n    return xp.sin(x) / 2\n\n\n"
        "halved = refkernels.oracle(half, 'x[...] -> y[...]')\n\n\n"
        "def kernel(x):\n    import numpy as np\n\n    return np.sin(x) / 2\n",
        encoding="utf-8",
    )
    target = "--oracle", "own.py:halved", "--kernel", "own.py:kernel", "--dtype", "float32"
    measured = said("measure", *target, "--out", "report")
    assert "100 % rounding at most" in measured.stdout, measured.output
    asked = ("--input", "x=x.npy", "--output", "y=z.npy", "--save", "case.npz")
    first = refkernels_says("--oracle", "own.py:halved", *asked)
    assert first.exit_code == 0, first.output
    monkeypatch.setattr(registry, "OWN", {})
    assert "beside the case" in refused(refkernels_says("case.npz"))
    again = refkernels_says("case.npz", "--oracle", "own.py:halved")
    assert again.exit_code == 0, again.output
    assert "is not rounding" in again.stdout


def test_arrays_are_explained_saved_and_written_down(folder: Path) -> None:
    result = refkernels_says(
        "sin", "--input", "x=x.npy", "--output", "good:y=y.npy", "--output", "bad:y=z.npy",
        "--save", "deep/case.npz", "--out", "deep/answer.md",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "bad is not rounding" in " ".join(result.stdout.split())
    assert "Written: deep/case.npz" in result.stdout
    answer = Path("deep/answer.md").read_text(encoding="utf-8")
    assert answer.startswith("**good and bad have the same bits in ")
    assert "<details>" in answer
    case = casefile.load("deep/case.npz")
    assert set(case.outputs) == {"good", "bad"}
    again = refkernels_says("deep/case.npz", "--json")
    assert again.exit_code == 0, again.output
    record = json.loads(again.stdout)
    assert record["kernels"]["bad"]["verdict"] == "exceeds_bound"
    assert record["kernels"]["good"]["verdict"] in ("rounding", "correctly_rounded")
    chinese = refkernels_says("deep/case.npz", "--lang", "zh")
    assert "不是舍入误差" in chinese.stdout


def test_live_frameworks_answer_and_are_shown_with_their_environment(folder: Path) -> None:
    result = refkernels_says(
        "sin", "--input", "x=x.npy", "--framework", "numpy", "--framework", "fake_correct",
        "--set", "OMP_NUM_THREADS=1", "--save", "case.npz",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    case = casefile.load("case.npz")
    assert set(case.outputs) == {"numpy", "fake_correct"}
    environment = case.environment["numpy"]
    assert (environment["framework"], environment["device"]) == ("numpy", "cpu")
    assert environment["version"] == np.__version__
    assert environment["settings"] == {"OMP_NUM_THREADS": "1"}


def test_a_formula_of_an_adapter_is_called_a_formula(folder: Path) -> None:
    from refkernels.cli.explain import _kernel
    from refkernels.frameworks.gateway import Session

    with Session(f"numpy=={np.__version__}") as session:
        assert _kernel(session, "linear") == f"NumPy formula {np.__version__}"
        assert _kernel(session, "matmul") == f"numpy=={np.__version__}"
    with Session("numpy") as session:
        assert _kernel(session, "layernorm") == "NumPy formula"


def test_a_framework_that_fails_is_a_sentence_and_the_others_are_explained(folder: Path) -> None:
    frameworks = ["--framework", "fake_exception", "--framework", "numpy"]
    result = refkernels_says("sin", "--input", "x=x.npy", *frameworks)
    assert result.exit_code == 1
    assert "planted: the first line" in result.stderr
    assert "numpy" in result.stdout
    alone = refkernels_says("sin", "--input", "x=x.npy", "--framework", "fake_exception")
    assert alone.exit_code == 1
    assert alone.stdout == ""


def test_one_unnamed_kernel_and_params_in_any_notation(folder: Path) -> None:
    y = X - X.mean(axis=1, keepdims=True)
    np.save("y.npy", y / np.sqrt(np.mean(y * y, axis=1, keepdims=True) + np.float32(0.5)))
    result = refkernels_says(
        "layernorm", "--input", "x=x.npy", "--output", "y=y.npy", "--param", "eps=5e-1",
        "--param", "normalized_shape=[5]", "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert list(record["kernels"]) == ["kernel"]
    assert record["verdict"] == "rounding"
    assert record["evidence"]["question"]["params"] == {"eps": 0.5, "normalized_shape": [5]}


def test_a_param_that_is_a_word_needs_no_quotes(folder: Path) -> None:
    mask = np.arange(X.size).reshape(X.shape) % 2 == 0
    np.save("mask.npy", mask)
    np.save("y.npy", X * mask)
    question = ("--input", "x=x.npy", "--input", "mask=mask.npy", "--output", "y=y.npy", "--json")
    result = refkernels_says("dropout", *question, "--param", "mode=downscale_in_infer")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["verdict"] == "correctly_rounded"
    other = refkernels_says("dropout", *question, "--param", "mode=upscale_in_train")
    assert json.loads(other.stdout)["verdict"] == "exceeds_bound"


def test_bfloat16_files_are_what_ml_dtypes_saves(folder: Path) -> None:
    np.save("x.npy", X.astype(ml_dtypes.bfloat16))
    np.save("y.npy", np.sin(X.astype(ml_dtypes.bfloat16)))
    result = refkernels_says("sin", "--input", "x=x.npy", "--output", "y=y.npy", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["format"] == "bfloat16"


@pytest.mark.parametrize(
    ("output", "level", "status"),
    [
        ("good:y=y.npy", "rounding", 0),
        ("near:y=near.npy", "rounding", 1),
        ("near:y=near.npy", "unusual", 0),
        ("near:y=near.npy", "exceeds_bound", 0),
        ("bad:y=z.npy", "exceeds_bound", 1),
        ("bad:y=z.npy", "unusual", 1),
        ("bad:y=z.npy", "invariant_violated", 0),
    ],
)
def test_fail_on_ends_with_1_where_an_output_is_that_or_worse(
    folder: Path, output: str, level: str, status: int
) -> None:
    np.save("near.npy", np.nextafter(np.sin(X), np.float32(0.0)))  # an ulp off
    result = refkernels_says("sin", *INPUT, "--output", output, "--fail-on", level)
    assert result.exit_code == status, result.output
    assert result.stdout
    kernel = output.partition(":")[0]
    assert (f"--fail-on {level}: {kernel}" in result.stderr) == bool(status)


def test_without_fail_on_wrong_numbers_end_with_0(folder: Path) -> None:
    assert refkernels_says("sin", *INPUT, "--output", "bad:y=z.npy").exit_code == 0


INPUT, OUTPUT = ["--input", "x=x.npy"], ["--output", "y=y.npy"]
WRONG: dict[str, tuple[list[str], str]] = {
    "no op": (["sine", *INPUT, *OUTPUT], "There is no op 'sine': did you mean 'sin'? It is one"),
    "no case": (["missing.npz"], "There is no file missing.npz"),
    "no array": (["sin", "--input", "x=no.npy", *OUTPUT], "There is no file no.npy"),
    "no outputs": (["sin", *INPUT], "There is nothing to explain: give --output, or --framework"),
    "no inputs": (["sin", *OUTPUT], "sin forward needs 'x' among its inputs"),
    "unknown input": (
        ["sin", *INPUT, "--input", "z=x.npy", *OUTPUT],
        "sin forward takes no 'z': it takes x",
    ),
    "unknown output": (["sin", *INPUT, "--output", "a:z=y.npy"], "sin forward gives y, not 'z'"),
    "unknown param": (["sin", *INPUT, *OUTPUT, "--param", "eps=1"], "sin has no parameter 'eps'"),
    "no number": (["sin", *INPUT, *OUTPUT, "--param", "eps=1x"], "'1x' is neither a number"),
    "level": (["sin", *INPUT, *OUTPUT, "--fail-on", "unusal"], "did you mean 'unusual'?"),
    "direction": (["sin", *INPUT, *OUTPUT, "--direction", "up"], "direction is 'up'"),
    "language": (["sin", *INPUT, *OUTPUT, "--lang", "fr"], "--lang 'fr' is unknown"),
    "no framework": (["sin", *INPUT, "--framework", "nunpy"], "no framework is named 'nunpy'"),
    "setting": (["sin", *INPUT, "--framework", "numpy", "--set", "x"], "--set 'x' is not"),
    "flag": (
        ["sin", *INPUT, "--framework", "numpy", "--set", "colour=red"],
        "no adapter has a flag named 'colour'",
    ),
    "form": (["sin", "--input", "x.npy", *OUTPUT], "--input 'x.npy' is not one of NAME=FILE.npy"),
    "shape": (["sin", *INPUT, "--output", "y=short.npy"], "y has shape (2,)"),
    "integers": (["sin", *INPUT, "--output", "y=int.npy"], "y has dtype int64"),
    "pickle": (["sin", *INPUT, "--output", "y=objects.npy"], "it holds Python objects"),
    "text": (["sin", *INPUT, "--output", "y=text.npy"], "text.npy is not a .npy file of numbers"),
    "archive": (["sin", *INPUT, "--output", "y=case.npy"], "case.npy is an archive"),
    "too much": (["case.npz", *INPUT], "case.npz holds its own inputs, params"),
    "damaged": (["damaged.npz"], "damaged.npz is not a .npz file, or is truncated"),
    "unwritable": (["sin", *INPUT, *OUTPUT, "--out", "x.npy/a.md"], "cannot be read or written"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_question_without_an_answer_is_one_sentence(folder: Path, kind: str) -> None:
    np.save("short.npy", X[0, :2])
    np.save("int.npy", np.arange(15).reshape(3, 5))
    np.save("objects.npy", np.array([None]), allow_pickle=True)
    Path("text.npy").write_text("hello")
    with open("case.npy", "wb") as file:
        np.savez(file, x=X)
    case = casefile.CaseFile("sin", "forward", {"x": X}, {"a": {"y": X}})
    Path("damaged.npz").write_bytes(casefile.save("case.npz", case).read_bytes()[:-40])
    arguments, sentence = WRONG[kind]
    assert sentence in refused(refkernels_says(*arguments))


THREAD = """
input:
tensor([[ 0.5000, -1.2500,  2.0000]])
torch output:
tensor([[0.1768, 0.0307, 0.7925]])
paddle:
Tensor(shape=[1, 3], dtype=float32, place=Place(cpu), stop_gradient=True,
       [[0.17682018, 0.03072674, 0.89245305]])
"""
DIFFERENCES = """
mean dif: tensor(8.7896e-07)
max dif: tensor(4.7684e-06)
mean dif: tensor(2.6582e-05)
max dif: tensor(0.0009)
"""  # what the thread on paddle's and torch's Linear prints


def says(*arguments: str, thread: str = THREAD) -> Any:
    return refkernels_says(*arguments, input=thread)


def test_a_thread_is_explained_from_standard_input_and_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "thread.txt"
    path.write_text(THREAD, encoding="utf-8")
    piped, from_file = says("softmax", "--pasted", "-"), says("softmax", "--pasted", str(path))
    assert piped.exit_code == from_file.exit_code == 0
    assert piped.stdout == from_file.stdout
    assert "paddle is wrong: in 1 of 3 elements" in " ".join(piped.stdout.split())
    assert "no error of torch can be shown" in " ".join(piped.stdout.split())


def test_the_record_is_json_and_fail_on_ends_with_1() -> None:
    answer = says("softmax", "--pasted", "-", "--json", "--fail-on", "exceeds_bound")
    assert answer.exit_code == 1
    record = json.loads(answer.stdout)
    verdicts = {
        name: kernel["outputs"]["y"]["verdict"] for name, kernel in record["kernels"].items()
    }
    assert verdicts == {"torch": "within", "paddle": "wrong"}
    assert [tensor["role"] for tensor in record["tensors"]] == ["x", "torch: y", "paddle: y"]


def test_the_page_is_written_in_chinese(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    answer = says("softmax", "--pasted", "-", "--lang", "zh", "--out", str(page))
    assert answer.exit_code == 0
    assert "paddle 有误" in page.read_text("utf-8")


def test_order_says_which_is_which() -> None:
    thread = "[[0.5, 1.5]]\n\n[[0.1, 0.2]]\n"  # no answer is right
    unsure = says("softmax", "--pasted", "-", thread=thread)
    assert unsure.exit_code == 2
    assert "several ways fit" in unsure.stderr
    assert "1: shape (1, 2); 2: shape (1, 2)" in unsure.stderr
    chosen = ("--input", "x=1", "--output", "torch=2")
    assert says("softmax", "--pasted", "-", *chosen, thread=thread).exit_code == 0
    wrong = says("softmax", "--pasted", "-", "--input", "x=7", thread=thread)
    assert wrong.exit_code == 2
    assert "there is no tensor 7" in wrong.stderr


def test_shapes_decide_where_one_way_fits() -> None:
    thread = "[[1.5, 2.5]]\n[[0.5], [0.25]]\n[[1.375]]\n"
    answer = says("matmul", "--pasted", "-", "--json", thread=thread)
    assert answer.exit_code == 0, answer.stderr
    roles = [tensor["role"] for tensor in json.loads(answer.stdout)["tensors"]]
    assert roles == ["a", "b", "kernel: c"]


def test_the_linear_thread_prints_differences_and_no_inputs() -> None:
    answer = says("linear", "--pasted", "-", thread=DIFFERENCES)
    assert answer.exit_code == 2
    assert "It is unclear which tensor is which" in answer.stderr
    assert "4: shape (), torch, named 'max dif'" in answer.stderr


@pytest.mark.parametrize(
    ("thread", "sentence"),
    [
        ("", "is empty"),
        ("\0", "not text in UTF-8"),
        ("nothing", "no printed tensor"),
        ("x = tensor([1.5, ..., 2.5])\ny = tensor([1.5])", "printed with ..."),
        ("x = [[1.5, 2.5], [3.5", "never closed"),
    ],
)
def test_bad_texts_end_with_one_sentence(thread: str, sentence: str) -> None:
    answer = says("softmax", "--pasted", "-", thread=thread)
    assert answer.exit_code == 2
    assert sentence in answer.stderr
    assert len(answer.stderr.strip().splitlines()) == 1


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    missing = says("softmax", "--pasted", str(tmp_path / "none.txt"))
    assert missing.exit_code == 2
    assert "cannot be read" in missing.stderr
    mixed = says("softmax", "--pasted", "-", "--framework", "torch")
    assert mixed.exit_code == 2
    assert "leave out --framework" in mixed.stderr


@pytest.mark.parametrize("option", ["--framework", "--kernel", "--abi", "--python"])
def test_a_kernel_to_run_does_not_go_with_printed_numbers(option: str) -> None:
    refused = says("softmax", "--pasted", "-", option, "torch")
    assert refused.exit_code == 2
    assert "leave out --framework, --kernel, --abi, --python" in refused.stderr
