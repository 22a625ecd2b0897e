"""What views that run in the page load: models' weights, carried by scripts.

A page opened as a file may load scripts and nothing else, so weights are safetensors in
base64, a megabyte a script: `static/play/store.js` puts them together and compares their
checksum. They are made when a page first asks for them and kept in ``_build/play`` under
a hash of all that they are made of. What is too large for that (`AS_FILES`) is carried by
plain files, and is there for pages that come from a server.
"""

import base64
import hashlib
import json
import os
import shutil
import zlib
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import torch
from safetensors.torch import save

from lmbook.execute.keys import course_modules, hash_files, hash_json, reader_settings
from lmbook.play import vocabularies
from lmcourse import int8
from lmcourse.bert import rebuild
from lmcourse.bert_checkpoint import SHA256
from lmcourse.data import corpora_folder, load_corpus, load_texts, train_val_test_split
from lmcourse.files import write_whole
from lmcourse.film import load_film
from lmcourse.gpt.checkpoints import load_gpt
from lmcourse.mini_bert import load_mini_bert
from lmcourse.models import load_bert, load_gpt2_vocabulary, trained
from lmcourse.recurrent import load_char_lstm
from lmcourse.shuffled import shuffled_weights
from lmcourse.views.generator import why_not_in_page
from lmcourse.views.neighbours import neighbours_file, spaces
from lmcourse.views.talker import page_file
from lmcourse.views.tokenizer import merge_pairs
from lmcourse.vision import VisionTransformer

PART = 3 * 2**18  # bytes a script, which base64 makes a third more
FILE_PART = 20 * 2**20  # bytes a file

# --- GPT ------------------------------------------------------------------------------


def gpt_config(config) -> dict:
    """Return what the page's Transformer (``engine.js``) is to know of a GPT, by name.

    ``config`` : lmcourse.gpt.model.GPTConfig. Keys are ``vocab_size``, ``context``,
    ``layers``, ``heads``, ``d_model``, ``d_ff``, ``positions`` (their kind), ``causal``,
    ``norm_first``, ``eps`` (of the norms), ``output`` and ``activation``.
    """
    names = ("vocab_size", "context", "layers", "heads", "d_model", "positions")
    fields = {name: value for name, value in asdict(config).items() if name in names}
    style = {"causal": True, "norm_first": True, "eps": 1e-5, "output": "tied"}
    return fields | style | {"d_ff": 4 * config.d_model, "activation": "gelu_new"}


def gpt_tensors(model) -> dict[str, torch.Tensor]:
    """Return a GPT's weights by their names in it, such as "blocks.0.norm_1.weight".

    Only the matrix and the bias that query, key and value have together there ("qkv") are
    cut into three, such as "blocks.0.attention.query.weight".

    ``model`` : lmcourse.gpt.model.GPT.
    """
    tensors = dict(model.state_dict())
    for name in [name for name in tensors if "qkv" in name]:
        thirds = zip(("query", "key", "value"), tensors.pop(name).chunk(3), strict=True)
        tensors |= {name.replace("qkv", part): third for part, third in thirds}
    return tensors


def gpt_file(model, alphabet: str, dtype=torch.float16) -> bytes:
    """Return a GPT as a safetensors file, its alphabet and configuration in the header.

    Parameters
    ----------
    model : lmcourse.gpt.model.GPT
    alphabet : str
        Its characters in the order of their ids.
    dtype : torch.dtype
        Of the stored weights.
    """
    tensors = {name: x.to(dtype) for name, x in gpt_tensors(model).items()}
    return _file(tensors, gpt_config(model.config) | {"alphabet": alphabet})


def film_file() -> bytes:
    """Return the film of the GPT's training as a safetensors file, packed as it lies there.

    The film has the weights at many steps, compressed: for each stop, by its place, such
    as 0, the tensors "0.scales", float16 (rows,), and "0.numbers", uint8. The header has
    the GPT's configuration and alphabet, ``steps``, how many steps were made at each stop,
    and ``weights``, pairs of name and shape.
    """
    tokenizer, film, _ = load_film()
    config = gpt_config(film.config) | {"alphabet": tokenizer.alphabet}
    config |= {"steps": film.steps, "weights": [*film.shapes.items()]}
    return _file(film.tensors, config)


# --- BERT -----------------------------------------------------------------------------

RENAMES = {
    "embeddings.word": "tokens",
    "embeddings.position": "positions",
    "embeddings.token_type": "token_types",
    "embeddings.norm": "embedding_norm",
    "layers.": "blocks.",
}


def bert_config(config) -> dict:
    """Return what the page's Transformer (``engine.js``) is to know of a BERT, by name.

    ``config`` : transformers.BertConfig.
    """
    return {
        "vocab_size": config.vocab_size,
        "context": config.max_position_embeddings,
        "layers": config.num_hidden_layers,
        "heads": config.num_attention_heads,
        "d_model": config.hidden_size,
        "d_ff": config.intermediate_size,
        "activation": config.hidden_act,
        "eps": config.layer_norm_eps,
        "positions": "learned",
        "token_types": config.type_vocab_size,
        "embedding_norm": True,
        "output": "none",
        "causal": False,
        "norm_first": False,
    }


def bert_tensors(model) -> dict[str, torch.Tensor]:
    """Return the weights of a BERT by name, without its pooler.

    The names are those of ``engine.js``, the page's Transformer, such as "tokens.weight"
    and "blocks.0.attention.query.weight". ``model`` : BertModel of `transformers`.
    """
    return _renamed(rebuild(model.config, model.state_dict()).state_dict())


def _renamed(weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return the weights of a course's BERT under the names of ``engine.js``.

    What the page's Transformer lacks, such as the pooler, is left out. ``weights`` : by
    their names in `lmcourse.bert.Bert`.
    """
    return {
        new + name.removeprefix(old): weight
        for name, weight in weights.items()
        for old, new in RENAMES.items()
        if name.startswith(old)
    }


def bert_file(model, as_int8: bool = True) -> bytes:
    """Return a BERT as a safetensors file, its configuration in the header.

    Parameters
    ----------
    model : transformers.BertModel
    as_int8 : bool
        Whether matrices are stored in int8, each with a scale for every row
        ("NAME.scale").
    """
    tensors = bert_tensors(model)
    if as_int8:
        for name in [name for name, weight in tensors.items() if weight.ndim == 2]:
            tensors[name], tensors[f"{name}.scale"] = int8.to_int8(tensors[name])
    return _file(tensors, bert_config(model.config))


def masked_bert_file(model, dtype=torch.float16) -> bytes:
    """Return a BERT that fills gaps as a safetensors file, its configuration in the header.

    The weights of its head for masked tokens are called "mlm.…". ``model`` : the course's
    MaskedBert (`lmcourse.mini_bert`); ``dtype`` : torch.dtype, of the stored weights.
    """
    state = model.state_dict()
    tensors = _renamed({name.removeprefix("bert."): x for name, x in state.items()})
    for old, new in {"head.0": "mlm.dense", "head.2": "mlm.norm"}.items():
        for kind in ("weight", "bias"):
            tensors[f"{new}.{kind}"] = state[f"{old}.{kind}"]
    tensors["mlm.bias"] = state["bias"]
    tensors = {name: x.to(dtype) for name, x in tensors.items()}
    return _file(tensors, masked_bert_config(model))


def masked_bert_config(model) -> dict:
    """Return what ``engine.js``, the page's Transformer, is to know of a BERT, by name.

    ``model`` : the course's MaskedBert, a BERT that fills gaps: its ``output`` is "mlm".
    """
    vectors = model.bert.embeddings
    block = model.bert.layers[0]
    vocab_size, d_model = vectors.word.weight.shape
    return {
        "vocab_size": vocab_size,
        "context": vectors.position.num_embeddings,
        "layers": len(model.bert.layers),
        "heads": block.attention.heads,
        "d_model": d_model,
        "d_ff": block.feed_forward.down.in_features,
        "activation": "gelu",
        "eps": vectors.norm.eps,
        "positions": "learned",
        "token_types": vectors.token_type.num_embeddings,
        "embedding_norm": True,
        "output": "mlm",
        "causal": False,
        "norm_first": False,
    }


def digits_file(model) -> bytes:
    """Return a Transformer that reads images of digits as a safetensors file.

    To the page's Transformer (``engine.js``) its ten classes are the vocabulary. Its first
    token, from which the answer is read, becomes a patch without pixels: position 0 holds
    its vector, less the bias that every patch gets.

    ``model`` : lmcourse.vision.VisionTransformer.
    """
    embed = model.embed.state_dict()
    stack = model.stack
    positions = torch.cat([(model.first - model.embed.bias)[None], model.positions])
    tensors = {f"patch.{name}": x for name, x in embed.items()} | stack.state_dict()
    tensors |= {"tokens.weight": model.answer.weight, "positions.weight": positions}
    block = stack.blocks[0]
    config = {"vocab_size": 10, "context": len(positions), "d_model": positions.shape[1]}
    config |= {"layers": len(stack.blocks), "heads": block.attention.heads}
    config |= {"d_ff": block.feed_forward.up.out_features, "patch": model.size**2}
    config |= {"causal": False, "norm_first": True, "eps": 1e-5, "output": "tied"}
    return _file(tensors, config | {"activation": "gelu", "positions": "learned"})


def lstm_file(model) -> bytes:
    """Return the LSTM of characters as a safetensors file in float16, as its checkpoint is.

    Names of tensors are those of the module's state dict. ``model`` :
    lmcourse.recurrent.CharLSTM.
    """
    return _file({name: x.half() for name, x in model.state_dict().items()}, {})


def _file(tensors: dict[str, torch.Tensor], config: dict) -> bytes:
    """Return a safetensors file of tensors by name, the configuration in its header.

    ``tensors`` : name → Tensor; ``config`` : what JSON can hold, which stands in the header
    under "config" as text.
    """
    tensors = {name: x.detach().cpu().contiguous() for name, x in tensors.items()}
    return save(tensors, {"config": json.dumps(config)})


# --- staging --------------------------------------------------------------------------


def _json(value: dict) -> bytes:
    """Return an object, which JSON can hold, as JSON without spaces, in UTF-8."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _gpt(path: str | None = None) -> bytes:
    """Return what views load of a GPT: a safetensors file.

    ``path`` : a checkpoint, "sonnets" for the book's own; by default what ``LMCOURSE_GPT``
    names. A model that does not run in the page gives way to the book's own.
    """
    tokenizer, model, _ = load_gpt(path, device="cpu")
    if why_not_in_page(tokenizer, model):  # no view will ask for it
        return _gpt("sonnets")
    return gpt_file(model, tokenizer.alphabet)


STORES = {
    "gpt": _gpt,
    "sonnets-gpt": lambda: _gpt("sonnets"),
    "film": film_file,
    "bert": lambda: bert_file(load_bert(device="cpu")[1]),
    "bert-pieces": lambda: _json(vocabularies.wordpiece(load_bert(device="cpu")[0])),
    "mini-bert": lambda: masked_bert_file(load_mini_bert()[1]),
    "mini-bert-pieces": lambda: _json(vocabularies.wordpiece(load_mini_bert()[0])),
    "neighbours": lambda: neighbours_file(spaces(*load_bert(device="cpu"))),
    "sonnets": lambda: load_corpus("sonnets").encode(),
    "sonnets-training": lambda: train_val_test_split(load_texts("sonnets"))[0].encode(),
    "lstm": lambda: lstm_file(load_char_lstm()[1]),
    "lstm-random": lambda: lstm_file(shuffled_weights(load_char_lstm()[1])),
    "digits": lambda: digits_file(trained("digits", VisionTransformer)),
    "digits-random": lambda: digits_file(
        shuffled_weights(trained("digits", VisionTransformer))
    ),
    "gpt2-merges": lambda: merge_pairs(load_gpt2_vocabulary()[0]),
    "talker": lambda: page_file().read_bytes(),
}
AS_FILES = {"talker"}


def _key(name: str) -> str:
    """Return a hash of what a store is made of, 16 hexadecimal digits.

    That is the models that the reader chose and their files, the built-in BERT, the whole
    folder ``data`` with its texts, checkpoints and stored studies, and the code of this
    module, `lmbook.play.vocabularies` and `lmcourse`. ``name`` : of the store, a key of
    `STORES`.
    """
    folders = [Path(value) for value in reader_settings().values() if os.path.isabs(value)]
    folders += [corpora_folder()]
    made_by = [__file__, vocabularies.__file__, *course_modules()]
    code = [Path(file).read_text("utf-8") for file in made_by]
    return hash_json(
        [name, reader_settings(), SHA256, [hash_files(f, f) for f in folders], code]
    )[:16]


def _write_store(name: str, content: bytes, folder: Path) -> dict:
    """Write a store in parts into a folder and, last, ``about.json``; return what it says.

    A store is carried by scripts ``0.js``, …, each with at most `PART` bytes of it in base
    64, as ``lmcourse.carried["play/NAME/0.js"]``. One of `AS_FILES` lies in plain files
    ``0.bin``, … of at most `FILE_PART` bytes.

    Parameters
    ----------
    name : str
        Of the store, a key of `STORES`.
    content : bytes
        The whole store.
    folder : Path
        Where; it is named by the store's name, a hyphen and a hash.

    Returns
    -------
    dict
        ``bytes`` and ``checksum`` (CRC-32) of the whole; ``parts``, how many scripts or
        files there are; ``key``, the name of the folder, or of plain files the hash alone;
        and of plain files ``files``, a list of ``bytes`` and ``checksum`` of each.
    """
    about: dict = _size(content)
    if name in AS_FILES:
        parts = _parts(content, FILE_PART)
        files = {f"{i}.bin": part for i, part in enumerate(parts)}
        about |= {"parts": len(parts), "files": [_size(part) for part in parts]}
        about |= {"key": folder.name.rpartition("-")[2]}
    else:
        parts = _parts(content, PART)
        files = {f"{i}.js": _script(name, i, part) for i, part in enumerate(parts)}
        about |= {"parts": len(parts), "key": folder.name}
    folder.mkdir(parents=True, exist_ok=True)
    for file, written in files.items():
        write_whole(folder / file, written)
    write_whole(folder / "about.json", json.dumps(about))  # last: now the store is whole
    return about


def _parts(content: bytes, size: int) -> list[bytes]:
    """Cut content into parts of ``size`` bytes, the last of what is left."""
    return [content[i : i + size] for i in range(0, len(content), size)]


def _size(content: bytes) -> dict[str, int]:
    """Return how many ``bytes`` content has, and its ``checksum`` (CRC-32)."""
    return {"bytes": len(content), "checksum": zlib.crc32(content)}


def _script(name: str, number: int, part: bytes) -> bytes:
    """Return the script that carries a part of a store, in base 64.

    ``name`` : of the store; ``number`` : of the part, from 0; ``part`` : its content.
    """
    text = base64.b64encode(part).decode()
    return f'lmcourse.carried["play/{name}/{number}.js"] = "{text}";\n'.encode("ascii")


def _read_about(folder: Path) -> dict | None:
    """Return what ``about.json`` says, which is written when a store is whole.

    ``folder`` : of the store (`_write_store`). None if there is no such file, or it is
    damaged: then the store is to be made.
    """
    try:
        about = json.loads((folder / "about.json").read_bytes())
    except (FileNotFoundError, ValueError):
        return None
    return about if isinstance(about, dict) else None


def link_or_copy(source: str, target: str) -> str:
    """Copy a file, and return ``target``; link one that ends in ``.bin``, which is large.

    The link is a hard link. Where the system cannot make one, the file is copied.
    ``source``, ``target`` : paths.
    """
    if str(source).endswith(".bin"):
        with suppress(OSError):
            os.link(source, target)
            return target
    return shutil.copy2(source, target)


def stage(name: str, lib: Path, work: Path) -> dict:
    """Put a store's files below ``lib/play``, and return what a page is to know of it.

    A store is what views load: weights, a vocabulary, a text. It is made only if there is
    none in ``work`` of the same hash.

    Parameters
    ----------
    name : str
        A key of `STORES`, such as "gpt".
    lib : Path
        The site's folder of libraries.
    work : Path
        Where what was made once is kept.

    Returns
    -------
    dict
        ``bytes`` and ``checksum`` (CRC-32) of the whole; ``parts``, how many scripts or
        files there are; ``key``, which is another one if the store is: "NAME-HASH", with
        the hash of what it was made of, or of plain files the hash of the content alone;
        and of plain files ``files``, bytes and checksum of each.
    """
    # Plain files are there already, and read at once: their content itself is hashed.
    # Others take long to make, so what they are made of is.
    if name in AS_FILES:
        content = STORES[name]()
        folder = work / f"{name}-{hashlib.sha256(content).hexdigest()[:16]}"
        about = _read_about(folder) or _write_store(name, content, folder)
    else:
        folder = work / f"{name}-{_key(name)}"
        about = _read_about(folder) or _write_store(name, STORES[name](), folder)
    shutil.rmtree(lib / "play" / name, ignore_errors=True)
    shutil.copytree(folder, lib / "play" / name, copy_function=link_or_copy)
    return about
