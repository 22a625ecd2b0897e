"""What the chapter *pretraining* claims, checked where the page places it.

The ``page`` of a proof or a null is a `studies.findings.Page`: the names that the page has
defined so far, as attributes. ``page.blanks`` and ``page.results`` are the results of the
studies *blanks* and *pretraining*, dict of group → list of outcomes; losses are in nats.
"""

import math
from itertools import combinations

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from lmcourse import families, masking
from lmcourse.data import load_sonnets
from lmcourse.figures.pretraining import first_guesses, words_of_line
from lmcourse.masking import corrupt_spans
from lmcourse.numbers import bootstrap_interval
from studies.findings import Page, finding, proof
from studies.pretraining.blanks import FILLED, shares

SEED = 1886

# --- six kinds of blanks ------------------------------------------------------------------


def random_weights(page: Page):
    """SmolLM2 with shuffled weights.

    Parameters
    ----------
    page : Page
        ``blanks``, dict: "trained", "random" (shuffled weights) or "similarity" → list of
        dict, one for each kind of blanks; those of "random" have ``seed``.

    Returns
    -------
    Page
        A page like this one; in ``blanks``, the outcomes of "trained" are those of "random"
        with seed 0.
    """
    untrained = [row for row in page.blanks["random"] if row["seed"] == 0]
    return page.replaced(blanks=page.blanks | {"trained": untrained})


def shares_by_kind(rows):
    """Return a dict: kind → float array (pairs,), the share of right choices of each pair.

    Twins are two sentences with one blank and the same two words to choose from, of which
    one is right in the one sentence and the other in the other.

    ``rows`` : list of dict, one a kind of blanks: ``kind``, str; ``leads``, of each pair of
    twins two floats, above 0 where the right word is ahead. A share is 0, 0.5 or 1.
    """
    return {row["kind"]: shares(row["leads"]) for row in rows}


@finding(
    "In simple sentences SmolLM2 mostly chooses *was* or *were* by the real subject, even "
    "if another noun comes first or stands in between.",
    rival="the first noun, and the nearest: each is right in half of the sentences; word "
    "vectors without order: {similarity:.0%}",
    null=random_weights,
    n="{pairs} pairs of nouns, four sentences each",
    interval="share of right choices: {span:.0%}",
)
def verb_follows_subject(page: Page):
    """Check that SmolLM2 mostly chooses *was* or *were* by the real subject.

    In each of the two orders most choices are right, and in both together.

    The intervals are over pairs of nouns. In one order the nearer noun always has another
    number than the subject, in the other the first noun. Three random models are below
    the interval of the trained one. Word vectors are within five points of a half.

    Parameters
    ----------
    page : Page
        ``blanks``, dict: "trained", "random" (shuffled weights) or "similarity" (word
        vectors) → list of dict, one a kind of blanks: ``kind``, such as "agreement";
        ``leads``, of each pair of twins two floats, above 0 where the right word is ahead;
        ``seed``.

    Returns
    -------
    dict
        Shares of right choices, 0 to 1: ``right``, of both orders, with its 95 % interval
        ``span``; ``near`` and ``first``, of one, in which the nearest or the first noun is
        wrong; ``similarity``, by word vectors. ``pairs``: how many pairs of nouns.
    """
    kinds = ("agreement", "agreement, turned")
    by_kind = shares_by_kind(page.blanks["trained"])
    near, first = (by_kind[kind] for kind in kinds)
    both = (near + first) / 2  # (pairs,)
    span = bootstrap_interval(both)
    vectors = shares_by_kind(page.blanks["similarity"])
    similarity = np.mean([vectors[kind].mean() for kind in kinds])
    assert bootstrap_interval(near)[0] > 0.5
    assert bootstrap_interval(first)[0] > 0.5
    assert span[0] > max(0.5, similarity)
    assert abs(similarity - 0.5) < 0.05
    for seed in {row["seed"] for row in page.blanks["random"]}:
        rows = [row for row in page.blanks["random"] if row["seed"] == seed]
        untrained = shares_by_kind(rows)
        assert np.mean([untrained[kind].mean() for kind in kinds]) < span[0]
    return {
        "right": both.mean(),
        "near": near.mean(),
        "first": first.mean(),
        "span": span,
        "similarity": similarity,
        "pairs": len(both),
    }


@finding(
    "Given two words to choose from, SmolLM2 mostly completes a sentence correctly, "
    "whether it takes a fact, the topic or a judgement.",
    rival="word vectors without order: {fact_vectors:.0%}, {topic_vectors:.0%} and "
    "{judgement_vectors:.0%}",
    null=random_weights,
    n="{pairs} pairs of sentences of each kind",
    interval="facts: {fact_span:.0%}; topics: {topic_span:.0%}; judgements: "
    "{judgement_span:.0%}",
)
def blanks_are_filled(page: Page):
    """Check that SmolLM2 mostly chooses the right word of two in three kinds of blanks.

    The interval of each kind, over pairs of sentences, begins above a half.

    For facts and topics the interval of the lead over word vectors begins at zero or below;
    for topics its mean is not above zero. Whether they do as well for judgements is not
    asserted.

    Parameters
    ----------
    page : Page
        ``blanks``, dict: "trained" or "similarity" (word vectors) → list of dict, one a
        kind of blanks: ``kind``, such as "a fact"; ``leads``, of each pair of twins two
        floats, above 0 where the right word is ahead.

    Returns
    -------
    dict
        Shares of right choices, 0 to 1, for ``fact``, ``topic`` and ``judgement``, each
        with its 95 % interval (``…_span``) and what word vectors reach (``…_vectors``);
        ``pairs``, how many of each kind.
    """
    by_kind = shares_by_kind(page.blanks["trained"])
    vectors = shares_by_kind(page.blanks["similarity"])
    values = {}
    for name in ("fact", "topic", "judgement"):
        kind = name if name == "topic" else f"a {name}"
        span = bootstrap_interval(by_kind[kind])
        assert span[0] > 0.5
        values |= {name: by_kind[kind].mean(), f"{name}_span": span}
        values[f"{name}_vectors"] = vectors[kind].mean()
    for kind in ("a fact", "topic"):
        assert bootstrap_interval(by_kind[kind] - vectors[kind])[0] <= 0
    assert values["topic"] <= values["topic_vectors"]
    return values | {"pairs": len(by_kind["topic"])}


@proof("In the stored runs, SmolLM2 does hardly better than guessing at sums and pronouns.")
def two_are_not_filled(page: Page):
    """Check that SmolLM2 hardly does better than a guess at sums and pronouns.

    The 95 % intervals of their shares of right choices, over twins, end below 60 %.

    Random models, over all kinds of blanks, are within five points of a half.

    Parameters
    ----------
    page : Page
        ``blanks``, dict: "trained" or "random" (shuffled weights) → list of dict, one a
        kind of blanks: ``kind``, such as "a sum"; ``leads``, of each pair of twins two
        floats, above 0 where the right word is ahead; ``seed``.

    Returns
    -------
    dict
        Shares of blanks filled right: ``sum``, of sums; ``pronoun``, of pronouns;
        ``guessed``, by random models. ``seeds``: how many of these; ``filled``: how many
        kinds of blanks are filled.
    """
    by_kind = shares_by_kind(page.blanks["trained"])
    for kind in ("a sum", "coreference"):
        assert bootstrap_interval(by_kind[kind])[1] < 0.6
    guessed = [shares(row["leads"]).mean() for row in page.blanks["random"]]
    assert abs(np.mean(guessed) - 0.5) < 0.05
    return {
        "sum": by_kind["a sum"].mean(),
        "pronoun": by_kind["coreference"].mean(),
        "guessed": np.mean(guessed),
        "seeds": len({row["seed"] for row in page.blanks["random"]}),
        "filled": len(FILLED),
    }


# --- hiding -------------------------------------------------------------------------------


@proof("The recipe's shares are what they should be, and only tokens of text are hidden.")
def shares_are_kept(page: Page):
    """Compare the shares within four standard errors over many draws; each draw is new.

    Special tokens are never chosen, what is not chosen stays, and the function is the
    package's.

    Parameters
    ----------
    page : Page
        ``many`` are copies of a line, ids (copies, tokens); ``ordinary``, bool, which of
        them are no special tokens; ``inputs``, ids, and ``chosen``, bool, what masking made
        of them. ``hits``, dict: "chosen" → which ordinary tokens were chosen; "masked",
        "swapped", "kept" → which of the chosen were hidden, exchanged, left: each a bool
        Tensor, in this order. ``tokenizer`` is a BertTokenizerFast.
    """
    for name, want in zip(page.hits, (0.15, 0.8, 0.1, 0.1), strict=True):
        share = page.hits[name].double().mean().item()
        error = 4 * math.sqrt(want * (1 - want) / len(page.hits[name]))
        assert abs(share - want) < error, name
    half = len(page.chosen) // 2
    assert not page.chosen[~page.ordinary].any()
    assert torch.equal(page.inputs[~page.chosen], page.many[~page.chosen])
    assert not torch.equal(page.chosen[:half], page.chosen[half:])
    generator = torch.Generator().manual_seed(SEED)
    inputs, chosen = masking.mask_tokens(page.many, page.tokenizer, generator)
    assert torch.equal(inputs, page.inputs)
    assert torch.equal(chosen, page.chosen)


@proof(
    "Over ten epochs 15 % of the positions are hidden if they are chosen once, and four in "
    "five if they are chosen afresh each time."
)
def ten_epochs(page: Page):
    """Check how many positions are hidden in ten epochs, chosen once or afresh.

    They are counted over 500 copies of a line, without special tokens, and agree to three
    points.

    Parameters
    ----------
    page : Page
        ``many`` are copies of a line, ids (copies, tokens); ``ordinary``, bool, which of
        them are no special tokens; ``tokenizer`` is a BertTokenizerFast.

    Returns
    -------
    dict
        Shares of positions that are hidden at least once in ten epochs: ``once``, if chosen
        once; ``anew``, if chosen afresh in each. ``answer``: the letter of the right
        choice.
    """
    generator = torch.Generator().manual_seed(SEED)
    few = page.many[:500]
    ordinary = page.ordinary[:500]
    draws = [masking.mask_tokens(few, page.tokenizer, generator)[1] for _ in range(10)]
    once = draws[0][ordinary].double().mean().item()
    anew = torch.stack(draws).any(0)[ordinary].double().mean().item()
    assert abs(once - 0.15) < 0.03
    assert abs(anew - (1 - 0.85**10)) < 0.03
    return {"once": once, "anew": anew, "answer": "a" if once < 0.5 < anew else "b"}


# --- learning -----------------------------------------------------------------------------


def no_difference(page: Page):
    """The encoder's losses are the table's own, those of the poems shuffled.

    Parameters
    ----------
    page : Page
        ``results``, dict. ``results["counting"][0]["losses"]["3"]`` is a list, the loss of
        each test poem by counts of three neighbours on each side, in nats a token.
        ``results["runs"]`` is a list of dict, one an encoder: ``stops``, steps of training,
        "900" for one → dict, with ``losses``, the same list.

    Returns
    -------
    Page
        A page like this one; in ``results``, each encoder's losses after 900 steps are
        those of the counts, shuffled among the poems.
    """
    table = page.results["counting"][0]["losses"]["3"]
    rng = np.random.default_rng(SEED)
    runs = []
    for run in page.results["runs"]:
        mixed = rng.permutation(table).tolist()
        last = run["stops"]["900"] | {"losses": mixed}
        runs.append(run | {"stops": run["stops"] | {"900": last}})
    return page.replaced(results=page.results | {"runs": runs})


@finding(
    "A small BERT, briefly trained on two poets, predicts hidden tokens, mostly pieces of "
    "words, worse than a table that counts what occurred between the same three neighbours "
    "on each side.",
    rival="tables of one and two neighbours a side: worse by {one:.2f} and {two:.2f} nats; "
    "at whole words not worse than the table of three: better by {words_span:.2f}",
    null=no_difference,
    n="{poems} poems that neither has read, each token hidden once; {seeds} trainings",
    interval="worse by {span:.2f} nats a token, poems drawn again",
)
def a_table_is_ahead(page: Page):
    """Check that a table of three neighbours a side predicts better than the small BERT.

    It is ahead in each training and for each poet, by 95 % intervals.

    The untrained model is worse than token frequencies, and within 0.2 nats of a guess that
    finds all tokens equally likely; after 100 steps, and after 900, the model is better
    than frequencies. With ten times the steps, in one training, it is still behind.

    Fewer than a quarter of the tokens are words. At these no table is ahead: in each
    training, and in the longer one, the model's mean loss is below each table's, and how
    often the first guess is right differs from the table of three by an interval that
    holds zero.

    Parameters
    ----------
    page : Page
        ``results["runs"]`` is a list of dict, one an encoder: ``stops``, steps of training,
        as text → dict with ``losses``, the mean loss of each held-out poem, in nats a
        token, and ``words``, of each such poem a dict: ``loss``, the mean over its words
        that are one token, and how many of them are guessed ``right``;
        ``results["longer"]`` is such a list, its last has step "9000";
        ``results["counting"][0]`` has ``losses`` and ``words``, dicts: neighbours on each
        side, "1" to "3" → such lists, and ``places``, of each poem, by passage, the
        positions of these words. ``training`` and ``unseen`` are the poems, lists of str,
        and ``cut`` makes passages of one, Tensors of ids with a special token at each end;
        ``frequencies`` is the mean loss of token frequencies on ``unseen``, in nats;
        ``tokenizer`` is the study's.

    Returns
    -------
    dict
        In nats a token, the encoder's loss less the table's: ``one``, ``two``, ``three``
        neighbours, with the interval ``span`` of the last; ``late``, after ten times the
        steps. At words, in nats a word, the table's of three less the encoder's: ``words``,
        with its interval ``words_span``. ``share``: how many of the tokens are words, 0 to
        1. Losses: ``untrained``, of the encoder before its first step; ``frequencies``.
        How many: held-out ``poems``, ``training`` poems, ``seeds``, tokens ``vocab``.
    """
    tables = {k: np.array(x) for k, x in page.results["counting"][0]["losses"].items()}
    at_900 = np.array([run["stops"]["900"]["losses"] for run in page.results["runs"]])
    gaps = {k: at_900.mean(axis=0) - table for k, table in tables.items()}
    span = bootstrap_interval(gaps["3"])
    sonnet = np.isin(page.unseen, load_sonnets().text)
    late = np.array(page.results["longer"][-1]["stops"]["9000"]["losses"]) - tables["3"]
    assert span[0] > 0
    for run in at_900:
        assert bootstrap_interval(run - tables["3"])[0] > 0
    for poet in (sonnet, ~sonnet):
        assert bootstrap_interval(gaps["3"][poet])[0] > 0
    assert bootstrap_interval(late)[0] > 0
    assert at_900.mean(axis=1).max() < page.frequencies
    untrained = np.mean(page.results["runs"][0]["stops"]["0"]["losses"])
    assert untrained > page.frequencies
    assert abs(untrained - math.log(len(page.tokenizer))) < 0.2
    for run in page.results["runs"]:
        assert np.mean(run["stops"]["100"]["losses"]) < page.frequencies
    counted = page.results["counting"][0]
    words_in = np.array([sum(map(len, poem)) for poem in counted["places"]])  # (poems,)
    tokens = sum(len(ids) - 2 for poem in page.unseen for ids in page.cut(poem))
    trained = [run["stops"]["900"]["words"] for run in page.results["runs"]]
    trained.append(page.results["longer"][-1]["stops"]["9000"]["words"])
    by_table = {
        reach: word_scores(rows, words_in) for reach, rows in counted["words"].items()
    }
    by_model = [word_scores(rows, words_in) for rows in trained]
    for losses, right in by_model:
        assert losses.mean() < min(table.mean() for table, _ in by_table.values())
        low, high = bootstrap_interval(right - by_table["3"][1])
        assert low < 0 < high
    words = by_table["3"][0] - np.mean([losses for losses, _ in by_model[:-1]], axis=0)
    assert words_in.sum() < tokens / 4
    return {
        "words": words.mean(),
        "words_span": bootstrap_interval(words),
        "share": words_in.sum() / tokens,
        "span": span,
        "three": gaps["3"].mean(),
        "two": gaps["2"].mean(),
        "one": gaps["1"].mean(),
        "late": late.mean(),
        "untrained": untrained,
        "frequencies": page.frequencies,
        "poems": len(page.unseen),
        "training": len(page.training),
        "seeds": len(at_900),
        "vocab": len(page.tokenizer),
    }


def word_scores(rows, places):
    """Return how well the words of each poem are predicted, those that are one token.

    Parameters
    ----------
    rows : list of dict
        Of each poem ``loss``, the mean over its words, in nats, and ``right``, how many of
        them have the highest probability.
    places : int array of shape (poems,)
        How many such words each poem has.

    Returns
    -------
    losses : float array of shape (poems,)
        In nats a word.
    right : float array of shape (poems,)
        The share of the words that have the highest probability, 0 to 1.
    """
    losses = np.array([row["loss"] for row in rows])
    right = np.array([row["right"] for row in rows])
    return losses, right / places


def longer_no_difference(page: Page):
    """The encoder's losses after its longest training are the table's own, shuffled.

    Parameters
    ----------
    page : Page
        ``results``, dict. ``results["counting"][0]["losses"]["1"]`` is a list, the loss of
        each test poem by counts of what stood between two neighbours, in nats a token.
        ``results["longer"]`` is a list of dict, one an encoder; the last has ``stops``,
        steps of training, "9000" for one → dict, with ``losses``, the same list.

    Returns
    -------
    Page
        A page like this one; in ``results``, the last encoder's losses after 9,000 steps
        are those of the counts, shuffled among the poems.
    """
    table = page.results["counting"][0]["losses"]["1"]
    mixed = np.random.default_rng(SEED).permutation(table).tolist()
    *others, run = page.results["longer"]
    stops = run["stops"] | {"9000": run["stops"]["9000"] | {"losses": mixed}}
    longer = [*others, run | {"stops": stops}]
    return page.replaced(results=page.results | {"longer": longer})


@finding(
    "Trained for long, a small BERT predicts the hidden tokens of new poems better than a "
    "table that counts what stood between the same two neighbours.",
    rival="the same BERT after a tenth of the steps: worse than the table by {short:.2f} "
    "nats; tables of two and of three neighbours a side: better than the BERT by {two:.2f} "
    "and {three:.2f}",
    null=longer_no_difference,
    n="{poems} poems that neither has read, each token hidden once; one training of 9,000 "
    "steps",
    interval="better by {span:.2f} nats a token, poems drawn again",
)
def beats_two_neighbours(page: Page):
    """Check that after long training the BERT beats a table of one neighbour a side.

    It is ahead in the sonnets and in Dickinson's poems, by 95 % intervals.

    The table's counts are smoothed by those of each neighbour alone. After 900 steps each
    of three trainings is still behind it. Of words that are one token, all poems together,
    the longer training has a smaller loss than the table, too, and guesses more right.

    Parameters
    ----------
    page : Page
        ``results["longer"]`` and ``results["runs"]`` are lists of dict, one an encoder:
        ``stops``, steps of training, as text → dict with ``losses``, the mean loss of each
        held-out poem, in nats a token, and ``words``, of each such poem a dict: ``loss``,
        the mean over its words that are one token, and how many of them are guessed
        ``right``; the last of "longer" has step "9000", those of "runs" have "900".
        ``results["counting"][0]`` has ``losses`` and ``words``, dicts: neighbours on each
        side, "1" to "3" → such lists, and ``places``, of each poem, by passage, the
        positions of these words. ``unseen`` are the poems, list of str.

    Returns
    -------
    dict
        In nats a token: ``better``, the table's loss less the encoder's, with its interval
        ``span``; ``short``, the encoder's less the table's after 900 steps; ``two`` and
        ``three``, the encoder's less that of tables of so many neighbours on each side.
        ``poems``: how many are held out.
    """
    tables = {k: np.array(x) for k, x in page.results["counting"][0]["losses"].items()}
    late = np.array(page.results["longer"][-1]["stops"]["9000"]["losses"])
    early = [np.array(run["stops"]["900"]["losses"]) for run in page.results["runs"]]
    better = tables["1"] - late
    span = bootstrap_interval(better)
    sonnet = np.isin(page.unseen, load_sonnets().text)
    assert span[0] > 0
    for poet in (sonnet, ~sonnet):
        assert bootstrap_interval(better[poet])[0] > 0
    for losses in early:
        assert bootstrap_interval(losses - tables["1"])[0] > 0
    for reach in ("2", "3"):
        assert bootstrap_interval(late - tables[reach])[0] > 0
    counted = page.results["counting"][0]
    words_in = np.array([sum(map(len, poem)) for poem in counted["places"]])  # (poems,)
    of_late = word_scores(page.results["longer"][-1]["stops"]["9000"]["words"], words_in)
    of_table = word_scores(counted["words"]["1"], words_in)
    assert bootstrap_interval(of_table[0] - of_late[0])[0] > 0
    assert bootstrap_interval(of_late[1] - of_table[1])[0] > 0
    return {
        "better": better.mean(),
        "span": span,
        "short": (np.mean(early, axis=0) - tables["1"]).mean(),
        "two": (late - tables["2"]).mean(),
        "three": (late - tables["3"]).mean(),
        "poems": len(page.unseen),
    }


@proof(
    "The guesses reported for the first line are those of the study, and no poem that it "
    "was tested on was in its training."
)
def first_line_is_told(page: Page):
    """Count the guessed words in the first line of the first poem that the page shows.

    Words are those that are one token, the first five at most: the figure shows no more. A
    guess is the token of the highest probability. The encoder guesses more of them after
    900 steps than after 100, a table of three neighbours on each side more still. Before
    its first step it guesses `[MASK]` each time.

    Parameters
    ----------
    page : Page
        ``results`` are those of the study *pretraining*, from which `first_guesses` takes
        for each writer ("untrained", "step 900", "3 a side", …) a list, word by word, of
        (guess, probability of the right word); in it ``vocabulary``, list of str, the
        tokens by id, and ``counting[0]["places"]``, of each poem, by passage, the positions
        of words that are one token. ``training`` and ``unseen`` are its poems, lists of
        str; ``CHOSEN``, the numbers from 0 of those of ``unseen`` that the page shows;
        ``tokenizer`` cuts them into tokens.

    Returns
    -------
    dict
        ``words``, how many words of the line the figure shows, and how many of them are
        guessed: ``early``, after 100 steps, ``late``, after 900, and by a ``table`` of
        three neighbours on each side.
    """
    assert not set(page.unseen) & set(page.training)
    poem = page.CHOSEN[0]
    positions = page.results["counting"][0]["places"][poem][0]
    _, words = words_of_line(page.unseen[poem], positions, page.tokenizer)
    guesses = first_guesses(page.results, page.results["vocabulary"], poem, len(words))
    hits = {
        name: sum(
            guess == word.lower()
            for (guess, _), (word, _, _) in zip(row, words, strict=True)
        )
        for name, row in guesses.items()
    }
    assert hits["step 100"] < hits["step 900"] < hits["3 a side"]
    assert {guess for guess, _ in guesses["untrained"]} == {"[MASK]"}
    return {
        "words": len(words),
        "early": hits["step 100"],
        "late": hits["step 900"],
        "table": hits["3 a side"],
    }


@proof(
    "If sequences of three tokens are hidden, fewer than one blank in ten keeps both "
    "neighbours."
)
def sequences_hide_neighbours(page: Page):
    """Compare at the same share of hidden tokens, 15 %, on the training passages.

    Hidden one by one, 72 % of blanks keep both neighbours, within two points.

    Parameters
    ----------
    page : Page
        ``texts`` are the passages, a list of int64 Tensors (tokens,); ``choose_text`` and
        ``hide_runs`` are functions of ids (batch, tokens), the special ids, the share to
        hide and a generator, that return what is hidden, bool (batch, tokens): one by one,
        or in sequences of three. ``tokenizer`` says which ids are special.

    Returns
    -------
    dict
        The share of hidden tokens both of whose neighbours are seen: ``single``, hidden one
        by one, and ``runs``, in sequences.
    """
    rows = pad_sequence(page.texts, batch_first=True)  # (passages, tokens)
    special = torch.tensor(page.tokenizer.all_special_ids)
    ordinary = ~torch.isin(rows, special)
    values = {}
    for name, choose in {"single": page.choose_text, "runs": page.hide_runs}.items():
        blanks = choose(rows, special, 0.15, torch.Generator().manual_seed(SEED))
        alone = blanks & ~blanks.roll(1, 1) & ~blanks.roll(-1, 1)
        values[name] = alone[blanks].double().mean().item()
        assert abs(blanks[ordinary].double().mean() - 0.15) < 0.01
    assert abs(values["single"] - 0.85**2) < 0.02
    assert values["runs"] < 0.1
    return values


# --- families -----------------------------------------------------------------------------


@proof("What was cut out and what was left make up the text again.")
def spans_make_the_text(page: Page):
    """Check fifty passages; the target ends in the sentinel that was not used.

    Of a text, spans are cut out; in the source a sentinel stands for each, in the target
    each sentinel is followed by its span.

    Parameters
    ----------
    page : Page
        ``texts`` are the passages, a list of int64 Tensors (tokens,); ``tokenizer`` is
        theirs: its length is the first id of a sentinel.
    """
    generator = torch.Generator().manual_seed(SEED)
    sentinels = range(len(page.tokenizer), len(page.tokenizer) + families.SENTINELS)
    for text in page.texts[:50]:
        pair = corrupt_spans(text, sentinels, generator, 0.4)  # the share that is cut out
        source, target = (each.tolist() for each in pair)
        joined = []
        spans = {}
        current = []
        for token in target:
            if token in sentinels:
                spans[token] = current = []
            else:
                current.append(token)
        for token in source:
            joined += spans.get(token, [token])
        assert joined == text.tolist()
        assert current == []
        assert target[-1] == sentinels[len(spans) - 1]


BITS = 6  # of a text


def texts_of_bits(sure):
    """Return the probabilities of all texts of six bits, (2, 2, 2, 2, 2, 2), an axis a bit.

    The first bit is 0 or 1 alike; each later one repeats the bit before it with a
    probability of ``sure``, a float from 0 to 1.
    """
    text = np.indices((2,) * BITS)  # (bits, 2, 2, 2, 2, 2, 2)
    return np.where(text[1:] == text[:-1], sure, 1 - sure).prod(axis=0) / 2


def loss_at(truth, believed, bit, hidden):
    """Return the mean loss of one hidden bit, given all bits that are not hidden, in nats.

    Parameters
    ----------
    truth, believed : float array of shape (2, 2, 2, 2, 2, 2)
        The probabilities of all texts: as they are, and in the model that is asked.
    bit : int
        Which one is predicted, from 0; it is among the hidden ones.
    hidden : sequence of int
        Which bits the model does not see.

    Returns
    -------
    float
    """
    others = tuple(other for other in hidden if other != bit)
    with_it = believed.sum(axis=others, keepdims=True)
    probs = with_it / with_it.sum(axis=bit, keepdims=True)
    return float(-(truth * np.log(probs)).sum())


def loss_from_left(truth, believed):
    """Return the mean loss of each bit, given those before it, in nats.

    ``truth`` and ``believed`` : the probabilities of all texts, as they are and in the
    model that is asked; arrays (2, 2, 2, 2, 2, 2).
    """
    bits = range(BITS)
    return np.mean([loss_at(truth, believed, bit, range(bit, BITS)) for bit in bits])


def loss_in_blanks(truth, believed, share):
    """Return the mean loss of hidden bits, given all others, in nats.

    ``truth`` and ``believed`` : the probabilities of all texts, as they are and in the
    model that is asked; arrays (2, 2, 2, 2, 2, 2). ``share`` : the probability with which
    each bit is hidden, above 0 and below 1.
    """
    losses = []
    weights = []
    for count in range(1, BITS + 1):
        for hidden in combinations(range(BITS), count):
            losses += [loss_at(truth, believed, bit, hidden) for bit in hidden]
            weights += [share**count * (1 - share) ** (BITS - count)] * count
    return np.average(losses, weights=weights)


@proof("The worse of two models can have the smaller loss, if its question was easier.")
def two_questions(page: Page):
    """Check that the worse of two models can have the smaller loss.

    Texts have six bits; nine times in ten a bit repeats the one before it; all losses are
    exact.

    The better model knows how often they do, the worse one expects eight in ten. Asked the
    same question, from left to right or with blanks, the better one has the smaller loss.
    Yet the worse one with 40 % of the bits hidden has a smaller loss than the better one
    from left to right; and from left to right it has a smaller one than the better one
    with 90 % hidden.

    Parameters
    ----------
    page : Page
        Unused: the texts are made here.

    Returns
    -------
    dict
        ``answer``: the letter of the right choice.
    """
    truth = texts_of_bits(0.9)
    rough = texts_of_bits(0.8)
    few = 0.4
    many = 0.9
    better = {share: loss_in_blanks(truth, truth, share) for share in (few, many)}
    worse = {share: loss_in_blanks(truth, rough, share) for share in (few, many)}
    better["left"], worse["left"] = (loss_from_left(truth, x) for x in (truth, rough))
    assert all(better[question] < worse[question] for question in better)
    assert worse[few] < better["left"]
    assert worse["left"] < better[many]
    tells_who_is_better = worse["left"] > better[many]
    blanks_are_harder = better[few] > better["left"]
    has_one_loss = better[few] == better["left"]
    others = {"a": tells_who_is_better, "b": blanks_are_harder, "c": has_one_loss}
    return {"answer": next((letter for letter, holds in others.items() if holds), "d")}


# --- sizes --------------------------------------------------------------------------------


@proof("Once they are rounded, all computed sizes but two equal the published ones.")
def sizes_are_published(page: Page):
    """Check that all computed sizes but two, rounded, are the published ones.

    T5's 3B was published cut off, not rounded; for its large one fewer are computed.

    Each computed size is rounded to the digits of the published one. Six operations for
    each of GPT-3's 175 billion parameters and 300 billion tokens make the published
    3.14e23, within one per cent. RoBERTa-base, DistilBERT and ALBERT-base round to 125, 66
    and 12 million; RoBERTa has more than BERT by the rows of its larger vocabulary.

    Parameters
    ----------
    page : Page
        ``sizes`` is a table, one row a model by name, with columns ``computed`` and
        ``published``, in millions of parameters; ``parameters`` is a Series of the same
        unit, BERT-base, then RoBERTa-base, DistilBERT and ALBERT-base.

    Returns
    -------
    dict
        Computed sizes: ``t5_3b``, of T5's 3B, in billions of parameters; ``t5_large``, of
        its large one, in millions.
    """
    sizes = page.sizes
    unit = dict.fromkeys(sizes.index, 10) | {"GPT": 1, "GPT-2, smallest": 1}
    unit |= {"GPT-2, largest": 1, "GPT-3": 1000, "T5, 3B": 100, "T5, 11B": 1000}
    unequal = {
        name
        for name, step in unit.items()
        if step * round(sizes.computed[name] / step) != sizes.published[name]
    }
    assert unequal == {"T5, large", "T5, 3B"}
    assert abs(6 * 175e9 * 300e9 / 3.14e23 - 1) < 0.01
    parameters = page.parameters
    assert [*parameters.round()[1:]] == [125, 66, 12]
    wider = parameters["RoBERTa-base"] - parameters["BERT-base"]
    assert abs(wider - (50265 - 30522) * 768 / 1e6) < 0.01
    return {
        "t5_3b": sizes.computed["T5, 3B"] / 1000,
        "t5_large": sizes.computed["T5, large"],
    }
