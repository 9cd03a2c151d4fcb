"""Index letters: the meaning of a signature, and what it refuses."""

import pytest

from refkernels.ops.letters import Signature


def test_a_product_s_element_depends_on_a_row_and_a_column() -> None:
    product = Signature.parse("a[... m k], b[... k n] -> c[... m n]")
    dependencies = product.dependencies("c", (2, 3, 4), {"a": (5, 6, 7), "b": (1, 7, 8)})
    assert dependencies["a"] == (slice(2, 3), slice(3, 4), slice(None))
    assert dependencies["b"] == (slice(0, 1), slice(None), slice(4, 5))
    assert product.role("c", "k") == "contracted"
    assert product.role("c", "m") == "free"


def test_an_element_of_a_coupled_axis_depends_on_all_of_it() -> None:
    softmax = Signature.parse("x[... n] -> y[... n]", coupled="n")
    assert softmax.dependencies("y", (1, 2), {"x": (4, 9)})["x"] == (slice(1, 2), slice(None))
    assert softmax.role("y", "n") == "coupled"


def test_a_gradient_of_a_weight_depends_on_all_rows() -> None:
    norm = Signature.parse("x[... n], weight[n]? -> y[... n]", coupled="n")
    back = norm.backward({"dy": "y"}, {"dx": "x", "dweight": "weight"})
    assert list(back.takes) == ["dy", "x", "weight"]
    dependencies = back.dependencies("dweight", (3,), {"dy": (7, 5), "x": (7, 5)})
    assert dependencies == {"dy": (slice(None),) * 2, "x": (slice(None),) * 2}


def test_marks_are_read() -> None:
    loss = Signature.parse("x[... n], target[...]:int, weight[n]? -> loss[...]")
    assert loss.takes["target"].kind == "int"
    assert loss.takes["weight"].optional
    assert Signature.parse("grads[...]* -> clipped[...]*").takes["grads"].several
    step = Signature.parse("param[...], state.exp_avg[...] -> param[...], state.exp_avg[...]")
    assert "state.exp_avg" in step.gives


@pytest.mark.parametrize(
    ("text", "coupled", "said"),
    [
        ("x[n]", "", "not a signature"),
        ("x[n] -> y[m]", "", "No input has the letter 'm'"),
        ("x[n] -> y[n]", "k", "coupled letter 'k'"),
        ("x[n n] -> y[n]", "", "letter in it, once"),
        ("x[n ...] -> y[n]", "", "first"),
        ("x[n], x[n] -> y[n]", "", "letter in it, once"),
        ("x(n) -> y[n]", "", "not an array of a signature"),
        (" -> y[n]", "", "has an input"),
    ],
)
def test_wrong_signatures_are_refused(text: str, coupled: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Signature.parse(text, coupled)


def test_an_index_of_too_few_places_is_refused() -> None:
    with pytest.raises(ValueError, match="no element at"):
        Signature.parse("x[... n] -> y[... n]").dependencies("y", (), {"x": (3,)})
