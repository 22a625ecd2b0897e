"""What the chapter *sequences* claims, checked where the page places it.

The ``page`` of a proof or a null is a `studies.findings.Page`: the names that the page has
defined so far, as attributes; ``page.rungs`` is the page's variable ``rungs``.
"""

from functools import cache

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from lmcourse.attention import MultiHeadAttention
from lmcourse.ngrams import NgramModel
from lmcourse.numbers import bootstrap_interval
from lmcourse.recurrent import watch
from lmcourse.shuffled import shuffled_weights
from studies.findings import Page, finding, proof
from studies.measures import ratio_of_sums
from studies.sequences.sequences import passages

CLOCK = 98  # the unit of the first picture
SEEDS = range(1, 6)  # of shuffled weights, and of layers before training
close = torch.testing.assert_close


def mean_interval(values, chosen=None) -> tuple[float, float]:
    """Return the 95 % interval of a mean if other texts had been drawn.

    Parameters
    ----------
    values : Tensor or array of shape (texts, characters)
    chosen : bool array of the same shape, optional
        Which ones count; default all.

    Returns
    -------
    low, high : float
        In the unit of the values.
    """
    values = np.asarray(values, dtype=float)
    chosen = np.ones_like(values) if chosen is None else np.asarray(chosen, dtype=float)
    sums = (values * chosen).sum(axis=1)
    sizes = chosen.sum(axis=1)
    return bootstrap_interval(sums, sizes, statistic=ratio_of_sums)


# --- counting ---------------------------------------------------------------------------


@proof(
    "On new sonnets, n-grams longer than five gain less than 0.01 nats; on the text that "
    "was counted, the loss goes on falling."
)
def counting_stops_helping(page: Page):
    """Compare lengths from one to nine; no probability is zero, and all sum to one.

    The differences from five have 95 % intervals over the sonnets. Four is worse than five
    by more than 0.03 nats, one by more than a nat.

    Parameters
    ----------
    page : Page
        ``ladder`` is a dict, length 1 to 9 → `NgramModel`; ``rungs`` is a table of their
        mean losses in nats a character, one row a length, with columns ``new`` and
        ``counted``; ``sonnets`` is a list of all texts, and ``ids["validation"]`` the new
        ones (every tenth, from the fifth), joined, a list of ids; ``characters`` is the
        tokenizer; ``what_follows`` is a function from a text to a Counter of the characters
        after it.

    Returns
    -------
    dict
        ``summers``: how many characters follow "summer" in the text; ``spaces``: how many
        of them are spaces. Mean losses in nats a character: ``five`` and ``new_nine``, on
        new sonnets with lengths 5 and 9; ``own_nine``, on the text that was counted.
        ``answer``: the letter of the right choice.
    """
    new = page.rungs["new"]
    own = page.rungs["counted"]
    ids = np.array(page.ids["validation"])
    loss = {n: -np.log(model.probabilities(ids)) for n, model in page.ladder.items()}
    ends = np.cumsum([len(text) + 1 for text in page.sonnets[4::10]])
    sonnet_of = np.searchsorted(ends, range(len(ids)), side="right")
    sizes = np.bincount(sonnet_of)

    def from_five(n):
        """Return the 95 % interval of the loss with length ``n`` less that with length 5.

        ``n`` : int. Low and high, in nats a character, over sonnets.
        """
        sums = np.bincount(sonnet_of, loss[n] - loss[5])
        return bootstrap_interval(sums, sizes, statistic=ratio_of_sums)

    assert from_five(4)[0] > 0.03
    for n in (6, 7, 8, 9):
        assert max(map(abs, from_five(n))) < 0.01
    assert new[1] > new[5] + 1
    assert own.is_monotonic_decreasing
    assert own[9] < new[9] / 2
    for model in page.ladder.values():
        for context in ("", "summer", "zzz"):
            probs = model.next_probs(page.characters.encode(context))
            assert abs(probs.sum() - 1) < 1e-9
            assert probs.min() > 0
    followed = page.what_follows("summer")
    assert followed["\n"] == 0
    return {
        "summers": followed.total(),
        "spaces": followed[" "],
        "five": new[5],
        "own_nine": own[9],
        "new_nine": new[9],
        "answer": "a" if own[9] < new[9] / 2 else "b",
    }


@proof("A 5-gram model orders the four answers alike after any text with the same end.")
def four_characters_decide(page: Page):
    """Compare three beginnings; the sonnet is not among those that were counted.

    Parameters
    ----------
    page : Page
        ``ranked`` is a function from a text to a list of the four answers, the likeliest
        next first; ``parts.training`` is the text that was counted.

    Returns
    -------
    dict
        ``answer``: the letter of the right choice in the page's question what makes the
        model prefer *sun*; "c": that any text with the same end would.
    """
    beginnings = ("My mistress' eyes are nothing like the ", "My dog is nothing like the ")
    orders = [page.ranked(text) for text in (*beginnings, "I drank a glass of the ")]
    assert orders[0][0] == "sun"
    assert orders[0] == orders[1] == orders[2]
    assert "nothing like the sun" not in page.parts.training
    return {"answer": "c" if orders[0] == orders[2] else "a"}


@proof("A mean of vectors is the same in any order of the tokens.")
def a_bag_has_no_order(page: Page):
    """Compare a shuffled sonnet, with random vectors, to 1e-9, and two sentences, to 1e-6.

    The sentences are *dog bites man* and *man bites dog*, with the page's vectors.

    Parameters
    ----------
    page : Page
        ``characters`` is the tokenizer, ``sonnets`` a list of texts, and ``bag`` a function
        from a text to the mean vector of its characters, a Tensor (d_model,).
    """
    poem = torch.tensor(page.characters.encode(page.sonnets[0]))
    torch.manual_seed(0)
    vectors = torch.randn(page.characters.vocab_size, 16, dtype=torch.float64)
    mixed = poem[torch.randperm(len(poem))]
    assert not torch.equal(mixed, poem)
    close(vectors[mixed].mean(0), vectors[poem].mean(0), rtol=0, atol=1e-9)
    close(page.bag("dog bites man"), page.bag("man bites dog"), rtol=0, atol=1e-6)


# --- recurrence -------------------------------------------------------------------------


@proof("Given the same weights, the page's RNN and LSTM equal PyTorch's.")
def ours_are_pytorchs(page: Page):
    """Compare states, and gradients by the input, in float64.

    Parameters
    ----------
    page : Page
        ``RNN`` and ``LSTM`` are the lesson's classes, made with d_in and d_model: from
        inputs (batch, tokens, d_in) to states (batch, tokens, d_model), ``LSTM`` also to
        its gates. Their layers ``read`` and ``carry`` are those of the input and the state.
    """
    torch.manual_seed(0)
    x = torch.randn(3, 11, 5).double().requires_grad_()  # (batch, tokens, d_in)
    for ours, theirs in ((page.RNN, nn.RNN), (page.LSTM, nn.LSTM)):
        theirs = theirs(5, 7, batch_first=True).double()
        ours = ours(5, 7).double()
        for name, layer in {"ih": ours.read, "hh": ours.carry}.items():
            layer.weight.data = getattr(theirs, f"weight_{name}_l0").data
            layer.bias.data = getattr(theirs, f"bias_{name}_l0").data
        states = ours(x)
        want = theirs(x)[0]
        states = states[0] if isinstance(states, tuple) else states
        close(states, want, rtol=0, atol=1e-9)
        one, other = (
            torch.autograd.grad(each.pow(2).sum(), x)[0] for each in (states, want)
        )
        close(one, other, rtol=0, atol=1e-9)


# --- a clock ----------------------------------------------------------------------------


def random_weights(page: Page):
    """An LSTM whose weights are shuffled.

    Parameters
    ----------
    page : Page
        ``reader`` is the LSTM, a `CharLSTM`; ``held_out`` are sonnets, ids (texts,
        characters).

    Returns
    -------
    Page
        A page like this one, whose ``reader`` is the shuffled LSTM; its ``logits`` (texts,
        characters, vocab_size), ``memories`` and forget ``gates`` (texts, characters,
        d_model) on ``held_out`` are its own.
    """
    reader = shuffled_weights(page.reader)
    logits, memories, gates = watch(reader, page.held_out)
    return page.replaced(reader=reader, logits=logits, memories=memories, gates=gates)


def correlations(memories, position, texts=slice(None)) -> np.ndarray:
    """Return each unit's correlation with the position in the line.

    Parameters
    ----------
    memories : Tensor of shape (texts, characters, d_model)
        The first character of each text is left out.
    position : int64 Tensor of shape (texts, characters)
        How many characters before the line began.
    texts : index
        Which texts count. Default: all.

    Returns
    -------
    float array of shape (d_model,)
        0 for a unit that does not change.
    """
    units = memories[texts, 1:].flatten(0, 1).T.numpy()
    place = position[texts, 1:].ravel().numpy()
    return np.nan_to_num(np.corrcoef(place, units)[0, 1:])


def training_correlations(page: Page) -> np.ndarray:
    """Return each unit's correlation with the position in the line, on training sonnets.

    Parameters
    ----------
    page : Page
        ``reader`` is the LSTM, a `CharLSTM`; ``sonnets`` is a list of all texts. Functions:
        ``cut_alike`` makes ids (texts, characters) of texts, cut to the shortest;
        ``line_position`` returns, of the shape of ids, how many characters ago the line
        began.

    Returns
    -------
    float array of shape (d_model,)
        Of the memories of the LSTM; 0 for a unit that does not change.
    """
    # Every tenth sonnet from the fifth and from the tenth on is held out.
    learned = [s for i, s in enumerate(page.sonnets) if i % 10 not in (4, 9)]
    ids = page.cut_alike(learned)
    return correlations(watch(page.reader, ids)[1], page.line_position(ids))


def partial_correlation(one, other, given) -> float:
    """Return the correlation of two rows of numbers, a third one held constant.

    Parameters
    ----------
    one, other, given : float array of shape (numbers,)
    """
    basis = np.stack([np.ones_like(given), given], axis=1)
    rest = [row - basis @ np.linalg.lstsq(basis, row)[0] for row in (one, other)]
    return float(np.corrcoef(*rest)[0, 1])


def words_so_far(ids, newline, space):
    """Return how many words of its line stand before each character.

    Parameters
    ----------
    ids : int64 Tensor of shape (texts, characters)
    newline, space : int
        The ids of these characters.

    Returns
    -------
    int64 Tensor of shape (texts, characters)
    """
    words = torch.zeros_like(ids)
    for t in range(1, ids.shape[1]):
        before = words[:, t - 1]
        with_a_space = torch.where(ids[:, t] == space, before + 1, before)
        words[:, t] = torch.where(ids[:, t] == newline, 0, with_a_space)
    return words


@finding(
    "One unit of a small LSTM is a clock: its memory runs down from the beginning of a "
    "line to its end.",
    rival="each of the other 127 units; the next correlates at {next:.2f}",
    null=random_weights,
    n="{characters:,} characters of {sonnets} sonnets that it never read",
    interval="correlation with the position in the line: {span:.2f}",
)
def a_unit_keeps_time(page: Page):
    """Check the unit that correlates best with the position in training sonnets' lines.

    That is unit 98, `CLOCK`. On the others its correlation is below -0.8, and that of no
    other unit above 0.7 in size. It goes with characters, not words: given the position,
    the number of words so far adds little, less than 0.15; given that, the position has
    more than 0.4. Its median rises nowhere by more than 0.05, and falls by more than 1 in
    all. With shuffled weights, five seeds, no unit reaches 0.5.

    Parameters
    ----------
    page : Page
        ``reader`` is the LSTM, a `CharLSTM`; ``held_out`` are its held-out sonnets, ids
        (texts, characters); ``memories`` are its memories there, (texts, characters,
        units), and ``position``, (texts, characters), is how many characters ago the line
        began; ``newline`` is an id; ``characters`` is the tokenizer, ``sonnets`` a list of
        all texts. ``cut_alike`` and ``line_position``, functions, make ids of texts, and
        positions of ids.

    Returns
    -------
    dict
        Correlations with the position: ``correlation`` of the unit, with its 95 % interval
        ``span``; the largest sizes of any other unit, ``next``, and of any with shuffled
        weights, ``untrained``. ``characters``, ``sonnets``, ``units``, ``vocab_size``,
        ``learned`` (sonnets of training): how many.
    """
    here = correlations(page.memories, page.position)
    unit = page.memories[..., [CLOCK]]

    def of_the_unit(drawn, axis):
        """Return the clock's correlation with the position in the line, for each draw.

        ``drawn`` : float array (draws, texts), the numbers of the sonnets that were drawn;
        ``axis`` : the last, not used. Returns a float array (draws,).
        """
        draws = drawn.astype(int)
        return np.array([correlations(unit, page.position, row)[0] for row in draws])

    texts = range(len(page.held_out))
    span = bootstrap_interval(texts, statistic=of_the_unit, draws=200)
    untrained = [
        abs(
            correlations(
                watch(shuffled_weights(page.reader, seed), page.held_out)[1], page.position
            )
        )
        for seed in SEEDS
    ]
    memory = page.memories[:, 1:, CLOCK].ravel().numpy().astype(float)
    position = page.position[:, 1:].ravel().numpy().astype(float)
    words = words_so_far(page.held_out, page.newline, page.characters.encode(" ")[0])
    words = words[:, 1:].ravel().numpy().astype(float)
    medians = [np.median(memory[position == at]) for at in range(1, 42)]
    others = np.delete(abs(here), CLOCK).max()
    assert abs(training_correlations(page)).argmax() == CLOCK
    assert span[1] < -0.8
    assert others < 0.7
    assert max(each.max() for each in untrained) < 0.5
    assert abs(partial_correlation(memory, position, words)) > 0.4
    assert abs(partial_correlation(memory, words, position)) < 0.15
    assert (np.diff(medians) < 0.05).all()
    assert medians[-1] < medians[0] - 1
    return {
        "correlation": here[CLOCK],
        "span": span,
        "next": others,
        "untrained": max(each.max() for each in untrained),
        "characters": page.held_out[:, 1:].numel(),
        "sonnets": len(page.held_out),
        "units": page.memories.shape[-1],
        "vocab_size": page.characters.vocab_size,
        "learned": sum(i % 10 not in (4, 9) for i in range(len(page.sonnets))),
    }


@finding(
    "Freeze the clock unit of our small LSTM where a line begins, and its lines become "
    "more than four times as long.",
    rival="each other unit, frozen where it stands when a line begins; no line is then "
    "longer than {others:.0f} characters, on average",
    null=random_weights,
    n="{written:,} characters for each way of writing, 1,600 for each other unit",
    interval="length of a line at the fortieth character, three seeds: {late_span:.0f}",
)
def without_the_clock(page: Page):
    """Compare lines with the clock free, frozen at their start, or at character forty.

    The unit is number 98, `CLOCK`: it is held at its mean value on held-out sonnets at that
    position. Frozen at the beginning, lines are at least four times as long as free ones
    and twice as long as with any other unit; at the fortieth, at most half. Reading
    held-out sonnets, the frozen clock makes the loss at line ends rise by two nats,
    elsewhere by less than a tenth of one.

    Parameters
    ----------
    page : Page
        Functions: ``write`` takes what units are held at, (texts or 1, units), NaN: free,
        and a seed, and returns ids of drawn texts, (texts, 200); ``holding`` makes that of
        one unit and a value; ``line_length`` returns characters for each line end.
        ``reader`` is the LSTM, a `CharLSTM`; on the held-out sonnets ``held_out``, ids
        (texts, characters), ``memories``, (texts, characters, units), are its memories and
        ``logits``, (texts, characters, vocab_size), its predictions; ``position``, (texts,
        characters), is how many characters ago the line began; ``newline`` is an id.

    Returns
    -------
    dict
        Characters a line: ``free``; ``late``, frozen as at the fortieth character, with
        lowest and highest ``late_span``; ``others``, the longest with another unit. How
        many line ends, frozen as at the beginning ``ends``, and ``free_ends``, in
        ``written`` characters. Rises of the loss in nats by freezing it so: ``at_ends`` of
        lines, ``elsewhere``.
    """
    begins = page.memories[page.position == 1].mean(0)  # (d_model,)
    late = page.memories[page.position == 40].mean(0)
    ways = {"free": np.nan, "start": float(begins[CLOCK]), "late": float(late[CLOCK])}
    lengths = {}
    ends = {}
    for name, value in ways.items():
        texts = [page.write(page.holding(CLOCK, value), seed) for seed in (1, 2, 3)]
        lengths[name] = [page.line_length(each) for each in texts]
        ends[name] = sum(int((each == page.newline).sum()) for each in texts)
        written = sum(each.numel() for each in texts)
    units = len(begins)
    # A row for each unit: it is held at its value, and the others are NaN, which is free.
    each = torch.full((units, units), torch.nan).fill_diagonal_(0) + torch.diag(begins)
    drawn = page.write(each.repeat_interleave(8, 0), seed=0, texts=8 * units)
    by_unit = np.array(
        [page.line_length(texts) for texts in drawn.unflatten(0, (units, 8))]
    )
    others = float(np.delete(by_unit, CLOCK).max())
    answers = page.held_out[:, 1:]
    at_end = answers == page.newline
    frozen = page.holding(CLOCK, ways["start"]).expand(len(page.held_out), -1)
    frozen_logits = watch(page.reader, page.held_out, frozen)[0]
    more = [
        F.cross_entropy(logits[:, :-1].mT, answers, reduction="none")
        for logits in (frozen_logits, page.logits)
    ]
    more = more[0] - more[1]
    free = float(np.mean(lengths["free"]))
    assert min(lengths["start"]) > 4 * max(lengths["free"])
    assert min(lengths["start"]) > 2 * others
    assert max(lengths["late"]) < min(lengths["free"]) / 2
    assert by_unit.argmax() == CLOCK
    assert mean_interval(more, at_end)[0] > 2
    assert mean_interval(more, ~at_end)[1] < 0.1
    return {
        "free": free,
        "ends": ends["start"],
        "free_ends": ends["free"],
        "late": float(np.mean(lengths["late"])),
        "late_span": (min(lengths["late"]), max(lengths["late"])),
        "others": others,
        "written": written,
        "at_ends": more[at_end].mean().item(),
        "elsewhere": more[~at_end].mean().item(),
    }


def eight_characters(page: Page):
    """The LSTM reads only the last eight characters before each one that it predicts.

    Parameters
    ----------
    page : Page
        ``by_context`` is a dict, how many characters are read → the LSTM's losses, a Tensor
        (texts, characters), in nats.

    Returns
    -------
    Page
        A page like this one, whose ``lstm_losses`` are those with eight characters.
    """
    return page.replaced(lstm_losses=page.by_context[8])


@cache
def line_end_log_odds(order, vocab_size, newline, counted: tuple, asked: tuple):
    """Return the log odds of a line end after each character, by an n-gram model.

    Parameters
    ----------
    order, vocab_size : int
        Of the model: the length of its n-grams, and how many characters there are.
    newline : int
        The id of a line end.
    counted : tuple of int
        The text that it counts.
    asked : tuple of tuple of int
        Texts of one length, as ids.

    Returns
    -------
    float array of shape (texts, characters - order + 2)
        In nats; the first is after ``order - 1`` characters.
    """
    model = NgramModel(counted, order, vocab_size)
    windows = np.lib.stride_tricks.sliding_window_view(np.array(asked), order - 1, axis=1)
    ends = np.full((*windows.shape[:2], 1), newline)
    probs = model.probabilities(np.concatenate([windows, ends], axis=2).ravel())
    probs = probs.reshape(*windows.shape[:2], order)[..., -1]
    return np.log(probs / (1 - probs))  # (texts, characters - order + 2)


def losses_given_position(page: Page, order=5):
    """Return the loss at each line end of an n-gram model that knows the position.

    A boosted tree learns from halves of the training sonnets, each asked of n-grams that
    were counted in the other, how likely a line end is, given the n-gram model's
    probability and the number of characters since the line began.

    Parameters
    ----------
    page : Page
        ``sonnets`` is a list of all texts; ``held_out`` are ids (texts, characters);
        ``characters`` is the tokenizer, ``newline`` an id of it; ``ids["training"]`` is the
        training text, a list of ids; ``FIRST`` is the number from 0 of the first character
        that is predicted. Functions: ``cut_alike`` makes ids (texts, characters) of texts;
        ``line_position`` returns how many characters ago the line began.
    order : int
        The length of the n-grams.

    Returns
    -------
    float array of shape (texts, characters)
        In nats, as if each character were a line end, of those of ``held_out`` from
        ``FIRST`` on; it means something at line ends alone.
    """
    # Every tenth sonnet from the fifth and from the tenth on is held out.
    learned = [s for i, s in enumerate(page.sonnets) if i % 10 not in (4, 9)]
    sizes = page.characters.vocab_size, page.newline

    def features(counted, ids):
        """Return what the tree is told of each character that is predicted.

        ``counted`` : list of int, the text in which n-grams are counted; ``ids`` : the
        texts, (texts, characters). The result is an array (texts · (characters - order +
        1), 2): the first ``order - 1`` characters of each text are not predicted. The
        columns: log odds of a line end, in nats, and how many characters ago the line
        began, both after the character before.
        """
        texts = tuple(map(tuple, ids.tolist()))
        # Both begin after order - 1 characters; nothing follows the last character.
        odds = line_end_log_odds(order, *sizes, tuple(counted), texts)[:, :-1]
        known = page.line_position(ids)[:, order - 2 : -1]
        return np.stack([odds.ravel(), known.ravel().numpy()], axis=1)

    rows = []
    answers = []
    for own, other in ((learned[::2], learned[1::2]), (learned[1::2], learned[::2])):
        ids = page.cut_alike(other)
        rows.append(features(page.characters.encode("\n".join(own)), ids))
        answers.append((ids[:, order - 1 :] == page.newline).ravel().numpy())
    tree = HistGradientBoostingClassifier(random_state=0)
    tree.fit(np.concatenate(rows), np.concatenate(answers))
    asked = features(page.ids["training"], page.held_out)
    probs = tree.predict_proba(asked)[:, 1].clip(1e-6, 1).reshape(len(page.held_out), -1)
    return -np.log(probs)[:, page.FIRST - order + 1 :]  # as the page's losses


@finding(
    "A small LSTM predicts the line ends of unread sonnets better than n-grams of any "
    "length from one to nine.",
    rival="5-grams that are given the position in the line, {told:.2f} nats",
    null=eight_characters,
    n="{ends} line ends of {sonnets} sonnets",
    interval="the best n-grams less the LSTM: {gap:.2f} nats",
)
def line_ends_are_predicted(page: Page):
    """Compare the loss at line ends; n-grams have the length that is best at these ends.

    The interval of the lead begins above 0.2 nats; elsewhere it begins above -0.02. Reading
    only four or eight characters the LSTM has less than a third of the lead. What n-grams
    lack is the position: given it, 5-grams make up more than two thirds of the difference.

    Parameters
    ----------
    page : Page
        Losses of held-out sonnets in nats, Tensors (texts, characters): ``lstm_losses``;
        ``ngram_losses``, dict, length of n-grams → such losses; ``by_context``, dict, how
        many characters the LSTM reads → such losses. ``at_end``, a bool Tensor of that
        shape, is True at line ends. `losses_given_position` reads more of it.

    Returns
    -------
    dict
        Mean losses at line ends in nats, and as ``…_share`` probabilities: ``lstm``;
        ``counted``, by n-grams; ``eight`` and ``four``, by the LSTM that reads so many
        characters; ``told``, by n-grams that know the position. ``gap``, the 95 % interval
        of n-grams less LSTM; ``ends``, ``sonnets``: how many.
    """
    at_end = page.at_end.numpy()
    lstm = page.lstm_losses.numpy()
    counted = {n: losses.numpy() for n, losses in page.ngram_losses.items()}
    best = min(counted, key=lambda n: counted[n][at_end].mean())
    ahead = counted[best] - lstm
    informed = losses_given_position(page)[at_end].mean()
    gap = mean_interval(ahead, at_end)
    losses = {
        "lstm": lstm[at_end].mean(),
        "counted": counted[best][at_end].mean(),
        "eight": page.by_context[8].numpy()[at_end].mean(),
        "four": page.by_context[4].numpy()[at_end].mean(),
        "told": informed,
    }
    assert gap[0] > 0.2
    assert mean_interval(ahead, ~at_end)[0] > -0.02
    lead = losses["counted"] - losses["lstm"]
    assert losses["counted"] - min(losses["four"], losses["eight"]) < lead / 3
    assert losses["counted"] - informed > 2 * (informed - losses["lstm"])
    shares = {f"{name}_share": np.exp(-loss) for name, loss in losses.items()}
    return losses | shares | {"gap": gap, "ends": at_end.sum(), "sonnets": len(lstm)}


@proof("Most of what 32 characters of context gain over one comes from the last eight.")
def near_and_far(page: Page):
    """Check that most of what 32 characters gain over one comes from the last eight.

    It is over 85 % over all characters, with its interval, and under a fifth at line ends.

    Over all characters the LSTM that reads everything is ahead of the best n-grams by less
    than 0.05 nats.

    Parameters
    ----------
    page : Page
        Losses in nats, Tensors (texts, characters): ``lstm_losses``, of the LSTM that reads
        everything; ``by_context``, dict, how many characters it reads (1, 8, 32 among them)
        → such losses; ``ngram_losses``, dict, length of n-grams → such losses. ``at_end``,
        a bool Tensor of that shape, is True at line ends.

    Returns
    -------
    dict
        Of what 32 characters of context gain over one, the part that eight gain: ``share``,
        and ``span``, its 95 % interval over texts.
    """

    def share(*losses, axis):
        """Return which part of the fall from 1 to 32 characters of context comes by 8.

        ``losses`` : three arrays, with 1, 8 and 32 characters; ``axis`` : int, that of the
        texts, over which means are taken.
        """
        one, eight, far = (each.mean(axis) for each in losses)
        return (one - eight) / (one - far)

    losses = [page.by_context[n].numpy() for n in (1, 8, 32)]
    span = bootstrap_interval(*(each.mean(axis=1) for each in losses), statistic=share)
    at_end = page.at_end.numpy()
    one, eight, far = (each[at_end].mean() for each in losses)
    assert span[0] > 0.85
    best = min(losses.mean().item() for losses in page.ngram_losses.values())
    assert (one - eight) / (one - far) < 0.2
    assert best - page.lstm_losses.mean().item() < 0.05
    return {"share": share(*(each.ravel() for each in losses), axis=0), "span": span}


# --- why recurrence was given up --------------------------------------------------------


@proof(
    "Fifty tokens back, the gradient of an untrained RNN has vanished, or exploded if its "
    "weights are large; an LSTM whose forget gate begins open keeps a tenth."
)
def gradients_vanish_or_explode(page: Page):
    """Check what is left of the gradient of untrained layers fifty tokens back.

    Five seeds are tried; a fresh LSTM as PyTorch makes it loses the gradient, too.

    Relative to the last token's, the gradient fifty tokens back is below 1e-9 in the RNN,
    above 10 with large weights, below 1e-6 in the fresh LSTM, and above 0.1 in the one
    whose forget gates begin open, with a bias of 3.

    Parameters
    ----------
    page : Page
        Functions: ``layers`` returns a dict, name → fresh layer: an RNN, one with large
        weights, an LSTM, one whose forget gates begin open, in this order;
        ``gradient_by_distance`` takes a layer and returns the length of the gradient of the
        last state by the input so many tokens back, a Tensor (64,), relative to that by the
        last token's input (the median over 16 random texts).

    Returns
    -------
    dict
        ``opened``: the lowest relative length of the gradient fifty tokens back, of the
        LSTM whose forget gate begins open; ``gate``: how far it is open at first, between 0
        and 1.
    """
    lengths = {name: [] for name in page.layers()}
    for seed in SEEDS:
        torch.manual_seed(seed)
        for name, layer in page.layers().items():
            lengths[name].append(float(page.gradient_by_distance(layer)[50]))
    plain, large, fresh, opened = lengths.values()
    assert max(plain) < 1e-9
    assert min(large) > 10
    assert max(fresh) < 1e-6
    assert min(opened) > 0.1
    *_, layer = page.layers().values()
    bias = layer.bias_ih_l0.chunk(4)[1]  # of the forget gates
    return {"opened": min(opened), "gate": torch.sigmoid(bias).mean().item()}


def before_training(page: Page):
    """The same networks before they are trained.

    Parameters
    ----------
    page : Page
        ``recurrence`` is a dict: "trained" or "fresh" (before training) → list of dict, one
        a network.

    Returns
    -------
    Page
        A page like this one, whose ``runs`` are those of "fresh".
    """
    return page.replaced(runs=page.recurrence["fresh"])


@finding(
    "Each of three LSTMs grew a unit that keeps time along the line; three plain recurrent "
    "networks of the same size grew none.",
    rival="the plain networks; their best unit correlates at {plain:.2f} with the position",
    null=before_training,
    n="three networks of each kind, read on 15 test sonnets",
    interval="lowest to highest correlation of an LSTM's best unit: {clocks:.2f}",
)
def gates_make_a_clock(page: Page):
    """Compare the units that correlate best with the position in training sonnets' lines.

    They are units of the LSTM's memory and of the plain network's state. Its correlation is
    above 0.5 in each LSTM and below 0.4 in each plain network. Both kinds have as many
    parameters, and rates that were chosen alike. The plain networks predict line ends about
    as well, and all characters a little better. Sixty-four characters back each LSTM has
    more than ten times as much of the gradient left.

    Parameters
    ----------
    page : Page
        ``runs`` is a list of dict, one a network: ``kind``, "RNN" or "LSTM"; ``clock``, the
        size of the correlation of its best unit with the position in the line; ``loss`` of
        all characters and at ``line_ends``, in nats; ``gradient``, list, by how many
        characters back, relative to the last.

    Returns
    -------
    dict
        ``clocks`` and ``plain``, lowest and highest correlation of the best unit; ``ends``
        and ``plain_ends``, mean losses at line ends in nats.
    """
    by_key = {
        key: {
            kind: [run[key] for run in page.runs if run["kind"] == kind]
            for kind in ("RNN", "LSTM")
        }
        for key in ("clock", "line_ends", "gradient", "loss")
    }
    clock = by_key["clock"]
    ends = by_key["line_ends"]
    far = {kind: [shares[64] for shares in by_key["gradient"][kind]] for kind in clock}
    assert min(clock["LSTM"]) > 0.5
    assert max(clock["RNN"]) < 0.4
    assert abs(np.mean(ends["LSTM"]) - np.mean(ends["RNN"])) < 0.05
    assert max(by_key["loss"]["RNN"]) < min(by_key["loss"]["LSTM"])
    assert min(far["LSTM"]) > 10 * max(far["RNN"])
    return {
        "clocks": (min(clock["LSTM"]), max(clock["LSTM"])),
        "plain": (min(clock["RNN"]), max(clock["RNN"])),
        "ends": np.mean(ends["LSTM"]),
        "plain_ends": np.mean(ends["RNN"]),
    }


@proof(
    "Layers of windows see 1 + layers · (window − 1) tokens. Twice the tokens mean twice "
    "the work for recurrence and convolution, and four times the pairs for attention."
)
def windows_and_work(page: Page):
    """Check how many tokens windows see, and how work grows with the tokens.

    Seen is what a gradient reaches; work is counted in floating-point operations.

    Parameters
    ----------
    page : Page
        ``LSTM`` is the lesson's class, made with d_in and d_model, that reads inputs
        (batch, tokens, d_in).

    Returns
    -------
    dict
        ``field``: how many tokens two layers with windows of three see.
    """
    width = 64

    def field(layers, window):
        """Return how many tokens the middle one sees through layers of convolution.

        ``layers`` : int; ``window`` : int, odd, the tokens that a layer joins.
        """
        stack = (nn.Conv1d(4, 4, window, padding=window // 2) for _ in range(layers))
        x = torch.randn(1, 4, 61, requires_grad=True)
        nn.Sequential(*stack)(x)[0, :, 30].sum().backward()
        return int((x.grad.abs().sum((0, 1)) > 0).sum())

    def work(layer, tokens, *axes):
        """Return the floating-point operations of a layer on one text, an int.

        ``layer`` : nn.Module; ``tokens`` : int, of the text; ``axes`` : two that are
        exchanged first, for a layer that wants the tokens last.
        """
        x = torch.randn(1, tokens, width)
        with FlopCounterMode(display=False) as counter:
            layer(x.transpose(*axes) if axes else x)
        return counter.get_total_flops()

    for layers in (1, 2, 4, 8):
        for window in (3, 5, 7):
            assert field(layers, window) == 1 + layers * (window - 1)
    lstm = page.LSTM(width, width)
    conv = nn.Conv1d(width, width, 3, padding=1)
    assert work(lstm, 128) == 128 * 2 * 8 * width**2 == work(lstm, 256) / 2
    assert work(conv, 128, 1, 2) == work(conv, 256, 1, 2) / 2
    heads = MultiHeadAttention(width, 4)
    once, twice, four = (work(heads, n) for n in (128, 256, 512))
    assert once == 2 * (4 * 128 * width**2 + 2 * 128**2 * width)
    # Left is what grows with pairs of tokens: fourfold with twice the tokens.
    assert four - 2 * twice == 4 * (twice - 2 * once)
    return {"field": field(2, 3)}


# --- who wrote it? ----------------------------------------------------------------------

NETWORKS = [
    "bag",
    "window",
    "LSTM, last",
    "LSTM, mean",
    "LSTM, attention",
    "self-attention",
]
IN_ORDER = ["counts", *NETWORKS[1:]]  # what can use the order


def order_taken_away(page: Page):
    """The same models, trained and tested on passages whose tokens are shuffled.

    Parameters
    ----------
    page : Page
        ``contest`` is a dict: "character" or "word" → list of dict, one for each model and
        seed: ``kind`` of model; ``shuffled``, whether the tokens of passages are, bool.

    Returns
    -------
    Page
        A page like this one; in ``contest``, the rows of shuffled passages are also those
        of passages in order; the rows of models that see a bag of tokens stay.
    """
    mixed = dict(page.contest)
    for unit in ("character", "word"):
        rows = page.contest[unit]
        bags = [row for row in rows if "bag" in row["kind"]]
        relabelled = [row | {"shuffled": False} for row in rows if row["shuffled"]]
        mixed[unit] = [*bags, *relabelled, *(row for row in rows if row["shuffled"])]
    return page.replaced(contest=mixed)


def right_by_poem(contest, unit, kind, is_shuffled=False) -> np.ndarray:
    """Return how many of each test poem's passages are right, the mean over seeds.

    Parameters
    ----------
    contest : dict of str to list of dict
        Unit → rows, one a seed, with ``kind`` of model; ``shuffled``, bool; ``right``, a
        list of int: how many passages of each test poem are right.
    unit : {"character", "word"}
        What a passage is made of.
    kind : str
        Of model, such as "counts" or "window".
    is_shuffled : bool
        Whether it read shuffled tokens; for bags, which have no order, all is one.

    Returns
    -------
    float array of shape (poems,)
    """
    wanted = (kind, is_shuffled and "bag" not in kind)
    rows = [row for row in contest[unit] if (row["kind"], row["shuffled"]) == wanted]
    return np.mean([row["right"] for row in rows], axis=0)


def lead(contest, unit, one, other) -> tuple[float, tuple[float, float]]:
    """Return by what share of the passages one model is ahead of another.

    Parameters
    ----------
    contest : dict of str to list of dict
        Unit → rows, one a seed, with ``kind`` of model; ``shuffled``, bool; ``right``, how
        many passages of each test poem are right, a list. "sizes" → one dict: unit → how
        many passages each test poem has, a list.
    unit : {"character", "word"}
        What a passage is made of.
    one, other : (str, bool)
        A kind of model, and whether its tokens are shuffled.

    Returns
    -------
    lead : float
        The share of all passages that ``one`` has right less that of ``other``, -1 to 1.
    interval : (float, float)
        95 %, poems drawn again.
    """
    right, left = (right_by_poem(contest, unit, *each) for each in (one, other))
    sizes = np.array(contest["sizes"][0][unit])
    span = bootstrap_interval(right - left, sizes, statistic=ratio_of_sums)
    return (right - left).sum() / sizes.sum(), span


def bag_by_counting() -> np.ndarray:
    """Return how many passages of eight words naive Bayes assigns to the right poet.

    It counts bags of words. What is added to each count is chosen on those poems that are
    not for the test and whose number ends in 0 or 1.

    Returns
    -------
    int array of shape (test poems,)
        The number of passages that are right, of each poem.
    """
    ids, labels, poems, tested = passages("word")
    bags = CountVectorizer(analyzer=list).fit_transform(ids.tolist())
    labels = labels.numpy()

    def right(added, learned, asked):
        """Return which passages are right, a bool array.

        ``added`` is added to each count; ``learned`` and ``asked`` are bool arrays that
        choose the passages to count and those to assign.
        """
        fitted = MultinomialNB(alpha=added).fit(bags[learned], labels[learned])
        return fitted.predict(bags[asked]) == labels[asked]

    inner = ~tested & np.isin(poems % 10, (0, 1))
    outer = ~tested & ~inner
    added = max((0.1, 0.3, 1, 3), key=lambda a: right(a, outer, inner).mean())
    hits = right(added, ~tested, tested)
    poem_of = poems[tested]
    return np.array([hits[poem_of == poem].sum() for poem in np.unique(poem_of)])


@finding(
    "Given forty characters, n-grams recognise whether Shakespeare or Dickinson wrote them "
    "better than any of six small neural networks.",
    rival="the best network, the window: {best:.1%} behind, trained ten times as long "
    "{longer:.1%}",
    null=order_taken_away,
    n="{passages} test passages of {poems} poems; networks with three seeds",
    interval="n-grams less the window: {gap:.1%}",
)
def counting_wins(page: Page):
    """Check that n-grams recognise the poet better than each of six networks.

    Each network is behind, with its interval; each model that can use order gains by it.

    "Bag" is the mean of token vectors, which has no order to use. With shuffled tokens, no
    model gets a point more right than the trained bag. With eight words no model gains by
    three points from the order, none by an amount whose interval is above zero; the trained
    bag is ahead of all other networks, and naive Bayes ties with it. N-grams are also ahead
    of the window trained ten times as long.

    Parameters
    ----------
    page : Page
        ``contest`` is a dict. "character" or "word" → list of dict, one for each model and
        seed: ``kind`` of model, "counts" (n-grams, of length ``order``) or a network;
        ``shuffled``, whether the tokens of passages are; ``right``, how many passages of
        each test poem are right, a list; ``share`` of all. "longer" → such rows of the
        longer training. "sizes" → one dict, unit → how many passages each poem has.

    Returns
    -------
    dict
        Shares of passages of characters told right: ``share``, by n-grams; ``network``, by
        the best one; ``shuffled``, the most by any when tokens are. Leads of n-grams, as
        shares: ``best``, over that network, with its 95 % interval ``gap``; ``longer``,
        over longer training. ``order`` of the n-grams; test ``passages`` and ``poems`` of
        characters, passages of ``words``: how many; ``answer``, the letter of the right
        choice: "d" if shuffled passages are told better than by the trained bag, "?" if
        words need order, else "b" if characters need it, "a" if not.
    """
    contest = page.contest
    ordered = False
    mixed = True
    behind = {
        kind: lead(contest, "character", ("counts", ordered), (kind, ordered))
        for kind in NETWORKS
    }
    best = min(behind, key=lambda kind: behind[kind][0])
    gains = {
        unit: [lead(contest, unit, (kind, ordered), (kind, mixed))[1] for kind in IN_ORDER]
        for unit in ("character", "word")
    }
    sizes = {unit: np.array(contest["sizes"][0][unit]) for unit in gains}

    def share(unit, kind, is_shuffled=False):
        """Return the share of passages that a kind of model assigns to the right poet.

        ``unit`` : "word" or "character"; ``kind`` : str, such as "bag"; ``is_shuffled`` :
        bool, whether the tokens of the passages are.
        """
        return right_by_poem(contest, unit, kind, is_shuffled).sum() / sizes[unit].sum()

    counted = next(row for row in contest["character"] if row["kind"] == "counts")
    longer = counted["share"] - np.mean([row["share"] for row in contest["longer"]])
    shuffled = max(share("character", kind, mixed) for kind in IN_ORDER)
    bag_leads = [
        lead(contest, "word", ("bag", ordered), (kind, ordered))[1] for kind in NETWORKS[1:]
    ]
    plain = bag_by_counting() - right_by_poem(contest, "word", "bag")
    tie = bootstrap_interval(plain, sizes["word"], statistic=ratio_of_sums)
    characters_need_order = all(low > 0 for low, _ in gains["character"])
    words_need_none = all(low <= 0 for low, _ in gains["word"])
    shuffled_are_bags = shuffled < share("character", "bag") + 0.01
    by_order = "b" if characters_need_order else "a"
    answer = by_order if words_need_none else "?"  # no choice is of words that need it
    assert all(span[0] > 0 for _, span in behind.values())
    assert longer > 0
    assert characters_need_order
    assert shuffled_are_bags
    assert words_need_none
    assert max(high for _, high in gains["word"]) < 0.03
    assert all(low > 0 for low, _ in bag_leads)
    assert tie[0] < 0 < tie[1]
    return {
        "share": share("character", "counts"),
        "network": share("character", best),
        "order": counted["order"],
        "best": behind[best][0],
        "gap": behind[best][1],
        "longer": longer,
        "shuffled": shuffled,
        "passages": sizes["character"].sum(),
        "poems": len(sizes["character"]),
        "words": sizes["word"].sum(),
        "answer": answer if shuffled_are_bags else "d",
    }


@proof("The state at the last real token is that of the text read alone; packing gives it.")
def the_last_state_is_the_last_real_one(page: Page):
    """Compare three texts of different lengths; the state at the end of the batch differs.

    Parameters
    ----------
    page : Page
        Unused: layer and texts are made here.
    """
    torch.manual_seed(0)
    layer = nn.LSTM(3, 4, batch_first=True).double()
    texts = [torch.randn(n, 3).double() for n in (2, 5, 3)]
    padded = nn.utils.rnn.pad_sequence(texts, batch_first=True)  # (3, 5, 3)
    sizes = torch.tensor([len(text) for text in texts])
    states, _ = layer(padded)
    alone = torch.stack([layer(text)[0][-1] for text in texts])
    close(states[torch.arange(3), sizes - 1], alone, rtol=0, atol=1e-9)
    assert (states[[0, 2], -1] - alone[[0, 2]]).abs().max() > 1e-3
    packed = nn.utils.rnn.pack_padded_sequence(
        padded, sizes, batch_first=True, enforce_sorted=False
    )
    close(layer(packed)[1][0][0], alone, rtol=0, atol=1e-9)
