"""What the chapter *attention* claims, checked where the page places it.

The ``page`` of a proof or a null is a `studies.findings.Page`: the names that the page has
defined so far, as attributes.
"""

import copy
import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from lmcourse import pronouns
from lmcourse.numbers import bootstrap_interval
from lmcourse.pooling import untrained
from lmcourse.pronouns import Sentence, crossings, drawn_sentences, noun_shares
from studies.attention.nouns_in_it import READ, SETTINGS, falls
from studies.findings import Page, finding, proof
from studies.measures import auc

SEEDS = (1, 2, 3)  # of other nouns, and of other random weights
PICTURED = (3, 1)  # layer and head of the first picture, in the model of the stored study
close = torch.testing.assert_close


# --- one query, all queries, masks ------------------------------------------------------


@proof(
    "These lines compute the model's own weights; a query ten times longer sharpens them."
)
def head_by_hand(page: Page):
    """Check every row of the head; with ten times the query its greatest weight grows.

    Equal scores have equal weights in either case.

    Parameters
    ----------
    page : Page
        ``Q`` and ``K`` are queries and keys of one head, (tokens, d_head), and ``weights``
        the weights of "it", (tokens,), at the position ``it``, from 0; ``found`` is BERT's
        output on the sentence, whose ``attentions`` hold for each layer the weights,
        (batch, heads, tokens, tokens); ``layer`` and ``head``, from 0, choose the head;
        ``d_model``, ``d_head`` and ``heads`` are the model's sizes, int.

    Returns
    -------
    dict
        ``sharper``, the letter of the right choice in a task, "b"; ``layer``, ``head``,
        ``d_model``, ``d_head`` and ``heads``, as in the page; ``tokens``, how many.
    """
    scores = page.Q @ page.K.T / math.sqrt(page.d_head)
    theirs = page.found.attentions[page.layer][0, page.head].cpu()  # (tokens, tokens)
    close(scores.softmax(-1).float(), theirs, rtol=0, atol=1e-4 * theirs.max().item())
    close(page.weights, scores.softmax(-1)[page.it])
    top = scores.softmax(-1).max(-1).values
    top_10 = (10 * scores).softmax(-1).max(-1).values
    grows = bool((top_10 > top).all())
    assert grows
    equal = torch.ones(5).softmax(0)
    close((10 * torch.ones(5)).softmax(0), equal)
    return {
        "sharper": "b" if grows else "?",
        "layer": page.layer,
        "head": page.head,
        "tokens": len(page.K),
        "d_model": page.d_model,
        "d_head": page.d_head,
        "heads": page.heads,
    }


@proof("Each row equals the single lookup, and no output leaves the range of the values.")
def all_rows_at_once(page: Page):
    """Check every row; scores far apart give one value, equal ones the mean.

    Parameters
    ----------
    page : Page
        ``S`` are the scores, (tokens, tokens), ``Q`` the queries, ``K`` the keys, ``V`` the
        values and ``O`` the outputs, (tokens, d_head), of one head; ``output`` is that of
        "it", at the position ``it``.

    Returns
    -------
    dict
        ``rows``, how many there are.
    """
    close(page.O[page.it], page.output, rtol=0, atol=1e-9)
    for query, output in zip(page.Q, page.O, strict=True):
        weights = (page.K @ query / math.sqrt(len(query))).softmax(0)  # (tokens,)
        close(output, weights @ page.V, rtol=0, atol=1e-9)
    assert (page.V.max(0).values >= page.O).all()
    assert (page.V.min(0).values <= page.O).all()
    close((1e6 * page.S).softmax(-1) @ page.V, page.V[page.S.argmax(-1)], rtol=0, atol=1e-9)
    close((0 * page.S).softmax(-1) @ page.V, page.V.mean(0).expand_as(page.V))
    return {"rows": len(page.O)}


@proof("Behind a causal mask, a change in the future does not reach the past.")
def mask_hides_the_future(page: Page):
    """Check which outputs of head 0 of layer 0 move; without a mask, all do.

    An output moves if it goes farther than 1e-4 of the largest distance. The lesson's
    function computes what the formula does, which adds 0 or −∞ to the scores.

    Parameters
    ----------
    page : Page
        ``both``: "causal mask" and "no mask" → how far each output moves, (tokens,), if the
        word "tired" of the sentence ``tired`` (str) changes, which is ``encoded`` by BERT's
        tokenizer as ``tokens`` (int) tokens. Functions: ``causal_mask(tokens)`` returns a
        bool mask (tokens, tokens), True where a row may attend; ``attention`` of query,
        key, value and mask returns outputs and weights; ``word_positions(encoded, row,
        text, word)`` returns the list of the positions of a word's tokens. ``Q``, ``K`` and
        ``V``, (tokens, d_head), and ``S``, (tokens, tokens), are query, key, value and
        scores of one head.

    Returns
    -------
    dict
        ``answer``, the letter of the right choice in a task, "c"; ``moved``, how many
        outputs move behind the mask.
    """
    tokens = page.tokens
    at = page.word_positions(page.encoded, 0, page.tired, "tired")[0]
    far = {name: moved / moved.max() for name, moved in page.both.items()}
    assert (far["causal mask"][:at] < 1e-5).all()
    assert (far["no mask"] > 1e-4).all()
    count = int((far["causal mask"] > 1e-4).sum())
    assert count == tokens - at
    mask = page.causal_mask(tokens)
    added = torch.where(mask, 0.0, -math.inf)  # M of the formula: (tokens, tokens)
    weights = (page.S + added).softmax(-1)
    ours = page.attention(page.Q, page.K, page.V, mask)
    close(ours[1], weights)
    close(ours[0], weights @ page.V)
    # The lines of a task, which mask after the softmax: rows do not add up to 1, and scores
    # of the future change the weights.
    late = page.S.softmax(-1) * mask
    assert late.sum(-1).min() < 0.99
    other_scores = page.S + 5.0 * ~mask  # other scores in the future
    assert (other_scores.softmax(-1) * mask - late)[:-1].abs().max() > 1e-3
    return {"answer": "c" if count == tokens - at else "?", "moved": count}


@proof("A growing set of keys replaces a causal mask; the order of the keys is free.")
def growing_keys_are_a_mask(page: Page):
    """Compare the outputs in float64, for the mask and for another order of the keys.

    In the second comparison five queries, without a mask, attend to keys that stand with
    their values in a random order, as in cross-attention.

    Parameters
    ----------
    page : Page
        ``grown`` is a list of the outputs token by token, (1, d_head) each, ``at_once``
        those with a mask, (``tokens``, d_head); ``attention`` of query, key and value
        returns outputs and weights; ``Q``, ``K``, ``V``, ``O`` are query, key, value and
        output of one head, (tokens, d_head).

    Returns
    -------
    dict
        ``keys``: how many there are in the end.
    """
    close(torch.cat(page.grown), page.at_once, rtol=0, atol=1e-9)
    order = torch.randperm(page.tokens)
    close(page.attention(page.Q[:5], page.K[order], page.V[order])[0], page.O[:5])
    return {"keys": page.tokens}


# --- heads, PyTorch, work ---------------------------------------------------------------


@proof("Our class, filled with BERT's weights, has BERT's attention in every head.")
def our_class_is_berts(page: Page):
    """Compare weights in every layer; any number of heads has as many parameters.

    Parameters
    ----------
    page : Page
        ``MultiHeadAttention`` is the lesson's class, made with d_model and heads, which
        returns outputs and weights; ``bert`` is the model, ``d_model`` and ``heads`` are
        its sizes, and ``found`` is its output on the sentence, with ``hidden_states``
        (batch, tokens, d_model) and ``attentions`` (batch, heads, tokens, tokens) by layer.

    Returns
    -------
    dict
        ``layers``: how many were compared.
    """
    for number, theirs in enumerate(page.bert.encoder.layer):
        ours = page.MultiHeadAttention(page.d_model, page.heads)
        for name in ("query", "key", "value"):
            source = getattr(theirs.attention.self, name)
            getattr(ours, name).load_state_dict(source.state_dict())
        ours.output.load_state_dict(theirs.attention.output.dense.state_dict())
        with torch.no_grad():
            _, weights = ours.to(page.bert.device)(page.found.hidden_states[number])
        close(weights, page.found.attentions[number], rtol=0, atol=1e-4)
    for heads in (1, 2, 6, 12):
        parameters = page.MultiHeadAttention(384, heads).parameters()
        assert sum(p.numel() for p in parameters) == 4 * (384**2 + 384)
    return {"layers": len(page.bert.encoder.layer)}


@proof("Our function computes what PyTorch's does; without `batch_first` texts are mixed.")
def pytorch_gives_the_same(page: Page):
    """Compare the outputs with a mask and without, in float64.

    Of two texts the second is changed: with ``batch_first`` PyTorch's output for the first
    moves less than a thousandth as far as without it, where texts attend to each other.

    Parameters
    ----------
    page : Page
        ``attention`` of query, key, value and mask returns outputs and weights; ``theirs``
        is PyTorch's `nn.MultiheadAttention`, and ``vectors`` are two texts, (2, tokens,
        d_model).

    Returns
    -------
    dict
        ``masks``: in how many ways the function was tried, with a mask and without.
    """
    query = torch.randn(2, 3, 5, 4).double()  # (batch, heads, queries, d_head)
    key, value = torch.randn(2, 2, 3, 7, 4).double()
    mask = torch.rand(2, 1, 5, 7) < 0.6
    mask[..., 0] = True  # every row may attend to one
    for allowed in (None, mask):
        theirs = F.scaled_dot_product_attention(query, key, value, allowed)
        close(page.attention(query, key, value, allowed)[0], theirs)
    # The lesson's class has a name that PyTorch does not use: its own has a small h.
    assert not hasattr(nn, "MultiHeadAttention")
    module = copy.deepcopy(page.theirs)
    x = page.vectors
    changed = torch.cat([x[:1], x[1:] + 1])  # another second text
    far = {}
    for batch_first in (False, True):
        module.batch_first = batch_first
        moved = module(x, x, x)[0] - module(changed, changed, changed)[0]
        far[batch_first] = moved[0].abs().max().item()
    assert far[True] < 1e-3 * far[False]
    return {"masks": 2}


@proof("The formula counts the operations right, whatever the number of heads.")
def work_is_the_formula(page: Page):
    """Compare PyTorch's count with 4 n² d + 8 n d², for three lengths and numbers of heads.

    Here n is the number of tokens and d the width, 384.

    Parameters
    ----------
    page : Page
        ``operations`` is a function from the numbers of tokens and heads to the number of
        multiplications and additions of an attention of width 384; ``lengths`` is the list
        of the numbers of tokens that the page tries.

    Returns
    -------
    dict
        ``lengths``: how many the page tries.
    """
    for tokens, heads in ((192, 6), (384, 12), (768, 6), (768, 1)):
        counted = page.operations(tokens, heads)
        assert counted == 4 * tokens**2 * 384 + 8 * tokens * 384**2
    return {"lengths": len(page.lengths)}


@proof("Added up in blocks of any size, the output is the same.")
def blocks_add_up(page: Page):
    """Compare in float64, with blocks of one key, of two, and so on up to all.

    Parameters
    ----------
    page : Page
        ``attention_in_blocks`` of query, key, value and the keys in a block returns the
        outputs; ``Q``, ``K``, ``V``, ``O`` are query, key, value and output of one head,
        (``tokens``, d_head).

    Returns
    -------
    dict
        ``keys``: how many.
    """
    for size in range(1, page.tokens + 1):
        ours = page.attention_in_blocks(page.Q, page.K, page.V, size)
        close(ours, page.O, rtol=0, atol=1e-9)
    return {"keys": page.tokens}


# --- what one head does -----------------------------------------------------------------


def random_weights(page: Page):
    """The weights of every layer shuffled.

    Parameters
    ----------
    page : Page
        ``random_bert`` is that model, ``random_shares`` the share of attention that "it"
        gives to either noun in it, (sentences, 2, layers, heads); ``word_shares(tokenizer,
        bert, sentences, layer, head)`` returns a table of what each word gives to both
        nouns, with the columns ``word`` and ``share``; its arguments are the page's
        ``tokenizer``, ``drawn``, ``layer`` and ``head``, both from 0.

    Returns
    -------
    Page
        A page like this one, whose ``bert`` is the random model; ``shares`` and ``by_word``
        are the random model's shares and table.
    """
    words = page.word_shares(
        page.tokenizer, page.random_bert, page.drawn, page.layer, page.head
    )
    return page.replaced(shares=page.random_shares, by_word=words, bert=page.random_bert)


@finding(
    "In one head of a small BERT, “it” gives most of its attention to the two nouns of its "
    "sentence.",
    rival="every other head, the next {next:.0%}; an even share, {even:.0%}; with random "
    "weights at most {most_random:.0%} in any head",
    null=random_weights,
    n="{sentences} sentences of {kinds} kinds, nouns drawn at random",
    interval="{span:.0%}",
)
def it_attends_to_the_nouns(page: Page):
    """Check that in one head “it” gives most of its attention to the two nouns.

    The head was chosen by another sentence; the interval is over kinds of sentences.

    It is above one half, and the head's lead over the next one is above zero. With three
    other draws of nouns it is the first of all heads again. Random weights (those of each
    layer shuffled, by four seeds) reach one half in no head, and the page's, by the first
    of these seeds, in this head about an even share. Of the words beside
    "it" some give the nouns as much ("the" and "on" more than half), so "more than any
    other word" is not claimed; nor that the head finds the right one of the two, nor that
    it looks for what "it" stands for.

    Parameters
    ----------
    page : Page
        ``shares`` is what "it" gives to the two nouns, 0–1, (sentences, 2, layers, heads),
        ``random_shares`` the same with random weights; ``by_word`` is a table of what other
        words give to both nouns together, with the columns ``word`` and ``share``;
        ``layer`` and ``head``, from 0, choose the head; ``drawn`` is the list of sentences,
        all of a kind together; ``even`` is the share of two words if every word had the
        same; ``bert`` and ``tokenizer`` are the model's.

    Returns
    -------
    dict
        Shares of attention, 0–1, of both nouns together, means over kinds of sentences:
        ``it``, of this head, with its 95 % interval ``span``; ``next``, of the best other
        head; ``even``, if every word had the same; ``random`` and ``most_random``, of this
        head and of the best with random weights. ``heads``, ``sentences``, ``kinds``: how
        many.
    """
    ours = (page.layer, page.head)

    def by_kind(shares):
        """Add up both nouns, and average by kind of sentence: (kinds, layers, heads).

        ``shares`` : Tensor (sentences, nouns, layers, heads).
        """
        return shares.sum(dim=1).unflatten(0, (len(pronouns.FRAMES), -1)).mean(dim=1)

    per_kind = by_kind(page.shares)
    means = per_kind.mean(dim=0)
    others = means.clone()
    others[ours] = -1
    rival = tuple(map(int, np.unravel_index(int(others.argmax()), others.shape)))
    our_shares = per_kind[:, *ours].numpy()
    rival_shares = per_kind[:, *rival].numpy()
    span = bootstrap_interval(our_shares)
    other_draws = [
        by_kind(noun_shares(page.tokenizer, page.bert, drawn_sentences(seed))).mean(0)
        for seed in SEEDS
    ]
    by_random = [page.random_shares]
    for seed in SEEDS:
        # True: the weights are shuffled, here in all layers.
        model = untrained(page.bert, seed, True, range(len(means)))
        by_random.append(noun_shares(page.tokenizer, model, page.drawn))
    by_random = [by_kind(each).mean(dim=0) for each in by_random]
    by_word = page.by_word.groupby("word").share.mean()
    assert ours == PICTURED
    assert span[0] > 0.5
    assert bootstrap_interval(our_shares - rival_shares)[0] > 0
    for each in other_draws:
        assert each[ours] == each.max()
        assert each[ours] > 0.5
    assert max(each.max().item() for each in by_random) < 0.5
    assert abs(by_random[0][ours].item() - page.even) < 0.1
    assert min(by_word["the"], by_word["on"]) > 0.5
    return {
        "it": means[ours].item(),
        "span": span,
        "next": others.max().item(),
        "even": page.even,
        "random": by_random[0][ours].item(),
        "most_random": max(each.max().item() for each in by_random),
        "heads": means.numel(),
        "sentences": len(page.drawn),
        "kinds": len(per_kind),
    }


def random_endings(page: Page):
    """The weights of every layer shuffled.

    Parameters
    ----------
    page : Page
        ``random_bert`` is BERT with the weights of every layer shuffled. ``leads`` is a
        function from a model and a list of last words to a dict: last word → the animal's
        lead, that is the share of its attention that "it" gives to the animal less the
        share for the place. ``by_ending`` holds, for "animals", "places" and "both", such
        a dict.

    Returns
    -------
    Page
        A page like this one, whose ``by_ending`` holds the leads that the random model
        gives, in the same groups.
    """
    random_leads = {
        name: page.leads(page.random_bert, [*words])
        for name, words in page.by_ending.items()
    }
    return page.replaced(by_ending=random_leads)


def said_by_static_vectors(page: Page, words) -> list[float]:
    """Return how much nearer each word's static vector is to animals than to places.

    Parameters
    ----------
    page : Page
        ``bert`` is the model, of which the token vectors are taken, ``tokenizer`` its own.
    words : list of str

    Returns
    -------
    list of float
        For each word the dot product of its direction with the mean direction of the
        animals less that of the places: positive if it is nearer to animals.
    """
    table = page.bert.embeddings.word_embeddings.weight.detach().cpu()
    mean_row = table.mean(dim=0)

    def vector(word):
        """Return the direction of a word's static vector, (d_model,), of length 1.

        That is the mean of the table's rows of its pieces, less the mean of all rows.
        ``word`` : str.
        """
        ids = page.tokenizer(word, add_special_tokens=False)["input_ids"]
        return F.normalize(table[ids].mean(dim=0) - mean_row, dim=0)

    def mean(names):
        """Return the mean direction of some words, (d_model,); ``names`` : list of str."""
        return torch.stack([vector(name) for name in names]).mean(dim=0)

    towards_animals = mean(pronouns.ANIMALS) - mean(pronouns.PLACES)
    return [float(vector(word) @ towards_animals) for word in words]


def leads_by_order(page: Page, words) -> tuple[np.ndarray, np.ndarray]:
    """Return the animal's lead where the animal is named first, and where the place is.

    Each word ends 24 sentences, `crossings` of 6 animals and 4 places, such as "The dog
    didn't cross the street because it was too tired."; in half of them the animal is first.

    Parameters
    ----------
    page : Page
        ``tokenizer`` and ``bert`` are the model; ``layer`` and ``head``, from 0, choose the
        head.
    words : list of str
        Last words of the sentences.

    Returns
    -------
    animal_first, place_first : float arrays of shape (words,)
        The share of its attention that "it" gives the animal, less what it gives the place:
        means over 12 sentences each.
    """
    is_animal_first = [
        sentence.text.index(sentence.nouns[0]) < sentence.text.index(sentence.nouns[1])
        for sentence in crossings(words[0])
    ]
    leads = []
    for word in words:
        shares = noun_shares(page.tokenizer, page.bert, crossings(word))
        ours = shares[..., page.layer, page.head]  # (sentences, 2)
        leads.append((ours[:, 0] - ours[:, 1]).numpy())
    leads = np.array(leads)
    is_animal_first = np.array(is_animal_first)
    return leads[:, is_animal_first].mean(axis=1), leads[:, ~is_animal_first].mean(axis=1)


@finding(
    "In one head of a small BERT, “it” leans more towards the animal if the sentence ends "
    "in a word like “tired” than if it ends in one like “wide”.",
    rival="sixty words said of both; the words' static vectors are right for "
    "{static:.0%} of the pairs",
    null=random_endings,
    n="{words} words, each in {pairs} sentences",
    interval="difference of the animal's lead: {gap:.0%}",
)
def endings_draw_it(page: Page):
    """Check that “it” leans more to the animal after words said of animals.

    The lead is what "it" gives the animal, less what it gives the place.

    In nine of ten pairs of a word said of animals and one said of places the first gives
    the greater lead. Static vectors put fewer pairs in order, but more than half. The
    interval of the mean difference is over words. Words said of both are between. In either
    order of the nouns the animal's lead is greater with the words said of animals, by less
    than half as much where the place is named first; the order itself moves the lead more
    than the words do. Nothing is asserted of other sentences.

    Parameters
    ----------
    page : Page
        ``by_ending`` holds, for "animals", "places" and "both", a dict: last word → the
        animal's mean lead, a share of attention; ``layer`` and ``head``, from 0, choose the
        head; ``bert`` and ``tokenizer`` are the model's.

    Returns
    -------
    dict
        ``auc``, the share of pairs of words (of animals, of places) in which the first has
        the greater lead, and ``static``, the same by static vectors; ``gap``, the 95 %
        interval of the mean difference of leads; ``tired``, the lead of "tired", and
        ``tired_wide``, that less the lead of "wide"; ``animal_first`` and ``place_first``,
        by how much the lead with words said of animals exceeds that with words said of
        places, where this noun comes first. How many: ``words``, of animals and places;
        ``pairs``, sentences of each word.
    """
    animals, places, both = (
        np.array([*page.by_ending[name].values()]) for name in ("animals", "places", "both")
    )
    # The mean of both groups' means, one of them negative, is half of their difference.
    signed = np.concatenate([animals, -places])
    groups = np.repeat(["animals", "places"], [len(animals), len(places)])
    gap = tuple(2 * end for end in bootstrap_interval(signed, groups=groups))
    words = [*page.by_ending["animals"]], [*page.by_ending["places"]]
    static = auc(*(said_by_static_vectors(page, each) for each in words))
    of_animals, of_places = (page.by_ending[n] for n in ("animals", "places"))
    values = {
        "auc": auc(animals, places),
        "gap": gap,
        "static": static,
        "tired": of_animals["tired"],
        "tired_wide": of_animals["tired"] - of_places["wide"],
        "words": len(animals) + len(places),
        "pairs": len(crossings("tired")),
    }
    ordered = [leads_by_order(page, each) for each in words]
    # Mean leads with words of animals and of places, the animal named first, and second.
    (tired, *_), (tired_second, *_) = leads_by_order(page, ["tired"])
    first, second = ([leads[i].mean() for leads in ordered] for i in (0, 1))
    of_words = [first[0] - first[1], second[0] - second[1]]  # in each order of the nouns
    of_order = np.mean([a.mean() - b.mean() for a, b in ordered])
    values |= {"animal_first": of_words[0], "place_first": of_words[1]}
    assert values["auc"] > 0.9
    assert gap[0] > 0.1
    assert animals.mean() > both.mean() > places.mean()
    assert values["tired_wide"] > 0.2
    assert of_words[0] > 2 * of_words[1] > 0
    assert of_order > of_words[0]
    assert tired > 0.2
    assert tired_second < -0.2
    assert 0.5 < values["static"] < values["auc"]
    return values


def random_persons(page: Page):
    """The weights of every layer shuffled.

    Parameters
    ----------
    page : Page
        ``random_bert`` is that model; ``he_shares`` is a function from a model and a list
        of words to a dict, word → the share of its attention, 0–1, that "He" gives to it;
        ``of_he`` holds, for "persons" and "things", such a dict.

    Returns
    -------
    Page
        A page like this one, whose ``bert`` is the random model; ``of_he`` holds the shares
        that it gives.
    """
    random_shares = {
        name: page.he_shares(page.random_bert, [*words])
        for name, words in page.of_he.items()
    }
    return page.replaced(of_he=random_shares, bert=page.random_bert)


@finding(
    "In one line of verse, a head of a small BERT lets “He” attend far more to a person, "
    "such as a doctor, than to a thing, such as a lunch.",
    rival="how common the word is, {common:.0%} of the pairs; with random weights "
    "{random:.0%}",
    null=random_persons,
    n="{count} persons and as many things in one line of verse",
    interval="a typical person less a typical thing: {gap:.0%}",
)
def he_attends_to_persons(page: Page):
    """Check that in one head “He” attends more to persons than to things.

    The word stands in Dickinson's line in the place of "Death"; both lists of words were
    written before looking.

    In 98 of 100 pairs of a person and a thing the person gets more, and the median thing
    less than one hundredth. "Death" gets less than one hundredth, "God" more than a typical
    person: two examples. How common a word is, is told by its number in BERT's vocabulary,
    which begins with the most common ones.

    Parameters
    ----------
    page : Page
        ``of_he`` holds, for "things" and "persons", a dict: word → the share of its
        attention that "He" gives to it; ``he_shares`` computes such a dict from a model and
        words; ``layer`` and ``head``, from 0, choose the head; ``bert``, ``random_bert``
        and ``tokenizer`` are the models.

    Returns
    -------
    dict
        ``auc``, the share of pairs of a person and a thing in which the person gets more,
        and ``common`` and ``random``, the same by how common words are (persons the more
        common or the less, whichever is right more often) and with random weights;
        ``persons`` and ``things``, median shares of attention; ``gap``, the 95 % interval
        of the median difference between the lists, paired in their order; ``death`` and
        ``god``, the shares of these words; ``count``, how many words of each kind;
        ``answer``, the letter of the right choice in a task, "b".
    """
    persons, things = (
        np.array([*page.of_he[name].values()]) for name in ("persons", "things")
    )
    model = page.random_bert
    # As in ``of_he``, things come before persons in `random` and in `ids`.
    random = [[*page.he_shares(model, [*page.of_he[n]]).values()] for n in page.of_he]
    ids = [page.tokenizer.convert_tokens_to_ids([*page.of_he[name]]) for name in page.of_he]
    versions = [Sentence(pronouns.LINE.format(word), (word,)) for word in ("Death", "God")]
    shares = noun_shares(page.tokenizer, page.bert, versions, word="He")
    death, god = shares[:, 0, page.layer, page.head].tolist()
    values = {
        "auc": auc(persons, things),
        "persons": float(np.median(persons)),
        "things": float(np.median(things)),
        "gap": bootstrap_interval(
            persons, things, statistic=lambda a, b, axis: np.median(a - b, axis=axis)
        ),
        "common": max(auc(*ids), auc(*ids[::-1])),
        "random": auc(*random[::-1]),
        "death": death,
        "god": god,
        "count": len(persons),
        "answer": "b",
    }
    assert values["auc"] > 0.98
    assert values["things"] < 0.01
    assert values["gap"][0] > 0.1
    assert values["common"] < 0.75
    assert death < 0.01 < values["persons"] < god
    assert page.of_he["persons"]["doctor"] > 0.25
    assert page.of_he["things"]["lunch"] < 0.01
    return values


def worlds_exchanged(page: Page):
    """The scores of trained and random weights exchanged at random, kind by kind.

    Parameters
    ----------
    page : Page
        ``study["whole"]`` is a list of two dicts with ``world``, "trained" or "shuffled",
        and ``auc``, "after LAYER" (from 0) → scores, 0–1, by kind of sentence, a list.

    Returns
    -------
    Page
        A page like this one; in ``study``, the scores of "whole" after layer 3 are
        exchanged between the two worlds for a random half of the kinds of sentences.
    """
    rng = np.random.default_rng(0)
    trained, shuffled = (scores_of(page.study, world) for world in ("trained", "shuffled"))
    swap = rng.random(len(trained)) < 0.5
    mixed = {
        "trained": np.where(swap, shuffled, trained),
        "shuffled": np.where(swap, trained, shuffled),
    }
    rows = [
        row | {"auc": row["auc"] | {f"after {READ[0]}": mixed[row["world"]].tolist()}}
        for row in page.study["whole"]
    ]
    return page.replaced(study=page.study | {"whole": rows})


def scores_of(study, world: str, after: int = READ[0]) -> np.ndarray:
    """Return how well the nouns are told from "it" with all heads, by kind of sentence.

    Parameters
    ----------
    study : dict
        The results of the study *nouns-in-it*: "whole" is a list of dict with ``world`` and
        ``auc``, "after LAYER" → AUC (0–1) by kind of sentence.
    world : str
        "trained" or "shuffled".
    after : int
        The layer, from 0, after which "it" is read.

    Returns
    -------
    float array of shape (kinds,)
        From 0 to 1.
    """
    row = next(row for row in study["whole"] if row["world"] == world)
    return np.array(row["auc"][f"after {after}"])


@finding(
    "In the middle of a small BERT, the vector of “it” tells which nouns its sentence has, "
    "and even better with random weights: being readable doesn't prove learning.",
    rival="the trained weights, {trained:.0%} against {random:.0%}",
    null=worlds_exchanged,
    n="{sentences} sentences of {kinds} kinds; what is fitted on the other kinds is tested "
    "on each",
    interval="random less trained, over kinds: {gap:.1%}",
)
def random_weights_tell_more(page: Page):
    """Check that “it” tells the nouns better with random weights than with trained ones.

    The numbers are those of the study *nouns-in-it*, after layer 3; after the last layer it
    is the reverse.

    A ridge regression tells from the vector of "it" which of forty nouns the sentence has;
    the score is the share of pairs of nouns, one there and one not, put in order; that of
    the trained weights is above nine tenths.

    Parameters
    ----------
    page : Page
        ``study``: the results of the study *nouns-in-it*; "whole" is a list of dict with
        ``world``, "trained" or "shuffled", and ``auc``, "after LAYER" (from 0) → scores by
        kind.

    Returns
    -------
    dict
        ``trained`` and ``random``, mean scores after layer 3 (the fourth), 0–1; ``gap``,
        the 95 % interval of random less trained; ``kinds`` and ``sentences``, how many.
    """
    trained, random = (scores_of(page.study, world) for world in ("trained", "shuffled"))
    ends = [scores_of(page.study, w, READ[-1]).mean() for w in ("trained", "shuffled")]
    gap = bootstrap_interval(random - trained)
    assert gap[0] > 0.02
    assert trained.mean() > 0.9
    assert ends[0] > ends[1]
    return {
        "trained": float(trained.mean()),
        "random": float(random.mean()),
        "gap": gap,
        "kinds": len(trained),
        "sentences": SETTINGS["each"] * len(trained),
    }


@proof(
    "Remove any one head: after the last layer, the vector of “it” still shows which "
    "nouns the sentence has."
)
def no_single_head_is_needed(page: Page):
    """Check that without any one head the last layer's “it” still tells the nouns.

    The numbers are those of the study *nouns-in-it*: the lowest score without a head, after
    the last layer.

    It is above 99 of 100 pairs of nouns, in the mean over kinds of sentences, for every
    head. After layer 3 the removal of the head of the first picture lowers the score (its
    interval is above zero), and of all heads the most; that it does so more than the next
    one is not claimed, since that interval includes zero. The study is of the default
    model, whatever the page's is.

    Parameters
    ----------
    page : Page
        ``study``: the results of the study *nouns-in-it*, whose groups "whole" and "heads"
        are lists of dict with ``world`` and ``auc``, "after LAYER" → scores (0–1) by kind
        of sentence, those of "heads" with ``layer`` and ``head``, from 0; that of the first
        picture is `PICTURED`.

    Returns
    -------
    dict
        Scores: ``whole`` after layer 3 and ``end`` after the last layer, with all heads;
        ``least``, the lowest after the last layer without a head. Falls of the score after
        layer 3: ``fall``, without this head, with its 95 % interval ``span``; ``next``, the
        largest without another one. How many: ``others``, heads that were removed, each by
        itself; ``kinds`` of sentences.
    """
    ours = PICTURED
    early, late = (falls(page.study, "trained", after) for after in READ)

    end = scores_of(page.study, "trained", READ[-1]).mean()
    values = {
        "whole": float(scores_of(page.study, "trained").mean()),
        "end": float(end),
        "least": float(end) - max(float(each.mean()) for each in late.values()),
        "fall": float(early[ours].mean()),
        "span": bootstrap_interval(early[ours]),
        "next": max(float(early[at].mean()) for at in early if at != ours),
        "others": len(late),
        "kinds": len(early[ours]),
    }
    assert values["least"] > 0.99
    assert values["span"][0] > 0.01
    assert values["fall"] > values["next"]
    return values


@proof("When tired becomes wide the lean falls, and hardly less if both nouns are “thing”.")
def the_measure_fools(page: Page):
    """Check what the solution's code measured, over 24 pairs of an animal and a place.

    With "thing" for both nouns the mean falls at least nine tenths as far.

    Parameters
    ----------
    page : Page
        ``before`` and ``after``, Tensors (24,), are the leans of each pair with "tired" and
        with "wide" at the end: the cosine of the sentence's vector with that of the animal
        alone, less that with the place's; ``nameless``, a float, is how far the mean falls
        with "thing" for both nouns.

    Returns
    -------
    dict
        ``tired`` and ``wide``, mean leans with these words at the end.
    """
    fall = (page.before - page.after).mean().item()
    assert fall > 0
    assert page.nameless >= 0.9 * fall
    return {"tired": page.before.mean().item(), "wide": page.after.mean().item()}


# --- going deeper -----------------------------------------------------------------------


def softmax_gradient(weights):
    """Return the derivative of a softmax by its scores: p_i (1 if i = j else 0) - p_i p_j.

    Parameters
    ----------
    weights : Tensor of shape (..., keys)
        What the softmax returned.

    Returns
    -------
    Tensor of shape (..., keys, keys)
        [i, j] is the derivative of weight i by score j.
    """
    return torch.diag_embed(weights) - weights[..., :, None] * weights[..., None, :]


@proof("Unscaled scores have variance d and saturate; the derivative equals autograd's.")
def raw_scores_saturate(page: Page):
    """Compare derivatives of the weights by q · k, with raw scores and with scaled ones.

    The size of a derivative is its Frobenius norm for 32 keys; the median of 2,000 queries
    is compared.

    Parameters
    ----------
    page : Page
        ``saturation`` is a table whose index is the width of queries and keys, d, with the
        columns ``variance`` (of raw scores), ``raw`` and ``scaled`` (the greatest weight of
        a softmax of raw scores and of scores divided by the root of d, 0–1); ``S`` are the
        scores of one head, (tokens, tokens), and ``d_head`` is its width.

    Returns
    -------
    dict
        ``times``, at least how many times larger the scaled derivative is at the width
        ``wide``; ``narrow``, the width at which it is smaller.
    """
    table = page.saturation
    assert (abs(table.variance / table.index - 1) < 0.2).all()
    assert table["raw"].max() > 0.9 > 0.2 > table["scaled"].max()
    times = {}
    torch.manual_seed(4)
    for width in (page.d_head, 1024):
        products = torch.randn(2000, width) @ torch.randn(32, width).T
        raw, scaled = (
            softmax_gradient((products / root).softmax(-1)).norm(dim=(-2, -1)).median()
            / root  # the derivative by q · k, not by the scaled score
            for root in (1, math.sqrt(width))
        )
        times[width] = (scaled / raw).item()
    least = 50
    assert times[1024] > least
    assert times[page.d_head] < 1
    by_autograd = torch.autograd.functional.jacobian(lambda s: s.softmax(-1), page.S[0])
    close(softmax_gradient(page.S[0].softmax(-1)), by_autograd)
    return {"wide": 1024, "times": least, "narrow": page.d_head}


@proof(
    "A softmax of scores is the Gaussian kernel, and safe where dividing kernels is not."
)
def softmax_is_a_kernel(page: Page):
    """Check that a softmax of scores gives what dividing Gaussian kernels gives.

    Both agree at a bandwidth of 0.4; at 0.002 dividing kernels gives 0/0.

    Parameters
    ----------
    page : Page
        ``gaussian(q, k, v, b)`` is attention as a kernel of bandwidth b: it returns values
        at the places q, (queries,), from points at the places k with the values v, and the
        weights, (queries, points); ``spots`` and ``seen`` are places and values of points,
        (points,), and ``grid`` are the places where values are asked, (queries,).

    Returns
    -------
    dict
        ``points``: how many points have a known value.
    """

    def divided(bandwidth):
        """Return the values on the grid with kernels divided by their sum, (grid,).

        ``bandwidth`` : float, the standard deviation of a kernel.
        """
        far = (page.grid[:, None] - page.spots) / bandwidth
        near = torch.exp(-(far**2) / 2)
        return near @ page.seen / near.sum(-1)

    close(page.gaussian(page.grid, page.spots, page.seen, 0.4)[0], divided(0.4))
    assert divided(0.002).isnan().any()
    assert not page.gaussian(page.grid, page.spots, page.seen, 0.002)[0].isnan().any()
    return {"points": len(page.seen)}
