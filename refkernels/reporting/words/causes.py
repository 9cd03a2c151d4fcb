"""The causes that an explanation can name: what each means, and what to do, in two languages.

The identifiers are stable: records, scripts and threads may rely on them.
"""

from __future__ import annotations

from dataclasses import dataclass

from refkernels.reporting.words.catalogues import read_catalogue
from refkernels.reporting.words.element_causes import ELEMENTS
from refkernels.reporting.words.optimizer_causes import OPTIMIZERS

LANGUAGES = ("en", "zh")


@dataclass(frozen=True)
class Cause:
    """`says` completes "The kernel ..."; `todo` is advice. Both are by language; `{name}` stands
    for a number in the candidate's details.

    Advice is tested or not given. A switch is named if a test sets it and sees the bits change, or
    if `sources`, its makers' pages, document this effect. Advice to the author of a kernel is
    tested on a kernel that follows it.
    """

    says: dict[str, str]
    todo: dict[str, str]
    sources: tuple[str, ...] = ()


def _cause(en: str, zh: str, todo_en: str, todo_zh: str, *sources: str) -> Cause:
    return Cause({"en": en, "zh": zh}, {"en": todo_en, "zh": todo_zh}, sources)


_NO_BUG = (
    "Nothing is wrong: compare with a tolerance derived from the inputs "
    "(`refkernels.testing.assert_kernel`), not with equal bits or a fixed number of ULP.",
    "无需修复：请使用由输入推导的容差（`refkernels.testing.assert_kernel`）比较，而不要逐位比较，"
    "也不要用固定的 ULP 数。",
)
NO_BUG = dict(zip(LANGUAGES, _NO_BUG, strict=True))
_TORCH_CUDA = "https://docs.pytorch.org/docs/stable/notes/cuda.html"
_TORCH_PRECISION = (
    "https://docs.pytorch.org/docs/stable/generated/torch.set_float32_matmul_precision.html"
)
_TORCH_CONV = "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.conv2d.html"
_TORCH_AMP = "https://docs.pytorch.org/docs/stable/amp.html"
_TORCH_GELU = "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.gelu.html"
_TRITON_SOFTMAX = "https://triton-lang.org/main/getting-started/tutorials/02-fused-softmax.html"
_TORCH_SDPA = (
    "https://docs.pytorch.org/docs/stable/generated/"
    "torch.nn.functional.scaled_dot_product_attention.html"
)
_OF_EDITS = {
    "en": "Compare the kernel with the formula at that place.",
    "zh": "请在该处将 kernel 与公式逐项对照。",
}
_REPORT = (
    "Report it as a bug, with the script of this answer.",
    "请附上本答复中的脚本，作为缺陷上报。",
)

CAUSES: dict[str, Cause] = {
    "summation_order": _cause(
        "adds the same terms in another order, or by another form that is equally accurate",
        "以不同的顺序或另一种稳定的算法累加同样的项",
        *_NO_BUG,
    ),
    "bias_first": _cause(
        "starts its accumulator at the bias instead of adding the bias last",
        "以偏置作为累加器初值，而不是最后才加上偏置",
        *_NO_BUG,
    ),
    "tf32_inputs": _cause(
        "rounds its float32 inputs to 11 significant bits, as TF32 has, before multiplying",
        "在相乘之前把 float32 输入舍入到 11 位有效数字（即 TF32 的精度）",
        "Ask for full float32 products: torch.backends.cuda.matmul.allow_tf32 = False, or "
        "NVIDIA_TF32_OVERRIDE=0 for any framework on CUDA. float16 keeps as many bits: turn "
        "automatic mixed precision off.",
        "要求完整的 float32 乘法：torch.backends.cuda.matmul.allow_tf32 = False；"
        "在 CUDA 上，任何框架都可设置 NVIDIA_TF32_OVERRIDE=0。"
        "float16 的有效位数相同：请关闭自动混合精度。",
        _TORCH_CUDA,
        "https://developer.nvidia.com/blog/accelerating-ai-training-with-tf32-tensor-cores/",
    ),
    "bf16_inputs": _cause(
        "rounds its inputs to bfloat16 before it computes with them",
        "在计算之前把输入舍入为 bfloat16",
        "Ask for a higher matmul precision (torch.set_float32_matmul_precision('highest'), "
        "jax.default_matmul_precision('highest')), and turn automatic mixed precision off.",
        "要求更高的矩阵乘精度（torch.set_float32_matmul_precision('highest')、"
        "jax.default_matmul_precision('highest')），并关闭自动混合精度。",
        _TORCH_PRECISION,
        "https://docs.jax.dev/en/latest/_autosummary/jax.default_matmul_precision.html",
        _TORCH_AMP,
    ),
    "fp16_inputs": _cause(
        "rounds its inputs to float16 before it computes with them",
        "在计算之前把输入舍入为 float16",
        "Turn automatic mixed precision off for this op.",
        "对该算子关闭自动混合精度。",
        _TORCH_AMP,
    ),
    "truncated_inputs": _cause(
        "truncates its inputs to {format} (rounds them toward zero) before it computes with them",
        "在计算之前把输入截断为 {format}（向零舍入）",
        "Convert with rounding to nearest, ties to even: its errors are half as large, and of both "
        "signs.",
        "类型转换应采用就近舍入（平局取偶）：误差减半，且不再偏向一侧。",
    ),
    "truncated_output": _cause(
        "truncates its result to {format} (rounds toward zero) instead of rounding it to nearest",
        "把结果截断为 {format}（向零舍入），而不是舍入到最近的数",
        "Convert with rounding to nearest, ties to even. If this is Triton's interpreter, whose "
        "casts truncate, judge the compiled kernel instead.",
        "类型转换应采用就近舍入（平局取偶）。若使用的是 Triton 的解释器（它的类型转换会直接截断），"
        "请改用编译后的内核来评判。",
        "https://github.com/triton-lang/triton/pull/3811",
    ),
    "fp16_accumulation": _cause(
        "accumulates in float16",
        "以 float16 累加",
        "Accumulate in float32. In PyTorch on CUDA two switches allow float16: "
        "torch.backends.cuda.matmul.allow_fp16_accumulation for the accumulator, "
        "allow_fp16_reduced_precision_reduction for the reduction of partial sums.",
        "应当以 float32 累加。PyTorch 在 CUDA 上有两个开关允许使用 float16："
        "torch.backends.cuda.matmul.allow_fp16_accumulation 针对累加器，"
        "allow_fp16_reduced_precision_reduction 针对部分和的合并。",
        _TORCH_CUDA,
    ),
    "bf16_accumulation": _cause(
        "accumulates in bfloat16",
        "以 bfloat16 累加",
        "Accumulate in float32. In PyTorch on CUDA "
        "torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction allows bfloat16 for "
        "the reduction of partial sums.",
        "应当以 float32 累加。PyTorch 在 CUDA 上允许以 bfloat16 合并部分和的开关是 "
        "torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction。",
        _TORCH_CUDA,
    ),
    "float32_cast": _cause(
        "computes in float32 although its input is float64",
        "输入为 float64，却以 float32 计算",
        *_REPORT,
    ),
    "float32_functions": _cause(
        "computes exp, log and the like in float32 although its input is float64",
        "输入为 float64，却以 float32 计算 exp、log 等函数",
        *_REPORT,
    ),
    "wrong_dtype": _cause(
        "returns the right result rounded to a narrower format ({format})",
        "结果是正确的，但被舍入为更窄的格式（{format}）",
        "Look for a cast, an autocast region, or a buffer of that format along the way.",
        "请检查途中是否有类型转换、autocast 区域或该格式的缓冲区。",
    ),
    "naive_variance": _cause(
        "computes the variance as E[x²] - E[x]² in its working precision, which cancels",
        "在工作精度下以 E[x²] - E[x]² 计算方差，发生灾难性抵消",
        "Compute the variance by two passes or by Welford's recurrence; as a workaround, subtract "
        "an approximate mean from the input first.",
        "改用两遍法或 Welford 递推计算方差；临时规避：先从输入中减去一个近似均值。",
    ),
    "folded_normalisation": _cause(
        "folds the normalisation into x·rstd - mean·rstd, which cancels where the mean is large",
        "把归一化折叠为 x·rstd - mean·rstd，均值较大时发生灾难性抵消",
        "Compute (x - mean)·rstd; as a workaround, subtract an approximate mean from the input "
        "first.",
        "应当计算 (x - mean)·rstd；临时规避：先从输入中减去一个近似均值。",
    ),
    "low_precision_statistics": _cause(
        "rounds the statistics of a row (mean and rstd, a sum of exponentials) to a 16-bit format "
        "before it uses them",
        "在使用之前把每行的统计量（均值和 rstd、指数之和）舍入为 16 位格式",
        "Keep the statistics in float32.",
        "请以 float32 保存统计量。",
    ),
    "truncated_statistics": _cause(
        "truncates mean and rstd to {format} (rounds them toward zero) before it uses them",
        "在使用之前把均值和 rstd 截断为 {format}（向零舍入）",
        "Keep the statistics in float32.",
        "请以 float32 保存统计量。",
    ),
    "padded_variance": _cause(
        "counts the padding of its blocks in the variance: (x - mean)² of {padded} lanes where the "
        "row has {n}",
        "方差计入了块的填充：行长为 {n}，却累加了 {padded} 个通道的 (x - mean)²",
        "Mask x - mean, not only x: tl.where(mask, x - mean, 0).",
        "不仅 x，x - mean 也要加掩码：tl.where(mask, x - mean, 0)。",
    ),
    "padded_divisor": _cause(
        "divides the sums over a row of {n} by the padded length, {padded}",
        "行长为 {n}，各行之和却除以填充后的长度 {padded}",
        "Divide by the length of the row.",
        "应当除以行的实际长度。",
    ),
    "padded_row": _cause(
        "computes mean and variance of rows padded with zeros, from {n} to {padded}",
        "均值和方差取自以零填充的行（长度由 {n} 变为 {padded}）",
        "Mask the padding in both sums, and divide by the length of the row.",
        "两个和都应屏蔽填充部分，并除以行的实际长度。",
    ),
    "dropped_tail": _cause(
        "leaves the last {dropped} of {n} terms out of its sums",
        "求和时漏掉了 {n} 项中的最后 {dropped} 项",
        "Add the terms of the last, partial block too.",
        "应当处理不足一块的剩余项。",
    ),
    "narrow_intermediates": _cause(
        "rounds every intermediate result to {format}",
        "把每个中间结果都舍入为 {format}",
        "Compute in float32 and round once at the end: fuse the op, or convert its inputs first.",
        "应当以 float32 计算，最后只舍入一次：融合该算子，或先转换输入的类型。",
    ),
    "intermediate_rounded": _cause(
        "rounds an intermediate result ({intermediate}) to {format}, narrower than its input",
        "把一个中间结果（{intermediate}）舍入为 {format}，比输入的格式更窄",
        "Look for an op along the way that casts. MindSpore's ops.masked_fill(x, mask, number) "
        "rounds a float64 x to float32; with a float64 tensor in the number's place it does not.",
        "请查找途中有类型转换的算子。MindSpore 的 ops.masked_fill(x, mask, 数字) 会把 float64 的 x "
        "舍入为 float32；把数字换成 float64 张量则不会。",
    ),
    "early_overflow": _cause(
        "overflows early: {intermediate} is infinite in {format} where the result is not",
        "中间结果提前溢出：{intermediate} 在 {format} 中已是无穷大，而最终结果仍是有限值",
        "Write the formula so that nothing overflows before its result, or compute it in a format "
        "with a wider range.",
        "改写公式，使中间结果不先于最终结果溢出；或改用范围更大的格式计算。",
    ),
    "float32_factor": _cause(
        "rounds x to float32 in its last product, and the gradient that passes through it there, "
        "although its input is float64 (eps: {eps!r})",
        "输入为 float64，最后一次相乘时却把 x（以及经由它的梯度）舍入为 float32（eps 为 {eps!r}）",
        *_REPORT,
    ),
    "float32_statistics": _cause(
        "keeps mean and variance in float32 although its input is float64",
        "输入为 float64，均值和方差却以 float32 保存",
        *_REPORT,
    ),
    "eps_rounded": _cause(
        "rounds eps to float32 ({eps!r}) although its input is float64 (with {with})",
        "输入为 float64，eps 却被舍入为 float32（{eps!r}）（同时为 {with}）",
        "Choose an eps that float32 holds exactly, such as 2**-17, or report it.",
        "选用 float32 能精确表示的 eps（例如 2**-17），或上报该问题。",
    ),
    "params_rounded": _cause(
        "rounds its params ({names}) to a narrower format ({held})",
        "将参数（{names}）舍入到更窄的格式（{held}）",
        "Choose numbers that this format holds exactly, such as 2**-17 and 0.125, or report it.",
        "选用该格式能精确表示的数（例如 2**-17 和 0.125），或上报该问题。",
    ),
    "param_differs": _cause(
        "uses {param} = {value} instead of {asked}",
        "使用的是 {param} = {value}，而不是 {asked}",
        "Print the value that the kernel receives: a default, a schedule or a group may set it.",
        "请打印内核实际收到的值：它可能由默认值、学习率调度或参数组设定。",
    ),
    "eps_differs": _cause(
        "uses eps = {eps} (with {with})",
        "使用的是 eps = {eps}（同时为 {with}）",
        "Pass eps explicitly on both sides: defaults differ (PyTorch's LayerNorm has 1e-5, "
        "MindSpore's 1e-7).",
        "请在两边都显式传入 eps：默认值并不相同（PyTorch 的 LayerNorm 为 1e-5，"
        "MindSpore 为 1e-7）。",
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.LayerNorm.html",
        "https://www.mindspore.cn/docs/en/master/api_python/nn/mindspore.nn.LayerNorm.html",
    ),
    "eps_outside_sqrt": _cause(
        "adds eps to the standard deviation instead of to the variance",
        "把 eps 加在标准差上，而不是方差上",
        "Divide by sqrt(var + eps).",
        "应当除以 sqrt(var + eps)。",
    ),
    "unbiased_variance": _cause(
        "divides the sum of squares by n - 1 instead of n (with {with})",
        "平方和除以 n - 1，而不是 n（同时为 {with}）",
        "Use the biased variance (NumPy: ddof=0, PyTorch: correction=0).",
        "使用有偏方差（NumPy：ddof=0，PyTorch：correction=0）。",
        "https://numpy.org/doc/stable/reference/generated/numpy.var.html",
        "https://docs.pytorch.org/docs/stable/generated/torch.var.html",
    ),
    "biased_variance": _cause(
        "divides the sum of squares by n instead of n - ddof",
        "平方和除以 n，而不是 n - ddof",
        "Pass ddof on both sides: PyTorch's default is 1 (correction), NumPy's 0.",
        "请在两边都显式传入 ddof：PyTorch 默认为 1（correction），NumPy 默认为 0。",
        "https://numpy.org/doc/stable/reference/generated/numpy.var.html",
        "https://docs.pytorch.org/docs/stable/generated/torch.var.html",
    ),
    "unbiased_running_variance": _cause(
        "updates the running variance with the unbiased variance of the batch",
        "用批次的无偏方差更新滑动方差",
        "Multiply the stored variance by (n - 1) / n when weights move between frameworks; it "
        "matters only for small batches.",
        "在框架之间迁移权重时，把保存的方差乘以 (n - 1) / n；仅对小批次有影响。",
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.BatchNorm2d.html",
        "https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/nn/BatchNorm2D_en.html",
    ),
    "biased_running_variance": _cause(
        "updates the running variance with the biased variance of the batch",
        "用批次的有偏方差更新滑动方差",
        "Multiply the stored variance by n / (n - 1) when weights move between frameworks; it "
        "matters only for small batches.",
        "在框架之间迁移权重时，把保存的方差乘以 n / (n - 1)；仅对小批次有影响。",
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.BatchNorm2d.html",
        "https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/nn/BatchNorm2D_en.html",
    ),
    "running_statistics_kept": _cause(
        "leaves the running statistics as they were",
        "没有更新滑动统计量",
        "Look for a mode or a format in which they are not updated: inference would go on with "
        "those that the layer was made with.",
        "请检查是否处于不更新它们的模式或格式：否则推理会一直使用该层创建时的统计量。",
    ),
    "swapped_momentum": _cause(
        "weights the running statistics by momentum and the batch by 1 - momentum, instead of the "
        "reverse",
        "滑动统计量乘以 momentum、批次统计量乘以 1 - momentum，与要求的相反",
        "Pass 1 - momentum: momentum is the weight of the batch in PyTorch and OneFlow, and of the "
        "old statistics in PaddlePaddle, MindSpore and Keras.",
        "请传入 1 - momentum：PyTorch 与 OneFlow 以它为批次的权重，PaddlePaddle、MindSpore 与 "
        "Keras 以它为旧统计量的权重。",
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.BatchNorm2d.html",
        "https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/nn/BatchNorm2D_en.html",
    ),
    "batch_statistics": _cause(
        "normalises with the statistics of the batch instead of the given ones",
        "以批次的统计量归一化，而不是给定的统计量",
        "Switch to inference: model.eval(), training=False.",
        "请切换到推理模式：model.eval()，training=False。",
    ),
    "running_statistics": _cause(
        "normalises with the running statistics instead of those of the batch",
        "以滑动统计量归一化，而不是批次的统计量",
        "Switch to training: model.train(), training=True.",
        "请切换到训练模式：model.train()，training=True。",
    ),
    "interleaved_groups": _cause(
        "puts channel c into group c mod G instead of c // (C / G)",
        "把通道 c 归入第 c mod G 组，而不是第 c // (C / G) 组",
        "A group is C / G channels in a row: x.reshape(N, G, C // G, ...).",
        "一组是连续的 C / G 个通道：x.reshape(N, G, C // G, ...)。",
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.GroupNorm.html",
    ),
    "mean_of_block_means": _cause(
        "averages the means of blocks of {block}, the last of which is shorter and weighs the same",
        "对各块（每块 {block} 个）的均值再取均值，而最后一块较短，权重却相同",
        "Add the sums of the blocks, and divide by their number of elements once.",
        "应当把各块的和相加，最后再除以元素总数。",
    ),
    "scale_a_missing": _cause(
        "leaves out the scale of a",
        "漏乘了 a 的缩放因子",
        "Multiply by scale_a: one number, or one for each row of a.",
        "应当乘以 scale_a：一个数，或 a 的每行一个。",
    ),
    "scale_b_missing": _cause(
        "leaves out the scale of b",
        "漏乘了 b 的缩放因子",
        "Multiply by scale_b: one number, or one for each column of b.",
        "应当乘以 scale_b：一个数，或 b 的每列一个。",
    ),
    "scales_inverted": _cause(
        "divides by the scales instead of multiplying by them",
        "除以了缩放因子，而不是乘以它",
        "Conventions differ: a scale that quantises is the inverse of the one that dequantises. "
        "Pass the inverse on one side.",
        "约定不同：量化与反量化的缩放因子互为倒数。请在其中一边传入倒数。",
    ),
    "scales_swapped": _cause(
        "applies a's scales to the columns and b's to the rows",
        "把 a 的缩放因子用在了列上，把 b 的用在了行上",
        "Give a's scales the shape (M, 1) and b's (1, N).",
        "a 的缩放因子应为 (M, 1)，b 的应为 (1, N)。",
    ),
    "float8_misread": _cause(
        "reads the bits of one float8 as the other's: e4m3fn as e5m2, or e5m2 as e4m3fn",
        "把一种 float8 的位模式当作另一种来读：e4m3fn 当作 e5m2，或反之",
        "Check the dtype that is passed to the kernel.",
        "请检查传给内核的数据类型。",
        "https://arxiv.org/abs/2209.05433",
    ),
    "nan_saturated": _cause(
        "reads NaN and infinity of float8 as the largest finite number",
        "把 float8 的 NaN 与无穷大当作最大的有限数",
        "Saturate when converting to float8; in float8, NaN stays NaN.",
        "饱和只应发生在转换为 float8 时；float8 中的 NaN 应当保持为 NaN。",
        "https://arxiv.org/abs/2209.05433",
    ),
    "int16_wrapped": _cause(
        "adds products of int8 in int16, which wraps",
        "以 int16 累加 int8 的乘积，发生了回绕",
        "Accumulate in int32: 128 * 128 * 2 is beyond int16.",
        "应当以 int32 累加：128 * 128 * 2 已超出 int16。",
    ),
    "narrow_accumulator": _cause(
        "keeps every partial sum in the output's format",
        "每个部分和都以输出的格式保存",
        "Accumulate in float32 and round once.",
        "应当以 float32 累加，最后只舍入一次。",
    ),
    "scaled_operands_rounded": _cause(
        "scales the operands and rounds them to the output's format before it multiplies them",
        "先把操作数乘以缩放因子并舍入到输出的格式，然后才相乘",
        "Multiply the operands as they are, and scale the sum.",
        "应当直接把操作数相乘，再对和进行缩放。",
    ),
    "kernel_flipped": _cause(
        "flips the kernel: this is a mathematical convolution, not the cross-correlation that "
        "frameworks compute",
        "翻转了卷积核：计算的是数学意义上的卷积，而不是各框架所用的互相关",
        "Flip the taps once more, or compare with a weight that is flipped along its spatial axes.",
        "请再翻转一次卷积核，或与沿空间轴翻转后的权重比较。",
        _TORCH_CONV,
    ),
    "first_tap_missing": _cause(
        "leaves the kernel's first tap out",
        "漏掉了卷积核的第一个位置",
        "Check where the loop over the taps begins.",
        "请检查遍历卷积核的循环从何处开始。",
    ),
    "last_tap_missing": _cause(
        "leaves the kernel's last tap out",
        "漏掉了卷积核的最后一个位置",
        "Check where the loop over the taps ends.",
        "请检查遍历卷积核的循环到何处结束。",
    ),
    "first_group_alone": _cause(
        "uses the first group's channels for every group",
        "所有分组都使用了第一组的通道",
        "Add the group's first channel, g * C / G, to the index of the channel.",
        "通道下标应当加上该组的起始通道 g * C / G。",
    ),
    "dilation_ignored": _cause(
        "convolves without dilation, from the same first tap",
        "忽略了空洞率（dilation），起始位置不变",
        "Check that dilation is passed, and that it multiplies the tap's index.",
        "请检查 dilation 确实传入，并且与卷积核下标相乘。",
    ),
    "padding_at_front": _cause(
        "swaps the padding at the front and the padding at the end",
        "把应当补在末端的零补在了前端，反之亦然",
        "If the padding is odd, padding='same' puts the larger part at the end.",
        "补零个数为奇数时，padding='same' 在末端多补一个。",
        "https://www.tensorflow.org/api_docs/python/tf/nn#notes_on_padding_2",
    ),
    "padding_replicated": _cause(
        "pads with the outermost elements instead of zeros",
        "在应当补零的地方重复了边缘元素",
        "Set padding_mode='zeros'.",
        "请使用 padding_mode='zeros'。",
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.Conv2d.html",
    ),
    "padding_reflected": _cause(
        "pads with the elements mirrored at the edge instead of zeros",
        "在应当补零的地方用了边缘处的镜像元素",
        "Set padding_mode='zeros'.",
        "请使用 padding_mode='zeros'。",
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.Conv2d.html",
    ),
    "padding_circular": _cause(
        "pads with the elements of the other end instead of zeros",
        "在应当补零的地方用了另一端的元素",
        "Set padding_mode='zeros'.",
        "请使用 padding_mode='zeros'。",
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.Conv2d.html",
    ),
    "channels_reversed": _cause(
        "reads the input channels in reverse order, as BGR for RGB",
        "按相反的顺序读取输入通道，如把 BGR 当作 RGB",
        "Reverse the channels of x, or those of the weight.",
        "请反转 x 的通道，或反转权重的通道。",
    ),
    "stride_ignored": _cause(
        "reads consecutive inputs for dweight, not inputs a stride apart",
        "计算 dweight 时逐个读取输入，而没有按步长（stride）间隔读取",
        "Multiply the place in dy by the stride: x[i * stride + k * dilation].",
        "dy 的下标应当乘以步长：x[i * stride + k * dilation]。",
    ),
    "narrow_col2im": _cause(
        "adds the taps' shares of dx one by one in the storage format",
        "以存储格式逐个累加卷积核各位置对 dx 的贡献",
        "Add them in float32 and round once.",
        "应当以 float32 累加，最后只舍入一次。",
    ),
    "narrow_image_sums": _cause(
        "adds the images' shares of dweight one by one in the storage format",
        "以存储格式逐张累加各图像对 dweight 的贡献",
        "Add them in float32 and round once.",
        "应当以 float32 累加，最后只舍入一次。",
    ),
    "bias_along_width": _cause(
        "adds the bias along the last axis instead of along the channels",
        "把偏置加在了最后一个轴上，而不是通道轴上",
        "Give the bias the shape (1, C, 1, 1) before it is added.",
        "相加之前请把偏置的形状变为 (1, C, 1, 1)。",
    ),
    "bias_after_rounding": _cause(
        "rounds the sum to the storage format before it adds the bias, and then again",
        "先把乘积之和舍入到存储格式，再加偏置，又舍入一次",
        "Start the accumulator with the bias, or add it in float32 before the result is rounded.",
        "应当以偏置作为累加器的初值，或在结果舍入之前以 float32 加上偏置。",
    ),
    "part_of_sum_left_out": _cause(
        "leaves terms {start} to {stop} of {n} out of its sums (counted from 0, {stop} excluded)",
        "求和时漏掉了 {n} 项中的第 {start} 至 {stop} 项（从 0 数起，不含 {stop}）",
        "Look for a block, thread or rank whose part is not added.",
        "请查找哪个块、线程或进程的部分和没有加进来。",
    ),
    "other_norm": _cause(
        "computes another norm: {norm} (1: sum of |x|; max: largest |x|; rms: root of the mean "
        "square; squared: without the root)",
        "计算的是另一种范数：{norm}（1：|x| 之和；max：最大的 |x|；rms：均方根；squared：未开方）",
        "Ask for the Euclidean norm: p=2.",
        "请指定欧几里得范数：p=2。",
    ),
    "eps_beside_norm": _cause(
        "divides the gradient by norm + {eps} instead of by the norm",
        "梯度除以 norm + {eps}，而不是 norm",
        "Scale small inputs up first; where the norm is 0, choose the gradient yourself.",
        "先放大过小的输入；范数为 0 处请自行决定梯度。",
    ),
    "norm_floored": _cause(
        "returns {floor} for every smaller norm, that of zeros included",
        "范数小于 {floor} 时（包括全零）一律返回 {floor}",
        "Scale small inputs up first, or compute the square root of the sum of squares yourself.",
        "先放大过小的输入，或自行计算平方和的平方根。",
    ),
    "gradient_to_first": _cause(
        "gives the whole gradient to the first of several equal maxima",
        "有多个最大元素时，把全部梯度给了第一个",
        "Frameworks differ here: torch.max(dim=) does so, torch.amax shares evenly.",
        "各框架在此并不一致：torch.max(dim=) 如此，torch.amax 则平均分配。",
        "https://docs.pytorch.org/docs/stable/generated/torch.amax.html",
    ),
    "gradient_to_all": _cause(
        "gives the whole gradient to each of several equal maxima",
        "有多个最大元素时，每一个都得到了全部梯度",
        "Frameworks differ here: paddle.max does so, amax shares evenly.",
        "各框架在此并不一致：paddle.max 如此，amax 则平均分配。",
        "https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/max_en.html",
    ),
    "divided_by_zero_factor": _cause(
        "computes the gradient of a product as dy y / x, which is 0 / 0 where x is 0",
        "以 dy y / x 作为乘积的梯度，在 x 为 0 处是 0 / 0",
        "Multiply the other factors: cumulative products from both ends.",
        "应当把其余因子相乘：从两端各求累积乘积。",
    ),
    "exclusive_cumsum": _cause(
        "leaves each element out of its own partial sum",
        "每个部分和都没有包括该元素本身",
        "Ask for the inclusive sum, or add x.",
        "请使用包含自身的累加，或再加上 x。",
    ),
    "reversed_cumsum": _cause(
        "adds from the end of the axis",
        "从该轴的末端开始累加",
        "Flip the axis on one side, or ask for the other direction.",
        "在其中一边翻转该轴，或改用另一个方向。",
    ),
    "weight_missing_in_dx": _cause(
        "computes dx from dy, without the weight",
        "计算 dx 时直接使用 dy，没有乘以 weight",
        "The gradient of the normalised row is dy weight.",
        "归一化结果的梯度是 dy weight。",
    ),
    "sum_of_squares": _cause(
        "divides by the root of the sum of squares, not of their mean: an L2 normalisation",
        "除以平方和的平方根，而不是均方根：这是 L2 归一化",
        "Divide the sum by the length of the row, or set the weight to its root.",
        "请把平方和除以行的长度，或把 weight 设为长度的平方根。",
    ),
    "constant_statistics": _cause(
        "treats mean and variance as constants in the backward pass",
        "在反向传播中把均值和方差当作常数",
        "Let the gradient flow through mean and variance.",
        "让梯度也通过均值和方差传播。",
    ),
    "constant_mean": _cause(
        "treats the mean as a constant in the backward pass",
        "在反向传播中把均值当作常数",
        "Subtract the mean of dy weight, too. PaddlePaddle's group_norm without a weight leaves it "
        "out on a CPU (3.3).",
        "还应减去 dy weight 的均值。在 CPU 上没有 weight 时，PaddlePaddle 的 group_norm "
        "漏掉了这一项（3.3）。",
    ),
    "constant_variance": _cause(
        "treats the variance as a constant in the backward pass",
        "在反向传播中把方差当作常数",
        "Let the gradient flow through the variance, too.",
        "让梯度也通过方差传播。",
    ),
    "mean_subtracted": _cause(
        "subtracts the mean of x, as LayerNorm does and RMS norm does not",
        "减去了 x 的均值：LayerNorm 如此，RMS norm 则不减",
        "Divide x itself by its root mean square, or compare with layernorm.",
        "应当直接用 x 除以它的均方根；若本意是 LayerNorm，请与 layernorm 比较。",
    ),
    "mean_not_subtracted": _cause(
        "divides x itself by its root mean square, as RMS norm does and LayerNorm does not",
        "直接用 x 除以它的均方根：RMS norm 如此，LayerNorm 则要先减去均值",
        "Subtract the mean of x first, or compare with rms_norm.",
        "应当先减去 x 的均值；若本意是 RMS norm，请与 rms_norm 比较。",
    ),
    "quantised_weights": _cause(
        "rounds {inputs} to integers of {bits} bits, with one {scheme} scale for {scale}",
        "把 {inputs} 舍入为 {bits} 位整数，缩放方式 {scheme}，缩放因子的粒度：{scale}",
        "Load the weights in their own format, or compare with the dequantised weights.",
        "以原格式加载权重，或与反量化之后的权重比较。",
        "https://arxiv.org/abs/1712.05877",
        "https://arxiv.org/abs/2208.07339",
    ),
    "axes_exchanged": _cause(
        "gives its output with two axes ({axes}) exchanged in memory",
        "输出在内存中的两个轴（{axes}）被交换了",
        "Look for a transposition too many, or a reshape in its place: merge heads by transposing "
        "first.",
        "请检查是否多作了一次转置，或以 reshape 代替了转置：合并多头之前应先转置。",
    ),
    "softmax_over_queries": _cause(
        "takes the softmax over the queries of each key, instead of the keys of each query",
        "对每个 key 在各 query 上作 softmax，而不是对每个 query 在各 key 上作",
        "Take the softmax along the last axis of the scores (axis=-1).",
        "应当沿分数的最后一个轴作 softmax（axis=-1）。",
    ),
    "weights_transposed": _cause(
        "multiplies v by the transposed weights of attention",
        "用转置后的注意力权重乘以 v",
        "Multiply the weights, one row for each query, by v.",
        "应当用权重（每个 query 一行）乘以 v。",
    ),
    "gradient_over_other_axis": _cause(
        "sums in the backward pass over other axes ({axes}) than in the forward pass",
        "反向传播中求和的轴（{axes}）与前向传播不同",
        "Pass the axis to the backward pass too, and keep it there as an axis of length 1.",
        "反向传播也应使用同一个轴，并将其保留为长度为 1 的轴。",
    ),
    "argument_unit": _cause(
        "takes {factor} x in place of x: its argument is in other units than radians",
        "用 {factor} x 代替 x：自变量的单位不是弧度",
        "Pass radians on both sides, or convert once.",
        "两边都应传入弧度，或只换算一次。",
    ),
    "quantised_activations": _cause(
        "rounds {inputs} to integers of {bits} bits, with one {scheme} scale for {scale}",
        "把 {inputs} 舍入为 {bits} 位整数，缩放方式 {scheme}，缩放因子的粒度：{scale}",
        "Run the layer in its own format, or compare with dequantised inputs.",
        "以原格式运行该层，或与反量化之后的输入比较。",
        "https://arxiv.org/abs/1712.05877",
        "https://arxiv.org/abs/2208.07339",
    ),
    "weight_plus_one": _cause(
        "multiplies by 1 + weight instead of weight",
        "乘的是 1 + weight，而不是 weight",
        "Gemma's RMS norm keeps weight - 1: pass 1 + weight to the other side.",
        "Gemma 的 RMS norm 保存的是 weight - 1：请在另一边传入 1 + weight。",
        "https://github.com/huggingface/transformers/pull/29402",
    ),
    "no_shift": _cause(
        "computes exp(x) without first subtracting the row's maximum, which overflows",
        "没有先减去该行的最大值就计算 exp(x)，会溢出",
        "Compute exp(x - max(x)); as a workaround, subtract the row's maximum from the input.",
        "应当计算 exp(x - max(x))；临时规避：先从输入中减去各行的最大值。",
    ),
    "mean_shift": _cause(
        "subtracts the row's mean instead of its maximum before exp, which may overflow",
        "在 exp 之前减去的是该行的均值而不是最大值，可能溢出",
        "Compute exp(x - max(x)); as a workaround, subtract the row's maximum from the input.",
        "应当计算 exp(x - max(x))；临时规避：先从输入中减去各行的最大值。",
    ),
    "clipped_exponent": _cause(
        "clamps x - max(x) at -64: probabilities below e^-64 become e^-64, and -inf masks nothing",
        "把小于 -64 的 x - max(x) 当作 -64：低于 e^-64 的概率都变成 e^-64，-inf 也就不起屏蔽作用",
        "Remove the clamp: exp underflows to 0 by itself.",
        "去掉该截断：exp 下溢时自然得到 0。",
    ),
    "coarse_exponential": _cause(
        "computes exp by a polynomial of degree 5 and ln 2 = 0.693147, as MindSpore's nnacl does: "
        "relative errors up to 4e-6",
        "用 5 次多项式和 ln 2 = 0.693147 计算 exp（与 MindSpore 的 nnacl 相同），相对误差可达 4e-6",
        "Split ln 2 into a high and a low part, and use a polynomial of degree 6 or more.",
        "应把 ln 2 拆成高、低两部分，并使用 6 次以上的多项式。",
    ),
    "exponential_clamped": _cause(
        "computes e^x as e^max(x, -88.723) (float64: -709.784), as Eigen's pexp does: what should "
        "underflow to 0 is about 1 / the largest number",
        "把 e^x 算成 e^max(x, -88.723)（float64 为 -709.784，与 Eigen 的 pexp 相同）："
        "本应下溢为 0 的值约为最大数的倒数",
        "Let exp underflow to 0: select 0 below the smallest argument.",
        "应让 exp 下溢为 0：自变量低于下限时直接取 0。",
    ),
    "tabulated_logarithm": _cause(
        "takes log from a table whose entries, near -88, are rounded to 2^-17, as oneDNN's is: the "
        "sum of a row's exponentials errs by up to 4.1e-6, and log 1 by 1.4e-6",
        "用查表法计算 log，表中各值在 -88 附近，只精确到 2^-17（与 oneDNN 相同）："
        "各行指数之和的对数误差可达 4.1e-6，log 1 的误差为 1.4e-6",
        "Subtract the exponent's bias before it meets ln 2, so that the table holds small numbers.",
        "应当先减去指数的偏移量再乘 ln 2，使表中只存放较小的数。",
    ),
    "base_two": _cause(
        "computes 2^(x - max(x)) instead of e^(x - max(x))",
        "把 e^(x - max(x)) 算成了 2^(x - max(x))",
        "Multiply by log2 e = 1.4426950408889634 before exp2.",
        "在 exp2 之前应乘以 log2 e = 1.4426950408889634。",
    ),
    "zero_padding": _cause(
        "counts the zeros that pad its rows as logits",
        "把行末填充的 0 也当作 logit 计入",
        "Pad with -inf: tl.load(..., other=-float('inf')).",
        "应当用 -inf 填充：tl.load(..., other=-float('inf'))。",
        _TRITON_SOFTMAX,
    ),
    "narrow_exponentials": _cause(
        "keeps the exponentials in a 16-bit format before it divides them by their sum",
        "在除以指数之和以前，先把各指数保存为 16 位格式",
        "Keep them in float32 until they are divided.",
        "在相除之前应当以 float32 保存。",
    ),
    "log_of_softmax": _cause(
        "takes the logarithm of the rounded probabilities: log(softmax(x)), -inf where these "
        "underflow",
        "对已舍入的概率取对数，即 log(softmax(x))：概率下溢之处为 -inf",
        "Use log_softmax: x - max(x) - log(sum(exp(x - max(x)))).",
        "请使用 log_softmax：x - max(x) - log(sum(exp(x - max(x))))。",
    ),
    "inexact_logarithm": _cause(
        "takes the logarithm of each row's sum with an error of up to {error}, by which the whole "
        "row is off",
        "计算每行之和的对数时误差最大达 {error}，使整行偏移同样的量",
        "Use a logarithm that is exact near 1, where the sum of a confident row lies.",
        "应当使用在 1 附近精确的对数：置信度高的行，其指数之和就在 1 附近。",
    ),
    "constant_normaliser": _cause(
        "treats the sum of exponentials as a constant in the backward pass",
        "在反向传播中把指数之和当作常数",
        "Let the gradient flow through the sum: dx = y (dy - sum(y dy)) for softmax, "
        "dx = dy - softmax(x) sum(dy) for log_softmax.",
        "让梯度也通过指数之和传播：softmax 为 dx = y (dy - sum(y dy))，"
        "log_softmax 为 dx = dy - softmax(x) sum(dy)。",
    ),
    "diagonal_jacobian": _cause(
        "keeps only the diagonal of softmax's Jacobian: dx = dy y (1 - y)",
        "只保留了 softmax 雅可比矩阵的对角线：dx = dy y (1 - y)",
        "Use all of it: dx = y (dy - sum(y dy)).",
        "应当使用整个雅可比矩阵：dx = y (dy - sum(y dy))。",
    ),
    "unit_cotangent": _cause(
        "subtracts softmax(x) without the factor sum(dy), as if dy added up to 1",
        "减去 softmax(x) 时漏了因子 sum(dy)，等于假定 dy 之和为 1",
        "dx = dy - softmax(x) sum(dy).",
        "应当计算 dx = dy - softmax(x) sum(dy)。",
    ),
    "maximum_differentiated": _cause(
        "differentiates through the row's maximum too, where the terms cancel but for rounding, an "
        "error that the largest logit's gradient keeps",
        "对行最大值也求了导：那里各项本应抵消，舍入误差却留在最大 logit 的梯度里",
        "Take the maximum for a constant (detach it, stop its gradient), or use softmax(x).",
        "应当把最大值视为常数（detach 或 stop_gradient），或直接使用 softmax(x)。",
    ),
    "sum_instead_of_mean": _cause(
        "adds the rows' losses without dividing by their number",
        "把各行的损失相加，却没有除以行数",
        'Ask for reduction="mean", or divide by the number of rows that count.',
        '请使用 reduction="mean"，或除以计入的行数。',
    ),
    "all_rows_denominator": _cause(
        "divides by the number of all rows, including ignored ones",
        "除数是全部行数，被忽略的行也计算在内",
        "Divide by the rows that count: use reduction='sum' and divide its result yourself.",
        "应当除以计入的行数：可取 reduction='sum' 再自行相除。",
    ),
    "row_count_denominator": _cause(
        "divides by the number of rows that count, not by the sum of their class weights",
        "除数是计入的行数，而不是这些行的类别权重之和",
        "PyTorch's weighted mean divides by the sum of the labels' weights: decide which one is "
        "meant.",
        "PyTorch 的加权平均除以各标签权重之和：请明确要用哪一种。",
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html",
    ),
    "batch_denominator": _cause(
        "divides only by the length of the first axis",
        "只除以第一个轴的长度",
        "Divide by the number of rows that count, over all leading axes.",
        "应当除以所有前导轴上计入的行数。",
    ),
    "mean_of_means": _cause(
        "averages each sequence by itself, then the averages: sequences with fewer labels "
        "weigh more",
        "先在每个序列内求平均，再对各平均值求平均：标签较少的序列权重偏大",
        "Add the losses of all sequences, and divide once by all labels that count.",
        "应当把所有序列的损失相加，再一次除以计入的标签总数。",
        "https://huggingface.co/blog/gradient_accumulation",
    ),
    "ignored_rows_counted": _cause(
        "counts the rows that ignore_index should leave out",
        "把应当由 ignore_index 忽略的行也计入了",
        "Pass the same ignore_index.",
        "请传入相同的 ignore_index。",
    ),
    "smoothing_of_other_classes": _cause(
        "spreads label smoothing over the other classes only, not over all of them",
        "标签平滑只分摊到其他类别，而不是全部类别",
        "Give every class e / n, the true one 1 - e + e / n.",
        "每个类别应得 e / n，正确类别得 1 - e + e / n。",
    ),
    "float32_labels": _cause(
        "smooths its labels in float32 although its logits are float64",
        "logits 为 float64，标签平滑却以 float32 计算",
        *_REPORT,
    ),
    "float32_smoothing": _cause(
        "holds the shares of label smoothing in float32 although its logits are float64",
        "logits 为 float64，标签平滑的份额却以 float32 保存",
        *_REPORT,
    ),
    "smoothing_class_count": _cause(
        "spreads label smoothing over {classes} classes, not over as many as the row has",
        "标签平滑的份额按 {classes} 个类别分摊，而不是按该行实际的类别数",
        "Divide the share by the number of classes: the length of the axis of the logits, without "
        "padding.",
        "份额应除以类别数，即 logits 所在轴的长度（不含填充）。",
    ),
    "smoothing_added": _cause(
        "adds label smoothing's share without taking it from the true class",
        "加上了标签平滑的份额，却没有从正确类别中扣除",
        "Multiply the true class's loss by 1 - e.",
        "正确类别的损失应乘以 1 - e。",
    ),
    "label_wrapped": _cause(
        "wraps labels out of range modulo the number of classes: -1 is the last class",
        "对越界的标签按类别数取模：-1 成为最后一类",
        "Check the labels; set those that are to be ignored to ignore_index.",
        "请检查标签；要忽略的标签应设为 ignore_index。",
    ),
    "invalid_label_ignored": _cause(
        "silently gives a loss of 0 to rows whose label is not a class",
        "标签不属于任何类别的行，损失被静默记为 0",
        "Check the labels before the loss: 0 <= label < classes.",
        "请在计算损失之前检查标签：0 <= 标签 < 类别数。",
    ),
    "product_with_labels": _cause(
        "multiplies all log-probabilities by one-hot labels, where 0 times -inf is NaN",
        "把全部对数概率与 one-hot 标签相乘，而 0 乘 -inf 得 NaN",
        "Mask with a large negative number instead of -inf, or pick the label's log-probability.",
        "请用很大的负数代替 -inf 作屏蔽，或直接取出标签对应的对数概率。",
    ),
    "softmax_twice": _cause(
        "applies softmax to probabilities, as if they were logits",
        "把概率当作 logits，又做了一次 softmax",
        "Pass the logits to cross entropy, which includes the softmax.",
        "请把 logits 传给交叉熵；它自身已包含 softmax。",
    ),
    "no_softmax": _cause(
        "treats logits as log-probabilities: there is no softmax",
        "把 logits 当作对数概率：缺少 softmax",
        "Pass log_softmax(x) to nll, or use cross entropy.",
        "请把 log_softmax(x) 传给 nll，或改用交叉熵。",
    ),
    "half_square": _cause(
        "computes half the squared difference",
        "计算的是平方差的一半",
        "Remove the factor 1/2, or document that the loss has one.",
        "请去掉因子 1/2，或说明该损失带有它。",
    ),
    "absolute_difference": _cause(
        "computes the absolute difference, which is the L1 loss",
        "计算的是绝对差，即 L1 损失",
        "Ask for mse, or compare with l1.",
        "请使用 mse；若本意如此，请与 l1 比较。",
    ),
    "squared_difference": _cause(
        "computes the squared difference, which is the MSE loss",
        "计算的是平方差，即 MSE 损失",
        "Ask for l1, or compare with mse.",
        "请使用 l1；若本意如此，请与 mse 比较。",
    ),
    "sign_at_zero": _cause(
        "gives the absolute difference a slope of 1 where it is 0",
        "在差为 0 处给绝对差的斜率取 1",
        "Use 0 there: sign(0) = 0.",
        "该处应取 0：sign(0) = 0。",
    ),
    "delta_left_out": _cause(
        "leaves the factor delta out of the linear part of the Huber loss",
        "Huber 损失的线性部分漏了因子 delta",
        "Beyond delta the loss is delta (|d| - delta / 2).",
        "超过 delta 时损失为 delta (|d| - delta / 2)。",
    ),
    "smooth_l1_instead": _cause(
        "computes the smooth L1 loss, which is the Huber loss divided by delta",
        "计算的是 smooth L1 损失，即 Huber 损失除以 delta",
        "Multiply by delta, or compare with smooth_l1.",
        "请乘以 delta；若本意如此，请与 smooth_l1 比较。",
    ),
    "huber_instead": _cause(
        "computes the Huber loss, which is the smooth L1 loss times beta",
        "计算的是 Huber 损失，即 smooth L1 损失乘以 beta",
        "Divide by beta, or compare with huber.",
        "请除以 beta；若本意如此，请与 huber 比较。",
    ),
    "pos_weight_left_out": _cause(
        "leaves pos_weight out",
        "没有使用 pos_weight",
        "Multiply the positive class's term by pos_weight.",
        "正类的一项应乘以 pos_weight。",
    ),
    "pos_weight_of_negatives": _cause(
        "multiplies the negative class's term by pos_weight",
        "把 pos_weight 乘到了负类的一项上",
        "Multiply the positive class's term by pos_weight, the one with the target as factor.",
        "应把 pos_weight 乘到正类的一项上，即以标签为因子的那一项。",
    ),
    "sigmoid_twice": _cause(
        "applies the sigmoid to probabilities, as if they were logits",
        "把概率当作 logits，又做了一次 sigmoid",
        "Pass the logits to this loss, which includes the sigmoid.",
        "请把 logits 传给该损失；它自身已包含 sigmoid。",
    ),
    "relu_slope_at_zero": _cause(
        "adds up the slopes of relu(x) and of log(1 + e^-|x|), 0 and -1/2 where x is 0: its "
        "gradient there is too small by 1",
        "把 relu(x) 与 log(1 + e^-|x|) 的斜率相加，在 x = 0 处为 0 与 -1/2：该处的梯度小了 1",
        "Compute sigmoid(x) - target; as a workaround, pass pos_weight = 1.",
        "应当计算 sigmoid(x) - target；临时规避：传入 pos_weight = 1。",
    ),
    "log_of_sigmoid": _cause(
        "takes the logarithm of the rounded sigmoid, which is 0 or 1 for large logits",
        "对已舍入的 sigmoid 取对数，而 logit 较大时它等于 0 或 1",
        "Compute max(x, 0) - x target + log1p(exp(-|x|)).",
        "应当计算 max(x, 0) - x target + log1p(exp(-|x|))。",
    ),
    "arguments_swapped": _cause(
        "computes the divergence of the input from the target, not of the target from the input",
        "计算的是输入相对目标的散度，而不是目标相对输入的散度",
        "Pass the model's log-probabilities first, the target second.",
        "第一个参数应为模型的对数概率，第二个参数为目标。",
    ),
    "target_is_log": _cause(
        "mistakes a target of probabilities for log-probabilities, or the other way round",
        "把概率目标当作对数概率，或者相反",
        "Pass the same log_target.",
        "请传入相同的 log_target。",
    ),
    "no_logarithm": _cause(
        "takes the logarithm of the input, which already is a logarithm",
        "对输入取了对数，而它已经是对数",
        "Pass log-probabilities, and do not take their logarithm.",
        "请传入对数概率，不要再取对数。",
    ),
    "scale_missing": _cause(
        "does not scale the scores, which are q k^T times 1 / sqrt(d)",
        "没有缩放得分：应当用 q k^T 乘以 1 / sqrt(d)",
        "Multiply the scores by 1 / sqrt(d), or by the given scale.",
        "应当把得分乘以 1 / sqrt(d)，或乘以所要求的 scale。",
        "https://arxiv.org/abs/1706.03762",
    ),
    "scale_squared": _cause(
        "applies the scale twice: 1 / d instead of 1 / sqrt(d)",
        "缩放了两次：用的是 1 / d，而不是 1 / sqrt(d)",
        "Scale either q or the scores, once; pass scale=1 to a kernel if q is already scaled.",
        "只缩放一次，要么缩放 q，要么缩放得分；若 q 已经缩放，请传入 scale=1。",
    ),
    "scale_inverted": _cause(
        "divides by the scale instead of multiplying by it: sqrt(d) instead of 1 / sqrt(d)",
        "除以 scale 而不是乘以它：用的是 sqrt(d)，而不是 1 / sqrt(d)",
        "Multiply by 1 / sqrt(d).",
        "应当乘以 1 / sqrt(d)。",
    ),
    "causal_ignored": _cause(
        "lets every query see all keys, as if attention were not causal",
        "每个查询都能看到所有键，没有因果屏蔽",
        "Pass the causal flag or the mask to the kernel that is called.",
        "请把因果标志或掩码传给实际调用的算子。",
    ),
    "causal_sees_next": _cause(
        "lets each query see one key too many: the causal mask is off by one",
        "每个查询多看到一个键：因果掩码错开了一位",
        "Query i sees keys j <= i: tril(diagonal=0), or triu(diagonal=1) for what is hidden.",
        "查询 i 只能看到 j <= i 的键：tril(diagonal=0)；若表示要屏蔽的部分，则为 "
        "triu(diagonal=1)。",
    ),
    "causal_hides_itself": _cause(
        "hides each query's own key: the causal mask is off by one",
        "查询看不到自己对应的键：因果掩码错开了一位",
        "Query i sees keys j <= i: tril(diagonal=0), or triu(diagonal=1) for what is hidden.",
        "查询 i 只能看到 j <= i 的键：tril(diagonal=0)；若表示要屏蔽的部分，则为 "
        "triu(diagonal=1)。",
    ),
    "causal_other_corner": _cause(
        "aligns the causal mask with the other corner: top left (j <= i) or bottom right "
        "(j <= i + keys - queries)",
        "因果掩码对齐到另一个角：左上角（j <= i）或右下角（j <= i + 键数 - 查询数）",
        "PyTorch's is_causal is aligned top left, FlashAttention from 2.1 on bottom right: with a "
        "cache of keys pass an explicit mask.",
        "PyTorch 的 is_causal 按左上角对齐，FlashAttention 自 2.1 起按右下角对齐：使用键缓存时"
        "请显式传入掩码。",
        _TORCH_SDPA,
        "https://github.com/Dao-AILab/flash-attention#21-change-behavior-of-causal-flag",
    ),
    "mask_ignored": _cause(
        "ignores the mask: every key takes part",
        "没有使用掩码：所有键都参与计算",
        "Check that the kernel takes a mask together with its other flags; PaddlePaddle 3.3 drops "
        "attn_mask on a CPU if is_causal is set.",
        "请确认该算子在其他标志之外也接受掩码；PaddlePaddle 3.3 在 CPU 上设置 is_causal 时会"
        "丢弃 attn_mask。",
    ),
    "mask_scaled": _cause(
        "adds the mask before it scales the scores, so that the mask is scaled too",
        "先加掩码再缩放分数，掩码也被缩放了",
        "Scale q k^T first, then add the mask.",
        "请先缩放 q k^T，再加掩码。",
    ),
    "mask_inverted": _cause(
        "inverts the mask: keeps what it drops, and drops what it keeps",
        "把掩码的含义弄反：保留了应丢弃的，丢弃了应保留的",
        "Check what True means: the element is kept in dropout, and the key takes part in "
        "scaled_dot_product_attention, but not in MultiheadAttention's masks.",
        "请确认 True 的含义：在 dropout 中表示保留该元素，在 scaled_dot_product_attention 中"
        "表示该键参与计算，在 MultiheadAttention 的掩码中则表示不参与。",
        _TORCH_SDPA,
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html",
    ),
    "lengths_ignored": _cause(
        "attends to the padding beyond each sequence's length",
        "没有使用序列长度：填充部分也参与了计算",
        "Pass the lengths, or a mask made from them.",
        "请传入长度，或由长度生成的掩码。",
    ),
    "heads_tiled": _cause(
        "gives head h the keys of head h mod H instead of head h // g: grouped heads are tiled "
        "instead of repeated",
        "查询头 h 使用了键头 h mod H，而不是 h // g：对分组的键头整体平铺，而不是逐个重复",
        "Repeat each head of k and v g times in a row: repeat_interleave, not repeat or tile.",
        "应当把 k、v 的每个头连续重复 g 次：用 repeat_interleave，而不是 repeat 或 tile。",
        "https://arxiv.org/abs/2305.13245",
    ),
    "mask_finite": _cause(
        "adds -10000 to the scores of masked keys instead of -inf: they take part where scores "
        "are of that size, and where a whole row is masked",
        "对被屏蔽的键加 -10000 而不是 -inf：当得分同样大，或整行都被屏蔽时，它们仍会参与计算",
        "Mask with -inf, or with the format's most negative number; fully masked rows need their "
        "own rule.",
        "请用 -inf 或该格式最小的有限数作掩码；整行都被屏蔽的情形需另行规定。",
        "https://github.com/google-research/bert/blob/master/modeling.py",
    ),
    "mask_multiplied": _cause(
        "sets the scores of masked keys to 0, where they still count with e^0",
        "把被屏蔽的得分置为 0，它们仍以 e^0 计入",
        "Set them to -inf before softmax.",
        "应当在 softmax 之前置为 -inf。",
    ),
    "masked_keys_counted": _cause(
        "masks the probabilities after softmax: the sum still includes the masked keys",
        "在 softmax 之后才屏蔽概率：分母中仍包含被屏蔽的键",
        "Mask the scores before softmax, or divide by the sum of what is left.",
        "应当在 softmax 之前屏蔽得分，或除以剩余概率之和。",
    ),
    "masked_rows_zero": _cause(
        "gives 0 for a row that is -inf throughout, where 0 / 0 is NaN",
        "整行都是 -inf 时得到 0，而 0 / 0 应为 NaN",
        "MindSpore's float32 softmax does so on a CPU, and leaves all later rows unwritten; the "
        "others give NaN. Treat such rows explicitly where frameworks must agree.",
        "MindSpore 的 float32 softmax 在 CPU 上如此，而且其后各行都不再写入；其余框架给出 NaN。"
        "若要求各框架一致，请显式处理这样的行。",
    ),
    "masked_rows_nan": _cause(
        "gives NaN for a query whose keys are all masked: 0 / 0",
        "某个查询的所有键都被屏蔽时得到 NaN：0 / 0",
        "Return 0, as PyTorch does from 2.5 on, or leave such rows out of later computations: one "
        "NaN spoils every gradient of its head.",
        "应当给出 0（PyTorch 自 2.5 起如此），或在后续计算中去掉这些行：一个 NaN 会破坏该头的"
        "所有梯度。",
        "https://github.com/pytorch/pytorch/issues/103749",
    ),
    "gradient_unscaled": _cause(
        "leaves the scale out of dq and dk",
        "dq 与 dk 没有乘以 scale",
        "Multiply ds by the scale before its products with k and q.",
        "ds 在与 k、q 相乘之前应当乘以 scale。",
    ),
    "pairs_of_other_layout": _cause(
        "rotates the pairs of the other layout: i and i + d / 2 (GPT-NeoX, Llama) or 2 i and "
        "2 i + 1 (GPT-J)",
        "旋转的是另一种布局的数对：i 与 i + d / 2（GPT-NeoX、Llama），或 2 i 与 2 i + 1（GPT-J）",
        "Use the layout that the weights were trained with, or permute the rows of the projections "
        "of q and k.",
        "请使用训练权重时的布局，或对 q、k 投影矩阵的行重新排列。",
        "https://github.com/huggingface/transformers/issues/25199",
    ),
    "rotated_backwards": _cause(
        "rotates by the negative angle",
        "按相反的角度旋转",
        "y_a = x_a cos t - x_b sin t and y_b = x_b cos t + x_a sin t: change the sign of the sine.",
        "y_a = x_a cos t - x_b sin t，y_b = x_b cos t + x_a sin t：请改变正弦的符号。",
    ),
    "positions_from_one": _cause(
        "counts positions from 1",
        "位置从 1 开始计数",
        "Count them from 0, in the cache as well.",
        "应当从 0 开始计数，缓存中也是如此。",
    ),
    "base_ignored": _cause(
        "uses 10000 instead of the given base",
        "没有使用所要求的 base，而是用了 10000",
        "Pass the model's rope_theta.",
        "请传入模型的 rope_theta。",
    ),
    "frequencies_of_whole_head": _cause(
        "uses the exponents 2 i / d of the whole head, although only a part of it is rotated",
        "只旋转一部分维度，指数却按整个头的 2 i / d 计算",
        "Divide by the number of rotated dimensions.",
        "应当除以参与旋转的维数。",
    ),
    "angles_in_float16": _cause(
        "computes the angles in float16: positions beyond 2048 are rounded, so that their cosines "
        "are those of other angles",
        "用 float16 计算角度：超过 2048 的位置会被舍入，得到的是另一个角度的余弦",
        "Compute position, frequency, cosine and sine in float32, and convert them at the end.",
        "位置、频率、余弦与正弦应以 float32 计算，最后再转换。",
        "https://github.com/EleutherAI/gpt-neox/issues/1003",
    ),
    "angles_in_bfloat16": _cause(
        "computes the angles in bfloat16: positions beyond 256 are rounded, so that their cosines "
        "are those of other angles",
        "用 bfloat16 计算角度：超过 256 的位置会被舍入，得到的是另一个角度的余弦",
        "Compute position, frequency, cosine and sine in float32, and convert them at the end.",
        "位置、频率、余弦与正弦应以 float32 计算，最后再转换。",
        "https://github.com/huggingface/transformers/pull/29285",
    ),
    "angles_in_float32": _cause(
        "computes the angles in float32 although x is float64: they are off by 2^-24 of the angle",
        "x 为 float64，角度却以 float32 计算：角度的误差约为其 2^-24",
        "Compute the angles in float64, or compare models in float32.",
        "角度应以 float64 计算，或在 float32 下比较模型。",
    ),
    "narrow_cosines": _cause(
        "keeps the cosines and sines of the right angles in {format}, which is narrower than x",
        "角度正确，但余弦与正弦以 {format} 保存，比 x 的格式更窄",
        "Keep the tables of cosines and sines in the format of x, or compare with a tolerance for "
        "their rounding.",
        "余弦与正弦表应以 x 的格式保存；或在比较时为其舍入留出容差。",
    ),
    "padding_zeroed": _cause(
        "returns zeros for padding_idx instead of the table's row",
        "padding_idx 处输出 0，而不是表中的那一行",
        "PyTorch keeps the row and only stops its gradient: set the row to 0 in both tables.",
        "PyTorch 保留该行，只是不更新它：请在两边都把表中该行置为 0。",
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.embedding.html",
    ),
    "padding_updated": _cause(
        "gives the row of padding_idx a gradient",
        "给 padding_idx 对应的行也计算了梯度",
        "Set that row's gradient to 0, or pass padding_idx.",
        "应当把该行的梯度置 0，或传入 padding_idx。",
    ),
    "duplicates_overwritten": _cause(
        "keeps the last gradient of an index that occurs several times instead of adding them up",
        "同一索引多次出现时只保留最后一个梯度，而没有累加",
        "Add them: np.add.at, index_add or an atomic add, not an assignment.",
        "应当累加：np.add.at、index_add 或原子加，而不是赋值。",
    ),
    "duplicates_averaged": _cause(
        "divides an index's gradient by how often it occurs",
        "把某个索引的梯度除以它出现的次数",
        "Turn scale_grad_by_freq off.",
        "请关闭 scale_grad_by_freq。",
    ),
    "row_weights": _cause(
        "weights a row as a whole by its labels' mean weight, and divides by the sum of these",
        "按标签权重的均值给整行加权，并除以这些权重之和",
        "PyTorch weights each label's term and divides by the number of rows: use the same "
        "weighting on both sides.",
        "PyTorch 对每个标签的项分别加权，再除以行数：请在两边使用同一种类别加权方式。",
    ),
    "smoothing_by_label_weight": _cause(
        "weights the smoothing's share by the label's class, not class by class",
        "平滑部分按标签所属类别的权重加权，而不是按各类别分别加权",
        "PyTorch weights every class's share by that class: use the same weighting on both sides.",
        "PyTorch 按各类别的权重对平滑部分分别加权：请在两边使用同一种类别加权方式。",
    ),
    "clip_before_shift": _cause(
        "adds 3 after clipping instead of before: x (clip(x, 0, 6) + 3) / 6",
        "先截断再加 3，而不是先加 3 再截断：x (clip(x, 0, 6) + 3) / 6",
        "Compute x clip(x + 3, 0, 6) / 6.",
        "应当计算 x clip(x + 3, 0, 6) / 6。",
    ),
    "silu_gate": _cause(
        "computes x sigmoid(x), which is SiLU",
        "计算的是 x sigmoid(x)，即 SiLU",
        "Ask for the activation that is meant, or compare with silu.",
        "请使用所要的激活函数；若本意如此，请与 silu 比较。",
    ),
    "rounded_sixth": _cause(
        "multiplies by a decimal of few digits, such as 0.1667, instead of dividing by 6",
        "乘以位数不足的小数（例如 0.1667），而不是除以 6",
        "Divide by 6, or multiply by 1.0 / 6.0.",
        "应当除以 6，或乘以 1.0 / 6.0。",
    ),
    "constant_gate": _cause(
        "treats the gate, the factor beside x, as a constant in the backward pass",
        "在反向传播中把门控（x 的系数）当作常数",
        "Let the gradient flow through it: dx = dy (gate + x gate').",
        "让梯度也通过它传播：dx = dy (gate + x gate')。",
    ),
    "wrong_axes": _cause(
        "computes along the axes {axes}",
        "沿第 {axes} 轴计算",
        "Check axis, dim or normalized_shape and the layout of the input.",
        "请检查 axis、dim 或 normalized_shape，以及输入的布局。",
    ),
    "inputs_exchanged": _cause(
        "takes {inputs} in each other's place",
        "把 {inputs} 互换了位置",
        "Pass the inputs by name.",
        "请按名称传入参数。",
    ),
    "fused_relu": _cause(
        "applies a ReLU to the result",
        "对结果又做了一次 ReLU",
        "Compare before the activation: a fused layer, or a hook after it, gives its output.",
        "请在激活之前比较：融合层或其后的钩子给出的是激活后的输出。",
    ),
    "mean_square": _cause(
        "averages the squares of x, without subtracting the mean first",
        "没有先减去均值，直接对 x 的平方求平均",
        "Subtract the mean before squaring.",
        "请先减去均值再平方。",
    ),
    "root_unasked": _cause(
        "returns the standard deviation, the variance's root",
        "返回的是标准差，即方差的平方根",
        "Leave the root out.",
        "请去掉开方。",
    ),
    "root_missing": _cause(
        "returns the variance: the root is missing",
        "返回的是方差，缺少开方",
        "Take the root.",
        "请补上开方。",
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
        "uses the transposed weight",
        "把权重转置后使用",
        "Layouts differ: Paddle's Linear keeps its weight as (in, out), the others as (out, in).",
        "布局不同：Paddle 的 Linear 权重为 (in, out)，其余框架为 (out, in)。",
        "https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/nn/Linear_en.html",
    ),
    "scale_factor": _cause(
        "gives the right result times {factor} ({named})",
        "给出的结果是正确结果的 {factor} 倍（{named}）",
        "Look for a mean in place of a sum (or the other way round), for a division by the batch "
        "size or the number of devices, and for gradients that are clipped or scaled.",
        "请检查是否把求和与求平均弄混，是否多做（少做）了对批大小、设备数的除法，以及梯度是否经过裁剪或缩放。",
    ),
    "sign_error": _cause(
        "gives the right result with the wrong sign",
        "结果的数值正确，但符号相反",
        *_REPORT,
    ),
    "permuted": _cause(
        "gives the right rows in another order",
        "各行都对，但顺序不同",
        "Check the order of the batch, of the sequence and of gathered shards.",
        "请检查批次、序列以及汇集分片的顺序。",
    ),
    "stopped_early": _cause(
        "writes nothing from row {first} on, of {rows}",
        "从第 {first} 行起没有写入任何结果（共 {rows} 行）",
        "Whatever was in memory before is taken for a result: look at the row before, which may "
        "have been refused (all its inputs masked, or a sum of 0), and report it.",
        "内存中原有的内容被当成了结果：请查看其前一行，该行可能被拒绝处理"
        "（输入全部被掩码，或和为 0）；并上报该问题。",
    ),
    "unwritten_elements": _cause(
        "leaves a block of {wrong} elements at one value ({value}), like memory that was never "
        "written",
        "有一段连续的 {wrong} 个元素都是同一个值（{value}），如同从未写入的内存",
        *_REPORT,
    ),
    "corrupted_elements": _cause(
        "is wrong in {wrong} scattered elements and right in all others",
        "有 {wrong} 个零散的元素错误，其余全部正确",
        "Run it again: if different elements are wrong, suspect a data race or faulty memory.",
        "请再运行一次：如果出错的元素变了，可能是数据竞争或内存故障。",
    ),
    "nan_lost": _cause(
        "gives a number where an input is NaN",
        "输入为 NaN 时给出了数值",
        "Look for NaN in the inputs yourself: comparisons such as max, clip and sign drop it, and "
        "training goes on with a plausible number.",
        "请自行检查输入中的 NaN：max、clip、sign 这类基于比较的运算会丢掉它，"
        "训练会带着看似正常的数值继续。",
    ),
    "nan_of_infinity": _cause(
        "gives NaN where an input is infinite and the result is not NaN",
        "输入为无穷大而结果本不是 NaN 时给出了 NaN",
        "Report it as a bug, with the script of this answer; as a workaround, replace infinities "
        "by the largest numbers.",
        "请附上本答复中的脚本，作为缺陷上报；临时规避：将无穷大替换为最大的有限数。",
    ),
    "limit_at_infinity": _cause(
        "gives a number where infinite inputs leave the result undefined (inf - inf, 0 * inf)",
        "无穷大输入使结果无定义（inf - inf、0 * inf）时给出了某个数值",
        "Either answer is in use, and a NaN shows the mistake earlier: keep infinities out of the "
        "inputs.",
        "两种结果都有人采用，而 NaN 能更早暴露问题：请勿让输入出现无穷大。",
    ),
    "zero_where_undefined": _cause(
        "gives 0 where the result is not defined or infinite, as a gradient at 0 / 0",
        "结果无定义或为无穷大（例如 0 / 0 处的梯度）时给出了 0",
        "Many frameworks do so on purpose, to keep NaN out of gradients: compare other points.",
        "许多框架有意如此，以免梯度中出现 NaN：请在其他点上比较。",
    ),
    "flush_to_zero": _cause(
        "flushes subnormal numbers to zero",
        "将次正规数刷新为零（FTZ）",
        "Scale the data, or keep subnormal numbers: on a CPU PyTorch flushes them only after "
        "torch.set_flush_denormal(True).",
        "缩放数据，或保留次正规数：在 CPU 上，PyTorch 只有在调用 torch.set_flush_denormal(True) "
        "之后才会将其刷新为零。",
        "https://docs.pytorch.org/docs/stable/generated/torch.set_flush_denormal.html",
    ),
    "argument_reduction": _cause(
        "loses digits when it reduces large arguments modulo pi",
        "对大自变量做模 π 的范围归约时丢失精度",
        "Keep arguments small, or reduce them modulo 2 pi in a wider format before the call.",
        "让自变量保持较小，或在调用之前以更宽的格式对 2π 取模。",
    ),
    "fast_approximation": _cause(
        "uses a fast approximation whose error is larger than its specification",
        "使用了误差超出规格的快速近似",
        "Look up its documented error, and report it if the documentation promises more accuracy.",
        "请查阅其文档所声明的误差；若文档承诺的精度更高，请上报。",
    ),
    "erf_cancellation": _cause(
        "computes 1 + erf(x / √2) for negative x, which cancels",
        "对负的 x 计算 1 + erf(x / √2)，发生灾难性抵消",
        "Use x erfc(-x / √2) / 2 there, with the argument in a wider format where x is large.",
        "此处应使用 x erfc(-x / √2) / 2；x 的绝对值较大时，自变量 -x / √2 应以更宽的格式计算。",
    ),
    "tanh_cancellation": _cause(
        "computes 1 + tanh(z) for negative z, which cancels",
        "对负的 z 计算 1 + tanh(z)，发生灾难性抵消",
        "Use the sigmoid of 2 z instead of (1 + tanh(z)) / 2, with z in a wider format where x is "
        "large.",
        "请用 2z 的 sigmoid 代替 (1 + tanh(z)) / 2；x 的绝对值较大时，z 应以更宽的格式计算。",
    ),
    "tanh_gelu": _cause(
        "uses the tanh approximation of GELU instead of erf",
        "使用 GELU 的 tanh 近似，而不是 erf",
        "Ask for the same form on both sides (approximate='none' or 'tanh').",
        "两边请使用同一形式（approximate='none' 或 'tanh'）。",
        _TORCH_GELU,
    ),
    "sigmoid_gelu": _cause(
        "computes x σ(1.702 x), the sigmoid approximation of GELU",
        "计算的是 x σ(1.702 x)，即 GELU 的 sigmoid 近似",
        "Ask for the same form on both sides: CLIP's models use this one (quick_gelu).",
        "两边请使用同一形式：CLIP 系列模型用的就是这一种（quick_gelu）。",
        "https://arxiv.org/abs/1606.08415",
    ),
    "erf_gelu": _cause(
        "uses the erf form of GELU instead of the tanh approximation",
        "使用 GELU 的 erf 形式，而不是 tanh 近似",
        "Ask for the same form on both sides (approximate='none' or 'tanh').",
        "两边请使用同一形式（approximate='none' 或 'tanh'）。",
        _TORCH_GELU,
    ),
    **{name: _cause(*texts) for name, texts in ELEMENTS.items()},
    **{name: _cause(*texts) for name, texts in OPTIMIZERS.items()},
    **{name: Cause(says, _OF_EDITS) for name, says in read_catalogue("edits").items()},
}

# Not faults but choices: each of these definitions or orders is in use somewhere.
_IN_USE = frozenset((
    "summation_order", "bias_first", "slope_of_a_fifth", "other_dropout_convention",
    "clip_eps_differs", "eps_hat", "no_bias_correction", "decay_coupled", "decay_decoupled",
    "decay_after_step", "decay_without_lr", "weight_norm_clamped", "trust_ratio_clamped",
    "trust_ratio_needs_decay", "averaged_momentum", "lr_in_momentum", "dampened_first_step",
    "eps_inside_sqrt", "gradient_to_first", "gradient_to_all", "biased_running_variance",
    "unbiased_running_variance",
    "swapped_momentum", "tanh_gelu", "erf_gelu", "weight_plus_one", "row_weights",
    "smoothing_by_label_weight", "row_count_denominator", "lazy_rows", "limit_at_infinity",
    "zero_where_undefined", "gradient_clipped", "gradient_normalised",  # LAMB's, apex and NVIDIA
))  # fmt: skip
# Switches, by the framework whose documentation names them (`Cause.sources`).
_DOCUMENTED = {
    "torch": frozenset((
        "tf32_inputs", "bf16_inputs", "fp16_inputs", "fp16_accumulation", "bf16_accumulation",
        "flush_to_zero",
    )),
}  # fmt: skip


def by_design(cause: str, framework: str) -> bool:
    """Whether a cause is a definition that is in use, or a switch that this framework documents."""
    return cause in _IN_USE or cause in _DOCUMENTED.get(framework, ())
