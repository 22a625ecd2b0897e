"""A small neural network library in NumPy, every gradient written by hand.

The forms at which the chapter *backpropagation* arrives. Inputs are (tokens, d) or have
leading axes, (batch, tokens, d). Gradients are those of whatever loss the first `delta`
belongs to: no module divides by the number of rows.

- `core`: `Parameter`, `Module`, `Chain`, `Fork`, `Concat`, `Adam`, `gradient_error`.
- `layers`: `Linear`, `ReLU`, `Softmax`, `SoftmaxCrossEntropy`, `LayerNorm`, `SkipAddNorm`,
  `OneHotDictionary`.
- `attention`: from `Transpose` to `MultiHeadAttention`.
- `decoder`: `FeedForward`, `Block`, `Decoder`, and what trains, samples, saves and
  loads it.
"""
