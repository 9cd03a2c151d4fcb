"""The causes of wrong elementwise ops, clipping and dropout, for `causes`: what the kernel does and
what to do, each in English and Chinese."""

ELEMENTS: dict[str, tuple[str, str, str, str]] = {
    "beyond_threshold": (
        "returns {returns} where {where}, although the exact result still differs from it there",
        "当 {where} 时直接返回 {returns}，而精确结果在那里仍与之不同",
        "Move the threshold to where the result rounds to this value: for softplus in float64, to "
        "37.",
        "应当把阈值移到结果恰好舍入为该值之处：对 float64 的 softplus，即 37。",
    ),
    "tanh_of_exponential": (
        "computes x tanh(e^x), without the logarithm of softplus",
        "计算的是 x tanh(e^x)，漏掉了 softplus 中的对数",
        "Compute x tanh(log1p(e^x)).",
        "应当计算 x tanh(log1p(e^x))。",
    ),
    "log_of_one_plus": (
        "computes log(1 + e), which drops the digits of a small e",
        "计算 log(1 + e)，当 e 很小时丢失其有效数字",
        "Use log1p(e).",
        "应当使用 log1p(e)。",
    ),
    "unguarded_softplus": (
        "computes log(1 + e^-x): a small e^-x loses its digits, a large one overflows",
        "计算 log(1 + e^-x)：e^-x 很小时丢失有效数字，很大时溢出",
        "Compute min(x, 0) - log1p(e^-|x|).",
        "应当计算 min(x, 0) - log1p(e^-|x|)。",
    ),
    "slope_of_a_fifth": (
        "has the slope 1/5 instead of 1/6, as Keras and Theano define the hard sigmoid",
        "斜率为 1/5 而不是 1/6，这是 Keras 和 Theano 的 hard sigmoid 定义",
        "Both definitions are in use: choose one for both sides.",
        "两种定义都有人使用：请在两边选用同一种。",
    ),
    "sigmoid_instead": (
        "computes the sigmoid itself",
        "计算的是 sigmoid 本身",
        "Ask for hardsigmoid, or compare with sigmoid.",
        "请使用 hardsigmoid；若本意如此，请与 sigmoid 比较。",
    ),
    "exponential_minus_one": (
        "computes e^x - 1, which cancels near 0",
        "计算 e^x - 1，在 0 附近发生灾难性抵消",
        "Use expm1(x).",
        "应当使用 expm1(x)。",
    ),
    "alpha_left_out": (
        "uses alpha = 1",
        "把 alpha 当作 1",
        "Multiply e^x - 1 by alpha.",
        "应当把 e^x - 1 乘以 alpha。",
    ),
    "selu_instead": (
        "computes selu, which has constants of its own",
        "计算的是 selu，它使用固定的常数",
        "Ask for elu, or compare with selu.",
        "请使用 elu；若本意如此，请与 selu 比较。",
    ),
    "scale_left_out": (
        "leaves out selu's factor 1.0507",
        "漏乘了 selu 的系数 1.0507",
        "Multiply by 1.0507009873554804934193349852946.",
        "应当乘以 1.0507009873554804934193349852946。",
    ),
    "rounded_constants": (
        "uses constants of a few decimals ({constants})",
        "使用位数不足的常数（{constants}）",
        "Write constants with at least 17 digits: sqrt(2 / pi) is 0.79788456080286536, selu's are "
        "1.0507009873554805 and 1.6732632423543773.",
        "常数应至少写出 17 位有效数字：sqrt(2 / pi) 为 0.79788456080286536，selu 的两个常数为 "
        "1.0507009873554805 和 1.6732632423543773。",
    ),
    "float32_constants": (
        "holds its constants in float32 ({constants}) although it computes in float64",
        "以 float64 计算，常数却只有 float32 精度（{constants}）",
        "Write the constants as float64: 1.0 / 6.0, not 1.0f / 6.0f.",
        "常数应写成 float64：1.0 / 6.0，而不是 1.0f / 6.0f。",
    ),
    "unguarded_square": (
        "computes x (w - 1) / (w + 1) with w = (1 + e^x)²: NaN where w overflows, 0 where 1 + e^x "
        "is 1",
        "计算 x (w - 1) / (w + 1)，其中 w = (1 + e^x)²：w 溢出之处得到 NaN，1 + e^x 等于 1 "
        "之处得到 0",
        "Compute x tanh(log1p(e^x)), or return x where e^x is large.",
        "应当计算 x tanh(log1p(e^x))，或在 e^x 很大时直接返回 x。",
    ),
    "tanh_by_exponentials": (
        "computes tanh(s) as (e^s - e^-s) / (e^s + e^-s), which is NaN where e^s overflows",
        "以 (e^s - e^-s) / (e^s + e^-s) 计算 tanh(s)，e^s 溢出之处得到 NaN",
        "Call tanh, which needs no e^s of large arguments.",
        "请调用 tanh，它不需要对大自变量计算 e^s。",
    ),
    "elu_slope_of_result": (
        "puts its result y into the slope of elu with alpha = 1: λ (y + 1) instead of y + λ α",
        "把自身的结果 y 代入 alpha = 1 的 ELU 导数公式：λ (y + 1)，而正确的是 y + λ α",
        "Use y + λ α where x is negative; λ = 1.0507, λ α = 1.7581. MindSpore's ops.selu has the "
        "other slope (2.10): λ times ops.elu with α = 1.6733 serves in its place.",
        "x 为负时应当使用 y + λ α，其中 λ = 1.0507，λ α = 1.7581。MindSpore 2.10 的 ops.selu "
        "使用了前者：可改用 λ 乘以 α = 1.6733 的 ops.elu。",
    ),
    "slope_from_result": (
        "computes the gradient from the rounded result, as {formula}, which cancels where y is "
        "near 1 or -1",
        "由舍入后的结果 y 计算梯度：{formula}，在 y 接近 1 或 -1 处发生灾难性抵消",
        "Where such gradients matter, compute the slope from x: sigmoid(-x) for 1 - y, e^x for "
        "y + 1.",
        "若这些梯度重要，应当由 x 计算导数：以 sigmoid(-x) 代替 1 - y，以 e^x 代替 y + 1。",
    ),
    "one_minus_square": (
        "rounds x² before it computes 1 - x², which cancels where |x| is near 1",
        "先舍入 x² 再计算 1 - x²，在 |x| 接近 1 处发生灾难性抵消",
        "Compute (1 - x)(1 + x).",
        "应当计算 (1 - x)(1 + x)。",
    ),
    "cubed_argument": (
        "computes the slope of 1 / √x by √(x³), which overflows and underflows early",
        "以 √(x³) 计算 1/√x 的导数，x³ 会过早溢出或下溢",
        "Multiply three copies of 1 / √x instead.",
        "应当改为把三个 1/√x 相乘。",
    ),
    "rounded_exponent": (
        "rounds x² before it computes e^(-x²), which magnifies the rounding by x²",
        "先舍入 x² 再计算 e^(-x²)，使舍入误差放大 x² 倍",
        "Split x² into h + l, for instance by an FMA, and compute e^(-h) (1 - l).",
        "应当把 x² 拆成 h + l（例如用 FMA），再计算 e^(-h) (1 - l)。",
    ),
    "quotient_rule": (
        "differentiates x / (1 + |x|) as a quotient, dy / d - dy |x| / d², which cancels where "
        "x is large",
        "按商的求导法则计算 dy / d - dy |x| / d²，x 较大时发生灾难性抵消",
        "Compute dy / (1 + |x|)² in one kernel.",
        "应当在一个算子中计算 dy / (1 + |x|)²。",
    ),
    "root_of_square": (
        "computes x / √(1 + x²)",
        "计算的是 x / √(1 + x²)",
        "Compute x / (1 + |x|).",
        "应当计算 x / (1 + |x|)。",
    ),
    "tanh_instead": (
        "computes tanh(x)",
        "计算的是 tanh(x)",
        "Ask for softsign, or compare with tanh.",
        "请使用 softsign；若本意如此，请与 tanh 比较。",
    ),
    "slope_not_squared": (
        "divides the gradient by 1 + |x| once, not twice",
        "梯度只除以一次 1 + |x|，而不是两次",
        "Compute dy / (1 + |x|)².",
        "应当计算 dy / (1 + |x|)²。",
    ),
    "sigmoid_of_x": (
        "multiplies by sigmoid(x) instead of sigmoid(-x)",
        "乘以 sigmoid(x)，而不是 sigmoid(-x)",
        "Compute dy sigmoid(-x).",
        "应当计算 dy sigmoid(-x)。",
    ),
    "other_dropout_convention": (
        "scales in inference what should be scaled in training, or the other way round",
        "把训练时的缩放放到了推理时，或者相反",
        "Choose one convention. Paddle's names are upscale_in_train (PyTorch's convention) and "
        "downscale_in_infer.",
        "请统一约定：Paddle 称之为 upscale_in_train（与 PyTorch 相同）和 downscale_in_infer。",
    ),
    "scaled_by_keep_probability": (
        "multiplies by 1 - p instead of dividing by it",
        "乘以 1 - p，而不是除以 1 - p",
        "Divide the elements that are kept by 1 - p.",
        "保留的元素应除以 1 - p。",
    ),
    "scaled_by_drop_probability": (
        "divides by p: it mistakes p for the probability of keeping an element",
        "除以 p：把 p 当作保留概率",
        "Pass the probability of dropping an element.",
        "请传入丢弃概率。",
    ),
    "float32_scale": (
        "holds the scale 1 / (1 - p) in float32 although it computes in float64",
        "以 float64 计算，缩放系数 1 / (1 - p) 却只有 float32 精度",
        "Compute 1 / (1 - p) in float64.",
        "应当以 float64 计算 1 / (1 - p)。",
    ),
    "clipped_per_tensor": (
        "clips each tensor by its own norm instead of all tensors by their global norm",
        "每个张量按各自的范数裁剪，而不是全部张量按全局范数裁剪",
        "Pass all parameters in one call.",
        "应当在一次调用中传入全部参数。",
    ),
    "clipped_per_group": (
        "clips groups of tensors, each group by its own norm ({groups})",
        "把张量分成若干组，每组按各自的范数裁剪（{groups}）",
        "Clip all parameters in one call: optimizers that clip do so for each parameter group.",
        "应当在一次调用中裁剪全部参数：自带裁剪的优化器会对每个参数组分别裁剪。",
    ),
    "norm_of_other_tensors": (
        "clips by a norm that does not count every tensor exactly once (they count {counts} times)",
        "裁剪所用的范数没有把每个张量恰好计入一次（依次计入 {counts} 次）",
        "Sum the squares over ranks, stages and experts, and those of a tensor that several ranks "
        "hold only once.",
        "应当对各进程、流水线阶段与专家求平方和；多个进程共有的张量只计一次。",
    ),
    "clipped_globally": (
        "clips by the global norm of all tensors instead of each tensor by its own norm",
        "按全局范数裁剪，而不是每个张量按各自的范数裁剪",
        "Clip tensor by tensor.",
        "应当逐个张量裁剪。",
    ),
    "clip_eps_differs": (
        "uses another factor: min(1, M / (n + 1e-6)) instead of M / max(n, M), or the other way "
        "round",
        "裁剪系数的定义不同：应为 M / max(n, M) 而使用 min(1, M / (n + 1e-6))，或者相反",
        "Both are in use: PyTorch and OneFlow add 1e-6, Paddle's classes and TensorFlow do not; "
        "they differ by 1e-6 / n.",
        "两种定义都有人使用：PyTorch 和 OneFlow 加 1e-6，Paddle 的裁剪类和 TensorFlow 不加；"
        "两者相差 1e-6 / n。",
    ),
    "clip_eps_always": (
        "divides by max(n, M) + eps: gradients that need no clipping shrink too",
        "除以 max(n, M) + eps：无需裁剪的梯度也会缩小",
        "Leave eps out, or take the minimum with 1.",
        "去掉 eps，或与 1 取较小者。",
    ),
    "always_rescaled": (
        "always scales to the norm max_norm, up as well as down",
        "总是把范数缩放到 max_norm，小于它时反而放大",
        "Compare first: min(1, max_norm / norm).",
        "应先比较：min(1, max_norm / norm)。",
    ),
    "clipping_left_out": (
        "returns the gradients unclipped",
        "梯度原样返回，没有裁剪",
        "Check that clipping is called, after backward and before the step.",
        "请检查是否在反向传播之后、更新之前调用了裁剪。",
    ),
    "norm_not_rooted": (
        "uses the sum of squares as the norm",
        "把平方和当作范数",
        "Take its square root.",
        "应当开平方。",
    ),
    "sum_of_norms": (
        "adds up the tensors' norms",
        "把各张量的范数直接相加",
        "Take the root of the sum of their squares.",
        "应取各范数平方和的平方根。",
    ),
    "power_by_logarithm": (
        "computes exp(y log x) in the working precision: the logarithm's error is multiplied by y",
        "以工作精度计算 exp(y log x)，把对数的误差放大了 y 倍",
        "Call pow, or carry the logarithm in twice the precision.",
        "请调用 pow，或以两倍精度保存对数。",
    ),
    "magnitude_of_base": (
        "uses |x| instead of x: odd powers of negative numbers lose their sign",
        "用 |x| 代替 x：负数的奇次幂丢失了符号",
        "Give odd integer powers the sign of x.",
        "奇数次幂应带上 x 的符号。",
    ),
    "zero_times_infinity": (
        "has no rule for x = 0 and y = 0 in the gradient of x: 0 times an infinite power is NaN",
        "x 的梯度中没有处理 x = 0 且 y = 0 的情形：0 乘以无穷大的幂得到 NaN",
        "Return 0 where y is 0.",
        "y 为 0 处梯度应为 0。",
    ),
    "negative_base_ignored": (
        "gives the exponent a gradient of 0 wherever x is not above 0, where the gradient does not "
        "exist or is infinite",
        "凡 x 不大于 0 之处，指数的梯度一律为 0，而那里的梯度不存在或为无穷大",
        "Compute dy x^y log(x) there too, so that a NaN shows.",
        "这些位置也应计算 dy x^y log(x)，让 NaN 显现出来。",
    ),
    "exponent_not_lowered": (
        "multiplies by x^y instead of x^(y - 1) in the gradient of x",
        "x 的梯度中乘以 x^y，而不是 x^(y - 1)",
        "Compute dy y x^(y - 1).",
        "应当计算 dy y x^(y - 1)。",
    ),
    "quadrants_folded": (
        "computes atan(a / b): the sign of b is lost",
        "计算的是 atan(a / b)：丢失了 b 的符号",
        "Call atan2(a, b).",
        "请调用 atan2(a, b)。",
    ),
    "arguments_exchanged": (
        "takes the arguments in the opposite order, atan2(b, a)",
        "参数顺序颠倒，计算的是 atan2(b, a)",
        "Pass the ordinate first.",
        "第一个参数应为纵坐标。",
    ),
    "sign_of_abscissa_gradient": (
        "gives the gradient of the second argument with the wrong sign",
        "第二个参数的梯度符号相反",
        "Compute db = -dy a / (a² + b²).",
        "应当计算 db = -dy a / (a² + b²)。",
    ),
    "unscaled_squares": (
        "computes √(a² + b²) without scaling: the squares overflow or underflow",
        "未经缩放就计算 √(a² + b²)：平方会上溢或下溢",
        "Call hypot, or divide by the larger magnitude first.",
        "请调用 hypot，或先除以绝对值较大者。",
    ),
    "product_before_quotient": (
        "computes its gradient as (dy a) / y: the product underflows or overflows early",
        "以 (dy a) / y 计算梯度：乘积会过早下溢或上溢",
        "Divide first: dy (a / y).",
        "应当先做除法：dy (a / y)。",
    ),
    "sum_of_magnitudes": (
        "computes |a| + |b|",
        "计算的是 |a| + |b|",
        "Compute √(a² + b²).",
        "应当计算 √(a² + b²)。",
    ),
    "gate_swapped": (
        "uses the second input as the gate: silu(b) a",
        "把第二个输入当作门控：silu(b) a",
        "Swap the two halves of the projection.",
        "请交换投影结果的两半。",
    ),
    "sigmoid_gate": (
        "computes sigmoid(a) b, which is GLU",
        "计算的是 sigmoid(a) b，即 GLU",
        "Multiply by a once more, or compare with GLU.",
        "应当再乘以 a；若本意如此，请与 GLU 比较。",
    ),
    "gelu_gate": (
        "computes gelu(a) b, which is GEGLU",
        "计算的是 gelu(a) b，即 GEGLU",
        "Use silu for the gate, or compare with GEGLU.",
        "门控应当使用 silu；若本意如此，请与 GEGLU 比较。",
    ),
    "quick_gelu_gate": (
        "computes a σ(1.702 a) b: the gate is the sigmoid approximation of GELU",
        "计算的是 a σ(1.702 a) b：门控是 GELU 的 sigmoid 近似",
        "Use silu, whose factor is 1, for the gate.",
        "门控应当使用 silu，其系数为 1。",
    ),
    "relu_gate": (
        "computes relu(a) b, which is ReGLU",
        "计算的是 relu(a) b，即 ReGLU",
        "Use silu for the gate, or compare with ReGLU.",
        "门控应当使用 silu；若本意如此，请与 ReGLU 比较。",
    ),
}
