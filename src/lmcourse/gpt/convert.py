"""Our GPT as a GPT-2 of ``transformers``, and back: the same weights, the same logits."""

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from lmcourse.gpt.model import GPT
from lmcourse.gpt.settings import GPTConfig

__all__ = ["from_transformers", "to_tokenizer", "to_transformers"]

# Ours → theirs, inside a block. GPT-2 keeps its matrices transposed (x @ W).
BLOCK = {
    "norm_1": "ln_1",
    "attention.qkv": "attn.c_attn",
    "attention.output": "attn.c_proj",
    "norm_2": "ln_2",
    "feed_forward.up": "mlp.c_fc",
    "feed_forward.down": "mlp.c_proj",
}

# What a `GPT2Config` may say otherwise, but the weights do not show.
GPT2 = {
    "activation_function": "gelu_new",
    "layer_norm_epsilon": 1e-5,
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "tie_word_embeddings": True,
}


def _names(layers):
    """Yield (our name, their name, whether to transpose) of every weight."""
    yield "tokens.weight", "transformer.wte.weight", False
    yield "positions.weight", "transformer.wpe.weight", False
    for part in ("weight", "bias"):
        yield f"norm.{part}", f"transformer.ln_f.{part}", False
        for layer in range(layers):
            for ours, theirs in BLOCK.items():
                matrix = part == "weight" and not ours.startswith("norm")
                name = f"transformer.h.{layer}.{theirs}.{part}"
                yield f"blocks.{layer}.{ours}.{part}", name, matrix


def to_transformers(model, attn_implementation="sdpa"):
    """Return the model as a GPT-2 of ``transformers``, on the CPU, in evaluation mode.

    Unless told otherwise it writes on until its context is full, and no further.

    Parameters
    ----------
    model : GPT
    attn_implementation : {"sdpa", "eager"}
        ``"eager"`` to be given attention weights.

    Raises
    ------
    ValueError
        If the model has what GPT-2 has not: rotary positions, tables of n-grams.
    """
    config = model.config
    if config.positions != "learned" or config.ngrams:
        raise ValueError(
            "GPT-2 has learned positions and no tables of n-grams; this model has "
            f"positions={config.positions!r}, ngrams={config.ngrams}"
        )
    theirs = GPT2Config(
        vocab_size=config.vocab_size,
        n_positions=config.context,
        n_embd=config.d_model,
        n_layer=config.layers,
        n_head=config.heads,
        resid_pdrop=config.dropout,
        embd_pdrop=config.dropout,
        attn_pdrop=config.dropout,
        bos_token_id=None,
        eos_token_id=None,
        attn_implementation=attn_implementation,
    )
    exported = GPT2LMHeadModel(theirs)
    weights = model.state_dict()
    state = {
        name: (weights[ours].mT if turn else weights[ours]).detach().cpu().contiguous()
        for ours, name, turn in _names(config.layers)
    }
    state["lm_head.weight"] = state["transformer.wte.weight"]
    exported.load_state_dict(state)
    exported.generation_config.max_length = config.context
    return exported.eval()


@torch.no_grad()
def from_transformers(exported):
    """Return a GPT-2 of ``transformers`` as our GPT, on the CPU, in evaluation mode.

    Raises
    ------
    ValueError
        If it computes otherwise than GPT-2 itself.
    """
    theirs = exported.config
    for name, value in GPT2.items():
        if getattr(theirs, name) != value:
            raise ValueError(f"{name} is {getattr(theirs, name)!r}, not {value!r}")
    if theirs.n_inner not in (None, 4 * theirs.n_embd):
        raise ValueError(f"a hidden layer of {theirs.n_inner}, not 4 * {theirs.n_embd}")
    config = GPTConfig(
        vocab_size=theirs.vocab_size,
        context=theirs.n_positions,
        layers=theirs.n_layer,
        heads=theirs.n_head,
        d_model=theirs.n_embd,
        dropout=theirs.resid_pdrop,
    )
    model, weights = GPT(config), exported.state_dict()
    model.load_state_dict(
        {
            ours: (weights[name].mT if turn else weights[name]).clone()
            for ours, name, turn in _names(config.layers)
        }
    )
    return model.eval()


def to_tokenizer(characters, context=None):
    """Return a `lmcourse.tokenization.CharTokenizer` as one of ``transformers``.

    It has the alphabet and no more: no token that ends a text, or fills one up.

    Parameters
    ----------
    characters : CharTokenizer
    context : int, optional
        Of the model, for the tokenizer to know how long a text may be.
    """
    vocabulary = {character: i for i, character in enumerate(characters.alphabet)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        clean_up_tokenization_spaces=False,
        model_max_length=context,
    )
