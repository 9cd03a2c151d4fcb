"""Models and orders of summation in Chinese: names, built from a few phrases, and descriptions."""

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
    r"starting at the bias": "以偏置作为累加器初值",
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
    r"flush to zero": "次正规数刷新为零（FTZ）",
    r"unbiased variance": "无偏方差",
    r"eps outside the root": "eps 在根号外",
    r"constant statistics": "统计量视为常数",
    r"no vector instructions": "无向量指令",
}
_STATEMENTS = {
    "torch CPU": "CPU 上的 PyTorch：用 8 个向量通道、每 16 个向量一段的 Welford 方差，逐级合并，"
    "使用 FMA。",
    "torch CPU, no vector instructions": "CPU 上的 PyTorch：用 8 个向量通道、每 16 个向量一段的 "
    "Welford 方差，逐级合并，不使用 FMA。",
    "torch CPU, 16 lanes": "CPU 上的 PyTorch：用 16 个向量通道、每 16 个向量一段的 Welford 方差，"
    "逐级合并，使用 FMA。",
    "paddle CPU": "CPU 上的 PaddlePaddle：两遍法，各个和分在八个向量通道上，然后计算 "
    "(x - mean) / sqrt(var + eps)，乘以权重，再加偏置。",
    "paddle CPU, float64": "CPU 上的 PaddlePaddle（float64）：两遍法，顺序累加，eps 舍入为 float32"
    "（1e-5 变成 9.99999974738e-06）。",
    "mindspore CPU": "CPU 上的 MindSpore：以 float64 累加 max(E[x^2] - mean^2, 0)，以 float32 "
    "保存，然后以输入的 dtype 计算 (x - mean) / sqrt(var + eps)。",
    "mindspore CPU, float16": "CPU 上的 MindSpore（float16）：统计量之后的每一步 (x - mean) / "
    "sqrt(var + eps) weight + bias 以及反向中的 dy weight 都舍入为 float16。",
    "mindspore CPU, float64": "CPU 上的 MindSpore（float64）：方差以 float32 保存，梯度以 float32 "
    "计算，因此结果的精度不高于 float32。",
    "oneflow CPU": "CPU 上的 OneFlow：均值由工作精度下逐步缩短的求和得到，方差为 "
    "float64 的 Welford 方差，然后计算 (x - mean) * rsqrt(var + eps)。",
    "two passes": "两遍法：先求均值，再求 (x - mean)^2 的均值，顺序累加。",
    "two passes, divided": "两遍法，(x - mean) 除以 sqrt(var + eps)。",
    "two passes, rsqrt": "两遍法，平方根的倒数只舍入一次。",
    "two passes, pairwise": "两遍法，成对求和。",
    "Welford": "Welford 的递推均值和方差，按顺序。",
    "float64 statistics": "均值和方差以 float64 计算，只舍入一次。",
    "naive variance": "方差由 E[x^2] - E[x]^2 单遍得到，|mean| 较大时发生灾难性抵消。",
    "naive variance, clamped": "方差由 max(E[x^2] - E[x]^2, 0) 单遍得到，"
    "|mean| 较大时发生灾难性抵消。",
    "naive variance, folded": "方差由 max(E[x^2] - E[x]^2, 0) 单遍得到，y = x rstd - mean rstd，"
    "与 PyTorch 1.9 相同。",
    "naive variance, pairwise sums": "方差由 NumPy 的成对求和计算 max(E[x^2] - E[x]^2, 0) 得到，"
    "|mean| 较大时发生灾难性抵消；(x - mean) 除以 sqrt(var + eps)。",
    "folded normalisation": "归一化折叠为 x rstd + (-rstd mean)，|mean| 较大时发生灾难性抵消。",
    "float32 statistics": "输入为 float64，均值和方差以 float32 计算。",
    "stored in float32": "输入为 float64，均值和 rstd 在使用之前以 float32 保存。",
    "eps in float32": "输入为 float64，eps 却舍入为 float32。",
    "computed in float32": "输入为 float64，却全部以 float32 计算。",
    "statistics in float16": "均值和 rstd 在使用之前舍入为 float16。",
    "statistics in bfloat16": "均值和 rstd 在使用之前舍入为 bfloat16。",
    "float16 accumulation": "每个部分和都舍入为 float16。",
    "bfloat16 accumulation": "每个部分和都舍入为 bfloat16。",
    "flush to zero": "次正规的输入和结果都变为零。",
    "unbiased variance": "方差除以 n - 1，而不是 n。",
    "eps outside the root": "eps 加在标准差上，即 (x - mean) / (sqrt(var) + eps)，"
    "而不是加在方差上。",
    "unbiased variance, eps outside the root": "标准差与 torch.std 相同（除以 n - 1），"
    "eps 加在根号外。",
    "constant statistics": "反向传播把均值和方差当作常数：dx = dy weight rstd。",
}
_IN = re.compile(r"(.+) in ((?:b?float)\d+)")


def model_name(name: str, lang: str) -> str:
    """The name in a language; phrases that have no translation stay as they are."""
    if lang == "en":
        return name
    return "，".join(_phrase(part) for part in name.split(", "))


def statement(model: str, english: str, lang: str) -> str:
    """The sentence that describes a model; "" if the language has none."""
    return english if lang == "en" else _STATEMENTS.get(model, "")


def _phrase(part: str) -> str:
    for pattern, phrase in _PHRASES.items():
        match = re.fullmatch(pattern, part)
        if match:
            return match.expand(phrase)
    inside = _IN.fullmatch(part)
    return f"以 {inside[2]} {_phrase(inside[1])}" if inside else part
