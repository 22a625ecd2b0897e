"""A BERT's heads on one line: what they look at, and what is missing without them."""

import copy
import html

import numpy as np
import pandas as pd
import torch
from torch.nn.functional import normalize

from lmcourse import int8
from lmcourse.ablation import without
from lmcourse.bert import Bert, rebuild
from lmcourse.views.markup import table
from lmcourse.views.tokenizer import shown
from lmcourse.views.view import View

__all__ = ["bert_explorer"]

LONGEST, NEAREST = 48, 6  # tokens of a line; neighbours
WEIGHT, LENGTH, MOVED = "weight", "weight × length", "moved without it"


def bert_explorer(line, tokenizer, model, *, layer=None, head=None, token=1) -> View:
    """A line and a BERT's heads, for the reader to change both.

    On the site all heads of this line can be looked at at once; after a click the weights
    are loaded and the reader's own lines are read too. The site carries one BERT, that of
    ``LMCOURSE_BERT`` or the built-in one, its matrices in int8; pass the same, as
    `lmcourse.models.load_bert` returns it.

    Parameters
    ----------
    line : str
        To begin with; at most 48 tokens, [CLS] and [SEP] among them.
    tokenizer : PreTrainedTokenizerFast
    model : transformers.BertModel or lmcourse.bert.Bert
    layer, head : int, optional
        To begin with; default the pair without which the final states move most.
    token : int, optional
        Whose attention is shown first; 0 is [CLS].

    Returns
    -------
    View
        Its alternative text tells what that token looks at, and what the head moves.
        Stored is what the model computes with its weights as they are, and how far
        int8 moves the states of the line.

    Raises
    ------
    ValueError
        If the line has no or too many tokens, or there is no such layer, head or token.
    """
    model = _bert(model)
    batch = tokenizer(line, return_tensors="pt")
    pieces = tokenizer.convert_ids_to_tokens(batch["input_ids"][0].tolist())
    room = min(LONGEST, model.embeddings.position.num_embeddings)
    if not 3 <= len(pieces) <= room:
        raise ValueError(
            f"a line of 3 to {room} tokens, with [CLS] and [SEP], please: {line!r} has "
            f"{len(pieces)}"
        )
    data = {"text": line, "tokens": pieces, "room": room}
    data |= {"around": [tokenizer.cls_token_id, tokenizer.sep_token_id]}
    data |= _measured(model, batch["input_ids"], tokenizer)
    data |= {"drift": round(int8.drift(model, **batch).max().item(), 4)}
    data |= _chosen(data, layer, head, token)
    rows, near = _rows(data), _near(data)
    stored = _stored(data, rows, near)
    stores, alt = ["bert", "bert-pieces"], _summary(data, rows)
    return View("explorer-view", data, stored, alt=alt, stores=stores)


def _bert(model) -> Bert:
    """Return the course's own `Bert` with the weights of any, on the CPU."""
    if isinstance(model, Bert):
        return copy.deepcopy(model).cpu().float().eval()
    weights = {name: weight.cpu() for name, weight in model.state_dict().items()}
    return rebuild(model.config, weights)


@torch.no_grad()
def _measured(model: Bert, ids: torch.Tensor, tokenizer) -> dict:
    """Return, rounded, what the view shows of each layer, head and token."""
    out = model(ids)
    weights, lengths, moved = [], [], []
    for number, layer in enumerate(model.layers):
        x, heads = out.hidden_states[number], layer.attention.heads
        value = layer.attention.value(x)[0].unflatten(-1, (heads, -1))  # (t, heads, d_head)
        matrix = layer.attention.output.weight.unflatten(-1, (heads, -1))
        lengths.append(torch.einsum("thd,mhd->htm", value, matrix).norm(dim=-1))
        weights.append(out.attentions[number][0].flatten(1))  # (heads, tokens²)
        moved.append([_moved(model, number, head, out) for head in range(heads)])
    return {
        "weights": [_written(x) for x in weights],
        "lengths": [_written(x) for x in lengths],
        "moved": [_written(torch.stack(x)) for x in moved],
        "near": _neighbours(model, out.hidden_states, tokenizer),
    }


def _written(x: torch.Tensor) -> list[str]:
    """Return each row of a matrix as a line of numbers: there are thousands."""
    return [" ".join(f"{number:.3f}" for number in row) for row in x.tolist()]


def _numbers(line: str) -> np.ndarray:
    return np.array(line.split(), dtype=float)


def _moved(model: Bert, number: int, head: int, out) -> torch.Tensor:
    """Return how far each final state (tokens,) moves without a head, in its lengths."""
    x = out.hidden_states[number]
    with without(model.layers[number], head):
        for layer in model.layers[number:]:
            x, _ = layer(x)
    final = out.last_hidden_state[0]
    return (x[0] - final).norm(dim=-1) / final.norm(dim=-1)


def _neighbours(model: Bert, states, tokenizer) -> list:
    """Return, of each level and token, the nearest pieces of the table with cosines."""
    table, found = normalize(model.embeddings.word.weight), []
    for state in states:
        cosines, ids = (normalize(state[0]) @ table.T).topk(NEAREST)  # (tokens, NEAREST)
        names = [tokenizer.convert_ids_to_tokens(row) for row in ids.tolist()]
        pairs = [
            zip(*row, strict=True) for row in zip(names, cosines.tolist(), strict=True)
        ]
        found.append([" ".join(f"{name} {x:.3f}" for name, x in row) for row in pairs])
    return found


def _chosen(data: dict, layer, head, token) -> dict:
    """Return what the view begins with; a ValueError if the model or line lacks it."""
    rows = [[_numbers(line).mean() for line in layer] for layer in data["moved"]]
    moved = torch.tensor(rows)  # (layers, heads)
    sizes = dict(zip(("layer", "head"), moved.shape, strict=True))
    sizes |= {"token": len(data["tokens"])}
    found = {"layer": layer, "head": head, "token": token}
    for name, size in sizes.items():
        is_open = found[name] is None and name != "token"
        if not is_open and found[name] not in range(size):
            raise ValueError(f"{name} must be 0 to {size - 1}, not {found[name]!r}")
    allowed = torch.full_like(moved, -1)
    chosen = [slice(None) if each is None else each for each in (layer, head)]
    allowed[*chosen] = moved[*chosen]
    best = divmod(int(allowed.argmax()), sizes["head"])
    return {"layer": best[0], "head": best[1], "token": token}


def _label(piece: str) -> str:
    return shown("bert", piece)


def _rows(data: dict) -> pd.DataFrame:
    """Return the three pictures of the head that is chosen, a row a token."""
    layer, head, count = data["layer"], data["head"], len(data["tokens"])
    table = {"token": map(_label, data["tokens"])}
    own = _numbers(data["weights"][layer][head]).reshape(count, count)[data["token"]]
    table |= {WEIGHT: own, LENGTH: own * _numbers(data["lengths"][layer][head])}
    return pd.DataFrame(table | {MOVED: _numbers(data["moved"][layer][head])})


def _near(data: dict) -> pd.DataFrame:
    """Return the neighbours of the token that is chosen, before and after its layer."""
    columns = {}
    for name, level in (("before", data["layer"]), ("after", data["layer"] + 1)):
        found = data["near"][level][data["token"]].split()
        pairs = zip(found[::2], found[1::2], strict=True)
        columns[name] = [f"{_label(piece)} {float(x):.2f}" for piece, x in pairs]
    return pd.DataFrame(columns)


def _summary(data: dict, rows: pd.DataFrame) -> str:
    """Say in three sentences what the pictures show, as `explorer-view.js` does."""
    own = rows.token[data["token"]]
    first, long, far = (rows.iloc[rows[name].argmax()] for name in (WEIGHT, LENGTH, MOVED))
    return (
        f"In layer {data['layer']}, head {data['head']}, “{own}” looks most at "
        f"“{first.token}”, with a weight of {first[WEIGHT]:.2f}. By weight times length, "
        f"most of what it gets comes from “{long.token}”. Without this head the final "
        f"state of “{far.token}” moves most: by {far[MOVED]:.2f} of its length."
    )


def _stored(data: dict, rows: pd.DataFrame, near: pd.DataFrame) -> str:
    heads = [[name, *map("{:.2f}".format, numbers)] for name, *numbers in rows.to_numpy()]
    heads, nearest = table([*rows], heads), table([*near], near.to_numpy())
    own = html.escape(rows.token[data["token"]])
    return (
        f"<p><b>{html.escape(data['text'])}</b></p>\n<p>{html.escape(_summary(data, rows))}"
        f"</p>\n{heads}\n<p>The tokens whose vectors in the table are nearest to that of "
        f"“{own}”, before and after layer {data['layer']}, with the cosine:</p>\n{nearest}"
    )
