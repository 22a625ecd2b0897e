"""Checks of the chapter *bert-internals*."""

from types import SimpleNamespace

import torch
from transformers import BertConfig, BertModel

from lmcourse.exercises import Wrong, compare, exercise, expect, run
from lmcourse.exercises.answers import array, normal


def _bert(**changes):
    """Return a small random BERT whose axes all have different sizes."""
    sizes = {"vocab_size": 31, "max_position_embeddings": 11, "num_hidden_layers": 1}
    sizes |= {"hidden_size": 8, "intermediate_size": 12, "num_attention_heads": 2}
    torch.manual_seed(0)
    model = BertModel(BertConfig(**(sizes | changes))).eval()
    torch.nn.init.normal_(model.embeddings.LayerNorm.weight, 1, 0.3)
    torch.nn.init.normal_(model.embeddings.LayerNorm.bias, 0, 0.3)
    return model.requires_grad_(False)


@exercise("bert-internals.embed")
def embed(answer):
    """Compare with the first hidden state of transformers' BERT."""
    model = _bert()
    ids = torch.randint(31, (3, 5), generator=torch.Generator().manual_seed(1))
    kinds = torch.tensor([[0, 0, 0, 1, 1]]).expand(3, 5)
    # Not the whole model: only its parts, so that they cannot be called in one piece.
    parts = SimpleNamespace(**dict(model.embeddings.named_children()))
    norm, first = parts.LayerNorm, parts.token_type_embeddings.weight[0]
    word, kind = parts.word_embeddings(ids), parts.token_type_embeddings(kinds)
    place = parts.position_embeddings.weight[:5].expand_as(word)
    mistakes = {
        "these are the rows of the word table alone: position, type and the normalisation "
        "are missing.": word,
        "the sum is right, but it is not normalised.": word + place + kind,
        "the position is missing: the same word gets the same vector at every place.": norm(
            word + kind
        ),
        "the token type is missing. Even where every type is 0, its vector is added.": norm(
            word + place
        ),
        "token_type_ids is not used: every token has been given type 0, but here the "
        "second text has type 1.": norm(word + place + first),
        "each vector was normalised before the sum; add first.": (
            norm(word) + norm(place) + norm(kind)
        ),
    }
    want = model(ids, token_type_ids=kinds, output_hidden_states=True).hidden_states[0]
    seen = SimpleNamespace(embeddings=parts, config=model.config)
    expect(answer, [seen, ids, kinds], want, mistakes)


@exercise("bert-internals.layer_parameters")
def layer_parameters(answer):
    """Compare with the layers of two BERTs."""
    for d, d_ff in ((8, 12), (6, 30)):
        layer = _bert(hidden_size=d, intermediate_size=d_ff).encoder.layer[0]
        want = sum(weight.numel() for weight in layer.parameters())
        linear = 4 * d + d_ff + d  # biases
        mistakes = {
            "the biases are missing, of the linear layers and of the normalisations: each "
            "has one.": want - linear - 2 * d,
            "the biases of the linear layers are missing.": want - linear,
            "the normalisations are missing: two a layer, with a weight and a bias each.": (
                want - 4 * d
            ),
            "only one normalisation is counted; a layer has two.": want - 2 * d,
            "attention has a fourth matrix, which mixes the heads' results.": (
                want - d * d - d
            ),
            "the feed-forward net has two linear layers: up to d_ff and back.": (
                want - d * d_ff - d
            ),
        }
        expect(answer, [d, d_ff], want, mistakes)


@exercise("bert-internals.pooler")
def pooler(answer):
    """Compare with a linear layer and tanh, on each text's first token."""
    states, weight, bias = normal(3, 4, 6), normal(6, 6, seed=1), normal(6, seed=2)

    def pooled(states, weight=weight, bias=bias):
        return torch.nn.functional.linear(states, weight, bias).tanh()

    mistakes = {
        "the tanh is missing: a pooler's numbers lie between -1 and 1.": (
            states[:, 0] @ weight.T + bias
        ),
        "the weight is the wrong way round. Its shape is (out, in), so the vector is "
        "multiplied with its transpose.": pooled(states[:, 0], weight.T),
        "this pools the mean of the tokens; BERT's pooler takes the first token only.": (
            pooled(states.mean(1))
        ),
        "this takes the last token; [CLS] is the first.": pooled(states[:, -1]),
        "this takes the first text of the batch, not the first token of each text.": pooled(
            states[0]
        ),
        "the pooler was applied to every token; only the first is wanted.": pooled(states),
        "the bias is missing.": pooled(states[:, 0], bias=None),
    }
    expect(answer, [states, weight, bias], pooled(states[:, 0]), mistakes)


@exercise("bert-internals.last_four")
def last_four(answer):
    """Compare with means of each text's real tokens, cut out by hand."""
    states = tuple(normal(2, 5, 3, seed=seed) for seed in range(7))
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]])

    def means(layers, counts=(5, 2), over=(5, 2)):
        """Sum the first tokens of each text, divide; (texts, layers, d_model)."""
        rows = [
            [x[text, : counts[text]].sum(0) / over[text] for x in layers] for text in (0, 1)
        ]
        return torch.stack([torch.stack(row) for row in rows])

    last = means(states[-4:])
    mistakes = {
        "the padding is averaged in: the second text has only two real tokens.": means(
            states[-4:], (5, 5), (5, 5)
        ),
        "the padding is left out of the sum, but still counted when dividing.": means(
            states[-4:], over=(5, 5)
        ),
        "these are the first four hidden states, not the last.": means(states[:4]),
        "the last hidden state itself is left out; it is one of the last four.": means(
            states[-5:-1]
        ),
        "the order is turned round: the fourth from the end comes first.": last.flip(1),
        "the layers are averaged; they should be laid end to end.": last.mean(1, True),
        "the layers are added; they should be laid end to end.": last.sum(1, True),
        "these are the vectors of [CLS]; the mean over the tokens is wanted.": means(
            states[-4:], (1, 1), (1, 1)
        ),
    }
    mistakes = {text: wrong.flatten(1) for text, wrong in mistakes.items()}
    expect(answer, [states, mask], last.flatten(1), mistakes)


def _search(average, special, itself=False, specials=False):
    """Search the most attended token of each row, one at a time."""
    found = []
    for i, row in enumerate(average.tolist()):
        allowed = [
            j for j in range(7) if (itself or j != i) and (specials or not special[j])
        ]
        found.append(max(allowed, key=row.__getitem__))
    return found


@exercise("bert-internals.most_attended")
def most_attended(answer):
    """Compare with a search in plain Python."""
    special = torch.tensor([True, False, False, True, False, False, True])
    tempting = 2 * torch.eye(7) + 2.5 * special  # the forbidden places
    weights = (normal(3, 7, 7, seed=4) + tempting).softmax(-1)
    average = weights.mean(0)
    rows = torch.eye(7, dtype=torch.bool) | special[:, None]
    mistakes = {
        "[CLS] and [SEP] are still allowed.": _search(average, special, specials=True),
        "the token itself is still allowed.": _search(average, special, itself=True),
        "nothing is left out: [CLS], [SEP] and the token itself should not count.": (
            average.argmax(-1)
        ),
        "this is the token that looks most at each, not the one it looks at: rows look, "
        "columns are looked at.": _search(average.T, special),
        "the special tokens are left out as rows, where they look; they should be left out "
        "as columns.": average.masked_fill(rows, -1).argmax(-1),
        "only the first head is used; average over the heads.": _search(
            weights[0], special
        ),
    }
    got = array(run(answer, weights, special))
    if got.shape == (3, 7):
        raise Wrong("there is one answer a head; average the weights over the heads first.")
    if got.dtype.kind == "f":
        raise Wrong("these are weights; the index of the token is wanted.")
    compare(got, _search(average, special), mistakes)


@exercise("bert-internals.lookback")
def lookback(answer):
    """Compare with adding up, weight by weight, those whose places fulfil a condition."""
    weights = normal(3, 6, 6, seed=5).softmax(-1)

    def share(inside, first=1, over=None):
        places = [(i, j) for i in range(first, 6) for j in range(6) if inside(i, j)]
        sums = [sum(float(head[place]) for place in places) for head in weights]
        return torch.tensor(sums) / (over or 6 - first)

    def before(i, j):
        return j < i

    def after(i, j):
        return j > i

    def upto(i, j):
        return j <= i

    mistakes = {
        "this looks forward: rows are the tokens that look, columns those they look at.": (
            share(after, first=0, over=5)
        ),
        "this looks forward, and over all tokens: rows are the tokens that look.": share(
            after, first=0
        ),
        "this looks forward: earlier tokens are the columns to the left.": share(after),
        "the token itself is counted; only earlier tokens are wanted.": share(upto),
        "the token itself is counted, and the first token, which has nothing before it.": (
            share(upto, first=0)
        ),
        "the first token is averaged in; it has nothing before it.": share(before, first=0),
        "only the token just before is counted; all earlier ones are wanted.": share(
            lambda i, j: j == i - 1
        ),
        "this is the sum over the tokens; their mean is wanted.": share(before, over=1),
    }
    expect(answer, [weights], share(before), mistakes)
