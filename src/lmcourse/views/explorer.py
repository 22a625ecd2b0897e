"""A BERT's heads on one line: what they attend to, and what is missing without them."""

import html

import numpy as np
import torch
from torch.nn.functional import normalize

from lmcourse import int8
from lmcourse.ablation import without
from lmcourse.bert import Bert, rebuild
from lmcourse.numbers import format_number
from lmcourse.views.markup import table
from lmcourse.views.tokenizer import shown
from lmcourse.views.view import View

LONGEST, NEAREST = 48, 6  # tokens of a line; neighbours
PICTURES = ("weight", "weight × length", "moved without it")


def bert_explorer(line, tokenizer, model, untrained=None) -> View:
    """Show a line and what a BERT's heads do with it; the reader can change both.

    On the site all heads of this line can be looked at at once; after a click the weights
    are loaded and the reader's own lines are read too. The site carries one BERT, that of
    ``LMCOURSE_BERT`` or the built-in one, its matrices in int8; pass the same one, a
    tokenizer and a model.

    Parameters
    ----------
    line : str
        To begin with; at most 48 tokens, [CLS] and [SEP] among them.
    tokenizer : PreTrainedTokenizerFast
    model : transformers.BertModel
    untrained : transformers.BertModel, optional
        One of the same shape that has learned nothing: the reader can switch to it, for the
        line to begin with.

    Returns
    -------
    View
        It begins with the head without which the final states move most, and with the
        first token after [CLS]. Its alternative text says what that token attends to, and
        what the head moves. Stored is what the model computes with its weights as they
        are, and how far int8 moves the states of the line.

    Raises
    ------
    ValueError
        If the line has no or too many tokens.
    """
    model = _rebuilt(model)
    batch = tokenizer(line, return_tensors="pt")
    tokens = tokenizer.convert_ids_to_tokens(batch["input_ids"][0].tolist())
    room = min(LONGEST, model.embeddings.position.num_embeddings)
    if not 3 <= len(tokens) <= room:
        raise ValueError(
            f"a line of 3 to {room} tokens, with [CLS] and [SEP], please: {line!r} has "
            f"{len(tokens)}"
        )
    data = {"text": line, "tokens": tokens, "room": room}
    data |= {"around": [tokenizer.cls_token_id, tokenizer.sep_token_id]}
    data |= _measured(model, batch["input_ids"], tokenizer)
    if untrained is not None:
        ids = batch["input_ids"]
        data["untrained"] = _measured(_rebuilt(untrained), ids, tokenizer)
    data |= {"drift": round(int8.drift(model, **batch).max().item(), 4)}
    # First comes the head without which the final states move most.
    means = [[_numbers(line).mean() for line in layer] for layer in data["moved"]]
    layer, head = divmod(int(np.argmax(means)), len(means[0]))
    data |= {"layer": layer, "head": head, "token": 1}
    names = [shown("bert", token) for token in tokens]
    pictures = _pictures(data)
    alt = _summary(data, names, pictures)
    stored = _stored(data, names, pictures, alt)
    return View("explorer-view", data, stored, alt=alt, stores=["bert", "bert-pieces"])


def _rebuilt(model) -> Bert:
    """Return a BERT of `transformers`, ``model``, as one of the course, on the CPU."""
    weights = {name: weight.cpu() for name, weight in model.state_dict().items()}
    return rebuild(model.config, weights)


@torch.no_grad()
def _measured(model: Bert, ids: torch.Tensor, tokenizer) -> dict:
    """Return, rounded, what the view shows of each layer, head and token.

    Parameters
    ----------
    model : Bert
    ids : int Tensor of shape (1, tokens)
    tokenizer : PreTrainedTokenizerFast

    Returns
    -------
    dict
        By layer a list of str, one a head, each some numbers with spaces between:
        ``weights``, the attention weights, tokens · tokens, query by query; ``lengths``,
        how long the vector is that the head would take from each token; ``moved``, how far
        each token's final state moves without the head, in shares of its length. ``near``,
        by level (before layer 0, then after each), a str for each token: the nearest tokens
        of the table and their cosines, such as "cat 0.512 dog 0.401".
    """
    out = model(ids)
    weights = []
    lengths = []
    moved = []
    for layer, block in enumerate(model.layers):
        x = out.hidden_states[layer]
        heads = block.attention.heads
        value = block.attention.value(x)[0].unflatten(-1, (heads, -1))
        # value is (tokens, heads, d_head), matrix (d_model, heads, d_head).
        matrix = block.attention.output.weight.unflatten(-1, (heads, -1))
        brought = torch.einsum("thd,mhd->htm", value, matrix)  # (heads, tokens, d_model)
        lengths.append(brought.norm(dim=-1))
        weights.append(out.attentions[layer][0].flatten(1))  # (heads, tokens²)
        moved.append([_moved(model, layer, head, out) for head in range(heads)])
    return {
        "weights": [_written(x) for x in weights],
        "lengths": [_written(x) for x in lengths],
        "moved": [_written(torch.stack(x)) for x in moved],
        "near": _neighbours(model, out.hidden_states, tokenizer),
    }


def _written(x: torch.Tensor) -> list[str]:
    """Return each row of a matrix as a str of numbers, such as "0.120 0.033".

    ``x`` : Tensor (rows, columns). There are thousands of numbers, and a str of them is
    shorter in the page than a list.
    """
    return [" ".join(f"{number:.3f}" for number in row) for row in x.tolist()]


def _numbers(line: str) -> np.ndarray:
    """Return the numbers of a ``line`` such as "0.120 0.033" as an array (numbers,)."""
    return np.array(line.split(), dtype=float)


def _moved(model: Bert, layer: int, head: int, out) -> torch.Tensor:
    """Return how far each final state moves without a head, a Tensor (tokens,).

    It is the length of the difference, divided by the state's length in the whole model.

    ``layer`` and ``head`` are numbers from 0. ``out`` is what the model returns for a text:
    ``hidden_states``, a Tensor (1, tokens, d_model) before layer 0 and after each, and
    ``last_hidden_state``, the last of them. The layers from this one on are run again; in
    the first of them the head returns zeros.
    """
    x = out.hidden_states[layer]
    with without(model.layers[layer], head):
        for block in model.layers[layer:]:
            x, _ = block(x)
    states = out.last_hidden_state[0]
    return (x[0] - states).norm(dim=-1) / states.norm(dim=-1)


def _neighbours(model: Bert, states, tokenizer) -> list:
    """Return the six tokens of BERT's table that are nearest to each state, by level.

    ``model`` : the course's Bert; ``states`` : Tensors (1, tokens, d_model), one a level;
    ``tokenizer`` : the model's own. The result is a list for each level: for each position
    a str with tokens and cosines by turns, the nearest first, such as "cat 0.512 dog
    0.401".
    """
    table = normalize(model.embeddings.word.weight)
    by_level = []
    for state in states:
        cosines, ids = (normalize(state[0]) @ table.T).topk(NEAREST)  # (tokens, NEAREST)
        lines = []
        for row, near in zip(ids.tolist(), cosines.tolist(), strict=True):
            names = zip(tokenizer.convert_ids_to_tokens(row), near, strict=True)
            lines.append(" ".join(f"{name} {cosine:.3f}" for name, cosine in names))
        by_level.append(lines)
    return by_level


def _pictures(data: dict) -> np.ndarray:
    """Return the three pictures of the head that is shown first, (3, tokens).

    ``data`` : what the view carries: ``layer``, ``head`` and ``token``, from 0; by layer
    and head a str of numbers with spaces between: ``weights``, of tokens · tokens, query by
    query, ``lengths`` and ``moved``, one a token. The pictures are the token's attention
    weights; these times the lengths of the vectors that are fetched; and how far each
    token's final state moves without the head, in shares of its length.
    """
    layer = data["layer"]
    head = data["head"]
    token = data["token"]
    keys = ("weights", "lengths", "moved")
    weights, lengths, moved = (_numbers(data[key][layer][head]) for key in keys)
    own = weights.reshape(len(moved), -1)[token]
    return np.stack([own, own * lengths, moved])


def _summary(data: dict, names: list[str], pictures: np.ndarray) -> str:
    """Say in three sentences what the pictures show, as `explorer-view.js` does.

    ``data`` : what the view carries, of which ``layer``, ``head`` and ``token``, numbers
    from 0, are used; ``names`` : the tokens; ``pictures`` : (3, tokens), attention weights,
    weights times lengths, and how far states move without the head.
    """
    first, long, far = (names[i] for i in pictures.argmax(axis=1))
    weight, _, moved = pictures.max(axis=1)
    return (
        f"In layer {data['layer']}, head {data['head']}, “{names[data['token']]}” attends "
        f"most to “{first}”, with a weight of {weight:.2f}. If each weight is "
        f"multiplied by the length of what is fetched, “{long}” contributes most. Without "
        f"this head the final vector of “{far}” changes more than any other: by "
        f"{moved:.2f} of its length."
    )


def _near(data: dict, level: int) -> list[str]:
    """Return the neighbours of the token that is shown first, such as ["cat 0.51"].

    ``data`` : what the view carries: ``token``, its position, and ``near``, by level and
    position a str with tokens and cosines by turns, such as "cat 0.512 dog 0.401".
    ``level`` : 0 is before layer 0, 1 after it, and so on.
    """
    fields = data["near"][level][data["token"]].split()
    pairs = zip(fields[::2], fields[1::2], strict=True)
    return [
        f"{shown('bert', piece)} {format_number(float(cosine), '.2f')}"
        for piece, cosine in pairs
    ]


def _stored(data: dict, names: list[str], pictures: np.ndarray, summary: str) -> str:
    """Return what is shown without scripts, as HTML: the line, and two tables.

    ``data`` is the view's: ``text``, the line; ``layer`` and ``token``, from 0; ``near``,
    by level and position the nearest tokens of the table with their cosines, such as "cat
    0.512 dog 0.401". ``names`` are the line's tokens as they are shown; ``pictures``, (3,
    tokens), has attention weights, weights times lengths, and how far states move without
    the head, the columns of the first table; ``summary`` stands below the line.
    """
    layer = data["layer"]
    own = html.escape(names[data["token"]])
    columns = [map("{:.2f}".format, picture) for picture in pictures]
    heads = table(["token", *PICTURES], zip(names, *columns, strict=True))
    near = zip(_near(data, layer), _near(data, layer + 1), strict=True)
    return (
        f"<p><b>{html.escape(data['text'])}</b></p>\n<p>{html.escape(summary)}</p>\n"
        f"{heads}\n<p>The tokens whose vectors in the table are nearest to that of "
        f"“{own}”, before and after layer {layer}, with the cosine:</p>\n"
        f"{table(['before', 'after'], near)}"
    )
