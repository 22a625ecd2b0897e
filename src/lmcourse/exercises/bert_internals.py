"""Checks of the chapter *bert-internals*."""

import math
from functools import partial
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from transformers import BertConfig, BertModel

from lmcourse.exercises import Case, Faults, exercise, judge, predict
from lmcourse.exercises.answers import Unfit, normal, run, type_name


def _bert(**changes):
    """Return a small random BERT whose axes all have different sizes.

    Parameters
    ----------
    **changes
        Other values of `transformers.BertConfig`, such as ``num_attention_heads``. By
        default there are 31 words, one layer, two heads, and d_model is 8.

    Returns
    -------
    BertModel
        In evaluation mode; its weights are frozen.
    """
    # More positions and types than words: whoever looks words up there gets no error.
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


# What is said where an answer stopped with `CalledWhole`; {text} is the module's name.
BUILD = {"CalledWhole": "call the modules inside {text}, not {text} itself."}


class _Parts(SimpleNamespace):
    """The parts of a module as attributes; the module itself cannot be called.

    Attributes
    ----------
    called : str
        The module's name, for the message.
    """

    def __call__(self, *inputs, **named):
        """Raise `CalledWhole` with the module's name, ``called``, whatever it is given."""
        raise CalledWhole(self.called)


def _opened(module, called="layer"):
    """Return the parts of a module as `_Parts`, nested; a layer without parts as it is.

    Of a `_Parts` every part is an attribute, but it cannot be called as a whole.

    Parameters
    ----------
    module : nn.Module
    called : str
        What messages call the module: "layer", "layer.attention", …

    Returns
    -------
    _Parts or nn.Module
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
    """Check a reader's embeddings of BERT, built from the parts of the library's model.

    The answer is a function of the model, ids and token types (texts, tokens), which
    returns the states before the first layer (texts, tokens, d_model). It is given the
    parts of a model, which can be called one by one only; `TOKEN_TYPES`, 0 or 1, are those
    of three texts of five tokens. Oracle: the first hidden state of transformers' BERT.

    Yields
    ------
    Case
        What the answer is called with, the right result, and known mistakes: what the
        reader is told → the result that the mistake gives. ``instead`` (`BUILD`) is for an
        answer that calls a module as a whole.
    """
    model = _bert(
        initializer_range=1.0
    )  # next to vectors as large as these, ε does not count
    ids = torch.randint(31, (3, 5), generator=torch.Generator().manual_seed(1))
    # Not the whole model: only its parts, so that they cannot be called in one piece.
    parts = _opened(model.embeddings, "bert.embeddings")
    parts.position_ids = torch.arange(37)[None]  # a buffer of transformers' own
    given = {"token_type_ids": TOKEN_TYPES, "output_hidden_states": True}
    want = model(ids, **given).hidden_states[0]
    seen = _Parts(called="bert", embeddings=parts, config=model.config)
    yield Case([seen, ids, TOKEN_TYPES], want, _embed_mistakes(parts, ids), instead=BUILD)


def _embed_mistakes(parts, ids):
    """Return what each known mistake makes of the ids: diagnosis → states before layer 0.

    Parameters
    ----------
    parts : _Parts
        The embeddings of transformers' BERT: ``word_embeddings``, ``position_embeddings``,
        ``token_type_embeddings`` and ``LayerNorm``, modules.
    ids : int64 Tensor of shape (3, 5)
        From 0 to 30; all three tables have a row for each of them (`_bert`), so that the
        mistake of looking an id up in the wrong table can be made. The token types of these
        texts are `TOKEN_TYPES`, 0 or 1.

    Returns
    -------
    dict of str to Tensor of shape (3, 5, d_model)
        d_model is 8.
    """
    norm = parts.LayerNorm
    type_0 = parts.token_type_embeddings.weight[0]
    rows = parts.position_embeddings.weight
    # The three vectors of each token that BERT adds up, each (3, 5, 8).
    word = parts.word_embeddings(ids)
    kind = parts.token_type_embeddings(TOKEN_TYPES)
    position = rows[:5].expand_as(word)
    position_of_ids = word + parts.position_embeddings(ids) + kind
    type_of_ids = parts.token_type_embeddings(ids)
    total = word + position + kind
    unscaled = F.layer_norm(total, (8,), eps=norm.eps)
    centred = total - total.mean(-1, keepdim=True)
    unbiased = centred / total.std(-1, keepdim=True) * norm.weight + norm.bias
    return {
        "this is only the row of the word table: the position, the type and the norm "
        "are missing.": word,
        "the sum is right, but it is not normalised.": total,
        "the position and the norm are missing.": word + kind,
        "the position is missing: a word has the same vector at every position.": norm(
            word + kind
        ),
        "the position table is indexed with input_ids, not with positions.": norm(
            position_of_ids
        ),
        "the token type is missing: its vector is added even where the type is 0.": norm(
            word + position
        ),
        "token_type_ids is not used: you always add type 0.": norm(
            word + position + type_0
        ),
        "only the row of the word table is normalised; the position and the type are "
        "missing.": norm(word),
        "the type table is indexed with input_ids, not with token_type_ids.": norm(
            word + position + type_of_ids
        ),
        "the norm has a weight and a bias of its own: use `LayerNorm`.": unscaled,
        "the type is added after the norm; add first, then normalise.": (
            norm(word + position) + kind
        ),
        "the position is added after the norm; add first, then normalise.": (
            norm(word + kind) + position
        ),
        "positions are counted from 1; they begin at 0.": norm(word + rows[1:6] + kind),
        "the position is added twice.": norm(total + position),
        "each of the three vectors was normalised by itself; add first, then "
        "normalise.": sum(map(norm, (word, position, kind))),
        "the norm divides by the standard deviation with n − 1; use `LayerNorm`, or "
        "`correction=0`.": unbiased,
    }


def _pairs():
    """Return pairs of tensors, and whether they agree to nine decimals.

    A list of (Tensor, Tensor, bool), float64 of shape (200,). Each pair is there to tell
    one mistake from the others.
    """
    x = normal(200, seed=5).double()
    one = torch.zeros(200, dtype=torch.float64)
    one[7] = 1
    zero = x * (1 - one)  # one of its numbers is 0
    return [
        (x, x.clone(), True),
        (x, x + 1, False),
        (x, x - 1, False),
        (x, x + 1e-12, True),
        (x, x + 1e-6 * one, False),
        (x, x + one - one.roll(1), False),  # the differences cancel
        (x, x + 1e-8 * one, False),  # on average less than 1e-9
        (1e6 * x, 1e6 * x + 1e-4, False),  # relative to x hardly any
        (zero, zero.clone(), True),
        (zero, x, False),
        (x, x + 6e-10, True),  # the length of the difference is more than 1e-9
    ]


@exercise("bert-internals.same", kind="spot the bug")
def same():
    """Check a reader's function that says whether two tensors are equal but for rounding.

    The answer is a function of two Tensors (numbers,), which returns a bool: whether no
    entry differs by more than 1e-9. Oracle: `_pairs`, pairs that are known to agree, or not
    to agree.

    Yields
    ------
    Case
        How the answer is called (``ask``), the right result, and those of known mistakes.
    """
    pairs = _pairs()
    near = 1e-9
    known = {
        "`x.all()` only asks whether no number of x is 0: compare x with y first.": (
            lambda x, y: x.all() == y.all()
        ),
        "your function wants numbers that are equal to the last bit; allow for rounding.": (
            lambda x, y: (x == y).all()
        ),
        "one number that agrees is enough for your function; all must agree.": (
            lambda x, y: ((x - y).abs() <= near).any()
        ),
        "where y is larger, the difference is negative: take its absolute value.": (
            lambda x, y: (x - y).max() <= near
        ),
        "positive and negative differences cancel in a sum or a mean.": (
            lambda x, y: (x - y).mean().abs() <= near
        ),
        "the mean difference can be small although one number is far off: take the "
        "largest difference.": (lambda x, y: (x - y).abs().mean() <= near),
        "`allclose` allows more where the numbers are large, unless you pass `rtol=0`.": (
            lambda x, y: torch.allclose(x, y, atol=near)
        ),
        "the norm of the difference grows with the number of entries: look at each "
        "entry by itself.": (lambda x, y: (x - y).norm() <= near),
        "your function says that all pairs agree.": lambda x, y: True,
        "your function says that no pair agrees.": lambda x, y: False,
    }

    def verdicts(function):
        """Return 1.0 for each pair of which a function says that it agrees, else 0.0.

        ``function`` : callable, a known mistake, from two Tensors to bool. A list of float.
        """
        return [float(function(x, y)) for x, y, _ in pairs]

    def ask(answer):
        """Return what a reader's function says of each pair, a list of float.

        1.0 where it calls them the same, else 0.0. ``answer`` : callable, from two Tensors
        to bool.
        """
        return [float(bool(run(answer, x, y))) for x, y, _ in pairs]

    mistakes = {text: verdicts(function) for text, function in known.items()}
    yield Case([], [float(agree) for *_, agree in pairs], mistakes, ask=ask)


def _config(answer):
    """Return the configuration that an answer is or has, and two of its sizes.

    Parameters
    ----------
    answer : BertConfig or BertModel
        Anything else is `Unfit`.

    Returns
    -------
    SimpleNamespace
        ``config``, a BertConfig; ``width``, its d_model, and ``heads``, how many, both int.
    """
    if isinstance(answer, BertModel):
        answer = answer.config
    if not isinstance(answer, BertConfig):
        raise Unfit(f"hand in the BertConfig, not {type_name(answer)}.")
    sizes = {"width": answer.hidden_size, "heads": answer.num_attention_heads}
    return SimpleNamespace(config=answer, **sizes)


def _counted(answer):
    """Count the parameters of the model that a reader's configuration makes.

    Parameters
    ----------
    answer : BertConfig or BertModel
        What the reader hands in; anything else is `Unfit`.

    Returns
    -------
    SimpleNamespace
        ``millions`` of parameters, a float; ``share``, the part of them in the layers, from
        0 to 1.
    """
    with torch.device("meta"):  # shapes only
        model = BertModel(_config(answer).config)
    total = sum(weight.numel() for weight in model.parameters())
    layers = sum(weight.numel() for weight in model.encoder.parameters())
    return SimpleNamespace(millions=total / 1e6, share=layers / total)


@exercise("bert-internals.small_bert", kind="experiment")
def small_bert():
    """Check the configuration of a smaller BERT that a reader hands in.

    The answer is a `BertConfig`, or a `BertModel` that has one. The model that it makes
    should have about ten million parameters, more than half of them in its layers. Oracle:
    these are counted.

    Yields
    ------
    Faults
        What is measured of the answer, and how known mistakes show in it.
    """
    shapes = {
        "keep BERT's vocabulary of 30,522 tokens.": (
            lambda seen: seen.config.vocab_size != 30522
        ),
        "keep BERT's 512 positions, too.": (
            lambda seen: seen.config.max_position_embeddings != 512
        ),
        "{heads} heads cannot share {width} dimensions evenly.": (
            lambda seen: min(seen.heads, seen.width) < 1 or seen.width % seen.heads
        ),
        "its feed-forward networks are narrower than the vectors: BERT's are four times as "
        "wide.": lambda seen: seen.config.intermediate_size < seen.width,
        "its feed-forward networks are far too wide for such vectors: BERT's are four "
        "times as wide.": lambda seen: seen.config.intermediate_size > 16 * seen.width,
        "this is a decoder; BERT is an encoder.": (
            lambda seen: seen.config.is_decoder or seen.config.add_cross_attention
        ),
        "more than a thousand layers: nobody has built such a BERT.": (
            lambda seen: seen.config.num_hidden_layers > 1000
        ),
    }
    yield Faults(_config, shapes)
    counts = {
        "{millions:.2f} million parameters are too many.": lambda seen: (
            seen.millions > 10.5
        ),
        "{millions:.2f} million parameters are too few.": lambda seen: seen.millions < 9.5,
        "{millions:.2f} million parameters, but only {share:.1%} of them are in the "
        "layers: the word table is too wide.": lambda seen: seen.share < 0.5,
    }
    yield Faults(_counted, counts)


@exercise("bert-internals.layer")
def layer():
    """Check a reader's layer of BERT, built from the modules of the library's layer.

    The answer is a function of the layer's modules, states x (batch, tokens, d_model) and
    the number of heads, which returns the states after the layer. The modules can be called
    one by one only. Oracle: transformers' layer, with two heads and with four.

    Yields
    ------
    Case
        What the answer is called with, the right result, and known mistakes: what the
        reader is told → the result that the mistake gives. ``instead`` (`BUILD`) is for an
        answer that calls a module as a whole.
    """
    x = normal(2, 5, 8, seed=3)
    for heads in (2, 4):  # whoever fixes their number is right only once
        whole = _bert(num_attention_heads=heads).encoder.layer[0]
        for seed, weight in enumerate(whole.parameters(), 10):  # each step is to count
            weight.copy_(normal(*weight.shape, seed=seed) * 0.6 + (weight == 1).float())
        mistakes = _layer_mistakes(whole, x, heads)
        yield Case([_opened(whole), x, heads], whole(x), mistakes, instead=BUILD)


def _steps(whole, x, heads):
    """Return two functions that compute a layer of BERT, perhaps with one step changed.

    Parameters
    ----------
    whole : BertLayer
        Of transformers, with d_model 8; its weights are used.
    x : Tensor of shape (2, 5, 8)
        The states before the layer.
    heads : int

    Returns
    -------
    attend : callable
        From states (2, 5, 8) to what attention gives for them.
    built : callable
        From nothing to the layer's output for ``x``, (2, 5, 8). Unless keywords say that a
        step is another, both do as transformers does.
    """
    own = whole.attention.self
    out = whole.attention.output
    last = whole.output
    soft = partial(torch.softmax, dim=-1)
    named = {"q": own.query, "k": own.key, "v": own.value}
    norm = {
        "attention": out.LayerNorm,
        "last": last.LayerNorm,
        "none": torch.nn.Identity(),
    }

    def attend(
        x,
        parts="qkv",
        over=8 / heads,
        weigh=soft,
        heads=heads,
        turn=(1, 1),
        end=out.dense,
        strided=False,
    ):
        """Return what attention gives for x, with one of its steps done in another way.

        Parameters
        ----------
        x : Tensor of shape (2, 5, 8)
        parts : str
            Which projections stand for query, key and value, such as "qkv" or "kqv".
        over : float
            The scores are divided by its root.
        weigh : callable
            From scores to weights, both (2, heads, 5, 5).
        heads : int
            Into how many the states are divided.
        turn : pair of int
            Whether (1) or not (0) the axes of heads and tokens are swapped after the states
            are divided into heads, and swapped back before the heads are joined.
        end : callable
            Maps the joined heads, (2, 5, 8), to the output.
        strided : bool
            Whether a head gets every ``heads``-th number of a vector, instead of
            neighbouring ones.

        Returns
        -------
        Tensor of shape (2, 5, 8)
        """
        if strided:  # every so-many-th number belongs to a head
            q, k, v = (
                named[part](x).unflatten(-1, (-1, heads)).permute(0, 3, 1, 2)
                for part in parts
            )
            mixed = weigh(q @ k.mT / over**0.5) @ v  # (2, heads, 5, d_head)
            return end(mixed.permute(0, 2, 3, 1).reshape(x.shape))
        shape = (2, 5, heads, -1) if turn[0] else (2, heads, 5, -1)
        q, k, v = (named[part](x).reshape(shape) for part in parts)
        q, k, v = (t.transpose(1, 2) if turn[0] else t for t in (q, k, v))
        mixed = weigh(q @ k.mT / over**0.5) @ v
        return end((mixed.transpose(1, 2) if turn[1] else mixed).reshape(x.shape))

    def built(
        first=True,
        second="normed",
        norms=("attention", "last"),
        gelu=F.gelu,
        fed=None,
        **attention,
    ):
        """Return the layer's output for x, with one step left out or done otherwise.

        Parameters
        ----------
        first : bool
            Whether x is added after attention.
        second : {"normed", "x", "nothing"}
            What is added after the feed-forward network: what the first norm returned, the
            layer's input, or nothing.
        norms : pair of str
            Which norm comes first and which second: that of "attention", the layer's
            "last", or "none".
        gelu : callable
            The activation.
        fed : Tensor of shape (2, 5, 8), optional
            What the feed-forward network is given, in place of the states after attention.
        **attention
            What is done otherwise in attention: arguments of `attend`, such as ``over``, by
            whose root scores are divided.

        Returns
        -------
        Tensor of shape (2, 5, 8)
        """
        attended = attend(x, **attention)
        if first:
            attended = x + attended
        normed = norm[norms[0]](attended)
        wide = gelu(whole.intermediate.dense(normed if fed is None else fed))
        added = {"normed": normed, "x": x, "nothing": 0.0}[second]
        return norm[norms[1]](added + last.dense(wide))

    return attend, built


def _behind(scores):
    """Return a decoder's weights: each token attends to itself and to those before it.

    ``scores`` : Tensor of shape (..., 5, 5), queries and keys. Returns the weights of that
    shape.
    """
    ahead = torch.ones(5, 5, dtype=torch.bool).triu(1)
    return scores.masked_fill(ahead, -torch.inf).softmax(-1)


def _layer_mistakes(whole, x, heads):
    """Return what each known mistake in a layer of BERT makes of its input.

    Parameters
    ----------
    whole : BertLayer
        Of transformers, with d_model 8.
    x : Tensor of shape (2, 5, 8)
        The states before the layer.
    heads : int

    Returns
    -------
    dict of str to Tensor of shape (2, 5, 8)
        What the reader is told → the states that the mistake gives.
    """
    attend, built = _steps(whole, x, heads)
    norm_1 = whole.attention.output.LayerNorm
    identity = torch.nn.Identity()
    d_head = 8 / heads
    last = whole.output
    tanh = partial(F.gelu, approximate="tanh")
    soft = {dim: partial(torch.softmax, dim=dim) for dim in (-2, 1)}
    # Each of the two networks is given normalised states, as in GPT-2.
    middle = x + attend(norm_1(x))
    pre = middle + last.dense(F.gelu(whole.intermediate.dense(last.LayerNorm(middle))))
    # What each of the two networks returns is normalised, and then added.
    middle = x + norm_1(attend(x))
    inside = middle + last.LayerNorm(last.dense(F.gelu(whole.intermediate.dense(middle))))
    return {
        "you always use 2 heads; use as many as `heads` says.": built(heads=2, over=4),
        "x is not added to what attention returns.": built(first=False),
        "nothing is added to what the feed-forward network returns.": built(
            second="nothing"
        ),
        "the second sum adds x; add what the first norm returned.": built(second="x"),
        "the feed-forward network is given x, not what the first norm returned.": built(
            fed=x
        ),
        "the two norms are missing.": built(norms=("none", "none")),
        "the first norm is missing.": built(norms=("none", "last")),
        "the last norm is missing.": built(norms=("attention", "none")),
        "the two norms are swapped.": built(norms=("last", "attention")),
        "both norms are attention's; the second one is that of `layer.output`.": built(
            norms=("attention", "attention")
        ),
        "both norms are layer.output's; the first one is that of "
        "`layer.attention.output`.": built(norms=("last", "last")),
        "your layer normalises before attention and before the feed-forward network, "
        "as GPT-2 does; BERT normalises after each sum.": pre,
        "you normalise what is added to the vector; BERT normalises the sum.": inside,
        "the scores are not divided by the square root of a head's width.": built(over=1),
        "the scores are divided by the square root of the whole width, not of a "
        "head's.": built(over=8),
        "the scores are divided by a head's width; divide by its square root.": built(
            over=d_head * d_head
        ),
        "you use only one head; use as many as `heads` says.": built(heads=1, over=8),
        "each head gets numbers of several tokens: split the last axis, then "
        "transpose.": built(turn=(0, 1)),
        "each head gets numbers from all over the vector; a head's numbers should "
        "stand side by side in it.": built(strided=True),
        "the heads are not transposed back before they are merged.": built(turn=(1, 0)),
        "the query is used for key and value, too.": built(parts="qqq"),
        "query and key are swapped.": built(parts="kqv"),
        "key and value are swapped.": built(parts="qvk"),
        "`layer.attention.output.dense` is missing.": built(end=identity),
        "the scores are used as weights: there is no softmax.": built(weigh=identity),
        "a causal mask hides the later tokens; BERT attends to both sides.": built(
            weigh=_behind
        ),
        "the softmax runs over the queries; it must run over the keys.": built(
            weigh=soft[-2]
        ),
        "the softmax runs over the heads; it must run over the keys.": built(weigh=soft[1]),
        "the activation is ReLU; BERT's is GELU.": built(gelu=F.relu),
        "this is GELU approximated by tanh; BERT uses the exact function.": built(
            gelu=tanh
        ),
        "there is no activation: two linear layers in a row are one.": built(gelu=identity),
    }


predict(
    "bert-internals.sink",
    a="turn the first switch below. How much attention does “the” get at position 0?",
    b="turn the first switch below: [SEP] gets no more than before.",
    c=None,
)
judge(
    "bert-internals.judge_sink",
    a=None,
    b="the switches do not test what the attention is good for. And at position 0 "
    "“the” draws as much.",
    c="turn only one of the first two switches. Is the sink gone?",
    d="the switches show one model. BERT-base has its sink at [SEP].",
)


@exercise("bert-internals.last_four")
def last_four():
    """Check a reader's text vectors from the last four levels of states.

    The answer is a function of the hidden states, a tuple with one Tensor (texts, tokens,
    d_model) for each level, and of the mask (texts, tokens), 1 where a token is real. It
    returns the four means of each text laid side by side, (texts, 4 * d_model). Oracle:
    means of each text's real tokens, cut out by hand.

    Yields
    ------
    Case
        Arguments, the right result, and the results that known mistakes give.
    """
    # As many numbers in a vector as texts: a forgotten axis gives numbers, not an error.
    states = tuple(normal(2, 5, 2, seed=seed) for seed in range(7))
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
    want = _means(states[-4:]).flatten(1)
    mistakes = _last_four_mistakes(states, mask)
    mistakes = {text: wrong.flatten(1) for text, wrong in mistakes.items()}
    yield Case([states, mask], want, mistakes)


def _means(layers, counts=(5, 3), over=(5, 3), begin=0):
    """Return, for two texts and several layers, a sum over tokens divided by a number.

    Parameters
    ----------
    layers : sequence of Tensor of shape (2, tokens, d_model)
    counts : pair of int
        For each text the position before which the sum ends.
    over : pair of int
        For each text the number by which its sums are divided.
    begin : int
        The position at which the sums begin.

    Returns
    -------
    Tensor of shape (2, layers, d_model)
        By default the means over the real tokens, 5 and 3.
    """
    rows = [
        [x[text, begin : counts[text]].sum(0) / over[text] for x in layers]
        for text in (0, 1)
    ]
    return torch.stack([torch.stack(row) for row in rows])


def _last_four_mistakes(states, mask):
    """Return what each known mistake makes of the states.

    Parameters
    ----------
    states : sequence of seven Tensors of shape (2, 5, 2)
        One for each level: texts, tokens, d_model. d_model equals the number of texts.
    mask : int Tensor of shape (2, 5)
        1 where a token is real, 0 at padding: the texts have 5 and 3 tokens.

    Returns
    -------
    dict of str to Tensor
        What the reader is told → what the mistake gives for the two texts. Most are of
        shape (2, 4, d_model), a mean for each of four levels; where the levels are averaged
        or added, (2, 1, d_model).
    """
    four = states[-4:]
    last = _means(states[-4:])
    over_texts = last.mean(0, keepdim=True).expand_as(last)
    maxima = [x.masked_fill(mask[..., None] == 0, -math.inf).amax(1) for x in four]
    return {
        "the mean includes padding: the second text has only three real tokens.": _means(
            four, (5, 5), (5, 5)
        ),
        "the padding is left out of the sum, but counted in the number of tokens.": _means(
            four, over=(5, 5)
        ),
        "these are sums; divide each by the text's number of tokens.": _means(
            four, over=(1, 1)
        ),
        "each sum is divided by the number of tokens in the whole batch.": _means(
            four, over=(8, 8)
        ),
        "these are the first four hidden states, not the last.": _means(states[:4]),
        "the last hidden state itself is left out.": _means(states[-5:-1]),
        "the order is reversed: the fourth from the end comes first.": last.flip(1),
        "the layers are interleaved; each mean stays in one piece.": last.mT,
        "the mean of the last layer is there four times.": last[:, 3:].expand_as(last),
        "the layers are averaged; they should be laid end to end.": last.mean(1, True),
        "the layers are added; they should be laid end to end.": last.sum(1, True),
        "the texts are averaged together; each has a mean of its own.": over_texts,
        "these are maxima over the tokens; take the mean.": torch.stack(maxima, 1),
        "these are maxima over the tokens, padding included; take the mean.": torch.stack(
            [x.amax(1) for x in four], 1
        ),
        "these are the vectors of [CLS]; take the mean.": _means(four, (1, 1), (1, 1)),
        "these are the vectors of the last token; take the mean.": _means(
            [x[torch.arange(2), torch.tensor([4, 2])][:, None] for x in four], over=(1, 1)
        ),
        "[CLS] and [SEP] are left out; they are real tokens, too.": _means(
            four, (4, 2), (3, 1), begin=1
        ),
        "[CLS] is left out; it is a real token, too.": _means(four, over=(4, 2), begin=1),
        "each number is divided by the length of another text: keep the axis, "
        "`mask.sum(1)[:, None]`.": _means(four, over=(1, 1)) / torch.tensor([5, 3]),
    }
