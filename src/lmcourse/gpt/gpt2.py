"""A GPT-2, from a folder or the hub, as a GPT of ours: the same logits.

What is in `lmcourse.gpt.convert`, the other way round.
"""

from dataclasses import asdict
from pathlib import Path

import torch
import transformers

from lmcourse.choices import chosen
from lmcourse.gpt.convert import their_name, turns
from lmcourse.gpt.model import GPT
from lmcourse.gpt.settings import GPTConfig
from lmcourse.models import checkpoint_folder, pick_device
from lmcourse.weights import read_header, read_json, read_weights

__all__ = ["Pieces", "load_gpt2"]

OWN = "unset LMCOURSE_GPT (and pass no checkpoint) to use the course's own GPT"
FILES = ["config.json", "model.safetensors", "tokenizer.json", "vocab.json", "merges.txt"]
FILES += ["tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"]
SIZES = {  # theirs → ours
    "vocab_size": "vocab_size",
    "n_positions": "context",
    "n_layer": "layers",
    "n_head": "heads",
    "n_embd": "d_model",
}
SAME = {  # what may be told, but not otherwise
    "activation_function": "gelu_new",
    "layer_norm_epsilon": 1e-5,
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "add_cross_attention": False,
    "tie_word_embeddings": True,
}
MASKS = (".attn.bias", ".attn.masked_bias")  # kept by older files; nothing was learned


class Pieces:
    """A tokenizer of ``transformers`` with what `CharTokenizer` has: three things.

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
        """Return the text of IDs; a byte that is no whole character is shown as �."""
        return self.tokenizer.decode(ids, clean_up_tokenization_spaces=False)


def load_gpt2(name, device=None):
    """Load a GPT-2 of ``transformers`` and its tokenizer; as `load_gpt` does, which see.

    Parameters
    ----------
    name : str or path
        A folder with ``config.json``, ``model.safetensors`` and a tokenizer, or a name on
        the Hugging Face hub, ``name@revision`` for one state of it.
    device : str, optional

    Returns
    -------
    tokenizer : Pieces
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
    device, name = pick_device(device), chosen(name)
    folder = checkpoint_folder(name, FILES, OWN)
    config = read_config(folder / "config.json")
    pieces = read_tokenizer(folder, config)
    path = folder / "model.safetensors"
    if len(read_header(path)[0]) < config.layers:  # before they are built
        raise ValueError(f"{path} holds fewer tensors than {config.layers} layers have")
    with torch.device("meta"):  # shapes without memory: the weights bring their own
        model = GPT(config)
    model.load_state_dict(read_gpt2(path, model), assign=True)
    named = Path(name).name if Path(name).is_dir() else name
    record = {"name": named, "folder": str(folder), "model": asdict(config)}
    return pieces, model.eval().to(device), record


def read_config(path):
    """Return the GPTConfig of a GPT-2's ``config.json``.

    Raises
    ------
    OSError, ValueError
        If it cannot be read, or tells of another architecture or of impossible sizes.
    """
    found = read_json(path)
    wrong = {n: found[n] for n, value in SAME.items() if found.get(n, value) != value}
    if found.get("model_type") != "gpt2":
        wrong = {"model_type": found.get("model_type")}
    if wrong:
        told = ", ".join(f"{name} = {value!r}" for name, value in wrong.items())
        raise ValueError(f"{path} tells of no GPT-2 as the course has it: {told}. {OWN}")
    missing = [name for name in SIZES if name not in found]
    if missing:
        raise ValueError(f"{path} does not tell {', '.join(missing)}")
    try:
        sizes = {ours: found[theirs] for theirs, ours in SIZES.items()}
        config = GPTConfig(**sizes, dropout=found.get("resid_pdrop", 0.1))
    except ValueError as error:
        raise ValueError(f"{path} describes no GPT-2: {error}") from error
    if found.get("n_inner") not in (None, 4 * config.d_model):
        raise ValueError(
            f"{path}: n_inner is {found['n_inner']!r}, but a GPT of this course has 4 × "
            f"n_embd = {4 * config.d_model}. {OWN}"
        )
    return config


def read_gpt2(path, model):
    """Return the state of a GPT from the weights of a GPT-2.

    Parameters
    ----------
    path : path
        Of a safetensors file; its matrices are the transposes of ours.
    model : GPT
        Whose names and shapes are wanted.

    Raises
    ------
    OSError, ValueError
        If the file cannot be read, or does not hold these weights and no others.
    """
    shapes = read_header(path)[0]
    prefix = "transformer." if "transformer.wte.weight" in shapes else ""
    theirs = {name: prefix + their_name(name) for name in model.state_dict()}
    expected = {
        theirs[name]: tuple(reversed(x.shape)) if turns(theirs[name], x) else x.shape
        for name, x in model.state_dict().items()
    }
    kept = {name: shape for name, shape in shapes.items() if not name.endswith(MASKS)}
    table = theirs["tokens.weight"]
    if "lm_head.weight" in kept:
        expected["lm_head.weight"] = expected[table]
    strange = kept.keys() - expected.keys()
    if strange:
        raise ValueError(f"{path} holds what is no part of the model: {min(strange)}")
    found = read_weights(path, expected, others=True)
    if "lm_head.weight" in kept and not torch.equal(found["lm_head.weight"], found[table]):
        raise ValueError(f"{path}: lm_head.weight is not {table}, as a GPT-2's is. {OWN}")
    return {
        name: (found[their].mT if turns(their, found[their]) else found[their])
        .float()
        .contiguous()
        for name, their in theirs.items()
    }


def read_tokenizer(folder, config):
    """Return the `Pieces` of a folder; OSError or ValueError if they do not fit."""
    names = {name for name in FILES if (folder / name).is_file()}
    if "tokenizer.json" not in names and not {"vocab.json", "merges.txt"} <= names:
        raise FileNotFoundError(
            f"{folder} has neither tokenizer.json nor vocab.json and merges.txt"
        )
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            folder, config=transformers.GPT2Config(), trust_remote_code=False
        )
        last = max(tokenizer.get_vocab().values())
        Pieces(tokenizer).encode("a")  # what is wrong may show only then
    except Exception as error:  # tokenizers raises Exception itself
        raise ValueError(f"the tokenizer in {folder} cannot be read: {error}") from error
    # A table may have been filled up to a multiple of 128, but not cut.
    if not config.vocab_size - 128 < last + 1 <= config.vocab_size:
        raise ValueError(
            f"the tokenizer in {folder} has IDs up to {last}, but the model's vocab_size "
            f"is {config.vocab_size}"
        )
    return Pieces(tokenizer)
