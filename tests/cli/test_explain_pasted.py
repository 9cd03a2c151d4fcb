"""`refkernels explain OP --pasted`: a thread's numbers, from a file or standard input."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from refkernels.cli.app import app

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
    return CliRunner().invoke(app, ["explain", *arguments], input=thread)


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
    thread = "[[0.5, 1.5]]\n\n[[0.2689, 0.7311]]\n"
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
