"""A GPT-2 of ``transformers`` as a GPT of ours, and ours as one of theirs: equal logits."""

from dataclasses import asdict
from pathlib import Path

import transformers
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

from lmcourse.devices import pick_device
from lmcourse.gpt.model import GPT, GPTConfig
from lmcourse.hub import checkpoint_folder, read_config
from lmcourse.tokenizer_files import read_tokenizer
from lmcourse.weights import load_model, read_header

SIZES = {  # theirs → ours
    "vocab_size": "vocab_size",
    "n_positions": "context",
    "n_layer": "layers",
    "n_head": "heads",
    "n_embd": "d_model",
}
GPT2 = {  # where a configuration says something else, it is no GPT-2 of ours
    "model_type": "gpt2",
    "activation_function": "gelu_new",
    "layer_norm_epsilon": 1e-5,
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "add_cross_attention": False,
    "tie_word_embeddings": True,
}
# In some files, and not ours: masks, of which nothing was learned; the tied table again.
SPARE = (".attn.bias", ".attn.masked_bias", "lm_head.weight")
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
    """Return GPT-2's name of a weight, given ours; both are str.

    "blocks.0.attention.qkv.weight" is "h.0.attn.c_attn.weight" there.
    """
    for ours, theirs in NAMES.items():
        name = name.replace(ours, theirs)
    return name


def is_transposed(their_name, weight):
    """Return whether GPT-2's checkpoint has the transpose of a weight, a bool.

    It has of the matrices in its layers, whose names have a ".c_" in them.

    Parameters
    ----------
    their_name : str
        The weight's name in the checkpoint.
    weight : Tensor
        With two axes, if it is a matrix.
    """
    return ".c_" in their_name and weight.ndim == 2


# --- theirs as ours -------------------------------------------------------------------


class WrappedTokenizer:
    """A tokenizer of ``transformers`` with the interface of `CharTokenizer`.

    Parameters
    ----------
    tokenizer : PreTrainedTokenizerFast
        Kept as ``tokenizer``.
    """

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer

    @property
    def vocab_size(self):
        """How many different IDs there are."""
        return len(self.tokenizer)

    def encode(self, text):
        """Return the IDs of a text, and none that begins or ends it.

        Parameters
        ----------
        text : str

        Returns
        -------
        list of int

        Raises
        ------
        ValueError
            If it cannot be written with this vocabulary.
        """
        try:
            # It would warn of texts longer than the context: that is the model's business.
            return self.tokenizer.encode(text, add_special_tokens=False, verbose=False)
        except Exception as error:  # tokenizers raises Exception itself
            raise ValueError(f"{text!r} cannot be encoded: {error}") from error

    def decode(self, ids):
        """Return the text of IDs; a byte that is no whole character is shown as �.

        ``ids`` : list of int.
        """
        return self.tokenizer.decode(ids, clean_up_tokenization_spaces=False)


def load_gpt2(name, device=None):
    """Load a GPT-2 of ``transformers`` and its tokenizer, ready to write.

    Parameters
    ----------
    name : str or path
        A folder with ``config.json``, ``model.safetensors`` and a tokenizer, or a name on
        the Hugging Face hub, ``name@revision`` for one state of it.
    device : str, optional
        Where to compute. Default: ``LMCOURSE_DEVICE``, else the best of CUDA, MPS and CPU.

    Returns
    -------
    tokenizer : WrappedTokenizer
    model : GPT
        In evaluation mode, float32.
    record : dict
        ``name``, ``folder`` and the sizes, ``model``.

    Raises
    ------
    OSError
        If it cannot be had; nothing else is loaded in its place.
    ValueError
        If it is no GPT-2, if a file is damaged, or if its weights are not those that its
        configuration claims. Nothing is filled with random numbers.
    """
    device = pick_device(device)
    folder = checkpoint_folder(name)
    config = read_config(folder / "config.json", GPT2, _config)
    tokenizer = read_tokenizer(folder, transformers.GPT2Config(), config.vocab_size)
    path = folder / "model.safetensors"
    shapes, _ = read_header(path)
    prefix = "transformer." if "transformer.wte.weight" in shapes else ""
    model = load_model(
        path,
        lambda: GPT(config),
        config.layers,
        rename=lambda name: prefix + their_name(name),
        is_transposed=is_transposed,
        spare=lambda name: name.endswith(SPARE),
    )
    is_folder = Path(name).expanduser().is_dir()
    record = {
        "name": folder.name if is_folder else name,
        "folder": str(folder),
        "model": asdict(config),
    }
    return WrappedTokenizer(tokenizer), model.to(device), record


def _config(theirs):
    """Return a GPTConfig with the sizes of a GPT-2.

    ``theirs`` : dict, what the model's ``config.json`` holds: ``vocab_size``,
    ``n_positions``, ``n_layer``, ``n_head`` and ``n_embd`` (a KeyError if one is missing),
    and perhaps ``resid_pdrop``, the dropout, which is 0.1 where it is missing.
    """
    sizes = {our_name: theirs[their_name] for their_name, our_name in SIZES.items()}
    return GPTConfig(**sizes, dropout=theirs.get("resid_pdrop", 0.1))


# --- ours as theirs -------------------------------------------------------------------


def to_transformers(model, attn_implementation="sdpa"):
    """Return the model as a GPT-2 of ``transformers``, on the CPU, in evaluation mode.

    Its ``generate`` writes on until the context is full, unless it is given another length.

    Parameters
    ----------
    model : GPT
    attn_implementation : {"sdpa", "eager"}
        ``"eager"`` to be given attention weights.

    Returns
    -------
    GPT2LMHeadModel

    Raises
    ------
    ValueError
        If the model has what GPT-2 has not, such as rotary positions.
    """
    config = model.config
    if options := config.unlike_gpt2():
        listed = ", ".join(f"{name}={value!r}" for name, value in options.items())
        raise ValueError(f"this model is no GPT-2: it has {listed}")
    sizes = {theirs: getattr(config, ours) for theirs, ours in SIZES.items()}
    their_config = transformers.GPT2Config(
        **sizes,
        resid_pdrop=config.dropout,
        embd_pdrop=config.dropout,
        attn_pdrop=config.dropout,
        bos_token_id=None,
        eos_token_id=None,
        attn_implementation=attn_implementation,
    )
    exported = transformers.GPT2LMHeadModel(their_config)
    state = {}
    for our_name, weight in model.state_dict().items():
        name = their_name(our_name)
        if is_transposed(name, weight):
            weight = weight.mT
        state[name] = weight.detach().cpu().contiguous()
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

    Returns
    -------
    PreTrainedTokenizerFast
        One token a character, with the same ids.
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
