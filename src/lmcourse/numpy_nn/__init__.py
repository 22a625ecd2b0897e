"""A small neural network library in NumPy, every gradient written by hand.

The forms at which the chapter *backpropagation* arrives. Inputs are (tokens, d) or have
leading axes, (batch, tokens, d). Gradients are those of whatever loss the first `delta`
belongs to: no module divides by the number of rows.

- `core`: `Parameter`, `Module`, `Chain`, `Fork`, `Concat`, `Adam`, `gradient_error`.
- `layers`: `Linear`, activations, `Softmax`, losses, `LayerNorm`, `SkipAddNorm`,
  `OneHotDictionary`.
- `attention`: from `Transpose` to `MultiHeadAttention`.
- `decoder`: `Decoder`, and what trains, samples, saves and loads it.
"""

from lmcourse.numpy_nn.attention import (
    CausalMask,
    DotProduct,
    MultiHeadAttention,
    ProjectedAttention,
    Rotary,
    ScalarProduct,
    ScaledDotProductAttention,
    Transpose,
)
from lmcourse.numpy_nn.core import (
    Adam,
    Chain,
    Concat,
    Fork,
    Identity,
    Module,
    Parameter,
    gradient_error,
)
from lmcourse.numpy_nn.decoder import Decoder, load, sample, save, train, windows
from lmcourse.numpy_nn.layers import (
    CrossEntropyLoss,
    L2Loss,
    LayerNorm,
    Linear,
    OneHotDictionary,
    ReLU,
    Sigmoid,
    SkipAddNorm,
    Softmax,
    SoftmaxCrossEntropy,
)

__all__ = [
    "Adam",
    "CausalMask",
    "Chain",
    "Concat",
    "CrossEntropyLoss",
    "Decoder",
    "DotProduct",
    "Fork",
    "Identity",
    "L2Loss",
    "LayerNorm",
    "Linear",
    "Module",
    "MultiHeadAttention",
    "OneHotDictionary",
    "Parameter",
    "ProjectedAttention",
    "ReLU",
    "Rotary",
    "ScalarProduct",
    "ScaledDotProductAttention",
    "Sigmoid",
    "SkipAddNorm",
    "Softmax",
    "SoftmaxCrossEntropy",
    "Transpose",
    "gradient_error",
    "load",
    "sample",
    "save",
    "train",
    "windows",
]
