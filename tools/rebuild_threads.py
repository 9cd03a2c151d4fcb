"""Writes gallery entries for public threads that give no numbers: the definitions that a thread
compares, computed on a few seeded numbers.

    python tools/rebuild_threads.py refkernels/gallery/entries

Each kernel is a few lines of NumPy in float64, rounded to float32 once, unless the thread is about
the order of operations. Arrays of more than two dozen numbers are in the .npz beside their entry.
"""

from __future__ import annotations

import io
import json
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from refkernels.records.files import write_whole

Arrays = dict[str, Any]
F = np.float32
N = 32
_SPELLED = 24  # numbers at most of an array that an entry spells out
_REBUILT = (
    "Rebuilt: the thread has no numbers. The definitions are the thread's, the inputs are drawn "
    "with NumPy's default_rng({seed})."
)
_REBUILT_ZH = "重建：原帖没有数值。定义取自原帖，输入由 NumPy 的 default_rng({seed}) 生成。"


@dataclass(frozen=True)
class Thread:
    """A thread, and how its kernels are rebuilt: `build(rng)` returns the inputs, and the outputs
    by kernel. title, reported, thread and argument are in English and in Chinese."""

    name: str
    source: str
    op: str
    build: Callable[[np.random.Generator], tuple[Arrays, dict[str, Arrays]]]
    expected: Mapping[str, tuple[str, str | None]]
    title: tuple[str, str]
    reported: tuple[str, str]
    thread: tuple[str, str]
    argument: tuple[str, str] = ("", "")
    params: Mapping[str, Any] = field(default_factory=dict)
    direction: str = "forward"
    seed: int = 14

    def difference(self) -> str | None:
        """The cause of the two kernels' difference: the wrong kernel's."""
        return next((cause for verdict, cause in self.expected.values() if verdict == WRONG), None)

    def entry(self) -> tuple[dict[str, Any], Arrays]:
        """The contents of the .json, and the larger arrays by their places: those of the .npz."""
        inputs, outputs = self.build(np.random.default_rng(self.seed))
        larger: Arrays = {}
        english, chinese = (
            {key: getattr(self, key)[k] for key in ("title", "reported", "thread", "argument")}
            for k in (0, 1)
        )
        contents = {
            "title": english["title"],
            "source": self.source,
            "reported": english["reported"],
            "provenance": _REBUILT.format(seed=self.seed),
            "device": "any",
            "recorded": False,
            "op": self.op,
            "direction": self.direction,
            "params": dict(self.params),
            "inputs": {
                name: _stored(array, f"input.{name}", larger) for name, array in inputs.items()
            },
            "outputs": {
                kernel: {
                    name: _stored(array, f"output.{kernel}.{name}", larger)
                    for name, array in by.items()
                }
                for kernel, by in outputs.items()
            },
            "thread": english["thread"],
            "argument": english["argument"],
            "zh": {
                **{key: text for key, text in chinese.items() if text},
                "source": self.source.replace(" and ", " 和 "),
                "provenance": _REBUILT_ZH.format(seed=self.seed),
                "device": "任意",
            },
            "expected": {
                **{
                    kernel: {"verdict": verdict, "cause": cause}
                    for kernel, (verdict, cause) in self.expected.items()
                },
                " | ".join(outputs): {"cause": self.difference()},
            },
        }
        return contents, larger


def _stored(array: Any, place: str, larger: Arrays) -> dict[str, Any] | str:
    """The array in the form of an entry: spelled out, or kept among the larger arrays."""
    values = np.asarray(array)
    if values.size > _SPELLED:
        larger[place] = values
        return "npz"
    digits = values.astype(object) if values.dtype.kind == "i" else _shortest(values)
    return {"dtype": str(values.dtype), "values": digits.tolist()}


def _shortest(values: Any) -> Any:
    """The shortest decimals that read back as these numbers in their own format."""
    return np.vectorize(lambda value: float(str(value)), otypes=[object])(values)


def _f32(**arrays: Any) -> Arrays:
    return {name: np.asarray(array).astype(F) for name, array in arrays.items()}


def _wide(inputs: Arrays) -> list[Any]:
    return [np.asarray(array, np.float64) for array in inputs.values()]


# --- optimizers -----------------------------------------------------------------------------------


def _adam(
    inputs: Arrays, step: int, eps: float, form: str, lr: float = 1e-3, decay: float = 0.0
) -> Arrays:
    w, g, m, v = _wide(inputs)
    b1, b2 = 0.9, 0.999
    m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
    c1, c2 = 1 - b1**step, 1 - b2**step
    if form == "uncorrected":
        update = m / (np.sqrt(v) + eps)
    elif form == "eps hat":
        update = math.sqrt(c2) / c1 * m / (np.sqrt(v) + eps)
    elif form == "inside":
        update = m / c1 / np.sqrt(v / c2 + eps)
    else:
        update = m / c1 / (np.sqrt(v / c2) + eps)
    if form == "decay after":
        w = w - lr * update
        return _f32(param=w - lr * decay * w, m=m, v=v)
    return _f32(param=w * (1 - lr * decay) - lr * update, m=m, v=v)


def _state(rng: np.random.Generator, size: float) -> Arrays:
    w, g, m, v = rng.standard_normal((4, N))
    w[::4] = 0  # so that param is the update alone
    return _f32(param=w, grad=size * g, m=size * m, v=np.square(size * v))


def _adams(
    kernels: Mapping[str, str], step: int, size: float, eps: float = 1e-8, **how: float
) -> Any:
    def build(rng: np.random.Generator) -> tuple[Arrays, dict[str, Arrays]]:
        inputs = _state(rng, size)
        if step == 1:
            inputs |= _f32(m=np.zeros(N), v=np.zeros(N))
        return inputs, {k: _adam(inputs, step, eps, form, **how) for k, form in kernels.items()}

    return build


def _rmsprop(rng: np.random.Generator) -> tuple[Arrays, dict[str, Arrays]]:
    w, g, a = rng.standard_normal((3, N))
    w[::4] = 0
    inputs = _f32(param=w, grad=g, accum=np.square(a))
    w, g, a = _wide(inputs)
    a = 0.99 * a + 0.01 * g * g
    steps = {"TensorFlow": g / np.sqrt(a + 1.0), "PyTorch": g / (np.sqrt(a) + 1.0)}
    return inputs, {k: _f32(param=w - 0.01 * step, accum=a) for k, step in steps.items()}


def _momentum(rng: np.random.Generator, *forms: str) -> tuple[Arrays, dict[str, Arrays]]:
    w, g, b = rng.standard_normal((3, N))
    w[::4] = 0
    inputs = _f32(param=w, grad=g, buf=b)
    w, g, b = _wide(inputs)
    answers = {}
    for form in forms:
        if form == "Sutskever's, same state":
            buf = 0.9 * b - 0.01 * g
            answers[form] = _f32(param=w + buf, buf=buf)
        elif form == "Sutskever's, own state":
            answers[form] = _f32(param=w + (0.9 * (-0.01 * b) - 0.01 * g))
        elif form == "HIPS/autograd":
            buf = 0.9 * b + 0.1 * g
            answers[form] = _f32(param=w - 0.01 * buf, buf=buf)
        else:
            buf = 0.9 * b + g
            answers[form] = _f32(param=w - 0.01 * buf, buf=buf)
    return inputs, answers


def _clipping(rng: np.random.Generator, names: tuple[str, str]) -> tuple[Arrays, dict[str, Arrays]]:
    tensor = np.repeat(np.arange(4), 8)
    inputs = {**_f32(grads=rng.standard_normal(N) * (1 + tensor)), "tensor": tensor}
    g = np.asarray(inputs["grads"], np.float64)
    tensor_norms = np.sqrt(np.add.reduceat(g * g, np.arange(0, N, 8)))
    global_norm = math.sqrt(float(np.sum(tensor_norms * tensor_norms)))
    factors = (
        np.minimum(1, 1 / (tensor_norms + 1e-6))[tensor],
        np.full(N, min(1, 1 / (global_norm + 1e-6))),
    )
    return inputs, {k: _f32(clipped=g * f) for k, f in zip(names, factors, strict=True)}


# --- losses and gradients -------------------------------------------------------------------------


def _rows_of_two_lengths(rng: np.random.Generator) -> tuple[Arrays, Any, Any]:
    """Two micro-batches (or ranks) of 12 places and 11 classes; 3 and 10 places have labels."""
    x = rng.standard_normal((2, 12, 11)).astype(F)
    target = rng.integers(0, 11, (2, 12))
    target[0, 3:] = target[1, 10:] = -100
    wide = x.astype(np.float64)
    p = np.exp(wide) / np.exp(wide).sum(-1, keepdims=True)
    labelled = target >= 0
    return {"x": x, "target": target}, p - np.eye(11)[np.maximum(target, 0)], labelled


def _mean_of_means(names: tuple[str, str]) -> Any:
    def build(rng: np.random.Generator) -> tuple[Arrays, dict[str, Arrays]]:
        inputs, slope, labelled = _rows_of_two_lengths(rng)
        count = labelled.sum(1, keepdims=True)
        shares = labelled / (2 * count), labelled / count.sum()
        inputs = {"dloss": np.ones((), F), **inputs}
        answers = (_f32(dx=slope * share[..., None]) for share in shares)
        return inputs, dict(zip(names, answers, strict=True))

    return build


def _times(factor: float, names: tuple[str, ...]) -> Any:
    """The gradients of a linear layer, multiplied."""

    def build(rng: np.random.Generator) -> tuple[Arrays, dict[str, Arrays]]:
        x, w, dy = (rng.standard_normal(shape) for shape in ((6, 8), (5, 8), (6, 5)))
        inputs = _f32(dy=dy, x=x, weight=w)
        dy, x, w = _wide(inputs)
        right = {"dx": dy @ w, "dweight": dy.T @ x}
        scales = (factor, 1.0)
        return inputs, {
            name: _f32(**{key: scale * array for key, array in right.items()})
            for name, scale in zip(names, scales, strict=False)
        }

    return build


def _smoothed(rng: np.random.Generator) -> tuple[Arrays, dict[str, Arrays]]:
    x, target = rng.standard_normal((N, 9)).astype(F), rng.integers(0, 9, N)
    wide = x.astype(np.float64)
    answers = {}
    for name, scores in (
        ("fairseq's loss of logits", wide),
        ("with log_softmax", wide - np.log(np.exp(wide).sum(-1, keepdims=True))),
    ):
        label_scores = scores[np.arange(N), target]
        answers[name] = _f32(loss=-(0.9 * label_scores + 0.1 * scores.mean(-1)))
    return {"x": x, "target": target}, answers


def _duplicates(rng: np.random.Generator) -> tuple[Arrays, dict[str, Arrays]]:
    weight, dy = rng.standard_normal((4, 6)).astype(F), rng.standard_normal((60, 6)).astype(F)
    indices = rng.integers(0, 4, 60)
    answers = {}
    for name, order in (("in order", range(60)), ("from the end", range(59, -1, -1))):
        total = np.zeros((4, 6), F)
        for k in order:
            total[indices[k]] += dy[k]
        answers[name] = {"dweight": total}
    return {"dy": dy, "weight": weight, "indices": indices}, answers


# --- forward --------------------------------------------------------------------------------------


def _layernorm(eps: Mapping[str, float]) -> Any:
    def build(rng: np.random.Generator) -> tuple[Arrays, dict[str, Arrays]]:
        x = rng.standard_normal((12, 16)) * 10.0 ** rng.uniform(-3, 0, (12, 1))
        inputs = _f32(x=x, weight=1 + rng.standard_normal(16) / 4, bias=rng.standard_normal(16))
        x, weight, bias = _wide(inputs)
        centred = x - x.mean(1, keepdims=True)
        var = np.square(centred).mean(1, keepdims=True)
        return inputs, {
            name: _f32(y=centred / np.sqrt(var + added) * weight + bias)
            for name, added in eps.items()
        }

    return build


def _gelu(*kernels: tuple[str, str]) -> Any:
    def build(rng: np.random.Generator) -> tuple[Arrays, dict[str, Arrays]]:
        inputs = _f32(x=rng.uniform(-3, 3, 2 * N))
        (x,) = _wide(inputs)
        root = math.sqrt(2 / math.pi)
        erfc = np.vectorize(math.erfc)
        forms = {
            "erf": lambda: x * erfc(-x / math.sqrt(2)) / 2,
            "tanh": lambda: x / (1 + np.exp(-2 * root * (x + 0.044715 * x**3))),
            "tanh, x taken out": lambda: x / (1 + np.exp(-2 * root * x * (1 + 0.044715 * x * x))),
        }
        return inputs, {name: _f32(y=forms[form]()) for name, form in kernels}

    return build


RIGHT = ("correctly_rounded", None)
ROUNDED = ("rounding", None)
WRONG = "exceeds_bound"
_ADAM_STEP = {"lr": 1e-3, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8}
_LATER = (
    "The two agree except where the root of v is no larger than some hundred eps, and more "
    "closely with every step: eps counts 31.6 times as much in step 1, 1.26 times in step 1000.",
    "只有当 v 的平方根不超过几百倍 eps 时两者才不同，而且步数越多越接近："
    "第 1 步 eps 的作用放大 31.6 倍，第 1000 步为 1.26 倍。",
)

THREADS = (
    Thread(
        "adamw-eps-before-correction",
        "https://github.com/huggingface/transformers/issues/35504",
        "adamw",
        _adams({"transformers": "eps hat", "torch": "textbook"}, 1, 1e-7),
        {"transformers": (WRONG, "eps_hat"), "torch": RIGHT},
        ("Transformers' AdamW against PyTorch's", "Transformers 的 AdamW 与 PyTorch 的对比"),
        (
            "Transformers' own AdamW corrects the bias after eps is added, PyTorch before.",
            "Transformers 自带的 AdamW 先加 eps 再修正偏差，PyTorch 则先修正。",
        ),
        (
            "There is no reason to keep a second AdamW; it is to be replaced by PyTorch's.",
            "没有理由再保留另一个 AdamW，将改用 PyTorch 的实现。",
        ),
        _LATER,
        {**_ADAM_STEP, "weight_decay": 0.0, "step": 1},
    ),
    Thread(
        "adam-eps-scaled",
        "https://github.com/pytorch/pytorch/pull/22628",
        "adam",
        _adams({"torch 1.2": "eps hat", "torch 1.3": "textbook"}, 10, 1e-7),
        {"torch 1.2": (WRONG, "eps_hat"), "torch 1.3": ROUNDED},
        ("PyTorch's Adam scaled eps until 1.3", "PyTorch 1.3 之前的 Adam 缩放了 eps"),
        (
            "Adam and AdamW scale eps by the root of the bias correction, which the papers do not.",
            "Adam 与 AdamW 用偏差修正的平方根缩放了 eps，而论文没有这样做。",
        ),
        ("Changed as proposed.", "已按提议修改。"),
        _LATER,
        {**_ADAM_STEP, "step": 10},
    ),
    Thread(
        "adamw-eps-nanochat",
        "https://github.com/karpathy/nanochat/issues/304",
        "adamw",
        _adams({"nanochat": "eps hat", "fixed": "textbook"}, 3, 1e-7),
        {"nanochat": (WRONG, "eps_hat"), "fixed": ROUNDED},
        ("Is eps scaled wrongly in nanochat's AdamW?", "nanochat 的 AdamW 对 eps 的缩放有误吗？"),
        (
            "eps is added to sqrt(v), and the bias correction multiplied to the step.",
            "eps 加在 sqrt(v) 上，偏差修正则乘到步长里。",
        ),
        ("A bug; fixed.", "是缺陷，已修复。"),
        _LATER,
        {**_ADAM_STEP, "weight_decay": 0.0, "step": 3},
    ),
    Thread(
        "adam-eps-inside-withdrawn",
        "https://github.com/keras-team/keras/issues/17391",
        "adam",
        _adams({"as the code is": "textbook", "as it was read": "inside"}, 5, 1e-3),
        {"as the code is": ROUNDED, "as it was read": (WRONG, "eps_inside_sqrt")},
        ("Does Keras' Adam add eps inside the root?", "Keras 的 Adam 把 eps 加在根号里吗？"),
        (
            "Adam, Adagrad and RMSprop are said to add eps inside the root, unlike the paper.",
            "报告称 Adam、Adagrad 与 RMSprop 把 eps 加在根号里，与论文不符。",
        ),
        (
            "The reporter withdrew it for Adam, and maintained it for Adagrad and RMSprop.",
            "报告者对 Adam 收回了说法，对 Adagrad 与 RMSprop 仍坚持。",
        ),
        (
            "A false alarm for Adam: it computes the definition, with eps outside the root. The "
            "suspected form would have shown.",
            "就 Adam 而言是误报：eps 在根号外，正是定义本身。若真如报告所说，数值上是看得出来的。",
        ),
        {**_ADAM_STEP, "step": 5},
    ),
    Thread(
        "rmsprop-eps-inside",
        "https://github.com/pytorch/pytorch/issues/23796 and "
        "https://github.com/chainer/chainer/issues/4754",
        "rmsprop",
        _rmsprop,
        {"TensorFlow": (WRONG, "eps_inside_sqrt"), "PyTorch": RIGHT},
        ("RMSprop of TensorFlow and of PyTorch", "TensorFlow 与 PyTorch 的 RMSprop"),
        (
            "A TensorFlow model is not reproduced: eps is inside the root there, outside in "
            "PyTorch and Chainer, which shows with eps = 1, as Inception is trained.",
            "TensorFlow 的模型无法复现：它把 eps 放在根号里，PyTorch 与 Chainer 放在根号外；"
            "训练 Inception 时 eps = 1，差别明显。",
        ),
        (
            "Both forms stay; PyTorch's documentation was changed.",
            "两种形式都保留；PyTorch 修改了文档。",
        ),
        params={"lr": 0.01, "rho": 0.99, "eps": 1.0, "momentum": 0.0},
    ),
    Thread(
        "adam-without-correction",
        "https://github.com/Oneflow-Inc/oneflow/pull/5960",
        "adam",
        _adams({"oneflow before": "uncorrected", "oneflow after": "textbook"}, 4, 1e-2),
        {"oneflow before": (WRONG, "no_bias_correction"), "oneflow after": ROUNDED},
        ("OneFlow's Adam without bias correction", "OneFlow 的 Adam 缺少偏差修正"),
        (
            "do_bias_correction was false by default; the formula is to be PyTorch's.",
            "do_bias_correction 默认为 false；公式要与 PyTorch 对齐。",
        ),
        (
            "The default is now true. Weight decay is applied in another place than in PyTorch, "
            "and is the same in exact arithmetic.",
            "默认值改为 true。权重衰减的位置与 PyTorch 不同，但数学上等价。",
        ),
        (
            "Without it a step is (1 - beta1^t) / sqrt(1 - beta2^t) times as large: 3.16 times in "
            "step 1, 6.57 at most, in step 12.",
            "缺少修正时步长放大 (1 - beta1^t) / sqrt(1 - beta2^t) 倍：第 1 步 3.16 倍，"
            "第 12 步最大，为 6.57 倍。",
        ),
        {**_ADAM_STEP, "step": 4},
    ),
    Thread(
        "adamw-decay-after-step",
        "https://github.com/kyleliang919/C-Optim/issues/3",
        "adamw",
        _adams({"C-Optim": "decay after", "torch": "textbook"}, 5, 1.0, lr=0.05, decay=0.1),
        {"C-Optim": (WRONG, "decay_after_step"), "torch": ROUNDED},
        ("Weight decay after the step or before it", "权重衰减在更新之后还是之前"),
        (
            "C-Optim decays the updated weights, PyTorch the old ones.",
            "C-Optim 对更新后的权重做衰减，PyTorch 对更新前的权重做衰减。",
        ),
        (
            "Inherited; it does no harm, since the end of a step is the start of the next "
            "except for the learning rate.",
            "沿用旧代码，并无害处：一步的结束就是下一步的开始，只是学习率可能不同。",
        ),
        (
            "Both are right: it is another definition, by lr^2 times decay of the update, and "
            "the same sequence of decays and steps.",
            "双方都对：定义确实不同，差 lr² 乘衰减系数再乘更新量；而衰减与更新交替的序列是一样的。",
        ),
        {**_ADAM_STEP, "lr": 0.05, "weight_decay": 0.1, "step": 5},
    ),
    Thread(
        "sgd-momentum-two-forms",
        "https://github.com/pytorch/pytorch/issues/1099 and "
        "https://github.com/pytorch/pytorch/issues/44917",
        "sgd",
        lambda rng: _momentum(rng, "Sutskever's, own state", "Sutskever's, same state"),
        {
            "Sutskever's, own state": RIGHT,
            "Sutskever's, same state": (WRONG, "lr_in_momentum"),
        },
        ("Is PyTorch's SGD with momentum wrong?", "PyTorch 的带动量 SGD 错了吗？"),
        (
            "PyTorch's learning rate multiplies the whole buffer; in Sutskever's paper it is "
            "inside the buffer, beside the gradient.",
            "PyTorch 的学习率乘在整个缓冲上；Sutskever 的论文则把它放在缓冲里、乘在梯度上。",
        ),
        ("Documented, not changed.", "写入了文档，没有改动。"),
        (
            "Equal by definition while the learning rate is constant: with v = -lr b the two "
            "give the same parameters except for rounding. They differ where the rate changes, "
            "or where the "
            "buffer of one is loaded into the other, as the second kernel does here.",
            "学习率不变时按定义相等：取 v = -lr b，两者给出的参数只差舍入。"
            "学习率变化，或把一方的缓冲载入另一方（即这里的第二个内核）时才会不同。",
        ),
        {"lr": 0.01, "momentum": 0.9, "step": 5},
    ),
    Thread(
        "sgd-momentum-averaged",
        "https://github.com/jax-ml/jax/pull/1528 and https://github.com/HIPS/autograd/issues/289",
        "sgd",
        lambda rng: _momentum(rng, "HIPS/autograd", "PyTorch"),
        {"HIPS/autograd": (WRONG, "averaged_momentum"), "PyTorch": RIGHT},
        ("JAX's momentum before it was aligned", "对齐之前 JAX 的动量"),
        (
            "The momentum of JAX's optimizers was neither Keras' form nor PyTorch's.",
            "JAX 优化器的动量既不是 Keras 的形式，也不是 PyTorch 的形式。",
        ),
        (
            "A reparametrisation of the learning rate; changed to PyTorch's form.",
            "相当于对学习率重新参数化；已改为 PyTorch 的形式。",
        ),
        params={"lr": 0.01, "momentum": 0.9, "step": 5},
    ),
    Thread(
        "clip-local-norm",
        "https://github.com/huggingface/transformers/issues/581",
        "clip_by_global_norm",
        lambda rng: _clipping(rng, ("BertAdam", "google-research/bert")),
        {"BertAdam": (WRONG, "clipped_per_tensor"), "google-research/bert": RIGHT},
        ("BertAdam clips by each gradient's own norm", "BertAdam 按各自的范数裁剪梯度"),
        (
            "Gradients are clipped to a local norm of 1, where BERT's own code clips by the global "
            "one.",
            "梯度按局部范数裁剪到 1，而 BERT 原代码按全局范数裁剪。",
        ),
        ("Changed in a pull request (614).", "由一个合并请求（614）修改。"),
        (
            "The direction of the step changes, not only its length.",
            "不仅步长变了，方向也变了。",
        ),
        {"max_norm": 1.0, "eps": 1e-6},
    ),
    Thread(
        "clip-per-layer",
        "https://github.com/NVIDIA/DeepLearningExamples/issues/287",
        "clip_by_global_norm",
        lambda rng: _clipping(rng, ("PyTorch example", "TensorFlow example")),
        {"PyTorch example": (WRONG, "clipped_per_tensor"), "TensorFlow example": RIGHT},
        ("NVIDIA's two BERT examples clip differently", "NVIDIA 的两个 BERT 示例裁剪方式不同"),
        (
            "The PyTorch example clips layer by layer, the TensorFlow example by the global norm.",
            "PyTorch 示例逐层裁剪，TensorFlow 示例按全局范数裁剪。",
        ),
        (
            "The layer by layer one is wrong; pre-training does not use it, and it was fixed.",
            "逐层裁剪是错的；预训练没有用到它，已修复。",
        ),
        params={"max_norm": 1.0, "eps": 1e-6},
        seed=15,
    ),
    Thread(
        "accumulation-mean-of-means",
        "https://github.com/huggingface/transformers/pull/34191",
        "cross_entropy",
        _mean_of_means(("two micro-batches", "one batch")),
        {"two micro-batches": (WRONG, "mean_of_means"), "one batch": ROUNDED},
        ("Gradient accumulation is not the full batch", "梯度累积与整批训练不等价"),
        (
            "Losses with gradient accumulation differ from those of the whole batch.",
            "使用梯度累积时，损失与整批训练的不同。",
        ),
        (
            "Each micro-batch is averaged over its own tokens, and the averages are averaged; "
            "all tokens must be counted together.",
            "每个微批按自己的词元数取平均，再对平均值取平均；应当把全部词元一起计数。",
        ),
        direction="backward",
    ),
    Thread(
        "ranks-mean-of-means",
        "https://github.com/huggingface/transformers/issues/34242",
        "cross_entropy",
        _mean_of_means(("two ranks", "one process")),
        {"two ranks": (WRONG, "mean_of_means"), "one process": ROUNDED},
        ("Two ranks do not train as one process", "两个进程与单进程训练的结果不同"),
        (
            "After accumulation was corrected, ranks with different numbers of tokens still weigh "
            "the same.",
            "修正累积之后，词元数不同的各进程权重仍然相同。",
        ),
        (
            "The token count is not added up over the ranks.",
            "词元数没有在各进程之间求和。",
        ),
        direction="backward",
        seed=16,
    ),
    Thread(
        "accumulated-loss-doubled",
        "https://github.com/huggingface/transformers/pull/35207",
        "linear",
        _times(2.0, ("two accumulation steps", "one step")),
        {"two accumulation steps": (WRONG, "scale_factor"), "one step": RIGHT},
        ("The loss grows with the accumulation steps", "损失随累积步数成倍增大"),
        (
            "With gradient accumulation the loss is multiplied by the number of steps.",
            "使用梯度累积时，损失被乘以累积步数。",
        ),
        ("It is not divided by the steps any more.", "不再除以累积步数。"),
        direction="backward",
    ),
    Thread(
        "gradient-norm-of-eight-ranks",
        "https://github.com/pytorch/torchtitan/issues/2318",
        "linear",
        _times(8.0, ("DDP", "FSDP")),
        {"DDP": (WRONG, "scale_factor"), "FSDP": RIGHT},
        ("Gradient norms apart by a factor of 8", "梯度范数相差 8 倍"),
        (
            "Gradient norms of DDP and HSDP differ from FSDP's by a factor of 8.",
            "DDP 与 HSDP 的梯度范数与 FSDP 的相差 8 倍。",
        ),
        (
            "Open; since losses are divided by the global token count.",
            "尚未解决；始于按全局词元数相除。",
        ),
        (
            "A sum over ranks has replaced a mean, or the other way round. The thread does not "
            "say which of the two runs has it; the numbers here assume DDP.",
            "一处用了求和而另一处用了求平均（或相反）。原帖没有说是哪一边；"
            "这里的数值假定是 DDP 一边。",
        ),
        direction="backward",
        seed=17,
    ),
    Thread(
        "layernorm-eps-of-bert",
        "https://github.com/keras-team/keras-hub/issues/642",
        "layernorm",
        _layernorm({"TransformerEncoder": 1e-5, "BERT": 1e-12}),
        {"TransformerEncoder": (WRONG, "eps_differs"), "BERT": RIGHT},
        ("LayerNorm's eps in KerasHub's BERT", "KerasHub 的 BERT 中 LayerNorm 的 eps"),
        (
            "BERT's eps is 1e-12; the encoder layers keep their default of 1e-5.",
            "BERT 的 eps 为 1e-12，编码层却沿用默认值 1e-5。",
        ),
        ("A bug; other models had it too.", "是缺陷；其他模型也有同样的问题。"),
        params={"eps": 1e-12},
    ),
    Thread(
        "layernorm-eps-transformer-xl",
        "https://github.com/dmlc/gluon-nlp/pull/1005",
        "layernorm",
        _layernorm({"GluonNLP": 1e-12, "Transformer-XL": 1e-5}),
        {"GluonNLP": (WRONG, "eps_differs"), "Transformer-XL": RIGHT},
        ("LayerNorm's eps in GluonNLP's Transformer-XL", "GluonNLP 的 Transformer-XL 中的 eps"),
        (
            "The same results as another implementation had been asserted, which was wrong too.",
            "曾断言与另一实现结果相同，而那个实现同样有误。",
        ),
        ("eps is 1e-5, not 1e-12.", "eps 应为 1e-5，而不是 1e-12。"),
        (
            "Two implementations that agree prove nothing: the definition does.",
            "两个实现一致说明不了什么，要以定义为准。",
        ),
        {"eps": 1e-5},
        seed=18,
    ),
    Thread(
        "gelu-erf-for-tanh",
        "https://github.com/kyutai-labs/pocket-tts/pull/278",
        "gelu_tanh",
        _gelu(("pocket-tts", "erf"), ("as trained", "tanh")),
        {"pocket-tts": (WRONG, "erf_gelu"), "as trained": RIGHT},
        (
            "pocket-tts infers with another GELU than it was trained with",
            "pocket-tts 推理与训练的 GELU 不同",
        ),
        (
            "Weights were trained with the tanh form, inference used erf: 0.35 % of the output.",
            "权重用 tanh 形式训练，推理却用 erf：输出相差 0.35 %。",
        ),
        (
            "A mismatch, never audible; the word error rate is the same within noise.",
            "确实不一致，但听不出来；词错率之差在噪声之内。",
        ),
    ),
    Thread(
        "gelu-tanh-for-erf",
        "https://github.com/CyberZHG/keras-bert/issues/129",
        "gelu",
        _gelu(("google-research/bert", "tanh"), ("keras-bert", "erf")),
        {"google-research/bert": (WRONG, "tanh_gelu"), "keras-bert": RIGHT},
        ("keras-bert and BERT have different GELUs", "keras-bert 与 BERT 的 GELU 不同"),
        (
            "keras-bert takes erf, BERT's code the tanh form; outputs of the model differ from the "
            "second or third decimal on.",
            "keras-bert 用 erf，BERT 官方代码用 tanh 近似；模型输出从小数点后第二、三位开始不同。",
        ),
        (
            "BERT's code had erf at first; its first weights were trained with that.",
            "官方早期代码用的是 erf，最早公布的权重由它训练而来。",
        ),
        seed=19,
    ),
    Thread(
        "gelu-tanh-factored",
        "https://github.com/deepspeedai/Megatron-DeepSpeed/issues/84",
        "gelu_tanh",
        _gelu(("Megatron-DeepSpeed", "tanh, x taken out"), ("the paper", "tanh")),
        {"Megatron-DeepSpeed": RIGHT, "the paper": RIGHT},
        ("Is Megatron's GELU another approximation?", "Megatron 的 GELU 是另一种近似吗？"),
        (
            "The fused GELU has x² where the paper has x³; results differ by about 1e-7.",
            "融合的 GELU 里是 x²，论文里是 x³；结果相差约 1e-7。",
        ),
        (
            "Withdrawn: x is factored out of the bracket, and the rest is rounding.",
            "已撤回：x 被提到括号外，其余只是舍入。",
        ),
        (
            "A false alarm: by definition equal. In float64 both round to the same float32 here.",
            "误报：按定义相等。这里用 float64 计算，两者舍入到同一个 float32。",
        ),
        seed=20,
    ),
    Thread(
        "smoothed-loss-of-logits",
        "https://github.com/facebookresearch/fairseq/issues/2273",
        "cross_entropy",
        _smoothed,
        {"fairseq's loss of logits": (WRONG, "no_softmax"), "with log_softmax": RIGHT},
        (
            "fairseq's smoothed cross entropy against TensorFlow's",
            "fairseq 与 TensorFlow 的标签平滑交叉熵",
        ),
        (
            "The label-smoothed loss of fairseq is not that of TensorFlow on the same input.",
            "同样的输入下，fairseq 的标签平滑损失与 TensorFlow 的不同。",
        ),
        (
            "The reporter's mistake: fairseq's function takes log-probabilities, and sums.",
            "报告者自己的失误：fairseq 的函数接收对数概率，并且求和。",
        ),
        params={"reduction": "none", "label_smoothing": 0.1},
    ),
    Thread(
        "embedding-duplicates",
        "https://github.com/meta-pytorch/torchrec/issues/1298",
        "embedding",
        _duplicates,
        {"in order": ("rounding", "summation_order"), "from the end": ROUNDED},
        ("TorchRec and duplicates in a batch", "TorchRec 与批次中的重复索引"),
        (
            "With duplicates in the batch the embedding differs from PyTorch's after a few steps "
            "of Adam, by 1.55e-5 and 0.6 % at most.",
            "批次中有重复索引时，几步 Adam 之后嵌入与 PyTorch 的不同，最多 1.55e-5、0.6 %。",
        ),
        ("Open, without a cause.", "尚未解决，原因未定。"),
        (
            "A gradient of duplicates is a sum, and its order is the kernel's: both orders are "
            "inside the bound, and no bug. Adam divides by the gradient's own size, so that such "
            "differences of small gradients grow to steps. The thread's numbers do not show "
            "that this is all of its difference.",
            "重复索引的梯度是求和，顺序由内核决定：两种顺序都在误差界之内，不是缺陷。"
            "Adam 会除以梯度自身的大小，小梯度的这种差别因此被放大到步长量级。"
            "但原帖的数值不足以证明差别全部来自于此。",
        ),
        direction="backward",
    ),
)


def main(folder: Path) -> None:
    for thread in THREADS:
        contents, larger = thread.entry()
        text = json.dumps(contents, ensure_ascii=False, indent=1)
        write_whole(folder / f"{thread.name}.json", text + "\n")
        if larger:
            archive = io.BytesIO()
            np.savez_compressed(archive, **larger)
            write_whole(folder / f"{thread.name}.npz", archive.getvalue())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
