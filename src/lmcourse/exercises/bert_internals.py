"""Checks of the chapter *bert-internals*."""

import math
from functools import partial
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from transformers import BertConfig, BertModel

from lmcourse.exercises import Case, Faults, exercise, judge, predict
from lmcourse.exercises.answers import Unfit, normal, type_name


def _bert(**changes):
    """Return a small random BERT whose axes all have different sizes."""
    # More positions and types than words: who looks words up there gets rows, no error.
    sizes = {"vocab_size": 31, "max_position_embeddings": 37, "num_hidden_layers": 1}
    sizes |= {"type_vocab_size": 33}
    sizes |= {"hidden_size": 8, "intermediate_size": 12, "num_attention_heads": 2}
    torch.manual_seed(0)
    model = BertModel(BertConfig(**(sizes | changes))).eval()
    torch.nn.init.normal_(model.embeddings.LayerNorm.weight, 1, 0.3)
    torch.nn.init.normal_(model.embeddings.LayerNorm.bias, 0, 0.3)
    return model.requires_grad_(False)


class CalledWhole(Exception):
    """An answer called a module, named here, that it should have built from its parts."""


BUILD = {"CalledWhole": "call the modules inside {text}, not {text} itself."}


class _Parts(SimpleNamespace):
    """The parts of a module as attributes; the module itself cannot be called.

    Attributes
    ----------
    called : str
        The module's name, for the message.
    """

    def __call__(self, *inputs, **named):
        raise CalledWhole(self.called)


def _opened(module, called="layer"):
    """Return the parts of a module as `_Parts`, nested; a layer without parts as it is.

    ``called`` is what messages call the module: "layer", "layer.attention", …
    """
    parts = {
        name: _opened(part, f"{called}.{name}") for name, part in module.named_children()
    }
    if not parts:
        return module
    return _Parts(called=called, **parts)


TOKEN_TYPES = torch.tensor([[0, 0, 0, 1, 1]]).expand(3, 5)  # of three texts


@exercise("bert-internals.embed", kind="spot the bug")
def embed():
    """Compare with the first hidden state of transformers' BERT."""
    model = _bert(initializer_range=1.0)  # beside such vectors ε is nothing
    ids = torch.randint(31, (3, 5), generator=torch.Generator().manual_seed(1))
    # Not the whole model: only its parts, so that they cannot be called in one piece.
    parts = _opened(model.embeddings, "bert.embeddings")
    parts.position_ids = torch.arange(37)[None]  # a buffer of transformers' own
    given = {"token_type_ids": TOKEN_TYPES, "output_hidden_states": True}
    want = model(ids, **given).hidden_states[0]
    seen = _Parts(called="bert", embeddings=parts, config=model.config)
    yield Case([seen, ids, TOKEN_TYPES], want, _embed_mistakes(parts, ids), instead=BUILD)


def _embed_mistakes(parts, ids):
    """Return what each known mistake makes of the ids: a dict, diagnosis → hidden state.

    ``parts`` are the embeddings' parts of `transformers`' BERT; states are (batch, tokens,
    d_model).
    """
    norm, first = parts.LayerNorm, parts.token_type_embeddings.weight[0]
    rows = parts.position_embeddings.weight
    word, kind = parts.word_embeddings(ids), parts.token_type_embeddings(TOKEN_TYPES)
    place = rows[:5].expand_as(word)
    misplaced = word + parts.position_embeddings(ids) + kind
    of_ids = parts.token_type_embeddings(ids)
    bare = F.layer_norm(word + place + kind, (8,), eps=norm.eps)
    return {
        "this is the word's row alone: position, type and norm are missing.": word,
        "the sum is right, but it is not normalised.": word + place + kind,
        "the position and the norm are missing.": word + kind,
        "the position is missing: a word is the same at every place.": norm(word + kind),
        "the position table is asked for input_ids, not for places.": norm(misplaced),
        "the position table is asked for input_ids, and the norm is missing.": misplaced,
        "the token type is missing; type 0 is added, too.": norm(word + place),
        "token_type_ids is not used, only type 0.": norm(word + place + first),
        "the word's row alone is normalised; position and type are missing.": norm(word),
        "the type table is asked for input_ids, not for types.": norm(
            word + place + of_ids
        ),
        "both tables are asked for input_ids: for places and types there are others.": norm(
            misplaced - kind + of_ids
        ),
        "the norm has a weight and a bias of its own: use `LayerNorm`.": bare,
        "the type is added after the norm; add first.": norm(word + place) + kind,
        "the position is added after the norm; add first.": norm(word + kind) + place,
        "the word alone is normalised, the rest is added after it.": norm(word)
        + place
        + kind,
        "places are counted from 1; they begin with 0.": norm(word + rows[1:6] + kind),
        "each text has one place; count its tokens.": norm(word + rows[:3, None] + kind),
        "each was normalised; add first.": sum(map(norm, (word, place, kind))),
    }


def _config(answer):
    """Return the configuration that an answer is or has, and two of its sizes."""
    if isinstance(answer, BertModel):
        answer = answer.config
    if not isinstance(answer, BertConfig):
        raise Unfit(f"hand in the BertConfig, not {type_name(answer)}.")
    sizes = {"width": answer.hidden_size, "heads": answer.num_attention_heads}
    return SimpleNamespace(config=answer, **sizes)


def _counted(answer):
    """Count the parameters of the model that a configuration makes."""
    with torch.device("meta"):  # shapes only
        model = BertModel(_config(answer).config)
    total = sum(weight.numel() for weight in model.parameters())
    layers = sum(weight.numel() for weight in model.encoder.parameters())
    return SimpleNamespace(millions=total / 1e6, share=layers / total)


@exercise("bert-internals.small_bert", kind="experiment")
def small_bert():
    """Count the parameters of the model that the configuration makes."""
    shapes = {
        "keep BERT's vocabulary of 30,522 pieces.": (
            lambda seen: seen.config.vocab_size != 30522
        ),
        "keep BERT's 512 places, too.": (
            lambda seen: seen.config.max_position_embeddings != 512
        ),
        "{heads} heads cannot share {width} dimensions evenly.": (
            lambda seen: min(seen.heads, seen.width) < 1 or seen.width % seen.heads
        ),
        "its feed-forward networks are narrower than the vectors: BERT's are four times as "
        "wide.": lambda seen: seen.config.intermediate_size < seen.width,
        "its feed-forward networks are far too wide for such vectors: BERT's are four "
        "times as wide.": lambda seen: seen.config.intermediate_size > 16 * seen.width,
        "this is a decoder; BERT is none.": (
            lambda seen: seen.config.is_decoder or seen.config.add_cross_attention
        ),
        "that is more layers than one would care to build.": (
            lambda seen: seen.config.num_hidden_layers > 1000
        ),
    }
    yield Faults(_config, shapes)
    counts = {
        "{millions:.2f} million parameters are too many.": lambda seen: (
            seen.millions > 10.5
        ),
        "{millions:.2f} million parameters are too few.": lambda seen: seen.millions < 9.5,
        "{millions:.2f} million parameters, but only {share:.0%} of them in the layers: "
        "the table of words is too wide.": lambda seen: seen.share < 0.5,
    }
    yield Faults(_counted, counts)


@exercise("bert-internals.layer")
def layer():
    """Compare with layers of transformers' BERT, whose modules are given."""
    x = normal(2, 5, 8, seed=3)
    for heads in (2, 4):  # whoever fixes their number is right only once
        whole = _bert(num_attention_heads=heads).encoder.layer[0]
        for seed, weight in enumerate(whole.parameters(), 10):  # each step is to count
            weight.copy_(normal(*weight.shape, seed=seed) * 0.6 + (weight == 1).float())
        mistakes = _layer_mistakes(whole, x, heads)
        yield Case([_opened(whole), x, heads], whole(x), mistakes, instead=BUILD)


def _steps(whole, x, heads):
    """Return the functions ``attend`` and ``built``: attention, and the whole layer.

    Each computes from the weights of ``whole``, a BertLayer of `transformers`, as it does,
    unless an argument says that one step is another. ``x`` is (2, 5, 8), ``heads`` an int.
    """
    own, out, last = whole.attention.self, whole.attention.output, whole.output
    soft = partial(torch.softmax, dim=-1)
    named = {"q": own.query, "k": own.key, "v": own.value}
    norm = {"0": out.LayerNorm, "1": last.LayerNorm, "-": torch.nn.Identity()}

    def attend(
        x, parts="qkv", over=8 / heads, weigh=soft, heads=heads, turn=(1, 1), end=out.dense
    ):
        """Return what attention gives for x, with one of its steps done in another way."""
        shape = (2, 5, heads, -1) if turn[0] else (2, heads, 5, -1)
        q, k, v = (named[part](x).reshape(shape) for part in parts)
        q, k, v = (t.transpose(1, 2) if turn[0] else t for t in (q, k, v))
        mixed = weigh(q @ k.mT / over**0.5) @ v
        return end((mixed.transpose(1, 2) if turn[1] else mixed).reshape(x.shape))

    def built(first=1, second=1, again=0, norms="01", gelu=F.gelu, fed=None, **attention):
        """Return a layer's output, with one step left out or done otherwise."""
        y = norm[norms[0]](x * first + attend(x, **attention))
        wide = gelu(whole.intermediate.dense(y if fed is None else fed))
        return norm[norms[1]](y * second + x * again + last.dense(wide))

    return attend, built


def _behind(scores):
    """Return weights of those that stand before, as a decoder's."""
    ahead = torch.ones(5, 5, dtype=torch.bool).triu(1)
    return scores.masked_fill(ahead, -torch.inf).softmax(-1)


def _layer_mistakes(whole, x, heads):
    """Return what each known mistake makes of x: a dict, diagnosis → hidden state.

    ``whole`` is a BertLayer of `transformers`, ``x`` (2, 5, 8), ``heads`` an int.
    """
    attend, built = _steps(whole, x, heads)
    one, same, d = whole.attention.output.LayerNorm, torch.nn.Identity(), 8 / heads
    last, value = whole.output, whole.attention.self.value
    y, tanh = x + attend(one(x)), partial(F.gelu, approximate="tanh")
    soft = {dim: partial(torch.softmax, dim=dim) for dim in (-2, 1)}
    pre = y + last.dense(F.gelu(whole.intermediate.dense(last.LayerNorm(y))))
    z = x + one(attend(x))
    inside = z + last.LayerNorm(last.dense(F.gelu(whole.intermediate.dense(z))))
    return {
        "there are always 2 heads; use as many as are given.": built(heads=2, over=4),
        "what was there is not added to what attention found.": built(first=0),
        "what was there is not added to what the feed-forward net gives.": built(1, 0),
        "the second sum takes x; it should take what the first gave.": built(1, 0, 1),
        "the feed-forward net is fed x, not what the first norm gave.": built(fed=x),
        "the two norms are missing.": built(norms="--"),
        "the first norm is missing.": built(norms="-1"),
        "the last norm is missing.": built(norms="0-"),
        "the two norms are swapped.": built(norms="10"),
        "both norms are attention's; the second is another.": built(norms="00"),
        "both norms are layer.output's; the first is attention's.": built(norms="11"),
        "it normalises before each step, as GPT-2 does; BERT after each sum.": pre,
        "what is added is normalised; BERT normalises the sum.": inside,
        "the scores are not divided by the root of a head's width.": built(over=1),
        "the scores are divided by the root of the whole width.": built(over=8),
        "the scores are divided by a head's width; its root is wanted.": built(over=d * d),
        "there is one head here; use as many as are given.": built(heads=1, over=8),
        "a head has numbers of several tokens; split, then transpose.": built(turn=(0, 0)),
        "a head has numbers of several tokens at once: split the last axis, "
        "then transpose.": built(turn=(0, 1)),
        "the heads are not transposed back before they are merged.": built(turn=(1, 0)),
        "the query takes the place of key and value.": built(parts="qqq"),
        "query and key are swapped.": built(parts="kqv"),
        "key and value are swapped.": built(parts="qvk"),
        "attention's own dense is missing.": built(end=same),
        "the value layer takes the place of attention's own dense.": built(end=value),
        "the scores are taken as weights: there is no softmax.": built(weigh=same),
        "a mask lets no token look ahead; BERT looks both ways.": built(weigh=_behind),
        "softmax runs over those who look, not those looked at.": built(weigh=soft[-2]),
        "softmax runs over the heads, not over those looked at.": built(weigh=soft[1]),
        "the net is bent by ReLU; BERT's is bent by GELU.": built(gelu=F.relu),
        "this is GELU approximated by tanh; BERT's is the exact one.": built(gelu=tanh),
        "nothing bends the wide numbers: two linear layers are one.": built(gelu=same),
    }


predict(
    "bert-internals.sink",
    a="turn the first switch below: “the” at place 0 is looked at as [CLS] was.",
    b="[SEP] gets no more than before.",
    c=None,
)
judge(
    "bert-internals.judge_sink",
    a=None,
    b="a purpose isn't tested here; and “the” at place 0 draws as much.",
    c="one of the two is enough: turn one switch only.",
    d="the switches are of one model; BERT-base rests on [SEP].",
)


@exercise("bert-internals.last_four")
def last_four():
    """Compare with means of each text's real tokens, cut out by hand."""
    # As many numbers in a vector as texts: a forgotten axis gives numbers, not an error.
    states = tuple(normal(2, 5, 2, seed=seed) for seed in range(7))
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
    want, mistakes = _means(states[-4:]).flatten(1), _last_four_mistakes(states, mask)
    mistakes = {text: wrong.flatten(1) for text, wrong in mistakes.items()}
    yield Case([states, mask], want, mistakes)


def _means(layers, counts=(5, 3), over=(5, 3), begin=0):
    """Return sums over tokens of two texts, divided: a Tensor (texts, layers, d_model).

    ``layers`` : Tensors (texts, tokens, d_model); of each text the tokens from ``begin`` up
    to ``counts`` are summed, and the sum is divided by ``over``.
    """
    rows = [
        [x[text, begin : counts[text]].sum(0) / over[text] for x in layers]
        for text in (0, 1)
    ]
    return torch.stack([torch.stack(row) for row in rows])


def _last_four_mistakes(states, mask):
    """Return what each known mistake makes of the states: a dict, diagnosis → vectors.

    ``states`` : Tensors (texts, tokens, d_model), one a level; ``mask`` : (texts, tokens),
    0 at padding.
    """
    four, last = states[-4:], _means(states[-4:])
    both = last.mean(0, keepdim=True).expand_as(last)
    real = [x.masked_fill(mask[..., None] == 0, -math.inf).amax(1) for x in four]
    return {
        "the padding is averaged in: the second text has only three real tokens.": _means(
            four, (5, 5), (5, 5)
        ),
        "the padding is not in the sum, yet counted.": _means(four, over=(5, 5)),
        "these are sums; divide each.": _means(four, over=(1, 1)),
        "each sum is divided by the tokens of the whole batch.": _means(four, over=(8, 8)),
        "these are the first four hidden states, not the last.": _means(states[:4]),
        "the last hidden state itself is left out.": _means(states[-5:-1]),
        "the order is turned round: the fourth from the end comes first.": last.flip(1),
        "the layers are interleaved; each mean stays in one piece.": last.mT,
        "the last layer stands there four times.": last[:, 3:].expand_as(last),
        "the layers are averaged; they should be laid end to end.": last.mean(1, True),
        "the layers are added; they should be laid end to end.": last.sum(1, True),
        "the texts are averaged together; each has a mean of its own.": both,
        "these are the largest numbers; the mean is wanted.": torch.stack(real, 1),
        "these are the largest numbers, the padding's among them.": torch.stack(
            [x.amax(1) for x in four], 1
        ),
        "these are vectors of [CLS]; the mean is wanted.": _means(four, (1, 1), (1, 1)),
        "these are vectors of the last token; the mean is wanted.": _means(
            [x[torch.arange(2), torch.tensor([4, 2])][:, None] for x in four], over=(1, 1)
        ),
        "[CLS] and [SEP] are left out; they are real tokens, too.": _means(
            four, (4, 2), (3, 1), begin=1
        ),
        "[CLS] is left out; it is a real token, too.": _means(four, over=(4, 2), begin=1),
        "each number is divided by another text's length: keep the axis, "
        "`mask.sum(1)[:, None]`.": _means(four, over=(1, 1)) / torch.tensor([5, 3]),
    }
