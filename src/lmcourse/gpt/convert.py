"""Our GPT as a GPT-2 of ``transformers``: the same weights, the same logits."""

import transformers
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

# Ours → theirs. GPT-2 keeps the matrices of its layers (c_…) transposed: x @ W.
NAMES = {
    "tokens.": "wte.",
    "positions.": "wpe.",
    "blocks.": "h.",
    "norm_1": "ln_1",
    "attention.qkv": "attn.c_attn",
    "attention.output": "attn.c_proj",
    "norm_2": "ln_2",
    "feed_forward.up": "mlp.c_fc",
    "feed_forward.down": "mlp.c_proj",
    "norm.": "ln_f.",
}


def their_name(name):
    """Return GPT-2's name of a weight, given ours."""
    for ours, theirs in NAMES.items():
        name = name.replace(ours, theirs)
    return name


def turns(their_name, weight):
    """Say whether GPT-2 keeps the transpose of a weight."""
    return ".c_" in their_name and weight.ndim == 2


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
    dropouts = ("resid_pdrop", "embd_pdrop", "attn_pdrop")
    theirs = transformers.GPT2Config(
        vocab_size=config.vocab_size,
        n_positions=config.context,
        n_embd=config.d_model,
        n_layer=config.layers,
        n_head=config.heads,
        **dict.fromkeys(dropouts, config.dropout),
        **dict.fromkeys(("bos_token_id", "eos_token_id")),
        attn_implementation=attn_implementation,
    )
    exported, state = transformers.GPT2LMHeadModel(theirs), {}
    for name, weight in model.state_dict().items():
        name = their_name(name)
        state[name] = (
            (weight.mT if turns(name, weight) else weight).detach().cpu().contiguous()
        )
    exported.transformer.load_state_dict(state)  # and lm_head is wte
    exported.generation_config.max_length = config.context
    return exported.eval()


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
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        clean_up_tokenization_spaces=False,
        model_max_length=context,
    )
