"""The signatures that public libraries and tutorials give to the ops, and what each parameter means
there: for each, the op, the parameters, and the op's arguments in terms of them."""

ATTENTION = "q=query, k=key, v=value"
CAUSAL = "causal='top_left' if {0} else 'none'"

LIBRARY_SIGNATURES: tuple[tuple[str, str, str, str], ...] = (
    # attention
    ("plain", "attention", "q, k, v, scale=None", "q=q, k=k, v=v, scale=scale"),
    ("capitals", "attention", "Q, K, V, sm_scale=None", "q=Q, k=K, v=V, scale=sm_scale"),
    (
        "Triton tutorial",
        "attention",
        "q, k, v, causal, sm_scale",
        f"q=q, k=k, v=v, scale=sm_scale, {CAUSAL.format('causal')}",
    ),
    (
        "PyTorch",
        "attention",
        "query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, "
        "enable_gqa=False",
        f"{ATTENTION}, mask=attn_mask, scale=scale, {CAUSAL.format('is_causal')}",
    ),
    (
        "flash-attn",
        "attention",
        "q, k, v, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1), "
        "softcap=0.0, alibi_slopes=None, deterministic=False, return_attn_probs=False",
        f"q=q, k=k, v=v, scale=softmax_scale, softcap=softcap or None, {CAUSAL.format('causal')}",
    ),
    (
        "xformers",
        "attention",
        "query, key, value, attn_bias=None, p=0.0, scale=None, *, op=None",
        f"{ATTENTION}, mask=attn_bias, scale=scale",
    ),
    (
        "JAX",
        "attention",
        "query, key, value, bias=None, mask=None, *, scale=None, is_causal=False, "
        "query_seq_lengths=None, key_value_seq_lengths=None, implementation=None",
        f"{ATTENTION}, mask=bias, keep=mask, scale=scale, {CAUSAL.format('is_causal')}",
    ),
    ("KernelBench", "attention", "Q, K, V", "q=Q, k=K, v=V"),
    ("reordered", "attention", "key, query, value, mask=None", f"{ATTENTION}, mask=mask"),
    ("scale required", "attention", "q, k, v, sm_scale", "q=q, k=k, v=v, scale=sm_scale"),
    ("scale of 1", "attention", "q, k, v, sm_scale=1.0", "q=q, k=k, v=v, scale=sm_scale"),
    (
        "text",
        "attention",
        "q, k, v, mask=None, causal='none', scale=None",
        "q=q, k=k, v=v, mask=mask, causal=causal, scale=scale",
    ),
    # normalisations
    (
        "PyTorch",
        "layernorm",
        "input, normalized_shape, weight=None, bias=None, eps=1e-5",
        "x=input, normalized_shape=normalized_shape, weight=weight, bias=bias, eps=eps",
    ),
    (
        "PyTorch native",
        "layernorm",
        "input, normalized_shape, weight, bias, eps",
        "x=input, normalized_shape=normalized_shape, weight=weight, bias=bias, eps=eps",
    ),
    ("Liger", "layernorm", "X, W, B, eps", "x=X, weight=W, bias=B, eps=eps"),
    (
        "Triton tutorial",
        "layernorm",
        "x, normalized_shape, weight, bias, eps",
        "x=x, normalized_shape=normalized_shape, weight=weight, bias=bias, eps=eps",
    ),
    (
        "gamma",
        "layernorm",
        "x, gamma, beta, epsilon=1e-12",
        "x=x, weight=gamma, bias=beta, eps=epsilon",
    ),
    (
        "Flax",
        "layernorm",
        "x, scale=None, bias=None, epsilon=1e-6",
        "x=x, weight=scale, bias=bias, eps=epsilon",
    ),
    (
        "Haiku",
        "layernorm",
        "inputs, scale=None, offset=None, eps=1e-5",
        "x=inputs, weight=scale, bias=offset, eps=eps",
    ),
    (
        "neutral",
        "layernorm",
        "x, weight=1.0, bias=0.0, eps=1e-5",
        "x=x, weight=weight, bias=bias, eps=eps",
    ),
    (
        "Liger",
        "rms_norm",
        "X, W, eps, offset=0.0, casting_mode='llama', in_place=True",
        "x=X, weight=W, eps=eps",
    ),
    (
        "PyTorch",
        "rms_norm",
        "input, normalized_shape, weight=None, eps=None",
        "x=input, weight=weight, eps=eps",
    ),
    (
        "Llama",
        "rms_norm",
        "hidden_states, weight, variance_epsilon=1e-6",
        "x=hidden_states, weight=weight, eps=variance_epsilon",
    ),
    ("vLLM", "rms_norm", "x, weight, epsilon", "x=x, weight=weight, eps=epsilon"),
    (
        "PyTorch",
        "group_norm",
        "input, num_groups, weight=None, bias=None, eps=1e-5",
        "x=input, num_groups=num_groups, weight=weight, bias=bias, eps=eps",
    ),
    (
        "Liger",
        "group_norm",
        "X, num_channels, num_groups, W, B, eps",
        "x=X, num_groups=num_groups, weight=W, bias=B, eps=eps",
    ),
    (
        "MLX",
        "group_norm",
        "x, groups, gamma, beta, eps",
        "x=x, num_groups=groups, weight=gamma, bias=beta, eps=eps",
    ),
    (
        "PyTorch",
        "instance_norm",
        "input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, "
        "momentum=0.1, eps=1e-5",
        "x=input, weight=weight, bias=bias, eps=eps",
    ),
    (
        "PyTorch",
        "batch_norm",
        "input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, "
        "eps=1e-5",
        "x=input, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias, "
        "training=training, momentum=momentum, eps=eps",
    ),
    # rows
    ("PyTorch", "softmax", "input, dim=None, _stacklevel=3, dtype=None", "x=input, axis=dim"),
    ("KernelBench", "softmax", "x, dim=-1", "x=x, axis=dim"),
    ("JAX", "softmax", "x, axis=-1, where=None", "x=x, axis=axis"),
    ("required", "softmax", "logits, dim", "x=logits, axis=dim"),
    ("Triton tutorial", "softmax", "x", "x=x"),
    ("PyTorch", "log_softmax", "input, dim=None, dtype=None", "x=input, axis=dim"),
    ("PyTorch", "logsumexp", "input, dim, keepdim=False", "x=input, axis=dim"),
    (
        "SciPy",
        "logsumexp",
        "a, axis=None, b=None, keepdims=False, return_sign=False",
        "x=a, axis=axis",
    ),
    ("NumPy", "sum", "a, axis=None, dtype=None, out=None, keepdims=False", "x=a, axis=axis"),
    ("PyTorch", "mean", "input, dim=None, keepdim=False, *, dtype=None", "x=input, axis=dim"),
    (
        "PyTorch",
        "var",
        "input, dim=None, *, correction=1, keepdim=False",
        "x=input, axis=dim, ddof=correction",
    ),
    (
        "PyTorch 1",
        "std",
        "input, dim, unbiased=True, keepdim=False",
        "x=input, axis=dim, ddof=int(unbiased)",
    ),
    ("NumPy", "std", "a, axis=None, dtype=None, out=None, ddof=0", "x=a, axis=axis, ddof=ddof"),
    ("NumPy", "norm", "x, ord=None, axis=None, keepdims=False", "x=x, axis=axis"),
    ("PyTorch", "cumsum", "input, dim, *, dtype=None", "x=input, axis=dim"),
    ("JAX", "max", "a, axis=None, out=None", "x=a, axis=axis"),
    ("PyTorch", "prod", "input, dim", "x=input, axis=dim"),
    # losses
    (
        "PyTorch",
        "cross_entropy",
        "input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, "
        "reduction='mean', label_smoothing=0.0",
        "x=input, target=target, weight=weight, ignore_index=ignore_index, reduction=reduction, "
        "label_smoothing=label_smoothing",
    ),
    (
        "logits",
        "cross_entropy",
        "logits, labels, ignore_index=-100, reduction='mean', label_smoothing=0.0",
        "x=logits, target=labels, ignore_index=ignore_index, reduction=reduction, "
        "label_smoothing=label_smoothing",
    ),
    ("reversed", "cross_entropy", "labels, logits", "x=logits, target=labels"),
    ("KernelBench", "cross_entropy", "predictions, targets", "x=predictions, target=targets"),
    (
        "PyTorch",
        "nll",
        "input, target, weight=None, ignore_index=-100, reduction='mean'",
        "x=input, target=target, weight=weight, ignore_index=ignore_index, reduction=reduction",
    ),
    (
        "PyTorch",
        "mse",
        "input, target, reduction='mean'",
        "x=input, target=target, reduction=reduction",
    ),
    ("scikit-learn", "mse", "y_true, y_pred", "x=y_pred, target=y_true"),
    (
        "PyTorch",
        "huber",
        "input, target, reduction='mean', delta=1.0",
        "x=input, target=target, reduction=reduction, delta=delta",
    ),
    (
        "PyTorch",
        "smooth_l1",
        "input, target, reduction='mean', beta=1.0",
        "x=input, target=target, reduction=reduction, beta=beta",
    ),
    (
        "PyTorch",
        "kl_div",
        "input, target, reduction='mean', log_target=False",
        "x=input, target=target, reduction=reduction, log_target=log_target",
    ),
    (
        "PyTorch",
        "bce_with_logits",
        "input, target, reduction='mean'",
        "x=input, target=target, reduction=reduction",
    ),
    # products
    ("PyTorch", "linear", "input, weight, bias=None", "x=input, weight=weight, bias=bias"),
    ("letters", "linear", "X, W, b", "x=X, weight=W, bias=b"),
    ("weights first", "linear", "w, b, x", "x=x, weight=w, bias=b"),
    ("PyTorch", "matmul", "input, other, *, out=None", "a=input, b=other"),
    ("KernelBench", "matmul", "A, B", "a=A, b=B"),
    ("Triton tutorial", "matmul", "a, b, activation=''", "a=a, b=b"),
    ("NumPy", "matmul", "x1, x2, /, out=None", "a=x1, b=x2"),
    (
        "PyTorch",
        "conv2d",
        "input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1",
        "x=input, weight=weight, bias=bias, stride=stride, padding=padding, dilation=dilation, "
        "groups=groups",
    ),
    (
        "pairs",
        "conv2d",
        "x, w, b=None, stride=(1, 1), padding='valid'",
        "x=x, weight=w, bias=b, stride=list(stride), padding=padding",
    ),
    (
        "PyTorch",
        "embedding",
        "input, weight, padding_idx=None, max_norm=None",
        "indices=input, weight=weight, padding_idx=padding_idx",
    ),
    ("JAX", "embedding", "table, ids", "indices=ids, weight=table"),
    # functions and gates
    ("PyTorch", "gelu", "input, approximate='none'", "x=input"),
    ("PyTorch", "elu", "input, alpha=1.0, inplace=False", "x=input, alpha=alpha"),
    ("PyTorch", "softplus", "input, beta=1, threshold=20", "x=input"),
    ("C", "atan2", "y, x", "a=y, b=x"),
    ("PyTorch", "atan2", "input, other", "a=input, b=other"),
    ("Liger", "swiglu", "a, b", "a=a, b=b"),
    ("vLLM", "swiglu", "up, gate", "a=gate, b=up"),
    ("PyTorch", "pow", "input, exponent", "x=input, exponent=exponent"),
    ("NumPy", "pow", "x1, x2, /", "x=x1, exponent=x2"),
    (
        "flash-attn",
        "rotary",
        "x, position_ids, theta=10000.0, interleaved=False",
        "x=x, position=position_ids, base=theta, layout='interleaved' if interleaved else 'half'",
    ),
    # optimizers
    (
        "PyTorch",
        "adamw",
        "param, grad, exp_avg, exp_avg_sq, *, step, lr, beta1, beta2, weight_decay, eps",
        "param=param, grad=grad, m=exp_avg, v=exp_avg_sq, step=step, lr=lr, beta1=beta1, "
        "beta2=beta2, weight_decay=weight_decay, eps=eps",
    ),
    (
        "letters",
        "adam",
        "p, g, m, v, lr, b1, b2, eps, t",
        "param=p, grad=g, m=m, v=v, lr=lr, beta1=b1, beta2=b2, eps=eps, step=t",
    ),
    (
        "PyTorch",
        "sgd",
        "param, grad, momentum_buffer=None, *, lr, momentum=0.0, weight_decay=0.0, dampening=0.0, "
        "nesterov=False, step=1",
        "param=param, grad=grad, buf=momentum_buffer, lr=lr, momentum=momentum, step=step, "
        "dampening=dampening, weight_decay=weight_decay, nesterov=nesterov",
    ),
    (
        "Lion",
        "lion",
        "p, grad, exp_avg, lr, wd, beta1, beta2",
        "param=p, grad=grad, m=exp_avg, lr=lr, weight_decay=wd, beta1=beta1, beta2=beta2",
    ),
    # gradients
    ("Triton tutorial", "softmax_backward", "dy, x, axis=-1", "dy=dy, x=x, axis=axis"),
    ("PyTorch", "softmax_backward", "grad_output, input, dim", "dy=grad_output, x=input, axis=dim"),
    (
        "Liger",
        "layernorm_backward",
        "dY, X, W, B=None, eps=1e-5",
        "dy=dY, x=X, weight=W, bias=B, eps=eps",
    ),
    (
        "inputs first",
        "rms_norm_backward",
        "x, weight, grad_output, eps=1e-6",
        "dy=grad_output, x=x, weight=weight, eps=eps",
    ),
    ("letters", "matmul_backward", "dC, A, B", "dc=dC, a=A, b=B"),
    (
        "flash-attn",
        "attention_backward",
        "dout, q, k, v, softmax_scale=None, causal=False",
        f"dy=dout, q=q, k=k, v=v, scale=softmax_scale, {CAUSAL.format('causal')}",
    ),
    (
        "logits",
        "cross_entropy_backward",
        "grad, logits, labels",
        "dloss=grad, x=logits, target=labels",
    ),
)
