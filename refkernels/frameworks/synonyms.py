"""The usual names of ops' arguments: one table for kernels' parameters and for torch's calls."""

SYNONYMS: dict[
    str, str
] = {  # what libraries call an op's inputs, params and outputs, in lower case
    "x": "input",
    "y": "output out o result probs",
    "dy": "grad_output grad_out grad gout dout do g upstream",
    "weight": "weights w gamma g scale kernel filter filters table embedding embeddings emb",
    "weights": "weight w",
    "bias": "b beta offset",
    "target": "targets label labels y tgt y_true",
    "indices": "index ids idx input_ids token_ids input",
    "q": "query queries",
    "k": "key keys",
    "v": "value values exp_avg_sq nu",
    "mask": "attn_mask attention_mask attn_bias bias",
    "keep": "mask",
    "lengths": "seqlens seq_lens kv_lens",
    "position": "positions position_ids pos",
    "a": "gate",
    "b": "up",
    "running_mean": "moving_mean mean",
    "running_var": "moving_var var",
    "param": "params p w weight",
    "grad": "g grads gradient",
    "grads": "g grad gradients",
    "m": "exp_avg mu",
    "vmax": "max_exp_avg_sq v_max",
    "buf": "momentum_buffer velocity",
    "accum": "state_sum square_avg",
    "scale": "sm_scale softmax_scale scaling",
    "causal": "is_causal",
    "axis": "dim axes",
    "ddof": "correction unbiased",
    "eps": "epsilon variance_epsilon norm_eps layer_norm_eps",
    "base": "theta rope_theta",
    "layout": "interleaved",
    "num_groups": "groups",
    "p": "rate dropout_p drop_prob",
    "label_smoothing": "smoothing",
    "lr": "learning_rate",
    "beta1": "b1",
    "beta2": "b2",
    "rho": "alpha",
    "weight_decay": "wd",
    "step": "t step_count",
    "max_norm": "clip_norm",
}
"""By the op's name of an input, param or output, what libraries call it, in lower case."""
MEANINGS: dict[str, list[str]] = {}
for _name, _others in SYNONYMS.items():
    for _other in _others.split():
        MEANINGS.setdefault(_other, []).append(_name)
