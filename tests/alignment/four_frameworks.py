"""What a small training needs of each framework, under one name: `of("torch").linear(5, 3)`.

A weight of a linear layer is given as (inputs, outputs), and held as each framework holds it.
"""

import importlib


class Torch:
    """OneFlow has its names."""

    forward = "forward"

    def __init__(self, name):
        self.api = api = importlib.import_module(name)
        self.nn, self.F, self.optim = api.nn, api.nn.functional, api.optim
        self.Model, self.linear = api.nn.Module, api.nn.Linear
        self.norm, self.gelu, self.log_softmax = api.nn.LayerNorm, api.nn.GELU, api.nn.LogSoftmax
        self.seed, self.tensor, self.turned = api.manual_seed, api.tensor, True
        if name == "torch":
            api.set_num_threads(1)

    def array(self, tensor):
        return tensor.detach().numpy()

    def hold(self, parameter, array):
        with self.api.no_grad():
            parameter.copy_(self.api.tensor(array))

    def set(self, layer, weight, bias=None):
        turned = self.turned and isinstance(layer, self.linear)
        self.hold(self.weights(layer)[0], weight.T.copy() if turned else weight)
        if bias is not None:
            self.hold(self.weights(layer)[1], bias)

    def weights(self, layer):
        return layer.weight, getattr(layer, "bias", None)

    def freeze(self, parameter):
        parameter.requires_grad = False

    def free(self, model):
        return [p for p in model.parameters() if p.requires_grad]

    def dropout(self, x, p):
        return self.F.dropout(x, p, training=True)

    def loss(self, kind, weight):
        """CrossEntropyLoss, NLLLoss or BCEWithLogitsLoss, of class weights."""
        word = "pos_weight" if kind.startswith("BCE") else "weight"
        return getattr(self.nn, kind)(**{word: weight})

    def clip(self, parameters, norm):
        self.nn.utils.clip_grad_norm_(parameters, norm)

    def step(self, model, optimizer, loss_of, clip=None):
        """A function that takes a step on a batch and returns its loss."""

        def step(*batch):
            optimizer.zero_grad()
            loss = loss_of(*batch)
            loss.backward()
            if clip is not None:
                self.clip(self.free(model), clip)
            optimizer.step()
            return loss

        return step


class Paddle(Torch):
    def __init__(self, name):
        self.api = api = importlib.import_module(name)
        self.nn, self.F, self.optim = api.nn, api.nn.functional, api.optimizer
        self.Model, self.linear = api.nn.Layer, api.nn.Linear
        self.norm, self.gelu, self.log_softmax = api.nn.LayerNorm, api.nn.GELU, api.nn.LogSoftmax
        self.seed, self.tensor, self.turned = api.seed, api.to_tensor, False

    def array(self, tensor):
        return tensor.numpy()

    def hold(self, parameter, array):
        parameter.set_value(array)

    def freeze(self, parameter):
        parameter.stop_gradient = True

    def free(self, model):
        return [p for p in model.parameters() if not p.stop_gradient]

    def step(self, model, optimizer, loss_of, clip=None):
        """Clipping is the optimizer's own."""

        def step(*batch):
            loss = loss_of(*batch)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            return loss

        return step


class MindSpore(Torch):
    forward = "construct"

    def __init__(self, name):
        self.api = api = importlib.import_module(name)
        api.set_device("CPU")
        api.set_context(mode=api.PYNATIVE_MODE)
        self.nn, self.optim, self.Model, self.linear = api.nn, api.nn, api.nn.Cell, api.nn.Dense
        self.seed, self.tensor, self.turned = api.set_seed, api.Tensor, True

    def norm(self, width):
        return self.nn.LayerNorm((width,), epsilon=1e-5)

    def gelu(self):
        return self.nn.GELU(approximate=False)

    def log_softmax(self, axis):
        return self.nn.LogSoftmax(axis)

    def array(self, tensor):
        return tensor.asnumpy()

    def hold(self, parameter, array):
        parameter.set_data(self.api.Tensor(array))

    def weights(self, layer):
        names = ("weight", "bias"), ("gamma", "beta"), ("embedding_table", "")
        own, bias = next(pair for pair in names if hasattr(layer, pair[0]))
        return getattr(layer, own), getattr(layer, bias, None)

    def free(self, model):
        return model.trainable_params()

    def dropout(self, x, p):
        return self.api.ops.dropout(x, p)

    def step(self, model, optimizer, loss_of, clip=None):
        gradients = self.api.value_and_grad(loss_of, None, optimizer.parameters)

        def step(*batch):
            loss, grads = gradients(*batch)
            optimizer(grads if clip is None else self.api.ops.clip_by_global_norm(grads, clip))
            return loss

        return step


def of(name):
    return {"paddle": Paddle, "mindspore": MindSpore}.get(name, Torch)(name)


def model(api, forward, **layers):
    """A model of layers whose forward is `forward(self, *inputs)`."""
    made = type("Model", (api.Model,), {api.forward: forward})()
    for name, layer in layers.items():
        setattr(made, name, layer)
    return made
