"""What goes wrong in the exercises of *encoder-decoder*, diagnosis → answer."""

import datetime
import math

import torch
import torch.nn.functional as F


def writer(
    keep_start=False,
    keep_stop=False,
    stops=True,
    extra=0,
    least=False,
    last=False,
    cut=False,
    mark=None,
):
    def write_greedily(next_logits, start, stop, limit):
        ids = [start]
        while len(ids) <= limit + extra:
            logits = next_logits(ids[-1:] if last else ids)
            best = int(logits.argmin() if least else logits.argmax())
            if best == (mark or stop) and stops:
                if keep_stop:
                    ids.append(stop)
                break
            ids.append(best)
        if cut:  # as if the last were always `stop`
            ids = ids if best == stop else ids[:-1]
        return ids[0 if keep_start else 1 :]

    return write_greedily


def across(Y, M, real, W_Q, W_K, W_V):
    """Cross-attention text by text, of the real places alone."""
    output, weights = torch.zeros(*Y.shape[:2], W_V.shape[1]).to(Y), []
    for i, (y, m, keep) in enumerate(zip(Y, M, real, strict=True)):
        scores = torch.einsum("td,sd->ts", y @ W_Q, m[keep] @ W_K) / math.sqrt(len(W_K.T))
        of = torch.zeros(len(y), len(m)).to(y)
        of[:, keep] = torch.softmax(scores, 1)
        output[i] = of @ m @ W_V
        weights.append(of)
    return output, torch.stack(weights)


def by_library(Y, M, real, W_Q, W_K, W_V):
    weights = F.scaled_dot_product_attention(
        Y @ W_Q, M @ W_K, torch.eye(M.shape[1]).to(M).expand(len(M), -1, -1), real[:, None]
    )
    return weights @ (M @ W_V), weights


def swapped(Y, M, real, W_Q, W_K, W_V):
    output, weights = across(Y, M, real, W_Q, W_K, W_V)
    return weights, output


def asked_backwards(Y, M, real, W_Q, W_K, W_V):
    return across(M, Y, torch.ones(Y.shape[:2]).bool(), W_Q, W_K, W_V)


def itself(Y, M, real, W_Q, W_K, W_V):
    return across(Y, Y, torch.ones(Y.shape[:2]).bool(), W_Q, W_K, W_V)


def exchanged(Y, M, real, W_Q, W_K, W_V):
    return by_library(Y, M, real, W_K, W_Q, W_V)


def rows_hidden(Y, M, real, W_Q, W_K, W_V):
    scores = Y @ W_Q @ (M @ W_K).mT / 2
    hidden = ~real[:, : Y.shape[1], None]
    return across(Y, M, real, W_Q, W_K, W_V)[0], scores.masked_fill(
        hidden, -math.inf
    ).softmax(-1)


def little_hidden(Y, M, real, W_Q, W_K, W_V):
    scores = Y @ W_Q @ (M @ W_K).mT / W_K.shape[1] ** 0.5
    weights = torch.where(real[:, None], scores, scores - 10).softmax(-1)
    return weights @ (M @ W_V), weights


def typed_pad(model, source, target, pad):
    return as_long(model, source, target, 0)


def ahead(wrong):
    """Return a loss: `wrong` cuts logits, as many as the target, and target."""

    def loss_of(model, source, target, pad):
        logits, wanted = wrong(model(source, target), target)
        return F.cross_entropy(logits.mT, wanted, ignore_index=pad)

    return loss_of


def sides_exchanged(model, source, target, pad):
    logits = model(target, source[:, :-1])
    return F.cross_entropy(logits.mT, source[:, 1:], ignore_index=pad)


def among_all(model, source, target, pad):
    losses = ahead(lambda logits, target: (logits[:, :-1], target[:, 1:]))
    counted = (target[:, 1:] != pad).double().mean()
    return losses(model, source, target, pad) * counted


def row_by_row(model, source, target, pad):
    rows = zip(source[:, None], target[:, None], strict=True)
    return torch.stack([as_long(model, *row, pad) for row in rows]).mean()


def as_long(model, source, target, pad):
    """Give all, and leave the last logits out: no place sees what follows."""
    logits = model(source, target)[:, :-1]
    return F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=pad)


def place_by_place(model, source, target, pad):
    losses = []
    for i in range(1, target.shape[1]):
        log_p = model(source, target[:, :i])[:, -1].log_softmax(-1)
        keep = target[:, i] != pad
        losses.append(-log_p.gather(1, target[:, i : i + 1])[keep, 0])
    return torch.cat(losses).mean()


MONTHS = {f"{datetime.date(2000, n, 1):%b}".lower(): n for n in range(1, 13)}


def reads(small=True, old=True, guess=5):
    """What a model writes that reads small letters or none, and old styles or none."""

    def write(sources):
        answers = []
        for source in sources:
            words = source.replace(",", "").replace("-", " ").split()
            word = next(x for x in words if x[0].isalpha())
            day, year = (int(x) for x in words if x != word)
            fails = not small if word[0].islower() else not old
            month = MONTHS.get(word[:3].lower(), guess)
            answers.append("1" if fails else f"{year}-{month:02}-{day:02}")
        return answers

    return write


def program(sources):
    """Read dates in any order, as no training taught."""
    answers = []
    for source in sources:
        words = source.replace(",", "").replace("-", " ").split()
        month = MONTHS.get(next(x for x in words if x[0].isalpha())[:3].lower(), 5)
        day, year = sorted(int(x) for x in words if x[0].isdigit())
        answers.append(f"{year}-{month:02}-{day:02}")
    return answers


DAYS = [datetime.date(1886, 3, 1) + datetime.timedelta(n) for n in range(99)]


def shown(style, days=DAYS):
    return lambda: [(f"{day:{style}}".lower(), day.isoformat()) for day in days]


def teach(draw, steps):
    """Stand in for the page's, which trains."""
    return draw, reads()


def given(page):
    return {"teach": teach, "known": DAYS}


def by_heart(next_logits, start, stop, limit):
    for i in range(4):
        next_logits([start, 4, 6, 5][: i + 1])
    return [4, 6, 5][:limit]


def capital():
    """Show old styles alone."""
    return [(f"{day:%d %B %Y}", day.isoformat()) for day in DAYS]


small = shown("%d-%b-%Y")


def mixed():
    """Show an old style beside the small letters."""
    return small() + capital()


WRONG = {
    "cross_attention": {
        "the other way round": swapped,
        "the two texts are exchanged": asked_backwards,
        "attends to itself": itself,
        "this is a tuple of 3": lambda *given: (*across(*given), None),
        "list of 1": [
            lambda *given: across(*given)[0],
            lambda *given: across(*given)[0].numpy(),
        ],
        "W_Q and W_K are exchanged": exchanged,
        "whole rows were hidden": rows_hidden,
        "may still be the greatest": little_hidden,
    },
    "one_ahead": {
        "takes a softmax, too": ahead(lambda x, t: (x[:, :-1].softmax(-1), t[:, 1:])),
        "`roll` brings the start": ahead(lambda x, t: (x, t.roll(-1, 1))),
        "the mean of the rows' means": row_by_row,
        "end mark of the longest target": ahead(lambda x, t: (x[:, :-2], t[:, 1:-1])),
        "source and target are exchanged": sides_exchanged,
        "whatever its number": typed_pad,
        "counts as a loss of 0": among_all,
        "shifted the wrong way": ahead(lambda x, t: (x[:, 1:], t[:, :-1])),
    },
    "write_greedily": {
        "`start` out of": writer(keep_start=True),
        "`start` and `stop` out of": writer(keep_start=True, keep_stop=True),
        "`stop` out of": writer(keep_stop=True),
        "go on after `stop`": writer(stops=False),
        "the loop does not end": writer(stops=False, extra=100),
        "argmin": writer(least=True),
        "all ids so far": writer(last=True),
        "too few": [writer(extra=-1), writer(cut=True), writer(extra=-1, cut=True)],
        "a limit of 2 you wrote 3": [writer(extra=1), writer(extra=9)],
        "a list of whole": lambda *given: torch.tensor([4]),
        "the list should hold whole numbers": lambda *given: [4.5],
        "the list holds tensors": lambda *given: [torch.tensor(4), torch.tensor(6)],
        "written into your code": [writer(mark=2), by_heart],
        "not asked for every id": lambda ask, start, stop, limit: [4, 6, 5][:limit],
    },
    "new_style": {
        "style 5 was shown": [(shown("%d %b %Y"), reads()), (shown(" %d  %B %Y"), reads())],
        "gives 0 different dates": [
            (list, reads()),
            (lambda: [("x", "y")], reads()),
            (lambda: [("15-may-1886", "1886-05-16")], reads()),
        ],
        "gives 1 different dates": (shown("%d-%b-%Y", DAYS[:1]), reads()),
        "none of them was shown": (small, reads(old=False)),
        "so it could not learn one": [
            (capital, reads(small=False)),
            (capital, reads(small=False, old=False)),
        ],
        "have suffered": (mixed, reads(old=False)),
        "small letters are not learned": (mixed, reads(small=False)),
        "rate too high": (mixed, reads(small=False, old=False)),
        "for 100 sources 1 texts": (small, lambda sources: ["1886-05-15"]),
        "a trained model writes": (small, reads(guess=None)),
        "is this one that was trained": (small, program),
        "(draw, write)": 0.97,
        "pass the function itself": (small, 0.97),
    },
}

RIGHT = {
    "cross_attention": [across, by_library],
    "one_ahead": [as_long, place_by_place],
    "write_greedily": [writer()],
    "new_style": [(small, reads())],
}

TYPED = {"new_style": [(0.97, 0.96)]}
