"""Checks of the chapter *bert-internals*."""

import math
from contextlib import contextmanager
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


@contextmanager
def _opening(words, *parts):
    """Answer with these words whoever called one of the parts as a whole."""
    try:
        yield
    except Wrong:
        if any(part.asked for part in parts):
            raise Wrong(words) from None
        raise


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
    rows = parts.position_embeddings.weight
    word, kind = parts.word_embeddings(ids), parts.token_type_embeddings(TOKEN_TYPES)
    place = rows[:5].expand_as(word)
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
        "the word's row alone is normalised; position and type are missing.": norm(word),
        "places are counted from 1; they begin with 0.": norm(word + rows[1:6] + kind),
        "each text has one place; count its tokens.": norm(word + rows[:3, None] + kind),
        "each vector was normalised before the sum; add first.": (
            norm(word) + norm(place) + norm(kind)
        ),
    }
    given = {"token_type_ids": TOKEN_TYPES, "output_hidden_states": True}
    want = model(ids, **given).hidden_states[0]
    seen = _Parts(embeddings=parts, config=model.config)
    words = "bert and bert.embeddings do all of it at once; call the modules inside."
    with _opening(words, parts, seen):
        expect(answer, [seen, ids, TOKEN_TYPES], want, mistakes)


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
        "this is a decoder; BERT is none.": answer.is_decoder or answer.add_cross_attention,
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
    whole = _bert().encoder.layer[0]
    for seed, weight in enumerate(whole.parameters(), 10):  # so large that each step counts
        weight.copy_(normal(*weight.shape, seed=seed) * 0.6 + (weight == 1))
    x, opened = normal(2, 5, 8, seed=3), _opened(whole)
    words = "call the modules inside the layer, not the whole."
    with _opening(words, opened, opened.attention):
        expect(answer, [opened, x, 2], whole(x), _layer_mistakes(whole, x))


def _layer_mistakes(whole, x):
    """Return what each known mistake makes of x: diagnosis → hidden state."""
    own, out, last = whole.attention.self, whole.attention.output, whole.output
    qkv = query, key, value = own.query, own.key, own.value
    wide = whole.intermediate.dense
    one, two, same = out.LayerNorm, last.LayerNorm, torch.nn.Identity()

    def attend(x, parts=qkv, scale=4, axis=-1, heads=2, turn=True, end=out.dense):
        shape = (2, 5, heads, -1) if turn else (2, heads, 5, -1)
        q, k, v = (part(x).reshape(shape) for part in parts)
        q, k, v = (t.transpose(1, 2) if turn else t for t in (q, k, v))
        mixed = (q @ k.mT / scale**0.5).softmax(axis) @ v
        return end((mixed.transpose(1, 2) if turn else mixed).reshape(x.shape))

    def built(first=1, second=1, again=0, norms=(one, two), gelu=F.gelu, **attention):
        y = norms[0](x * first + attend(x, **attention))
        return norms[1](y * second + x * again + last.dense(gelu(wide(y))))

    y, tanh = x + attend(one(x)), partial(F.gelu, approximate="tanh")
    pre = y + last.dense(F.gelu(wide(two(y))))
    return {
        "what was there is not added to what attention found.": built(first=0),
        "what was there is not added to what the feed-forward net gives.": built(1, 0),
        "the second sum takes x; it should take what the first gave.": built(1, 0, 1),
        "the two norms are missing.": built(norms=(same, same)),
        "the first norm is missing.": built(norms=(same, two)),
        "the last norm is missing.": built(norms=(one, same)),
        "the two norms are swapped.": built(norms=(two, one)),
        "both norms are attention's; the second is another.": built(norms=(one, one)),
        "both norms are layer.output's; the first is attention's.": built(norms=(two, two)),
        "it normalises before each step, as GPT-2 does; BERT after each sum.": pre,
        "the scores are not divided by the root of a head's width.": built(scale=1),
        "the scores are divided by the root of the whole width.": built(scale=8),
        "the scores are divided by a head's width; its root is wanted.": built(scale=16),
        "there is one head here; use as many as are given.": built(scale=8, heads=1),
        "a head has numbers of several tokens; split, then transpose.": built(turn=False),
        "the query takes the place of key and value.": built(parts=(query, query, query)),
        "query and key are swapped.": built(parts=(key, query, value)),
        "attention's own dense is missing.": built(end=same),
        "the value layer takes the place of attention's own dense.": built(end=value),
        "softmax runs over those who look, not those looked at.": built(axis=-2),
        "the net is bent by ReLU; BERT's is bent by GELU.": built(gelu=F.relu),
        "this is GELU approximated by tanh; BERT's is the exact one.": built(gelu=tanh),
        "nothing bends the wide numbers: two linear layers are one.": built(gelu=same),
    }


predict(
    "bert-internals.sink",
    a="turn the first switch below: *the* at place 0 is looked at as [CLS] was.",
    b="[SEP] gets no more than before.",
    c=None,
)
judge(
    "bert-internals.judge_sink",
    a=None,
    b="a purpose isn't tested here; and with *the* in its place the share is the same.",
    c="the vector of place 40, made as long as that of place 0, draws nearly as much.",
    d="the switches are of one model; BERT-base rests on [SEP].",
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
        "these are sums; divide each.": means(states[-4:], over=(1, 1)),
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
