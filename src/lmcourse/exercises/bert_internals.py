"""Checks of the chapter *bert-internals*."""

import operator
from types import SimpleNamespace

import torch
from transformers import BertConfig, BertModel

from lmcourse.exercises import Wrong, exercise, expect, judge, predict, run
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


# Compare with the poem as it was printed.
judge(
    "bert-internals.whose",
    a=None,
    b="it stands in the right meadow; but does grass go, and come back home?",
    c="a boy may go; but what has he to do with the cricket? It fits its two "
    "neighbours, and that is all that counting looks at.",
)


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


class _Parts(SimpleNamespace):
    """The tables and the norm; the whole is what the reader is to build."""

    asked = False

    def __call__(self, *inputs, **named):
        self.asked = True
        raise Wrong("this is the whole")


TOKEN_TYPES = torch.tensor([[0, 0, 0, 1, 1]]).expand(3, 5)  # of three texts


@exercise("bert-internals.embed", kind="spot the bug")
def embed(answer):
    """Compare with the first hidden state of transformers' BERT."""
    model = _bert()
    ids = torch.randint(31, (3, 5), generator=torch.Generator().manual_seed(1))
    # Not the whole model: only its parts, so that they cannot be called in one piece.
    parts = _Parts(**dict(model.embeddings.named_children()))
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


@exercise("bert-internals.same", kind="spot the bug")
def same(answer):
    """Try pairs of which it is known whether they are the same."""
    x = normal(4, 6, seed=6)
    one = x.clone()
    one[2, 3] += 1e-3
    rounded = x * (1 + 1e-7)

    def said(a, b):
        found = run(answer, a, b)
        try:
            return bool(found)
        except Exception:
            raise Wrong("return one truth value for the whole tensor.") from None

    zero = x.clone()
    zero[0, 0] = 0
    return {
        "two tensors that differ everywhere are called the same: x.all() only asks "
        "whether any number is zero.": said(x, 3 * x),
        "a tensor with a zero in it is not called the same as itself.": not said(
            zero, zero.clone()
        ),
        "numbers that differ by rounding alone are called different: to a computer "
        "0.1 + 0.2 == 0.3 is False.": not said(x, rounded),
        "it misses a difference if the second number is the larger one: take the "
        "absolute value.": said(x, x + 1),
        "it misses a difference if the first number is the larger one: take the "
        "absolute value.": said(x + 1, x),
        "two tensors with the same numbers in another order are called the same.": said(
            x, x.flip(0)
        ),
        "one number of 24 differs, and it is not seen: look at the largest difference, "
        "not at the sum or the mean.": said(x, one),
    }


predict(
    "bert-internals.fused",
    a="an error would be kind. Nothing complains.",
    b="the vectors that come out are right; of weights it has none to give.",
    c=None,
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
        "these are the vectors of [CLS]; the mean over the tokens is wanted.": means(
            states[-4:], (1, 1), (1, 1)
        ),
    }
    mistakes = {text: wrong.flatten(1) for text, wrong in mistakes.items()}
    expect(answer, [states, mask], last.flatten(1), mistakes)


@exercise("bert-internals.lookback")
def lookback(answer):
    """Compare with adding up, weight by weight, those whose places fulfil a condition."""
    weights = normal(3, 6, 6, seed=5).softmax(-1)

    def share(inside, first=1, over=None):
        places = [(i, j) for i in range(first, 6) for j in range(6) if inside(i, j)]
        sums = [sum(float(head[place]) for place in places) for head in weights]
        return torch.tensor(sums) / (over or 6 - first)

    before, after, upto = operator.gt, operator.lt, operator.ge  # row and column compared
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
        "without its first row the matrix has another diagonal, and the token just before "
        "is lost: take the earlier tokens first, then leave the row out.": share(
            lambda i, j: j < i - 1
        ),
        "only the token just before is counted; all earlier ones are wanted.": share(
            lambda i, j: j == i - 1
        ),
        "this is the sum over the tokens; their mean is wanted.": share(before, over=1),
    }
    expect(answer, [weights], share(before), mistakes)
