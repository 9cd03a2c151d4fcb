"""The words of the report: verdicts, flags, statuses and properties, each in plain language.

A word in a record that is not listed here (a third party's verdict, a new flag) is shown unchanged,
and ranks where it will be noticed.
"""

from __future__ import annotations

from dataclasses import dataclass

from refkernels.records.words import DIRECTIONS, DTYPES, LEVELS


@dataclass(frozen=True)
class Verdict:
    """One verdict, or `unusual`: its words, and a glyph, because colour alone is not enough."""

    name: str
    glyph: str
    short: str
    style: str  # CSS class in HTML
    colour: str  # rich style in the terminal
    meaning: str

    @property
    def rank(self) -> float:
        """0 is worst; an unknown verdict comes after the bad ones."""
        return LEVELS.index(self.name) if self.name in LEVELS else _UNKNOWN


_UNKNOWN = LEVELS.index("exceeds_bound") + 0.5
_KINDS = (
    Verdict(
        "special_value_mismatch", "≠", "wrong special", "vs", "bold magenta",
        "NaN, infinity or a number where the exact answer calls for another of the three.",
    ),
    Verdict(
        "invariant_violated", "⊘", "impossible", "vi", "bold red",
        "A value that no rounding explains and mathematics forbids, such as |cos x| > 1 "
        "or a negative variance.",
    ),
    Verdict(
        "exceeds_bound", "✗", "beyond bound", "vx", "bold yellow",
        "The error is larger than any named form of the op can make in this precision on these "
        "inputs, or than the library limit: a lower precision, an unstable formula or a bug.",
    ),
    Verdict(
        "range_limited", "∞", "out of range", "vl", "bold yellow",
        "An intermediate result overflows or underflows, and this changes the answer more than "
        "rounding can: named forms of the op do so on these inputs, another way may not.",
    ),
    Verdict(
        "ill_conditioned", "◇", "undecided", "vd", "bold",
        "Inside a bound that says nothing: on these inputs rounding alone may be as large as the "
        "result. Neither rounding nor a fault is shown.",
    ),
    Verdict(
        "uncertified", "?", "uncertified", "vq", "bold",
        "The exact value of no element is enclosed, so nothing was checked: the op is undefined on "
        "these inputs.",
    ),
    Verdict(
        "rounding", "≈", "rounding", "vr", "blue",
        "Every element lies inside the bound of the op's named forms, sums in any order, or inside "
        "the library limit, however many ulp that is.",
    ),
    Verdict(
        "correctly_rounded", "✓", "exact", "vc", "cyan",
        "Every bit equals the exact answer rounded once: no algorithm in this format does better.",
    ),
)  # fmt: skip
UNUSUAL = Verdict(
    "unusual", "△", "unusual", "vu", "yellow",
    "Inside the bound, but the error is more than 4 times (in 16 bits, 2 times) that of the plain "
    "sequential algorithm on the same data, or another form of the op avoids it. Not a verdict, "
    "but worth a look.",
)  # fmt: skip
_KNOWN = {verdict.name: verdict for verdict in (*_KINDS, UNUSUAL)}
LEVEL_WORDS = tuple(_KNOWN[name] for name in LEVELS)
"""All of them, worst first."""

FLAGS = {
    "unusual": UNUSUAL.meaning,
    "avoidable": "Some errors are more than 8 ulp, and more than 8 times what another named form "
    "of the op can make there.",
    "nonzero_at_zero": "The exact answer is 0, but the framework returned something else; such "
    "elements are left out of the ulp figures and judged by error / bound.",
    "sign_changes": "Some results have the opposite sign of the exact answer.",
    "flushed_subnormals": "Some tiny (subnormal) results were replaced by 0.",
    "signed_zero_mismatches": "Some zeros have the wrong sign.",
    "overflows": "Some results are infinite where the exact answer rounds to a finite number.",
    "undecided": "Some elements could not be decided as correctly rounded or not.",
    "uncertified": "The exact value of some elements is not enclosed, and these were not checked.",
}
STATUSES = {
    "error": "the call failed",
    "killed": "the process died",
    "oom": "out of memory",
    "timeout": "no answer within the time limit",
    "wrong_shape": "the output has the wrong shape",
    "import_error": "the framework or kernel could not be loaded",
    "not_installed": "the framework is not installed",
    "unsupported": "the framework does not offer this op in this format",
}
PROPERTIES = {
    "run_to_run": "Same inputs twice, same bits",
    "position": "Same bits at any position in the array",
    "batch": "Same bits whatever the batch around it",
    "threads": "Same bits with 1 and 2 threads",
}
_CHINESE = {
    "special_value_mismatch": ("特殊值错误", "结果与精确答案的类别（NaN、无穷或有限数）不符。"),
    "invariant_violated": (
        "不可能的值",
        "任何舍入都无法解释、数学上不可能的值，如 |cos x| > 1 或负方差。",
    ),
    "exceeds_bound": (
        "超出误差界",
        "误差大于该算子任何已命名形式在此精度、这些输入下可能产生的误差，或大于库函数限度："
        "精度较低、公式数值不稳定，或有缺陷。",
    ),
    "range_limited": (
        "超出范围",
        "中间结果上溢或下溢，误差因此不只是舍入：已命名的形式在这些输入上会如此，换一种算法则未必。",
    ),
    "ill_conditioned": (
        "无法判定",
        "误差虽在误差界之内，但这个界说明不了什么：在这些输入上，单是舍入误差就可能与结果一样大。"
        "既不能认定为舍入误差，也不能认定为错误。",
    ),
    "uncertified": (
        "未验证",
        "没有一个元素的精确值有包含区间，什么也没有检查：该算子在这些输入上没有定义。",
    ),
    "rounding": (
        "舍入误差",
        "每个元素都在已命名形式（任意求和顺序）的误差界之内，或在库函数限度之内，不论有多少 ulp。",
    ),
    "correctly_rounded": (
        "正确舍入",
        "与精确答案一次舍入的结果逐位相同：在该格式下没有算法能做得更好。",
    ),
    "unusual": (
        "不寻常",
        "在误差界之内，但误差超过同样数据上朴素顺序算法的 4 倍（16 位格式为 2 倍），"
        "或者换一种形式即可避免。这不是判定，但值得查看。",
    ),
}
_FLAGS_ZH = {
    "avoidable": "有些误差超过 8 ulp，且超过该算子另一已命名形式在该处可能误差的 8 倍。",
    "nonzero_at_zero": "精确答案为 0 而框架给出的不是 0；这些元素不计入 ulp，以误差/误差界判定。",
    "sign_changes": "有些结果与精确答案符号相反。",
    "flushed_subnormals": "有些极小的（次正规）结果被替换为 0。",
    "signed_zero_mismatches": "有些零的符号不对。",
    "overflows": "有些结果为无穷，而精确答案舍入后是有限数。",
    "undecided": "有些元素无法判定是否正确舍入。",
    "uncertified": "有些元素的精确值没有包含区间，未作检查。",
}
_STATUSES_ZH = {
    "error": "调用失败",
    "killed": "进程终止",
    "oom": "内存不足",
    "timeout": "在时限内没有答复",
    "wrong_shape": "输出形状不对",
    "import_error": "框架或内核无法加载",
    "not_installed": "框架未安装",
    "unsupported": "框架不提供此格式的该算子",
}
_PROPERTIES_ZH = {
    "run_to_run": "相同输入计算两次，逐位相同",
    "position": "元素位于数组任何位置，都逐位相同",
    "batch": "无论同批的其他元素如何，都逐位相同",
    "threads": "使用 1 个和 2 个线程，逐位相同",
}
WIDE = frozenset(["float32", "float64"])  # what people train and check in; shown first


def verdict(name: str) -> Verdict:
    """The verdict called `name`; an unknown one ranks just below `exceeds_bound`."""
    listed = _KNOWN.get(name)
    if listed is not None:
        return listed
    return Verdict(
        name, "?", name[:16], "vq", "bold",
        f"A verdict that this version of the report does not know: {name}.",
    )  # fmt: skip


def short_of(verdict: Verdict, lang: str) -> str:
    """The verdict in a word or two."""
    return _CHINESE[verdict.name][0] if lang == "zh" and verdict.name in _CHINESE else verdict.short


def meaning_of(verdict: Verdict, lang: str) -> str:
    """The meaning of the verdict."""
    return (
        _CHINESE[verdict.name][1] if lang == "zh" and verdict.name in _CHINESE else verdict.meaning
    )


def meaning_of_flag(name: str, lang: str = "en") -> str:
    """The meaning of the flag, or its own name in words."""
    if lang == "zh" and name == UNUSUAL.name:
        return meaning_of(UNUSUAL, lang)
    meanings = _FLAGS_ZH if lang == "zh" else FLAGS
    return meanings.get(name, name.replace("_", " ") + ".")


def meaning_of_status(name: str, lang: str = "en") -> str:
    """The meaning of the status, or its own name in words."""
    return (_STATUSES_ZH if lang == "zh" else STATUSES).get(name, name.replace("_", " "))


def meaning_of_property(name: str, lang: str = "en") -> str:
    """What stays the same, or the property's own name in words."""
    return (_PROPERTIES_ZH if lang == "zh" else PROPERTIES).get(name, name.replace("_", " "))


def rank_of_status(name: str) -> int:
    """Errors first, `unsupported` (a fact, not a fault) last."""
    order = list(STATUSES)
    return order.index(name) if name in STATUSES else -1


def rank_of_dtype(name: str) -> tuple[int, str]:
    """float16, bfloat16, float32, float64, then others by name."""
    return (DTYPES.index(name) if name in DTYPES else len(DTYPES), name)


def rank_of_direction(name: str) -> tuple[int, str]:
    """forward, backward, then others by name."""
    return (DIRECTIONS.index(name) if name in DIRECTIONS else len(DIRECTIONS), name)
