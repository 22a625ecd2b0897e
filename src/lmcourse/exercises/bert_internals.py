"""Checks of the chapter *bert-internals*."""

from types import SimpleNamespace

import torch
from transformers import BertConfig, BertModel

from lmcourse.exercises import Wrong, compare, exercise, run


def _bert(**changes):
    """Return a small random BERT whose axes all have different sizes."""
    sizes = {
        "vocab_size": 31,
        "hidden_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 12,
        "max_position_embeddings": 11,
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = BertModel(BertConfig(**(sizes | changes))).eval()
        for norm in (model.embeddings.LayerNorm,):
            torch.nn.init.normal_(norm.weight, 1, 0.3)
            torch.nn.init.normal_(norm.bias, 0, 0.3)
    return model


def _random(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator)


@exercise("bert-internals.embed")
def embed(answer):
    model = _bert()
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(31, (3, 5), generator=generator)
    kinds = torch.tensor([[0, 0, 0, 1, 1]]).expand(3, 5)
    tables = model.embeddings
    # Not the whole model: only its parts, so that they cannot be called in one piece.
    parts = {
        name: getattr(tables, name)
        for name in (
            "word_embeddings",
            "position_embeddings",
            "token_type_embeddings",
            "LayerNorm",
        )
    }
    seen = SimpleNamespace(embeddings=SimpleNamespace(**parts), config=model.config)
    with torch.no_grad():
        got = run(answer, seen, ids, kinds)
        want = model(ids, token_type_ids=kinds, output_hidden_states=True).hidden_states[0]
        word = tables.word_embeddings(ids)
        place = tables.position_embeddings.weight[:5]
        kind = tables.token_type_embeddings(kinds)
        first = tables.token_type_embeddings.weight[0]
        mistakes = {
            "these are the rows of the word table alone: position, type and the "
            "normalisation are missing.": word,
            "the sum is right, but it is not normalised.": word + place + kind,
            "the position is missing: the same word gets the same vector at every "
            "place.": tables.LayerNorm(word + kind),
            "the token type is missing. Even where every type is 0, its vector is "
            "added.": tables.LayerNorm(word + place),
            "token_type_ids is not used: every token has been given type 0, but here "
            "the second text has type 1.": tables.LayerNorm(word + place + first),
            "each vector was normalised before the sum; add first.": sum(
                tables.LayerNorm(part) for part in (word, place.expand_as(word), kind)
            ),
        }
    compare(got, want, mistakes)


@exercise("bert-internals.layer_parameters")
def layer_parameters(answer):
    for d, d_ff in ((8, 12), (6, 30)):
        got = run(answer, d, d_ff)
        layer = _bert(hidden_size=d, intermediate_size=d_ff).encoder.layer[0]
        want = sum(weight.numel() for weight in layer.parameters())
        feed_biases = d_ff + d
        mistakes = {
            "the biases are missing, of the linear layers and of the normalisations: "
            "each has one.": 4 * d * d + 2 * d * d_ff + 2 * d,
            "the biases of the linear layers are missing.": want - 4 * d - feed_biases,
            "the normalisations are missing: two a layer, with a weight and a bias "
            "each.": want - 4 * d,
            "only one normalisation is counted; a layer has two.": want - 2 * d,
            "attention has a fourth matrix, which mixes the heads' results.": want
            - d * d
            - d,
            "the feed-forward net has two linear layers: up to d_ff and back.": want
            - d * d_ff
            - d,
        }
        compare(got, want, mistakes)


@exercise("bert-internals.pooler")
def pooler(answer):
    states, weight, bias = _random(3, 4, 6), _random(6, 6, seed=1), _random(6, seed=2)
    layer = torch.nn.Linear(6, 6)
    layer.load_state_dict({"weight": weight, "bias": bias})
    with torch.no_grad():
        got = run(answer, states, weight, bias)
        want = layer(states[:, 0]).tanh()
        mistakes = {
            "the tanh is missing: a pooler's numbers lie between -1 and 1.": layer(
                states[:, 0]
            ),
            "the weight is the wrong way round. Its shape is (out, in), so the vector is "
            "multiplied with its transpose.": (states[:, 0] @ weight + bias).tanh(),
            "this pools the mean of the tokens; BERT's pooler takes the first token "
            "only.": layer(states.mean(1)).tanh(),
            "this takes the last token; [CLS] is the first.": layer(states[:, -1]).tanh(),
            "this takes the first text of the batch, not the first token of each "
            "text.": layer(states[0]).tanh(),
            "the pooler was applied to every token; only the first is wanted.": layer(
                states
            ).tanh(),
            "the bias is missing.": (states[:, 0] @ weight.T).tanh(),
        }
    compare(got, want, mistakes)


@exercise("bert-internals.last_four")
def last_four(answer):
    states = tuple(_random(2, 5, 3, seed=seed) for seed in range(7))
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]])
    got = run(answer, states, mask)

    def text_means(layers, counts=(5, 2), over=None):
        """Average token by token, a text at a time, without any mask."""
        rows = []
        for text, count in enumerate(counts):
            means = [layer[text, :count].sum(0) / (over or count) for layer in layers]
            rows.append(torch.cat(means))
        return torch.stack(rows)

    want = text_means(states[-4:])
    summed = torch.stack([want[:, i * 3 : i * 3 + 3] for i in range(4)]).sum(0)
    mistakes = {
        "the padding is averaged in: the second text has only two real tokens.": text_means(
            states[-4:], counts=(5, 5)
        ),
        "the padding is left out of the sum, but still counted when dividing.": text_means(
            states[-4:], over=5
        ),
        "these are the first four hidden states, not the last.": text_means(states[:4]),
        "the last hidden state itself is left out; it is one of the last four.": text_means(
            states[-5:-1]
        ),
        "the order is turned round: the fourth from the end comes first.": text_means(
            states[:-5:-1]
        ),
        "the layers are averaged; they should be laid end to end.": summed / 4,
        "the layers are added; they should be laid end to end.": summed,
        "these are the vectors of [CLS]; the mean over the tokens is wanted.": text_means(
            states[-4:], counts=(1, 1)
        ),
    }
    compare(got, want, mistakes)


def _loops(average, special, itself=False, specials=False):
    """Search the most attended token of each row, one at a time."""
    found = []
    for i, row in enumerate(average.tolist()):
        allowed = [
            j
            for j in range(len(row))
            if (itself or j != i) and (specials or not special[j])
        ]
        found.append(max(allowed, key=row.__getitem__))
    return torch.tensor(found)


@exercise("bert-internals.most_attended")
def most_attended(answer):
    special = torch.tensor([True, False, False, True, False, False, True])
    boost = 2 * torch.eye(7) + 2.5 * special  # the forbidden places are tempting
    weights = (_random(3, 7, 7, seed=4) + boost).softmax(-1)
    average = weights.mean(0)
    got = run(answer, weights, special)
    rows = torch.eye(7, dtype=torch.bool) | special[:, None]
    mistakes = {
        "[CLS] and [SEP] are still allowed.": _loops(average, special, specials=True),
        "the token itself is still allowed.": _loops(average, special, itself=True),
        "nothing is left out: [CLS], [SEP] and the token itself should not "
        "count.": average.argmax(-1),
        "this is the token that looks most at each, not the one it looks at: rows look, "
        "columns are looked at.": _loops(average.T, special),
        "the special tokens are left out as rows, where they look; they should be left "
        "out as columns.": average.masked_fill(rows, -1).argmax(-1),
        "only the first head is used; average over the heads.": _loops(weights[0], special),
    }
    if hasattr(got, "shape") and tuple(got.shape) == (3, 7):
        raise Wrong("there is one answer a head; average the weights over the heads first.")
    if hasattr(got, "is_floating_point") and got.is_floating_point():
        raise Wrong("these are weights; the index of the token is wanted.")
    compare(got, _loops(average, special), mistakes)


@exercise("bert-internals.lookback")
def lookback(answer):
    weights = _random(3, 6, 6, seed=5).softmax(-1)
    got = run(answer, weights)

    def share(inside, first=1, over=None):
        """Add up, weight by weight, those whose places fulfil a condition."""
        rows = range(first, 6)
        sums = [
            sum(float(head[i, j]) for i in rows for j in range(6) if inside(i, j))
            for head in weights
        ]
        return torch.tensor(sums) / (over or len(rows))

    mistakes = {
        "this looks forward: rows are the tokens that look, columns those they look "
        "at.": share(lambda i, j: j > i, first=0, over=5),
        "this looks forward, and over all tokens: rows are the tokens that look.": share(
            lambda i, j: j > i, first=0
        ),
        "this looks forward: earlier tokens are the columns to the left.": share(
            lambda i, j: j > i
        ),
        "the token itself is counted; only earlier tokens are wanted.": share(
            lambda i, j: j <= i
        ),
        "the token itself is counted, and the first token, which has nothing before "
        "it.": share(lambda i, j: j <= i, first=0),
        "the first token is averaged in; it has nothing before it.": share(
            lambda i, j: j < i, first=0
        ),
        "only the token just before is counted; all earlier ones are wanted.": share(
            lambda i, j: j == i - 1
        ),
        "this is the sum over the tokens; their mean is wanted.": share(
            lambda i, j: j < i, over=1
        ),
    }
    compare(got, share(lambda i, j: j < i), mistakes)
