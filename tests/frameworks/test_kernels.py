"""A user's kernel is a target: it is found, called and judged like a framework's op."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from command_helpers import refused
from presence import compiled
from typer.testing import CliRunner

from refkernels import registry
from refkernels.cli.app import app
from refkernels.frameworks import catalog, kernels
from refkernels.frameworks.gateway import Session
from refkernels.frameworks.remote import worker
from refkernels.records.journal import JournalError
from refkernels.runs import measurement
from refkernels.target_names import KernelPath

CASE = registry.get("var").cases()[0].name
X = np.random.default_rng(0).standard_normal((3, 7)).astype(np.float32)

MINE = """
import numpy as np

def layernorm(x, weight=None, bias=None, eps=1.0):
    d = x - x.mean(-1, keepdims=True)
    y = d / np.sqrt((d * d).mean(-1, keepdims=True) + np.asarray(eps, x.dtype))
    y = y if weight is None else y * weight
    return (y if bias is None else y + bias).astype(x.dtype)

def fast_log_softmax(values):
    return values - values.max(-1, keepdims=True)

def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)

def softmax_backward(dy, x):
    y = softmax(x)
    return y * (dy - (y * dy).sum(-1, keepdims=True))

def gelu_tanh_bwd(dy, x):
    return dy

def var(x):
    return x.var(-1)

def scaled_layernorm(x, weight):
    return layernorm(x, weight)

def two_matmuls(a, b):
    return a @ b, b @ a

def my_sum(x, axis=-1, keepdims=False):
    return x[..., ::2].cumsum(-1)[..., -1] + x[..., 1::2].cumsum(-1)[..., -1]

def secret(x):
    return np.sin(x)

def sqrt(x):
    assert x.dtype.name == "bfloat16"
    return np.sqrt(x)
"""


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("kernels") / "mine.py"
    path.write_text(MINE)
    return path


@pytest.mark.parametrize(
    ("function", "op", "direction"),
    [
        ("layernorm", "layernorm", "forward"),
        ("fast_log_softmax", "log_softmax", "forward"),
        ("softmax_backward", "softmax", "backward"),
        ("gelu_tanh_bwd", "gelu_tanh", "backward"),
        ("two_matmuls@op=matmul", "matmul", "forward"),
    ],
)
def test_the_op_is_the_longest_op_name_in_the_function_s_name(
    mine: Path, function: str, op: str, direction: str
) -> None:
    spec, name = catalog.target(f"{mine}:{function}")
    assert spec.framework.kernel is not None
    assert (spec.framework.kernel["op"], spec.framework.kernel["direction"]) == (op, direction)
    assert catalog.target(str(name))[1] == name


def test_of_names_of_one_length_the_last_is_the_op() -> None:
    assert kernels.op_named_by("gelu_erfc_sqrt_tanh_asin_acos_atan_sinh_cosh_exp2") == "exp2"


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("{folder}/none.py:f", "cannot be read"),
        ("{folder}/mine.py:layrnorm@op=layernorm", "did you mean 'layernorm'"),
        ("{folder}/mine.py:secret", "does not show its op"),
        ("{folder}/mine.py:layernorm@op=layrnorm", "did you mean 'layernorm'"),
        ("{folder}/mine.py:layernorm@arrays=pandas", "not one of numpy, torch, jax, cupy"),
        ("{folder}/mine.py:layernorm@abi=float32* x", "has no abi"),
        ("{folder}/lib.so:layernorm", "does not say what it takes"),
        ("{folder}/broken.py:layernorm", "is not a Python file"),
    ],
)
def test_anything_but_a_kernel_is_refused(mine: Path, target: str, reason: str) -> None:
    (mine.parent / "lib.so").write_bytes(b"")
    (mine.parent / "broken.py").write_text("def layernorm(:")
    with pytest.raises(catalog.UnknownFramework, match=reason) as refused:
        catalog.target(target.format(folder=mine.parent))
    assert "\n" not in str(refused.value)


def test_inputs_go_by_name_or_place_and_params_are_the_ops(mine: Path) -> None:
    op = registry.get("layernorm")
    with Session(f"{mine}:layernorm") as session:
        reply = session.run("layernorm", "forward", {"x": X, "weight": X[0]}, {})
        assert reply.ok, reply.reason
        inputs = {"x": X, "weight": X[0]}
        exact = np.asarray(op.evaluate("forward", inputs, {"eps": op.params["eps"]})["y"].hi)
        assert np.abs(reply.outputs["y"] - exact).max() < 1e-5  # the op's eps, not the function's 1
        refused = session.run("layernorm", "forward", inputs, {"normalized_shape": (3, 7)})
        assert refused.status == "unsupported"
        assert "takes no normalized_shape" in str(refused.reason)
        same = session.run("layernorm", "forward", inputs, {"normalized_shape": (7,)})
        assert np.array_equal(same.outputs["y"], reply.outputs["y"])
        assert session.run("layernorm", "backward", {**inputs, "dy": X}, {}).status == "unsupported"
    with Session(f"{mine}:fast_log_softmax") as session:
        by_place = session.run("log_softmax", "forward", {"x": X}, {"axis": 1}).outputs["y"]
        assert np.array_equal(by_place, X - X.max(-1, keepdims=True))
        assert session.run("log_softmax", "forward", {"x": X}, {"axis": 0}).status == "unsupported"
    with Session(f"{mine}:scaled_layernorm") as session:
        refused = session.run("layernorm", "forward", {"x": X, "bias": X[0]}, {})
        assert refused.status == "unsupported"
        assert "takes no bias, and this case has bias" in str(refused.reason)


def test_ufuncs_and_parameters_that_have_no_names_are_called(tmp_path: Path) -> None:
    file = tmp_path / "positional.py"
    file.write_text(
        "import numba\nimport numpy as np\n\nmy_exp = np.exp\n\n"
        "@numba.vectorize\ndef my_sigmoid(x):\n    return 1 / (1 + np.exp(-x))\n\n"
        "def layernorm(weight, x, /, eps, bias=0):\n"
        "    d = x - x.mean(-1, keepdims=True)\n"
        "    return d / np.sqrt((d * d).mean(-1, keepdims=True) + eps) * weight + bias\n"
    )
    for function, op in (("my_exp", "exp"), ("my_sigmoid", "sigmoid")):
        with Session(f"{file}:{function}") as session:
            reply = session.run(op, "forward", {"x": X}, {})
            assert reply.ok, reply.reason
            exact = np.asarray(registry.get(op).evaluate("forward", {"x": X}, {})["y"])
            assert np.abs(reply.outputs["y"] / exact - 1).max() < 1e-6
    with Session(f"{file}:layernorm") as session:
        inputs = {"x": X, "weight": X[0], "bias": X[1]}
        reply = session.run("layernorm", "forward", inputs, {"eps": 1e-3})
        assert reply.ok, reply.reason
        exact = np.asarray(
            registry.get("layernorm").evaluate("forward", inputs, {"eps": 1e-3})["y"]
        )
        assert np.abs(reply.outputs["y"] - exact).max() < 1e-5


def test_none_is_passed_where_it_is_not_the_default(tmp_path: Path) -> None:
    """axis=None is the sum of all elements, and the op's default is the last axis."""
    file = tmp_path / "sums.py"
    file.write_text("def fast_sum(x, axis=-1):\n    return x.sum(axis)\n", encoding="utf-8")
    with Session(f"{file}:fast_sum") as session:
        for axis, shape in ((None, ()), (0, (7,)), (-1, (3,))):
            reply = session.run("sum", "forward", {"x": X}, {"axis": axis})
            assert reply.outputs["y"].shape == shape
        assert session.run("sum", "forward", {"x": X}, {}).outputs["y"].shape == (3,)


def test_a_backward_kernel_beside_the_function_is_its_backward(mine: Path) -> None:
    with Session(f"{mine}:softmax") as both, Session(f"{mine}:softmax_backward") as alone:
        first = both.run("softmax", "backward", {"dy": X, "x": X}, {})
        second = alone.run("softmax", "backward", {"dy": X, "x": X}, {})
        assert np.array_equal(first.outputs["dx"], second.outputs["dx"])
        assert alone.run("softmax", "forward", {"x": X}, {}).status == "unsupported"


def test_more_outputs_than_the_op_has_are_an_error_and_bfloat16_is_ml_dtypes(mine: Path) -> None:
    with Session(f"{mine}:two_matmuls@op=matmul") as session:
        reply = session.run("matmul", "forward", {"a": X, "b": X.T.copy()}, {})
        assert reply.status == "error"
        assert "returns 2 arrays, and the op has c" in str(reply.reason)
    half = np.array([2.0, 3.0], ml_dtypes.bfloat16)
    with Session(f"{mine}:sqrt") as session:
        (y,) = session.run("sqrt", "forward", {"x": half}, {}).outputs.values()
        assert y.dtype == ml_dtypes.bfloat16
        assert np.array_equal(y, np.sqrt(half))


def test_a_run_measures_it_and_is_not_resumed_with_another_file(mine: Path, tmp_path: Path) -> None:
    target = f"{mine}:var"
    plan = measurement.select(["var"], ["float32"], [CASE])
    outcome = measurement.measure(plan, tmp_path / "run", frameworks=[target])
    answered = [r for r in outcome.records if r["kind"] == "measurement" and r["status"] == "ok"]
    assert answered
    assert {(r["framework"], r["output"]) for r in answered} == {(target, "y")}
    assert all(record["version"].startswith("sha256:") for record in answered)
    again = measurement.measure(plan, tmp_path / "run", frameworks=[target], resume=True)
    assert again.records == outcome.records
    mine.write_text(MINE.replace("x.var(-1)", "x.var(-1, ddof=1)"))
    try:
        with pytest.raises(JournalError, match="another"):
            measurement.measure(plan, tmp_path / "run", frameworks=[target], resume=True)
    finally:
        mine.write_text(MINE)


LIBRARY = """
void my_reciprocal(const float *x, float *y, long long n) {
    for (long long i = 0; i < n; i++) y[i] = 1.0f / x[i];
}
void outer(const double *a, const double *b, double *c, int rows, int columns) {
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) c[i * columns + j] = a[i] * b[j];
}
"""


@pytest.fixture
def library(tmp_path: Path) -> Path:
    return compiled(LIBRARY, tmp_path)


def test_a_c_function_takes_pointers_lengths_and_params(library: Path) -> None:
    abi = "float32* x%2C float32* y%2C int64 n"
    with Session(f"{library}:my_reciprocal@abi={abi}") as session:
        reply = session.run("reciprocal", "forward", {"x": X}, {})
        assert np.array_equal(reply.outputs["y"], 1 / X)
        wide = session.run("reciprocal", "forward", {"x": X.astype(np.float64)}, {})
        assert wide.status == "unsupported"
        assert "takes x as float32" in str(wide.reason)
        bits = session.sweep("reciprocal", "float32", 0x3F800000, 1000).outputs[""]
        x = np.arange(0x3F800000, 0x3F800000 + 1000, dtype=np.uint32).view(np.float32)
        assert np.array_equal(bits, 1 / x)
    abi = "float64* a, float64* b, float64* c[a_0 b_1], int32 a_0, int32 b_1".replace(",", "%2C")
    a, b = np.arange(3.0)[:, None], np.arange(5.0)[None]
    with Session(f"{library}:outer@op=matmul,abi={abi}") as session:
        reply = session.run("matmul", "forward", {"a": a, "b": b}, {})
        assert np.array_equal(reply.outputs["c"], a @ b)


TORCH = """
import torch

def rms_norm(x, weight, eps=None):
    y = x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps) * weight
    return y.numpy() if y.dtype == torch.float64 else y
"""


def test_a_function_of_torch_tensors_has_autograd_s_gradients(
    tmp_path: Path, session_for: Callable[[str], Session]
) -> None:
    session_for("torch")  # or a visible skip
    (tmp_path / "mine.py").write_text(TORCH)
    inputs = {"dy": X, "x": X, "weight": X[0]}
    op = registry.get("rms_norm")
    with Session(f"{tmp_path / 'mine.py'}:rms_norm@python=torch") as session:
        reply = session.run("rms_norm", "backward", inputs, {})
        assert reply.ok, reply.reason
        exact = op.evaluate("backward", inputs, {})
        assert set(reply.outputs) == {"dx", "dweight"}
        for name, got in reply.outputs.items():
            assert np.abs(got - exact[name].hi).max() < 1e-5
        for dtype in (ml_dtypes.bfloat16, np.float64):
            given = {"x": X.astype(dtype), "weight": X[0].astype(dtype)}
            assert session.run("rms_norm", "forward", given, {}).outputs["y"].dtype == dtype


Invoked = Callable[..., Any]


@pytest.fixture
def invoked(monkeypatch: pytest.MonkeyPatch) -> Invoked:
    """invoked(folder, *words): what a command that is typed in that folder did."""

    def run(folder: Path, *words: str) -> Any:
        monkeypatch.chdir(folder)
        return CliRunner().invoke(app, words)

    return run


def test_the_command_takes_the_op_from_the_name(
    mine: Path, tmp_path: Path, invoked: Invoked
) -> None:
    words = ["--kernel", f"{mine.name}:var", "--dtype", "float32", "--case", CASE]
    done = invoked(mine.parent, "measure", *words, "--out", str(tmp_path / "out"))
    assert done.exit_code == 0, done.output
    assert "1 op in" in " ".join(done.stdout.split())
    assert f"{mine.name}:var" in done.stdout
    for wrong, reason in (
        (["--kernel", "torch"], "torch is not a kernel"),
        (["--abi", "float32* x"], "give one"),
        (["--kernel", f"{mine.name}:secret"], "does not show its op"),
    ):
        assert reason in refused(invoked(mine.parent, "measure", *wrong))


def test_a_c_function_is_swept_explained_and_revealed_by_its_short_name(
    library: Path, invoked: Invoked
) -> None:
    folder = library.parent
    np.save(folder / "x.npy", X)
    np.save(folder / "y.npy", 1 / X)
    of_c = ["--kernel", "libmine.so:my_reciprocal", "--abi", "float32* x, float32* y, int64 n"]
    swept = invoked(folder, "sweep", "reciprocal", *of_c, "--range", "1:1.001")
    assert "1 of 1 are correctly rounded throughout" in " ".join(swept.stdout.split())
    arrays = ("--input", "x=x.npy", "--output", "mine:y=y.npy")
    explained = invoked(folder, "explain", "reciprocal", *arrays, *of_c)
    assert "bit for bit" in explained.stdout or "the same bits" in explained.stdout
    for done in (swept, explained):
        assert done.exit_code == 0, done.output
        assert "libmine.so:my_" in done.stdout
        assert "float32*" not in done.stdout


def test_the_order_of_a_python_function_is_revealed(mine: Path, invoked: Invoked) -> None:
    done = invoked(mine.parent, "reveal", "sum", "--kernel", f"{mine.name}:my_sum", "--k", "8")
    assert "1 + 3 + 5 + 7" in done.stdout


def test_a_file_that_fails_ends_the_command_with_its_reason_and_line(
    tmp_path: Path, invoked: Invoked
) -> None:
    missing = "a_library_with_a_name_long_enough_that_a_report_would_have_cut_the_sentence_short"
    (tmp_path / "mine.py").write_text(f"import numpy\nimport {missing}\n\ndef var(x):\n    pass\n")
    words = ["--kernel", "mine.py:var", "--framework", "numpy", "--dtype", "float32"]
    done = invoked(tmp_path, "measure", *words, "--case", CASE, "--out", "out")
    assert done.exit_code == 2
    assert done.stderr == (
        "refkernels: mine.py:var: line 2 of the file raised ModuleNotFoundError: No module named "
        f"'{missing}': install it for {sys.executable}, or name an interpreter that has it by "
        "--python.\n"
    )


def test_a_library_that_does_not_load_says_why(tmp_path: Path) -> None:
    (tmp_path / "libmine.so").write_bytes(b"")
    with Session(f"{tmp_path}/libmine.so:my_gelu@abi=float32* x%2C float32* y") as session:
        assert session.status == "import_error"
        assert "loading it raised OSError: " in str(session.reason)


RETURNING = """
import numpy as np

def sin_of_nothing(x):
    np.sin(x)

def sin_by_another_name(x):
    return {"out": np.sin(x)}

def sin_as_objects(x):
    return np.sin(x).astype(object)

def sin_in_a_generator(x):
    yield np.sin(x)

def sin_or_exit(x):
    raise SystemExit(3)

def sin_or_interrupt(x):
    raise KeyboardInterrupt

def sin_big_endian(x):
    return np.sin(x).astype(">f4")
"""


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        ("sin_of_nothing", "sin forward returned no y: it returned nothing"),
        ("sin_by_another_name", "sin forward returned no y: it returned only out"),
        ("sin_as_objects", "y is an array of object, not of numbers"),
        ("sin_in_a_generator", "y is an array of object, not of numbers"),
        ("sin_or_exit", "sin forward on cpu raised SystemExit: 3"),
        ("sin_or_interrupt", "sin forward on cpu raised KeyboardInterrupt"),
    ],
)
def test_an_answer_that_is_none_is_an_error_with_a_reason(
    tmp_path: Path, function: str, reason: str
) -> None:
    (tmp_path / "mine.py").write_text(RETURNING)
    target = f"{tmp_path}/mine.py:{function}"
    with Session(target) as session:
        first = session.run("sin", "forward", {"x": X})
        assert (first.status, first.reason) == ("error", f"{target}: {reason}")
        assert session.sweep("sin", "float32", 0, 64).status == "error"
        assert session.starts == 1  # the interpreter has survived


def test_numbers_in_another_byte_order_are_numbers(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(RETURNING)
    with Session(f"{tmp_path}/mine.py:sin_big_endian") as session:
        assert np.array_equal(session.run("sin", "forward", {"x": X}).outputs["y"], np.sin(X))
        assert session.sweep("sin", "float32", 0, 64).ok


@pytest.mark.parametrize(
    ("abi", "reason"),
    [
        ("float32* x, float32* y, int64 n, foo", "'foo' in the abi of .* is not an argument"),
        ("float* x, float32* y, int64 n", "'float' in .* is not a type here: write float32"),
        ("float32* x, float32* y, size_t n", "'size_t' in .* write one of int32, int64"),
        ("float32* x, float32* y, int64_t n", "'int64_t' in .* is not a type here: write int64"),
        ("float32* input, float32* y, int64 n", "an array 'input', and gelu forward takes x and"),
        ("float32* x, float32* y, int64 m", "a number 'm', which is neither a param of gelu"),
        ("float32* x, float32* y[x_q], int64 n", "'x_q' in .* is not a length"),
        ("float32* x, int64 n", "has no output: gelu forward returns y, so add .* float32. y"),
    ],
)
def test_an_abi_that_no_case_fits_is_refused_before_anything_runs(
    tmp_path: Path, abi: str, reason: str
) -> None:
    (tmp_path / "libmine.so").write_bytes(b"")
    kernel = str(KernelPath(f"{tmp_path}/libmine.so", "my_gelu"))
    with pytest.raises(catalog.UnknownFramework, match=reason):
        catalog.target(f"{kernel}@abi={abi.replace(',', '%2C')}")


@pytest.mark.parametrize(
    ("abi", "function"),
    [
        ("float32* x, float32* weight, float32* y, float32* mean, float32 eps", "layernorm"),
        ("float32 *a, float32*b, float32 * c[a_0 b_1], int64 a_0, int32 b_last", "matmul"),
        ("float32* dc, float32* a, float32* b, float32* da, float32* db, int64 a_1", "matmul_bwd"),
        ("bfloat16* x, bfloat16* y[x_rows], int64 x_rows, int64 x_last", "my_sum"),
    ],
)
def test_an_abi_of_the_op_s_own_names_is_taken(tmp_path: Path, abi: str, function: str) -> None:
    (tmp_path / "libmine.so").write_bytes(b"")
    spec, _ = catalog.target(f"{tmp_path}/libmine.so:{function}@abi={abi.replace(',', '%2C')}")
    assert spec.framework.kernel is not None


def test_a_class_and_an_async_function_are_refused(tmp_path: Path) -> None:
    text = "class Sin:\n    def __init__(self): pass\nasync def my_sin(x): return x\n"
    (tmp_path / "mine.py").write_text(text)
    for name, reason in [
        ("mine.py:Sin", "is no function that returns arrays"),
        ("mine.py:my_sin", "is no function that returns arrays"),
        ("mine.py:sin_", "has no function 'sin_': there is none"),
    ]:
        with pytest.raises(catalog.UnknownFramework, match=reason):
            catalog.target(f"{tmp_path}/{name}@op=sin")


def test_a_syntax_error_has_its_line_and_another_interpreter_reads_its_own(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("\ndef sin(x)\n    return x\n")
    with pytest.raises(catalog.UnknownFramework, match=r"not a Python file \(line 2: expected ':'"):
        catalog.target(f"{tmp_path}/mine.py:sin")
    with Session(f"{tmp_path}/mine.py:sin@python={sys.executable}") as session:
        version = sys.version.split()[0]
        assert f"Python {version} does not read line 2 of the file" in str(session.reason)


def test_a_relative_import_is_told_what_to_write(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("from . import other\n\ndef sin(x): return x\n")
    with Session(f"{tmp_path}/mine.py:sin") as session:
        assert "import a neighbour by its name alone" in str(session.reason)


def test_an_interpreter_that_does_not_exist_is_refused(mine: Path) -> None:
    for python in ("torc", str(mine.parent)):
        with Session(f"{mine}:layernorm@python={python}") as session:
            assert "neither the path of an interpreter nor a framework" in str(session.reason)


@pytest.mark.skipif(sys.platform == "win32", reason="the interpreters are shell scripts")
@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (f'exec "{sys.executable}" -S "$@"', "no usable NumPy .* install it there, by `"),
        ("echo '  SyntaxError: invalid syntax' >&2; exit 1", "it must be Python 3.8 or later"),
    ],
)
def test_an_interpreter_that_cannot_serve_says_what_it_needs(
    mine: Path, tmp_path: Path, script: str, reason: str
) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    with Session(f"{mine}:layernorm@python={python}") as session:
        assert re.search(reason, str(session.reason)), session.reason


def test_a_kernel_that_answers_nothing_says_why_and_ends_with_status_1(
    tmp_path: Path, invoked: Invoked
) -> None:
    (tmp_path / "mine.py").write_text("def var(x, weight):\n    return x\n\ndef one(x): return x\n")
    command = ["measure", "--op", "cross_entropy", "--kernel", "mine.py:one", "--dtype", "float32"]
    name = invoked(tmp_path, *command, "--list").stdout.split("  (")[0]
    done = invoked(tmp_path, *command, "--out", "out", "--case", name)
    top = " ".join(done.stdout.split())
    assert "No answer from mine.py:one@op=cross_entropy: cross_entropy forward on cpu" in top
    assert "(one takes no target)" in top
    assert ".." not in top.replace("...", "")
    assert done.exit_code == 1


def test_a_flag_that_only_other_frameworks_have_is_refused_in_a_target_s_name(mine: Path) -> None:
    for target in ("numpy@num_threads=1", f"{mine}:layernorm@num_threads=1"):
        with pytest.raises(catalog.UnknownFramework, match="has no flag num_threads"):
            catalog.target(target)
    catalog.target("torch@num_threads=1,OMP_NUM_THREADS=1,machine=aarch64")


def test_an_array_of_another_library_is_named() -> None:
    class Adapter:
        @staticmethod
        def array(tensor: object) -> object:
            return tensor.detach()  # type: ignore[attr-defined]

    serving = worker.Worker()
    serving.adapter = Adapter
    with pytest.raises(
        worker.Failure, match=r"y is a numpy.ndarray, which is not read \(Attribute"
    ):
        serving.array_of("y", X)
