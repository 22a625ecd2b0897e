"""A whole model in one picture: from the text through every layer to the next token."""

import copy
from collections.abc import Callable, Sequence
from html import escape
from typing import NamedTuple

import torch
import torch.nn.functional as F

from lmcourse.masking import MaskedBert
from lmcourse.numbers import format_number, percent
from lmcourse.tokenization import CharTokenizer
from lmcourse.views.generator import why_not_in_page
from lmcourse.views.markup import table
from lmcourse.views.talker import token_name
from lmcourse.views.talker import why_not_in_page as why_talker_not_in_page
from lmcourse.views.tokenizer import SIGNS, shown
from lmcourse.views.view import View

ROOM = 40  # tokens that a picture has rows for
NUMBERS = 8  # of a vector that are shown
LENS, NEURONS, NEXT = 5, 6, 10  # words of a layer; neurons of a layer; next tokens
ALIKE = 0.99  # of the largest change: what differs by less may be rounding
STORED_NEXT = 5  # next tokens on paper


def whole(*, gpt=None, bert=None, talker=None) -> View:
    """Show whole models, each in a picture in which every part opens to its numbers.

    On the site the reader follows a text of their own from its tokens through embeddings,
    attention heads, feed-forward networks and the residual stream to the probabilities of
    the next token, opens each part, takes a tour, and sees the same with random weights.
    The site carries the book's GPT (or that of ``LMCOURSE_GPT``), its mini-BERT and the
    model that talks; pass the same: ::

        views.whole(
            gpt=("Shall I compare thee", *load_gpt()[:2]),
            bert=("My [MASK]' eyes are nothing like the sun", *load_mini_bert()[:2]),
            talker=("The capital of France is", *load_talker()),
        )

    Parameters
    ----------
    gpt, bert, talker : tuple, optional
        A text to begin with, a tokenizer and a model: a GPT of the course, a BERT that
        fills gaps and a Llama that answers. The text for ``bert`` has one [MASK].

    Returns
    -------
    View
        Its alternative text tells what each model makes of its text.

    Raises
    ------
    ValueError
        If no model is given, a text has no or more than `ROOM` tokens, or the text for
        ``bert`` has not exactly one [MASK].
    """
    makers = {"gpt": (_gpt, gpt), "bert": (_bert, bert), "talker": (_talker, talker)}
    models = [make(*given) for make, given in makers.values() if given]
    if not models:
        raise ValueError("a model, please: gpt=, bert= or talker=")
    alt = "Whole models in one picture. " + " ".join(map(_sentence, models))
    stored = "\n".join(map(_stored, models))
    stores = [model["store"] for model in models if not model["why"]]
    stores += [model["pieces"] for model in models if model["pieces"]]
    return View("whole-view", {"models": models}, stored, alt=alt, stores=stores)


# --- the three models -----------------------------------------------------------------


def _gpt(text: str, tokenizer, model) -> dict:
    """Return what the view shows of a GPT, a dict; weights are rounded as the site's are.

    Parameters
    ----------
    text : str
        What the reader finds in the view: at least one token, and at most ``room``.
    tokenizer, model
        A GPT of the course and its tokenizer, of letters (`CharTokenizer`) or GPT-2's.

    Returns
    -------
    dict
        ``name`` and ``store``, under which the page keeps the model; ``pieces``, the store
        of its vocabulary: always "", since letters are in ``alphabet``, and the page does
        not run a GPT with other tokens; ``text``; ``room``, how many tokens the view shows
        at most; ``alphabet``, "" if tokens are not letters; ``unit``, what a token is
        called; ``reading``, the rounded numbers that the picture shows of the text (`read`
        names them); ``why`` the model does not run in the page, "" if it does.

    Raises
    ------
    ValueError
        If the text has no token, or more than ``room``.
    """
    why = why_not_in_page(tokenizer, model)
    model = copy.deepcopy(model).cpu().half().float().eval()
    ids = tokenizer.encode(text)
    room = min(ROOM, model.config.context)
    _check(ids, room)
    in_letters = isinstance(tokenizer, CharTokenizer)

    def name(token: int) -> str:
        """Return a token, by its id, so that it can be seen, such as "·" for a space."""
        return "".join(SIGNS.get(c, c) for c in tokenizer.decode([token]))

    return {
        "name": "gpt",
        "text": text,
        "room": room,
        "store": "gpt",
        "pieces": "",
        "alphabet": tokenizer.alphabet if in_letters else "",
        "unit": "letter" if in_letters else "token",
        "why": f"This model does not run in the page: {why}." if why else "",
        "reading": read(model, ids, len(ids) - 1, name),
    }


def _bert(text: str, tokenizer, model) -> dict:
    """Return what the view shows of a BERT that fills a gap, a dict.

    Parameters
    ----------
    text : str
        With one mask token, and at most ``room`` tokens, [CLS] and [SEP] among them.
    tokenizer, model
        The Transformers tokenizer, and the course's BERT with the head that fills gaps
        (`lmcourse.mini_bert`); of the model a copy is rounded as the site's file is.

    Returns
    -------
    dict
        ``name`` and ``store``, under which the page keeps the model; ``pieces``, the store
        of its vocabulary; ``text``; ``room``, how many tokens the view shows at most;
        ``around``, the ids of [CLS], [SEP] and the mask; ``unit``, what a token is called;
        ``reading``, the rounded numbers that the picture shows of the text (`read` names
        them); ``why`` the model does not run in the page: "", since it does.

    Raises
    ------
    ValueError
        If the text has more than ``room`` tokens, or not exactly one mask token.
    """
    ids = tokenizer(text)["input_ids"]
    room = min(ROOM, model.bert.embeddings.position.num_embeddings)
    _check(ids, room)
    if ids.count(tokenizer.mask_token_id) != 1:
        raise ValueError(f"a text with one {tokenizer.mask_token}, please, not {text!r}")
    place = ids.index(tokenizer.mask_token_id)
    model = copy.deepcopy(model).cpu().half().float().eval()
    around = [tokenizer.cls_token_id, tokenizer.sep_token_id]
    return {
        "name": "bert",
        "text": text,
        "room": room,
        "store": "mini-bert",
        "pieces": "mini-bert-pieces",
        "around": [*around, tokenizer.mask_token_id],
        "unit": "token",
        "why": "",
        "reading": read(
            model, ids, place, lambda i: shown("bert", tokenizer.convert_ids_to_tokens(i))
        ),
    }


def _talker(text: str, tokenizer, model) -> dict:
    """Return what the view shows of the model that talks, a dict.

    Parameters
    ----------
    text : str
        Taken as it stands, not as a dialogue: at least one token, and at most ``room``.
    tokenizer, model
        The Transformers tokenizer, and the course's Llama.

    Returns
    -------
    dict
        ``name`` and ``store``, under which the page keeps the model; ``pieces``, "", as its
        file has the vocabulary, too; ``text``; ``room``, how many tokens the view shows at
        most; ``unit``, what a token is called; ``reading``, the rounded numbers that the
        picture shows of the text (`read` names them); ``why`` the model does not run in the
        page, "" if it does.

    Raises
    ------
    ValueError
        If the text has no token, or more than ``room``.
    """
    ids = tokenizer(text, add_special_tokens=False).input_ids
    _check(ids, ROOM)
    return {
        "name": "talker",
        "text": text,
        "room": ROOM,
        "store": "talker",
        "pieces": "",
        "unit": "token",
        "why": why_talker_not_in_page(),
        "reading": read(model, ids, len(ids) - 1, lambda i: token_name(tokenizer, i)),
    }


def _check(ids: Sequence[int], room: int) -> None:
    """Raise a ValueError if a text's ``ids`` are none, or more than ``room``, an int."""
    if not 1 <= len(ids) <= room:
        raise ValueError(f"a text of 1 to {room} tokens, please: these are {len(ids)}")


# --- reading --------------------------------------------------------------------------


class Parts(NamedTuple):
    """What the three models have in common.

    Attributes
    ----------
    blocks : sequence of lmcourse.transformer.Block
    token : Tensor of shape (tokens, d_model)
        The vectors of the text's tokens in the table.
    position : Tensor of shape (tokens, d_model) or None
        What is added for their positions.
    start : Tensor of shape (1, tokens, d_model)
        What the first block is given.
    read_out : callable
        From states (..., d_model) to logits (..., vocab_size).
    sizes : dict
        ``layers``, ``heads`` of a layer, ``d_model``, ``d_ff`` and ``vocab_size``, int;
        ``causal``, whether a token attends only to itself and those before; ``norm_first``,
        whether the norms stand before attention and feed-forward network.
    """

    blocks: Sequence
    token: torch.Tensor
    position: torch.Tensor | None
    start: torch.Tensor
    read_out: Callable
    sizes: dict


def _parts(model, ids: torch.Tensor) -> Parts:
    """Take a model apart into what all three kinds have.

    Parameters
    ----------
    model : GPT, MaskedBert or Llama
    ids : int Tensor of shape (1, tokens)

    Returns
    -------
    Parts
        Blocks, vectors of the tokens and positions, the first block's input, what turns
        states into logits, and the sizes: a dict with ``layers``, ``heads``, ``d_model``,
        ``d_ff``, ``vocab_size``, ``causal`` and ``norm_first``.
    """
    tokens = ids.shape[1]
    if isinstance(model, MaskedBert):
        vectors = model.bert.embeddings
        table = vectors.word.weight
        blocks = model.bert.layers
        position = vectors.position.weight[:tokens]
        start = vectors(ids, torch.zeros_like(ids))

        def read_out(x):
            """Return the logits of states ``x``, (..., d_model): head, table and bias."""
            return model.head(x) @ table.T + model.bias
    else:
        table = model.tokens.weight
        blocks = model.blocks
        positions = getattr(model, "positions", None)
        position = None if positions is None else positions.weight[:tokens]
        start = model.embed(ids)

        def read_out(x):
            """Return the logits of states ``x``, (..., d_model): last norm and matrix."""
            return F.linear(model.norm(x), model.output_matrix)

    sizes = {
        "layers": len(blocks),
        "heads": blocks[0].attention.heads,
        "d_model": table.shape[1],
        "d_ff": blocks[0].feed_forward.down.in_features,
        "vocab_size": table.shape[0],
        "causal": not isinstance(model, MaskedBert),
        "norm_first": blocks[0].norm_first,
    }
    return Parts(blocks, table[ids[0]], position, start, read_out, sizes)


@torch.no_grad()
def read(model, ids: Sequence[int], place: int, name: Callable[[int], str]) -> dict:
    """Return, rounded, all that the picture shows of a text, as `whole-reading.js` does.

    Parameters
    ----------
    model : GPT, MaskedBert or Llama
        In evaluation mode, on the CPU.
    ids : sequence of int
        The text's tokens.
    place : int
        The position at which the model is asked for a token.
    name : callable
        How a token is shown, by its id.

    Returns
    -------
    dict
        ``ids``, ``place``, ``sizes`` (the dict of `Parts`), ``pieces`` (how tokens are
        shown, by id); ``token``, ``position`` (or None) and ``sum``, of each token the
        first 8 numbers (`NUMBERS`) of its vector in the table, of that of its position, and
        of what enters the first block; by layer ``weights`` (of each head, in thousandths,
        a list of tokens · tokens, query by query), ``attention``,
        ``feed_forward`` and ``stream`` (lengths of the two updates and of what comes out,
        at the place), ``lens`` (the likeliest tokens if the model ended here: id and
        probability), ``rise`` (the probability of the final answer there) and ``neurons``
        (of the strongest: number, value, the token it raises most and by how much, the one
        it lowers most and by how much); ``next``: id, logit and probability of the
        likeliest.
    """
    parts = _parts(model, torch.tensor([ids]))
    x = parts.start
    layers = []
    for block in parts.blocks:
        x, layer = _layer(block, x, place, parts.read_out)
        layers.append(layer)
    logits = parts.read_out(x[0, place])
    probs = logits.softmax(-1)
    best = probs.sort(descending=True, stable=True).indices[:NEXT].tolist()
    reading = {
        "ids": [*ids],
        "place": place,
        "sizes": parts.sizes,
        "token": _first(parts.token),
        "position": None if parts.position is None else _first(parts.position),
        "sum": _first(parts.start[0]),
        "next": [[i, _round(logits[i], 3), _round(probs[i])] for i in best],
        "rise": [_round(layer.pop("probs")[best[0]]) for layer in layers],
    }
    for key in layers[0]:
        reading[key] = [layer[key] for layer in layers]
    return reading | {"pieces": {i: name(i) for i in sorted(_mentioned(reading))}}


def _mentioned(reading: dict) -> set[int]:
    """Return the ids of all tokens that a reading names, a set.

    ``reading`` : dict. ``ids`` are the text's; ``next`` has the likeliest next tokens, each
    [id, logit, probability]; ``lens`` by layer [id, probability]; ``neurons`` by layer
    lists of six, of which the third and the fifth are ids.
    """
    ids = {*reading["ids"], *(i for i, *_ in reading["next"])}
    ids |= {i for layer in reading["lens"] for i, _ in layer}
    return ids | {
        i
        for layer in reading["neurons"]
        for _, _, up, _, down, _ in layer
        for i in (up, down)
    }


def _layer(block, x: torch.Tensor, place: int, read_out) -> tuple[torch.Tensor, dict]:
    """Run a block; return what comes out, and what is shown of it.

    Parameters
    ----------
    block : lmcourse.transformer.Block
    x : Tensor of shape (1, tokens, d_model)
        What goes in.
    place : int
        The position, from 0, at which the model is asked for a token.
    read_out : callable
        From states (..., d_model) to logits (..., vocab_size).

    Returns
    -------
    out : Tensor of shape (1, tokens, d_model)
    shown : dict
        ``weights``, of each head, in thousandths, query by query; at the place
        ``attention``, ``feed_forward`` and ``stream``, the lengths of the two updates and
        of what comes out; ``lens``, the five likeliest tokens if the model ended here, [id,
        probability]; ``neurons``, what the six strongest do to the answer, [number, value,
        id of the token that it raises most, by how much, id of the one that it lowers most,
        by how much]; ``probs``, (vocab_size,), the probabilities if the model ended here.
    """
    run = _run(block, x)
    probs = read_out(run.out[0, place]).softmax(-1)
    best = probs.sort(descending=True, stable=True).indices[:LENS].tolist()
    strongest = _strongest(block, run.values[0, place])
    changes = probs - _probs_without(block, run, place, strongest, read_out)
    return run.out, {
        "weights": [_thousandths(head) for head in run.weights[0]],
        "attention": _round(run.update[0, place].norm(), 3),
        "feed_forward": _round(run.added[0, place].norm(), 3),
        "stream": _round(run.out[0, place].norm(), 3),
        "lens": [[i, _round(probs[i])] for i in best],
        "neurons": _neurons(strongest, run.values[0, place], changes),
        "probs": probs,
    }


class Run(NamedTuple):
    """What a block computed for a text.

    Attributes
    ----------
    weights : Tensor of shape (1, heads, tokens, tokens)
    update : Tensor of shape (1, tokens, d_model)
        What attention adds.
    middle : Tensor of shape (1, tokens, d_model)
        The stream between attention and the feed-forward network.
    values : Tensor of shape (1, tokens, d_ff)
        Of the feed-forward network's neurons.
    added : Tensor of shape (1, tokens, d_model)
        What the feed-forward network adds.
    out : Tensor of shape (1, tokens, d_model)
        What comes out of the block.
    """

    weights: torch.Tensor
    update: torch.Tensor
    middle: torch.Tensor
    values: torch.Tensor
    added: torch.Tensor
    out: torch.Tensor


def _run(block, x: torch.Tensor) -> Run:
    """Run a block, and keep what it computed on the way.

    ``block`` : lmcourse.transformer.Block; ``x`` : Tensor (1, tokens, d_model), what goes
    in.
    """
    seen = block.before(x, block.norm_1)
    update, weights = block.attention(seen)
    if weights is None:
        weights = block.attention.weights(seen)
    middle = block.after(x, update, block.norm_1)
    values = []
    down = block.feed_forward.down
    with down.register_forward_pre_hook(lambda module, inputs: values.append(inputs[0])):
        added = block.feed_forward(block.before(middle, block.norm_2))
    out = block.after(middle, added, block.norm_2)
    return Run(weights, update, middle, values[0], added, out)


def _strongest(block, values: torch.Tensor) -> torch.Tensor:
    """Return the numbers of the 6 neurons that add the longest vectors (`NEURONS`).

    ``values`` : Tensor (d_ff,), of all neurons. Returns an int64 Tensor (neurons,), the
    strongest first.
    """
    strength = values.abs() * block.feed_forward.down.weight.norm(dim=0)
    return strength.sort(descending=True, stable=True).indices[:NEURONS]


def _probs_without(block, run: Run, place: int, neurons, read_out) -> torch.Tensor:
    """Return the probabilities if the model ended after a block without one of its neurons.

    Parameters
    ----------
    block : lmcourse.transformer.Block
    run : Run
        What the block computed with all of them.
    place : int
        The position, from 0, at which the model is asked for a token.
    neurons : int64 Tensor of shape (neurons,)
        Which are left out, one at a time.
    read_out : callable
        From states (..., d_model) to logits (..., vocab_size).

    Returns
    -------
    Tensor of shape (neurons, vocab_size)
    """
    columns = block.feed_forward.down.weight.T[neurons]  # (neurons, d_model)
    parts = run.values[0, place][neurons, None] * columns  # (neurons, d_model)
    left = run.added[0, place] - parts  # (neurons, d_model)
    without = block.after(run.middle[0, place], left, block.norm_2)
    return read_out(without).softmax(-1)


def _first_alike(changes: torch.Tensor) -> torch.Tensor:
    """Return the tokens whose probability changes most, the same on every processor.

    Of tokens that change as much as the most, to a hundredth (`ALIKE`), the first is taken:
    which of them is the most may be a matter of rounding.

    ``changes`` : Tensor (neurons, vocab_size). Returns an int64 Tensor (neurons,).
    """
    most = changes.amax(-1, keepdim=True)
    least = torch.minimum(most, ALIKE * most)  # also if rounding leaves none above 0
    return (changes >= least).int().argmax(-1)


def _neurons(strongest, values, changes) -> list[list]:
    """Tell what the strongest neurons do to the answer that the layer would give.

    Parameters
    ----------
    strongest : int64 Tensor of shape (neurons,)
        Their numbers.
    values : Tensor of shape (d_ff,)
        The values of all neurons.
    changes : Tensor of shape (neurons, vocab_size)
        By how much each raises the probability of each token.

    Returns
    -------
    list of list
        For each neuron its number, its value, the token whose probability it raises most
        and by how much, and the token whose probability it lowers most and by how much (of
        tokens alike the first, see `_first_alike`).
    """
    raised = _first_alike(changes)
    lowered = _first_alike(-changes)
    columns = zip(
        strongest.tolist(),
        values[strongest].tolist(),
        raised.tolist(),
        changes.gather(1, raised[:, None])[:, 0].tolist(),
        lowered.tolist(),
        changes.gather(1, lowered[:, None])[:, 0].tolist(),
        strict=True,
    )
    return [
        [number, _round(value, 3), up, _round(more), down, _round(less)]
        for number, value, up, more, down, less in columns
    ]


def _round(number, digits: int = 4) -> float:
    """Return a number with some digits after the point."""
    return round(float(number), digits)


def _first(vectors: torch.Tensor) -> list[list[float]]:
    """Return the first 8 numbers of each vector (`NUMBERS`), with three decimals.

    ``vectors`` : Tensor (tokens, d_model).
    """
    return [[_round(x, 3) for x in row] for row in vectors[:, :NUMBERS].tolist()]


def _thousandths(weights: torch.Tensor) -> list[int]:
    """Return a head's weights (tokens, tokens) in thousandths, row after row."""
    return [round(1000 * x) for x in weights.flatten().tolist()]


# --- what stands there without scripts ------------------------------------------------


def _quoted(reading: dict, token: int) -> str:
    """Return a token in quotation marks.

    ``reading`` : dict; its ``pieces`` say how tokens are shown, by id; ``token`` : the id.
    """
    return f"“{reading['pieces'][token]}”"


def _sentence(model: dict) -> str:
    """Say in a sentence what a model makes of its text.

    ``model`` : dict: ``name``, "gpt", "bert" or "talker"; ``text``; ``unit``, what a token
    is called; ``reading``, a dict: ``sizes`` has the numbers of ``layers`` and ``heads``,
    ``next`` the likeliest tokens, each [id, logit, probability], and ``pieces`` how tokens
    are shown, by id.
    """
    reading = model["reading"]
    names = {"gpt": "A GPT", "bert": "A BERT", "talker": "The model that talks"}
    best, _, share = reading["next"][0]
    sizes = reading["sizes"]
    asked = "in the gap of" if model["name"] == "bert" else "after"
    return (
        f"{names[model['name']]} of {sizes['layers']} layers of {sizes['heads']} heads: "
        f"{asked} “{model['text']}” the likeliest {model['unit']} is "
        f"{_quoted(reading, best)}, {percent(share)}."
    )


def _stored(model: dict) -> str:
    """Return what is shown of a model without scripts, as HTML: its layers, its answer.

    ``model`` : dict: ``name``, "gpt", "bert" or "talker"; ``text``; ``unit``, what a token
    is called; ``why`` it does not run in the page, a sentence, or ""; ``reading``, the
    rounded numbers that the picture shows (`read` names them).
    """
    reading = model["reading"]
    rows = [_stored_layer(reading, layer) for layer in range(reading["sizes"]["layers"])]
    head = ["layer", "what a head brings here", "strongest neuron", "if it stopped here"]
    answers = [
        (reading["pieces"][i], percent(share, 1))
        for i, _, share in reading["next"][:STORED_NEXT]
    ]
    tokens = " | ".join(reading["pieces"][i] for i in reading["ids"])
    why = f"<p><small>{escape(model['why'])}</small></p>" if model["why"] else ""
    return (
        f"{why}<p><b>{escape(_sentence(model))}</b></p>\n"
        f"<p>Its tokens: {escape(tokens)}</p>\n"
        f'<div class="lmw-layers">{table(head, rows)}</div>\n'
        f'<div class="lmw-answer">{table([model["unit"], "probability"], answers)}</div>'
    )


def _stored_layer(reading: dict, layer: int) -> list[str]:
    """Return a layer's cells of the table on paper: its number, a head, a neuron, a token.

    The head is the one that attends most to one token, the neuron the strongest, and the
    token the likeliest if the model stopped after the layer.

    ``reading`` : the rounded numbers that the picture shows of a text. By layer ``neurons``
    has [number, value, id of the token it raises, by how much, …], the strongest first;
    ``lens`` [id, probability], the likeliest first; ``weights``, of each head, in
    thousandths. ``ids`` are the text's tokens, ``pieces`` say how tokens are shown, by id.
    ``layer`` counts from 0.
    """
    head, token, weight = strongest_attention(reading, layer)
    number, _, up, more, _, _ = reading["neurons"][layer][0]
    word, share = reading["lens"][layer][0]
    own = reading["ids"][token]
    points = format_number(100 * more, ".1f")
    return [
        str(layer),
        f"head {head} attends to {_quoted(reading, own)}: {percent(weight / 1000)}",
        f"{number} raises {_quoted(reading, up)} by {points} points",
        f"{_quoted(reading, word)} {percent(share)}",
    ]


def strongest_attention(reading: dict, layer: int) -> tuple[int, int, int]:
    """Return the head of a layer that attends most to one token, as the view chooses it.

    The first token and the place itself count only if there is no other: most heads rest
    on the one or the other. Of equal weights the lower head counts, then the lower token.

    Parameters
    ----------
    reading : dict
        The rounded numbers that the picture shows of a text: ``ids``, its tokens;
        ``weights``, of each layer and head a list of tokens · tokens attention weights in
        thousandths, query by query; ``place``, the position that is asked for a token.
    layer : int
        Its number, from 0.

    Returns
    -------
    head : int
        From 0.
    token : int
        Its position, from 0.
    weight : int
        In thousandths.
    """
    tokens = len(reading["ids"])
    place = reading["place"]
    others = [i for i in range(tokens) if i not in (0, place)] or [*range(tokens)]
    rows = [
        weights[place * tokens : (place + 1) * tokens]
        for weights in reading["weights"][layer]
    ]
    looks = [(row[i], -head, -i) for head, row in enumerate(rows) for i in others]
    weight, head, token = max(looks)
    return -head, -token, weight
