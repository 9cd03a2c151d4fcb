"""The names of models and orders of summation in Chinese: they are made of a few phrases."""

from __future__ import annotations

import re

_PHRASES = {
    # orders of summation
    r"in sequence": "顺序累加",
    r"in sequence from the last to the first": "从末项到首项顺序累加",
    r"blocks of (\d+) in sequence": r"每 \1 项一块、顺序累加",
    r"the last two halved": "最后两块对半分",
    r"the last two halved to multiples of (\d+)": r"最后两块按 \1 的倍数对半分",
    r"(\d+) lanes": r"\1 个向量通道",
    r"combined one after the other": "依次合并",
    r"combined neighbours first": "相邻者先合并",
    r"combined upper half onto lower half": "上半并入下半",
    r"pairwise": "成对求和",
    r"NumPy's pairwise sum": "NumPy 的成对求和",
    r"the bias added last": "最后加偏置",
    r"the bias added to the first block": "偏置先加到第一块",
    r"starting at the bias": "以偏置为初值",
    # accumulators
    r"(\w+) inputs": r"输入为 \1",
    r"products rounded": "乘积先舍入",
    # LayerNorm
    r"two passes": "两遍法",
    r"divided": "除以标准差",
    r"rsqrt": "rsqrt",
    r"float64 statistics": "float64 统计量",
    r"float32 statistics": "float32 统计量",
    r"naive variance": "单遍方差",
    r"clamped": "负值截断",
    r"folded": "折叠归一化",
    r"pairwise sums": "成对求和",
    r"folded normalisation": "折叠归一化",
    r"stored in (\w+)": r"以 \1 保存",
    r"computed in (\w+)": r"以 \1 计算",
    r"statistics in (\w+)": r"\1 统计量",
    r"eps in (\w+)": r"\1 的 eps",
    r"(\w+) accumulation": r"以 \1 累加",
    r"flush to zero": "次正规数冲刷为零",
    r"unbiased variance": "无偏方差",
    r"eps outside the root": "eps 在根号外",
    r"constant statistics": "统计量视为常数",
    r"no vector instructions": "无向量指令",
}
_IN = re.compile(r"(.+) in ((?:b?float)\d+)")


def model_name(name: str, lang: str) -> str:
    """The name in a language; phrases that have no translation stay as they are."""
    if lang == "en":
        return name
    return "，".join(_phrase(part) for part in name.split(", "))


def _phrase(part: str) -> str:
    for pattern, told in _PHRASES.items():
        match = re.fullmatch(pattern, part)
        if match:
            return match.expand(told)
    inside = _IN.fullmatch(part)
    return f"以 {inside[2]} {_phrase(inside[1])}" if inside else part
