"""The tensors that a text holds, and the texts that are refused."""

import io

import pytest

from refkernels.printed import text

PRINTED = {
    "torch": (
        "x = tensor([[ 0.9277, -0.7211],\n        [ 1.0000,  2.5000]], dtype=torch.float16,\n"
        "       grad_fn=<AddBackward0>)",
        (2, 2),
        "float16",
        ("0.9277", "-0.7211", "1.0000", "2.5000"),
    ),
    "oneflow": (
        "x: tensor([0.5000, -inf], device='cuda:0', dtype=oneflow.float32,\n"
        "       grad_fn=<accumulate_grad>)",
        (2,),
        "float32",
        ("0.5000", "-inf"),
    ),
    "paddle": (
        "x: Tensor(shape=[2, 2], dtype=float32, place=Place(gpu:0), stop_gradient=True,\n"
        "       [[-0.84543723,  0.84541708],\n        [ 1.        ,  nan       ]])",
        (2, 2),
        "float32",
        ("-0.84543723", "0.84541708", "1.", "nan"),
    ),
    "mindspore": (
        "x = Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00, -2.50000000e-05])",
        (2,),
        "float32",
        ("1.00000000e+00", "-2.50000000e-05"),
    ),
    "numpy": ("x:\narray([[1.  , 2.25]], dtype=float32)", (1, 2), "float32", ("1.", "2.25")),
    "jax": ("x = Array([1.5, 2.], dtype=float32)", (2,), "float32", ("1.5", "2.")),
    "tensorflow": (
        "x = <tf.Tensor: shape=(2,), dtype=float32, numpy=array([1.5, 2. ], dtype=float32)>",
        (2,),
        "float32",
        ("1.5", "2."),
    ),
}


@pytest.mark.parametrize("framework", PRINTED)
def test_each_frameworks_print_is_read_with_all_its_digits(framework: str) -> None:
    printed, shape, dtype, texts = PRINTED[framework]
    (tensor,) = text.tensors(f"Here is the output:\n\n```python\n{printed}\n```\n")
    assert (tensor.name, tensor.framework, tensor.shape, tensor.dtype) == (
        "x",
        framework,
        shape,
        dtype,
    )
    assert tensor.texts == texts
    assert not tensor.typed


def test_tensorflow_prints_in_two_ways() -> None:
    first, second = text.tensors(
        "tf.Tensor([1.5 2. ], shape=(2,), dtype=float32)\ntf.Tensor(2.5, shape=(), dtype=float32)"
    )
    assert (first.framework, first.shape, first.texts) == ("tensorflow", (2,), ("1.5", "2."))
    assert (second.framework, second.shape, second.texts) == ("tensorflow", (), ("2.5",))


def test_a_scale_in_front_of_the_bracket_is_kept() -> None:
    (tensor,) = text.tensors("tensor(1.00000e-05 *\n       [1.0000, 2.5000])")
    assert (tensor.scale, tensor.texts) == ("1.00000e-05", ("1.0000", "2.5000"))


@pytest.mark.parametrize("code", ["np.array([[1.0, 2.5]])", "torch.tensor([[1.0, 2.5]])"])
def test_numbers_in_code_are_typed(code: str) -> None:
    (tensor,) = text.tensors(f"x = {code}\nprint(x.shape)")
    assert (tensor.name, tensor.typed, tensor.shape) == ("x", True, (1, 2))


@pytest.mark.parametrize(
    ("front", "name"),
    [
        ("x = ", "x"),
        ("Expected output: ", "Expected output"),
        ("**torch output**\n\n```\n", "torch output"),
        ("### Actual\n\n", "Actual"),
        (">>> w\n", "w"),
        ("输出：", "输出"),
        ("weight:\nParameter containing:\n", "weight"),
        ("In [3]: x\n", "x"),
        ("> got:\n> ", "got"),
    ],
)
def test_what_stands_in_front_is_the_name(front: str, name: str) -> None:
    (tensor,) = text.tensors(f"Some words.\n{front}tensor([1.5000, 2.5000])")
    assert tensor.name == name


def test_references_and_shapes_are_not_tensors() -> None:
    (tensor,) = text.tensors(
        "As [1] says, input_shape=[8, 3, 224, 224] and x[0], [see 3.5], [a](b):\n[[1. 2.]]"
    )
    assert (tensor.number, tensor.shape, tensor.spaced) == (1, (1, 2), True)


def test_a_truncated_tensor_keeps_its_place_without_a_shape() -> None:
    truncated, following = text.tensors("tensor([0.5, ..., 2.5])\ntensor([1.5])")
    assert (truncated.shape, following.shape) == (None, (1,))


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "is empty"),
        (b"  \n\n", "is empty"),
        (b"\x00\x01\x02tensor([1.5])", "not text in UTF-8"),
        (b"\xff\xfe\x80\x81", "not text in UTF-8"),
        (b"[" * 100_000_000, "more than 4 MB"),
    ],
)
def test_files_that_are_not_text_are_refused(data: bytes, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        text.read(io.BytesIO(data), "thread.txt")


@pytest.mark.parametrize(
    ("thread", "sentence"),
    [
        ("no numbers here", "no printed tensor"),
        ("x = [[1.0, 2.0], [3.0", "opens on line 1 is never closed"),
        ("a\nx = tensor([[1.0, 2.0]\n", "opens on line 2 is never closed"),
        ("[[1.0, 2.0], [3.0]]", "rows of different lengths"),
        ("[[1.0, 2.0], 3.0]", "rows of different lengths"),
        ("]]]]]]", "no printed tensor"),
        ("[" * 390_000, "no printed tensor"),
        ("[1.5]\n" * 1500, "more than 1000 tensors"),
    ],
)
def test_texts_without_whole_tensors_are_refused(thread: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence) as error:
        text.tensors(thread)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("before", "name"),
    [
        ("In [3]: x\nOut[3]: \n", "x"),
        ("In [12]: print(weight)\n", "weight"),
        ("expected\n", "expected"),
        ("**got**\n\n", "got"),
        ("the layer gives this\n", ""),
        ("In [4]: jax.nn.softmax(x)\nOut[4]:\n", ""),
        ("2\n", ""),
    ],
)
def test_a_console_or_a_word_on_the_line_before_names_a_tensor(before: str, name: str) -> None:
    (tensor,) = text.tensors(before + "array([[0.5, 0.25], [1.5, 2.0]])\n")
    assert tensor.name == name
