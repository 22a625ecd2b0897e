"""Checks of the chapter *bert-internals*."""

import math
from functools import partial
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from transformers import BertConfig, BertModel

from lmcourse.exercises import Wrong, exercise, expect, judge, predict
from lmcourse.exercises.answers import diagnose, normal, type_name


def _bert(**changes):
    """Return a small random BERT whose axes all have different sizes."""
    # More positions than words: whoever looks up words there gets rows, not an IndexError.
    sizes = {"vocab_size": 31, "max_position_embeddings": 37, "num_hidden_layers": 1}
    sizes |= {"hidden_size": 8, "intermediate_size": 12, "num_attention_heads": 2}
    torch.manual_seed(0)
    model = BertModel(BertConfig(**(sizes | changes))).eval()
    torch.nn.init.normal_(model.embeddings.LayerNorm.weight, 1, 0.3)
    torch.nn.init.normal_(model.embeddings.LayerNorm.bias, 0, 0.3)
    return model.requires_grad_(False)


class _Parts(SimpleNamespace):
    """The tables and the norm; the whole is what the reader is to build."""

    asked = False

    def __call__(self, *inputs, **named):
        self.asked = True
        raise Wrong("call the modules inside, not the whole")


def _opened(module):
    """Return a module's parts, its linear layers and norms as they are."""
    is_whole = any(True for _ in module.children())
    parts = {name: _opened(part) for name, part in module.named_children()}
    return _Parts(**parts) if is_whole else module


TOKEN_TYPES = torch.tensor([[0, 0, 0, 1, 1]]).expand(3, 5)  # of three texts


@exercise("bert-internals.embed", kind="spot the bug")
def embed(answer):
    """Compare with the first hidden state of transformers' BERT."""
    model = _bert()
    ids = torch.randint(31, (3, 5), generator=torch.Generator().manual_seed(1))
    # Not the whole model: only its parts, so that they cannot be called in one piece.
    parts = _Parts(**dict(model.embeddings.named_children()))
    parts.position_ids = torch.arange(37)[None]  # a buffer of transformers' own
    norm, first = parts.LayerNorm, parts.token_type_embeddings.weight[0]
    word, kind = parts.word_embeddings(ids), parts.token_type_embeddings(TOKEN_TYPES)
    place = parts.position_embeddings.weight[:5].expand_as(word)
    misplaced = word + parts.position_embeddings(ids) + kind
    mistakes = {
        "these are the rows of the word table alone: position, type and the normalisation "
        "are missing.": word,
        "the sum is right, but it is not normalised.": word + place + kind,
        "the position is missing: the same word gets the same vector at every place.": norm(
            word + kind
        ),
        "the position table is asked for input_ids; its rows belong to the places 0, 1, "
        "2, … instead.": norm(misplaced),
        "the position table is asked for input_ids; its rows belong to the places 0, 1, "
        "2, … And the norm is missing.": misplaced,
        "the token type is missing. Even where every type is 0, its vector is added.": norm(
            word + place
        ),
        "token_type_ids is not used: every token has been given type 0, but here the "
        "second text has type 1.": norm(word + place + first),
        "each vector was normalised before the sum; add first.": (
            norm(word) + norm(place) + norm(kind)
        ),
    }
    given = {"token_type_ids": TOKEN_TYPES, "output_hidden_states": True}
    want = model(ids, **given).hidden_states[0]
    seen = _Parts(embeddings=parts, config=model.config)
    try:
        expect(answer, [seen, ids, TOKEN_TYPES], want, mistakes)
    except Wrong:
        if parts.asked or seen.asked:
            raise Wrong(
                "bert and bert.embeddings do all of it at once; call the three tables and "
                "the LayerNorm inside bert.embeddings yourself."
            ) from None
        raise


@exercise("bert-internals.small_bert", kind="experiment")
def small_bert(answer):
    """Count the parameters of the model that the configuration makes."""
    if isinstance(answer, BertModel):
        answer = answer.config
    if not isinstance(answer, BertConfig):
        raise Wrong(f"hand in the BertConfig, not {type_name(answer)}.")
    width, heads = answer.hidden_size, answer.num_attention_heads
    faults = {
        "keep BERT's vocabulary of 30,522 pieces.": answer.vocab_size != 30522,
        f"{heads} heads cannot share {width} dimensions evenly.": (
            min(heads, width) < 1 or width % heads
        ),
        "its feed-forward networks are far too wide for such vectors: BERT's are four "
        "times as wide.": answer.intermediate_size > 16 * width,
        "that is more layers than one would care to build.": (
            answer.num_hidden_layers > 1000
        ),
    }
    diagnose(faults)
    with torch.device("meta"):  # shapes only
        model = BertModel(answer)
    total = sum(weight.numel() for weight in model.parameters())
    layers = sum(weight.numel() for weight in model.encoder.parameters())
    size = f"{total / 1e6:.2f} million parameters"
    return {
        f"{size} are too many.": total > 10.5e6,
        f"{size} are too few.": total < 9.5e6,
        f"{size}, but only {layers / total:.0%} of them in the layers: the table of "
        "words is too wide.": layers < total / 2,
    }


@exercise("bert-internals.layer")
def layer(answer):
    """Compare with a layer of transformers' BERT, whose modules are given."""
    bert = _bert()
    whole = bert.encoder.layer[0]
    for weight in whole.parameters():  # so large that every step counts
        weight.copy_(normal(*weight.shape, seed=weight.numel()) * 0.6 + (weight == 1))
    x = normal(2, 5, 8, seed=3)
    own, out, wide = whole.attention.self, whole.attention.output, whole.intermediate

    def built(
        scale=4, axis=-1, split=True, first=True, second=True, norm=True, gelu=F.gelu
    ):
        q, k, v = (p(x) for p in (own.query, own.key, own.value))
        if split:
            q, k, v = (t.unflatten(-1, (2, -1)).transpose(1, 2) for t in (q, k, v))
        mixed = (q @ k.mT / scale**0.5).softmax(axis) @ v
        mixed = out.dense(mixed.transpose(1, 2).flatten(2) if split else mixed)
        y = out.LayerNorm(x * first + mixed) if norm else x + mixed
        z = y * second + whole.output.dense(gelu(wide.dense(y)))
        return whole.output.LayerNorm(z) if norm else z

    mistakes = {
        "what was there is not added to what attention found.": built(first=False),
        "what was there is not added to what the feed-forward net gives.": built(
            second=False
        ),
        "the two norms are missing.": built(norm=False),
        "the scores are not divided by the root of a head's width.": built(scale=1),
        "the scores are divided by the root of the whole width; a head's is wanted.": built(
            8
        ),
        "the scores are divided by a head's width; its root is wanted.": built(16),
        "there is one head here; split the vectors into as many as are given.": (
            built(8, split=False)
        ),
        "softmax runs over those who look; a token's own weights must sum to one.": built(
            axis=-2
        ),
        "the feed-forward net is bent by ReLU; BERT's is bent by GELU.": built(gelu=F.relu),
        "this is GELU approximated by tanh; BERT's is the exact one.": built(
            gelu=partial(F.gelu, approximate="tanh")
        ),
        "nothing bends the wide numbers: two linear layers are one.": built(
            gelu=lambda h: h
        ),
    }
    expect(answer, [_opened(whole), x, 2], whole(x), mistakes)


predict(
    "bert-internals.sink",
    a="turn the first switch below: *the* at place 0 is looked at as [CLS] was.",
    b="[SEP] gets no more than before.",
    c=None,
)
judge(
    "bert-internals.judge_sink",
    a=None,
    b="with *the* in its place, which sums up nothing, the share is the same.",
    c="shortened, it leaves nearly all of the weight where it was, if [CLS] stands there.",
    d="the switches are of one checkpoint; BERT-base rests on [SEP].",
)


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
    both = last.mean(0, keepdim=True).expand_as(last)
    real = [x.masked_fill(mask[..., None] == 0, -math.inf).amax(1) for x in states[-4:]]
    mistakes = {
        "the padding is averaged in: the second text has only two real tokens.": means(
            states[-4:], (5, 5), (5, 5)
        ),
        "the padding is left out of the sum, but still counted when dividing.": means(
            states[-4:], over=(5, 5)
        ),
        "each sum is divided by the number of tokens in the whole batch; every text has "
        "its own.": means(states[-4:], over=(7, 7)),
        "these are the first four hidden states, not the last.": means(states[:4]),
        "the last hidden state itself is left out; it is one of the last four.": means(
            states[-5:-1]
        ),
        "the order is turned round: the fourth from the end comes first.": last.flip(1),
        "the layers are averaged; they should be laid end to end.": last.mean(1, True),
        "the layers are added; they should be laid end to end.": last.sum(1, True),
        "the texts are averaged together; each has a mean of its own.": both,
        "these are the largest numbers; the mean is wanted.": torch.stack(real, 1),
        "these are the largest numbers, the padding's among them; the mean is wanted.": (
            torch.stack([x.amax(1) for x in states[-4:]], 1)
        ),
        "these are the vectors of [CLS]; the mean over the tokens is wanted.": means(
            states[-4:], (1, 1), (1, 1)
        ),
    }
    mistakes = {text: wrong.flatten(1) for text, wrong in mistakes.items()}
    expect(answer, [states, mask], last.flatten(1), mistakes)
