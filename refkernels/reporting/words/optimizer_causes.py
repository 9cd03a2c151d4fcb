"""The causes of wrong optimizer steps, for `causes`: what the kernel does and what to do, each in
English and Chinese."""

_EXPECTED = (
    "Both definitions are in use: choose one for both sides.",
    "两种定义都有人使用：请选定其一，两边一致后再比较。",
)
_SAME_DECAY = (
    "Choose the same kind of weight decay on both sides: Adam's is coupled, AdamW's is not.",
    "请在两边选用同一种权重衰减：Adam 的是耦合的，AdamW 的是解耦的。",
)

OPTIMIZERS: dict[str, tuple[str, str, str, str]] = {
    "float32_hyperparameters": (
        "holds hyper-parameters in float32 ({names})",
        "以 float32 保存超参数（{names}）",
        "Choose numbers that float32 holds exactly, such as 1 - 2**-10, or allow for the bias: a "
        "beta2 of 0.999 in float32 makes Adam's v 1.3e-5 too small.",
        "选用 float32 能精确表示的数（例如 1 - 2**-10），或在比较时计入这一偏差："
        "float32 的 beta2 = 0.999 使 Adam 的 v 偏小 1.3e-5。",
    ),
    "float32_powers": (
        "computes the bias corrections from powers of the betas that it accumulates in float32",
        "偏差修正所用的 beta 的幂以 float32 逐步相乘得到",
        "Compute 1 - beta**step in float64.",
        "应当以 float64 计算 1 - beta**step。",
    ),
    "eps_hat": (
        "adds eps to sqrt(v) before v is corrected: eps is 1 / sqrt(1 - beta2**step) times larger, "
        "31.6 times in step 1",
        "在修正 v 之前就把 eps 加到 sqrt(v) 上：等效的 eps 增大为 1 / sqrt(1 - beta2**step) 倍，"
        "第 1 步为 31.6 倍",
        "Both definitions are in use (this is TensorFlow's and MindSpore's): on the other side "
        "divide eps by sqrt(1 - beta2**step).",
        "两种定义都有人使用（这是 TensorFlow 和 MindSpore 的）：请在另一边把 eps 除以 "
        "sqrt(1 - beta2**step)。",
    ),
    "no_bias_correction": (
        "does not correct the bias of m and v",
        "没有对 m 和 v 作偏差修正",
        "Ask for the correction, or leave it out on both sides, as BERT's optimizer does.",
        "请开启偏差修正，或如 BERT 的优化器那样在两边都不用。",
    ),
    "second_moment_uncorrected": (
        "corrects the bias of m, but not of v",
        "只对 m 作偏差修正，没有对 v 作偏差修正",
        "Divide v by 1 - beta2^t as well.",
        "v 也应除以 1 - beta2^t。",
    ),
    "first_moment_uncorrected": (
        "corrects the bias of v, but not of m",
        "只对 v 作偏差修正，没有对 m 作偏差修正",
        "Divide m by 1 - beta1^t as well.",
        "m 也应除以 1 - beta1^t。",
    ),
    "step_off_by_one": (
        "corrects the bias for the step after this one",
        "偏差修正用的是下一步的步数",
        "Count steps from 1, and raise the counter once per step.",
        "步数应从 1 开始，每步只加一次。",
    ),
    "lazy_rows": (
        "leaves the weights and moments of rows without a gradient unchanged, as a sparse or lazy "
        "Adam does",
        "对没有梯度的行，参数与动量都保持不变，即稀疏（惰性）Adam",
        "Both are in use: a dense Adam keeps moving such rows by their decaying moments. Choose "
        "one for both sides.",
        "两种都有人使用：稠密 Adam 会让这些行随衰减的动量继续更新。请在两边选用同一种。",
    ),
    "eps_hat_in_untouched_rows": (
        "rescales eps only in rows that have a gradient: in the others it is "
        "1 / sqrt(1 - beta2**step) times larger",
        "只在有梯度的行中修正 eps；其余各行的 eps 是其 1 / sqrt(1 - beta2**step) 倍",
        "Paddle's sparse Adam does so on a CPU without lazy_mode. Use a dense gradient.",
        "Paddle 的稀疏 Adam 在 CPU 上（未开启 lazy_mode 时）如此。请使用稠密梯度。",
    ),
    "amsgrad_ignored": (
        "keeps the largest v, but divides by the root of the current v",
        "保存了 v 的最大值，更新时却仍用 v",
        "Divide by the root of the largest v.",
        "应当除以最大的 v 的平方根。",
    ),
    "decay_ignored": (
        "leaves out weight decay",
        "没有作权重衰减",
        "Look for what exempts the parameter: MindSpore does not decay one whose name contains "
        "beta or gamma, unless parameters are grouped.",
        "请检查该参数为何被排除：若参数未分组，MindSpore 不对名称中含有 beta 或 gamma 的参数"
        "作衰减。",
    ),
    "zero_decay": (
        "adds 0 times the parameter, a decay of 0, which is NaN where the parameter is infinite",
        "加上了 0 乘以参数（即为 0 的衰减），参数为无穷大时得到 NaN",
        "Skip the decay where it is 0. It shows only where a parameter is already infinite or NaN.",
        "衰减为 0 时应当跳过它。只有当参数已是无穷大或 NaN 时，才会显现。",
    ),
    "decay_coupled": (
        "adds weight decay to the gradient (L2), where it passes through the moments",
        "把权重衰减加到梯度上（L2），使其进入动量",
        *_SAME_DECAY,
    ),
    "decay_decoupled": (
        "subtracts weight decay from the parameter, apart from the gradient's step",
        "权重衰减没有加到梯度上，而是直接作用于参数",
        *_SAME_DECAY,
    ),
    "decay_after_step": (
        "applies weight decay to the parameter after the step, not to the old one",
        "权重衰减作用于更新之后的参数，而不是旧参数",
        *_EXPECTED,
    ),
    "decay_without_lr": (
        "applies weight decay without the learning rate as its factor",
        "权重衰减没有乘以学习率",
        *_EXPECTED,
    ),
    "decay_corrected": (
        "multiplies weight decay by the bias correction too",
        "把偏差修正也乘到了权重衰减上",
        "Multiply the decay by the learning rate only.",
        "权重衰减只应乘以学习率。",
    ),
    "no_trust_ratio": (
        "uses a trust ratio of 1",
        "把信任比取为 1",
        "Multiply the step by |param| / |update|. LAMBC clips this ratio at 1: a tensor "
        "whose ratio is more than 1 does not tell the two apart.",
        "更新量应乘以 |param| / |update|。LAMBC 把该比值截断在 1：比值大于 1 的张量无法区分这两种"
        "情形。",
    ),
    "norm_without_decay": (
        "computes the norm of the update before weight decay is added to it",
        "信任比中的更新量范数在加入权重衰减之前计算",
        "The paper, apex and Paddle take the norm of the update with its decay: report it, or set "
        "the decay to 0 to compare.",
        "论文、apex 和 Paddle 取的是包含衰减的更新量的范数：请上报，或在比较时把衰减设为 0。",
    ),
    "weight_norm_clamped": (
        "clamps the parameter's norm at 10",
        "参数的范数大于 10 时按 10 计算",
        *_EXPECTED,
    ),
    "trust_ratio_clamped": (
        "keeps the trust ratio between {low} and {high}",
        "把信任比限制在 {low} 到 {high} 之间",
        *_EXPECTED,
    ),
    "trust_ratio_needs_decay": (
        "uses a trust ratio of 1 where weight decay is 0",
        "权重衰减为 0 时把信任比取为 1",
        "Paddle does so unless always_adapt=True is set.",
        "Paddle 默认如此，除非设置 always_adapt=True。",
    ),
    "averaged_momentum": (
        "averages gradients: b = mu b + (1 - mu) g",
        "对梯度作滑动平均：b = mu b + (1 - mu) g",
        "Multiply the learning rate by 1 / (1 - mu), or use b = mu b + g.",
        "把学习率乘以 1 / (1 - mu)，或改用 b = mu b + g。",
    ),
    "lr_in_momentum": (
        "keeps the learning rate inside the momentum",
        "把学习率乘进了动量缓冲区",
        "Both agree while the learning rate is constant (this buffer is lr times the other, as "
        "MindSpore documents for its RMSProp): rescale it where the rate changes.",
        "学习率不变时两者相同（此缓冲区是另一种的 lr 倍，MindSpore 的 RMSProp 文档即如此定义）："
        "学习率改变时应重新缩放缓冲区。",
    ),
    "nesterov_ignored": (
        "uses plain momentum, although Nesterov's was requested",
        "要求使用 Nesterov 动量，实际只按普通动量更新",
        "Use another optimizer of the framework (MindSpore's SGD has it), and report it.",
        "请改用该框架的另一个优化器（MindSpore 的 SGD 支持），并上报。",
    ),
    "nesterov_unasked": (
        "looks ahead, as Nesterov's momentum does, although this was not requested",
        "没有要求 Nesterov 动量，却作了前瞻更新",
        "Ask for the same momentum on both sides.",
        "请在两边使用同一种动量。",
    ),
    "dampening_unasked": (
        "dampens the gradient in the momentum by {dampening}, although this was not requested",
        "没有要求阻尼，却以 {dampening} 对动量中的梯度作了阻尼",
        "Set the same dampening on both sides.",
        "请在两边设置相同的 dampening。",
    ),
    "decay_unasked": (
        "decays the weights by {weight_decay}, although this was not requested",
        "没有要求权重衰减，却以 {weight_decay} 作了衰减",
        "Exempt the same parameters from weight decay on both sides.",
        "请在两边把相同的参数排除在权重衰减之外。",
    ),
    "dampened_first_step": (
        "dampens the first gradient too",
        "对第一步的梯度也作了阻尼",
        "PyTorch's buffer starts at the first gradient: start the other at g / (1 - dampening).",
        "PyTorch 的缓冲区以第一步的梯度为初值：请把另一边的初值设为 g / (1 - dampening)。",
    ),
    "dampening_ignored": (
        "does not dampen the gradient",
        "没有对梯度作阻尼",
        "Set dampening to 0 on the other side.",
        "请把另一边的 dampening 设为 0。",
    ),
    "no_eps": (
        "leaves out eps",
        "漏加了 eps",
        "Divide by sqrt(v) + eps.",
        "应当除以 sqrt(v) + eps。",
    ),
    "eps_inside_sqrt": (
        "adds eps to the sum of squares, inside the root, instead of to the root",
        "把 eps 加在根号之内的平方和上，而不是加在根号之外",
        "Both definitions are in use (TensorFlow's RMSProp, Paddle's and OneFlow's have this one): "
        "give that side eps squared where gradients are small.",
        "两种定义都有人使用（TensorFlow、Paddle 和 OneFlow 的 RMSProp 属于此种）：梯度很小时，"
        "请在这一边传入 eps 的平方。",
    ),
    "eps_inside_in_tail": (
        "adds eps inside the root for the last n mod 8 elements, and outside for the others",
        "最后 n mod 8 个元素把 eps 加在根号内，其余元素加在根号外",
        "Report it as a bug, with the script of this answer; as a workaround, make n a multiple "
        "of 8.",
        "请附上本答复中的脚本，作为缺陷上报；临时规避：使 n 为 8 的倍数。",
    ),
    "lr_decay_ignored": (
        "does not lower the learning rate with the step",
        "学习率没有随步数降低",
        "Set lr_decay to 0 on the other side.",
        "请把另一边的 lr_decay 设为 0。",
    ),
    "gradient_clipped": (
        "clips the gradient to a norm of {max_norm:g} before its step",
        "更新之前先把梯度裁剪到范数 {max_norm:g}",
        "Clip on both sides, or on neither: apex's LAMB divides by the global norm of the "
        "gradients first (max_grad_norm).",
        "请在两边都裁剪，或都不裁剪：apex 的 LAMB 会先除以梯度的全局范数（max_grad_norm）。",
    ),
    "gradient_multiplied": (
        "takes its step from the gradient times {factor}",
        "用梯度的 {factor} 倍更新参数",
        "Remove the loss scale before the step, and look for a sum over ranks, rows or parts in "
        "place of their mean. A factor of many digits may come from the norm of all gradients "
        "together, to which apex's LAMB clips first (max_grad_norm).",
        "请在更新之前除去损失缩放，并检查对进程、行或部分是否用了求和而不是均值。"
        "位数很多的倍数可能来自全部梯度的总范数：apex 的 LAMB 会先按它裁剪（max_grad_norm）。",
    ),
    "gradient_normalised": (
        "divides the gradient by its norm before its step, although that is less than 1",
        "更新之前先把梯度除以其范数，尽管该范数小于 1",
        "Normalise on both sides, or on neither: NVIDIA's NVLAMB always divides by the norm, where "
        "apex's LAMB divides only by norms above max_grad_norm.",
        "请在两边都归一化，或都不归一化：NVIDIA 的 NVLAMB 总是除以范数，"
        "而 apex 的 LAMB 只在范数超过 max_grad_norm 时才除。",
    ),
    "betas_exchanged": (
        "swaps the two betas",
        "把两个 beta 弄反了",
        "Lion updates by the average with beta1, and keeps the average with beta2 as its momentum.",
        "Lion 以 beta1 的加权平均更新参数，以 beta2 的加权平均更新动量。",
    ),
}
