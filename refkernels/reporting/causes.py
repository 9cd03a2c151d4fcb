"""The causes that an explanation can name: what each means, and what to do, in two languages.

The identifiers are stable: records, scripts and threads may rely on them.
"""

from __future__ import annotations

from dataclasses import dataclass

LANGUAGES = ("en", "zh")


@dataclass(frozen=True)
class Cause:
    """`says` completes "The kernel ..."; `todo` is advice. Both by language; `{name}` stands for a
    number in the candidate's details."""

    says: dict[str, str]
    todo: dict[str, str]


def _cause(en: str, zh: str, todo_en: str, todo_zh: str) -> Cause:
    return Cause({"en": en, "zh": zh}, {"en": todo_en, "zh": todo_zh})


_NO_BUG = (
    "Nothing is wrong: compare with a tolerance derived from the inputs "
    "(`refkernels.testing.assert_kernel`), not with equal bits or a fixed number of ULP.",
    "没有错误：请用由输入推出的容差（`refkernels.testing.assert_kernel`）比较，而不要逐位比较，"
    "也不要用固定的 ULP 数。",
)
NO_BUG = dict(zip(LANGUAGES, _NO_BUG, strict=True))
_REPORT = (
    "Report it as a bug, with the script of this answer.",
    "请附上本答复中的脚本，作为缺陷上报。",
)

CAUSES: dict[str, Cause] = {
    "summation_order": _cause(
        "adds the same terms in another order, or by another stable algorithm",
        "以不同的次序或另一种稳定的算法累加同样的项",
        *_NO_BUG,
    ),
    "bias_first": _cause(
        "starts its accumulator at the bias instead of adding the bias last",
        "累加器以偏置为初值，而不是最后才加上偏置",
        *_NO_BUG,
    ),
    "tf32_inputs": _cause(
        "rounds its float32 inputs to TF32 (11 significant bits) before multiplying",
        "在相乘之前把 float32 输入舍入为 TF32（11 位有效数字）",
        "Ask for full float32 products: torch.backends.cuda.matmul.allow_tf32 = False, or "
        "NVIDIA_TF32_OVERRIDE=0 for any framework on CUDA.",
        "要求完整的 float32 乘法：torch.backends.cuda.matmul.allow_tf32 = False；"
        "在 CUDA 上，任何框架都可设置 NVIDIA_TF32_OVERRIDE=0。",
    ),
    "bf16_inputs": _cause(
        "rounds its inputs to bfloat16 before it computes with them",
        "在计算之前把输入舍入为 bfloat16",
        "Ask for a higher matmul precision (torch.set_float32_matmul_precision('highest'), "
        "jax.default_matmul_precision('highest')), and turn automatic mixed precision off.",
        "要求更高的矩阵乘精度（torch.set_float32_matmul_precision('highest')、"
        "jax.default_matmul_precision('highest')），并关闭自动混合精度。",
    ),
    "fp16_inputs": _cause(
        "rounds its inputs to float16 before it computes with them",
        "在计算之前把输入舍入为 float16",
        "Turn automatic mixed precision off for this op.",
        "对该算子关闭自动混合精度。",
    ),
    "fp16_accumulation": _cause(
        "accumulates in float16",
        "以 float16 累加",
        "Ask for float32 accumulation "
        "(torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False).",
        "要求以 float32 累加"
        "（torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False）。",
    ),
    "bf16_accumulation": _cause(
        "accumulates in bfloat16",
        "以 bfloat16 累加",
        "Ask for float32 accumulation "
        "(torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False).",
        "要求以 float32 累加"
        "（torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False）。",
    ),
    "float32_cast": _cause(
        "computes in float32 although its input is float64",
        "输入为 float64，却以 float32 计算",
        *_REPORT,
    ),
    "wrong_dtype": _cause(
        "gives the right result rounded to a narrower format ({format})",
        "结果是正确的，但被舍入为更窄的格式（{format}）",
        "Look for a cast, an autocast region, or a buffer of that format on the way.",
        "请检查途中是否有类型转换、autocast 区域或该格式的缓冲区。",
    ),
    "naive_variance": _cause(
        "computes the variance as E[x²] - E[x]² in its working precision, which cancels",
        "在工作精度下以 E[x²] - E[x]² 计算方差，发生相消",
        "Compute the variance by two passes or by Welford's recurrence; until then, subtract a "
        "rough mean from the input first.",
        "改用两遍法或 Welford 递推计算方差；在此之前，可先从输入中减去一个近似均值。",
    ),
    "folded_normalisation": _cause(
        "folds the normalisation into x·rstd - mean·rstd, which cancels where the mean is large",
        "把归一化折叠为 x·rstd - mean·rstd，均值较大时发生相消",
        "Compute (x - mean)·rstd; until then, subtract a rough mean from the input first.",
        "应当计算 (x - mean)·rstd；在此之前，可先从输入中减去一个近似均值。",
    ),
    "low_precision_statistics": _cause(
        "rounds mean and rstd to the 16-bit format of its input before it uses them",
        "在使用之前把均值和 rstd 舍入为输入的 16 位格式",
        "Keep the statistics in float32.",
        "请以 float32 保存统计量。",
    ),
    "float32_statistics": _cause(
        "keeps mean and variance in float32 although its input is float64",
        "输入为 float64，均值和方差却以 float32 保存",
        *_REPORT,
    ),
    "eps_rounded": _cause(
        "rounds eps to float32 ({eps!r}) although its input is float64",
        "输入为 float64，eps 却被舍入为 float32（{eps!r}）",
        "Choose an eps that float32 holds exactly, such as 2**-17, or report it.",
        "选用 float32 能精确表示的 eps（例如 2**-17），或上报该问题。",
    ),
    "eps_differs": _cause(
        "uses eps = {eps}",
        "使用的是 eps = {eps}",
        "Pass eps explicitly on both sides: the frameworks' defaults differ.",
        "请在两边都显式传入 eps：各框架的默认值不同。",
    ),
    "eps_outside_sqrt": _cause(
        "adds eps to the standard deviation instead of to the variance",
        "把 eps 加在标准差上，而不是方差上",
        "Divide by sqrt(var + eps).",
        "应当除以 sqrt(var + eps)。",
    ),
    "unbiased_variance": _cause(
        "divides the sum of squares by n - 1 = {divisor} instead of n",
        "平方和除以 n - 1 = {divisor}，而不是 n",
        "Use the biased variance (unbiased=False, ddof=0, correction=0).",
        "使用有偏方差（unbiased=False、ddof=0、correction=0）。",
    ),
    "constant_statistics": _cause(
        "treats mean and variance as constants in the backward pass",
        "在反向传播中把均值和方差当作常数",
        "Let the gradient flow through mean and variance.",
        "让梯度也通过均值和方差传播。",
    ),
    "wrong_axes": _cause(
        "normalises over the axes {axes}",
        "在第 {axes} 轴上归一化",
        "Check normalized_shape and the layout of the input.",
        "请检查 normalized_shape 和输入的布局。",
    ),
    "swapped_weight_bias_grad": _cause(
        "returns the gradient of the bias as that of the weight, and the other way round",
        "把偏置的梯度当作权重的梯度返回，反之亦然",
        *_REPORT,
    ),
    "missing_bias": _cause(
        "leaves the bias out",
        "漏加了偏置",
        "Check that the bias is passed and not None.",
        "请检查偏置确实传入且不为 None。",
    ),
    "doubled_bias": _cause(
        "adds the bias twice",
        "偏置加了两次",
        *_REPORT,
    ),
    "transposed_weight": _cause(
        "takes the weight transposed",
        "把权重转置后使用",
        "Layouts differ: Paddle's Linear keeps its weight as (in, out), the others as (out, in).",
        "布局不同：Paddle 的 Linear 权重为 (in, out)，其余框架为 (out, in)。",
    ),
    "scale_factor": _cause(
        "gives the right result times {factor} ({named})",
        "给出的结果是正确结果的 {factor} 倍（{named}）",
        "Look for a mean where a sum is meant (or the other way round), for a division by the "
        "batch size or the number of devices, and for gradients that are clipped or scaled.",
        "请检查是否把求和与求平均弄混，是否多做（少做）了对批大小、设备数的除法，以及梯度是否经过裁剪或缩放。",
    ),
    "sign_error": _cause(
        "gives the right result with the wrong sign",
        "结果的符号相反",
        *_REPORT,
    ),
    "permuted": _cause(
        "gives the right rows in another order",
        "各行都对，但次序不同",
        "Check the order of the batch, of the sequence and of gathered shards.",
        "请检查批次、序列以及汇集分片的次序。",
    ),
    "unwritten_elements": _cause(
        "leaves {wrong} elements unwritten (all are {value})",
        "有 {wrong} 个元素没有写入（都是 {value}）",
        *_REPORT,
    ),
    "corrupted_elements": _cause(
        "is wrong in {wrong} of its elements, singly, and right in all others",
        "有 {wrong} 个零散的元素错误，其余全部正确",
        "Run it again: if other elements are wrong then, suspect a data race or the memory.",
        "请再运行一次：如果出错的元素变了，可能是数据竞争或内存故障。",
    ),
    "flush_to_zero": _cause(
        "flushes subnormal numbers to zero",
        "把次正规数冲刷为零",
        "Turn FTZ and DAZ off (torch.set_flush_denormal(False)), or scale the data.",
        "关闭 FTZ 和 DAZ（torch.set_flush_denormal(False)），或缩放数据。",
    ),
    "argument_reduction": _cause(
        "loses digits when it reduces large arguments modulo pi",
        "对大参数做模 π 约简时丢失精度",
        "Keep arguments small, or reduce them in a wider format before the call.",
        "保持参数较小，或在调用之前以更宽的格式做约简。",
    ),
    "fast_approximation": _cause(
        "uses a fast approximation whose error is larger than its specification",
        "使用了误差超出规格的快速近似",
        "Turn fast math off for this op.",
        "对该算子关闭快速数学模式。",
    ),
    "erf_cancellation": _cause(
        "computes 1 + erf(x / √2) for negative x, which cancels",
        "对负的 x 计算 1 + erf(x / √2)，发生相消",
        "Use erfc(-x / √2) there.",
        "此处应使用 erfc(-x / √2)。",
    ),
    "tanh_cancellation": _cause(
        "computes 1 + tanh(z) for negative z, which cancels",
        "对负的 z 计算 1 + tanh(z)，发生相消",
        "Use the sigmoid of 2 z instead of (1 + tanh(z)) / 2.",
        "请用 2z 的 sigmoid 代替 (1 + tanh(z)) / 2。",
    ),
    "tanh_gelu": _cause(
        "uses the tanh approximation of GELU instead of erf",
        "使用 GELU 的 tanh 近似，而不是 erf",
        "Ask for the same form on both sides (approximate='none' or 'tanh').",
        "两边请使用同一形式（approximate='none' 或 'tanh'）。",
    ),
    "erf_gelu": _cause(
        "uses the erf form of GELU instead of the tanh approximation",
        "使用 GELU 的 erf 形式，而不是 tanh 近似",
        "Ask for the same form on both sides (approximate='none' or 'tanh').",
        "两边请使用同一形式（approximate='none' 或 'tanh'）。",
    ),
}
