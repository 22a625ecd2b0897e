"""Which head of a BERT tells "it" about the two nouns?

In 400 sentences *it* may stand for either of two nouns, drawn at random. From the vector of
*it* alone a ridge regression tells which of forty nouns are in the sentence: fitted on
nineteen kinds of sentences, tested on the twentieth, each in its turn. Statistic: the share
of pairs of a noun that is in the sentence and one that is not in which the first scores
higher (AUC).

Varied: the head whose output is replaced by its mean over all tokens, one of 72, or none;
the weights of the layers, trained or shuffled. The regression is fitted anew each time; its
penalty is chosen on other sentences, read by the model with all its heads. Rival: each
other head. Null: the same model with the weights of its layers shuffled.
"""

from functools import cache, partial

import numpy as np
import torch

from lmcourse.ablation import hooked_heads_before
from lmcourse.models import load_bert
from lmcourse.numbers import bootstrap_interval
from lmcourse.pooling import untrained
from lmcourse.pronouns import NOUNS, drawn_sentences, word_positions
from studies.harness import grid, verdict
from studies.measures import auc

CHAPTER = "attention"
CLAIM = (
    "No single head of a small BERT is needed: remove any one, and after the last layer "
    "“it” still tells the sentence's nouns"
)
RIVAL = "the same model with all its heads"
NULL = "the weights of its layers shuffled: the score is lower, with all heads, too"
SETTINGS = {"seed": 1, "each": 20, "tuning_seed": 100, "penalties": [1e-3, 1e-2, 0.1, 1.0]}
LAYERS = 6  # of the default BERT
HEADS = 12  # of each of its layers
READ = (3, 5)  # the layers after which *it* is read
CHUNK = 100  # sentences that are read at once


def plan(small):
    """Return the settings of all runs: each head of each layer, trained and shuffled.

    Parameters
    ----------
    small : bool
        Whether it is two of them, with two sentences of each kind.

    Returns
    -------
    list of dict
        The arguments of each run: ``group``, "whole" or "heads"; ``world``, the model,
        "trained" or "shuffled"; of "heads" also ``layer``, from 0, whose heads are removed
        one at a time; of a small plan ``each``, how many sentences of each kind.
    """
    whole = grid(group="whole", world=["trained", "shuffled"])
    heads = grid(group="heads", world=["trained", "shuffled"], layer=range(LAYERS))
    if small:
        return [run | {"each": 2} for run in (whole[0], heads[3])]
    return [*whole, *heads]


@cache
def model_of(world):
    """Return a pair, BERT's tokenizer and a BertModel on the CPU.

    ``world`` : "trained", or "shuffled" for a copy in which the weights of all layers are
    shuffled, with seed 0, while the word vectors stay.
    """
    tokenizer, bert = load_bert(device="cpu")
    if world == "shuffled":
        bert = untrained(bert, 0, True, range(LAYERS))
    return tokenizer, bert


@cache
def sample_sentences(world, seed, each):
    """Draw sentences at random and tokenize them.

    Parameters
    ----------
    world : str
        "trained" or "shuffled": whose tokenizer it is (both have the same).
    seed : int
        Of the nouns that are drawn.
    each : int
        How many sentences of each kind.

    Returns
    -------
    sentences : list of Sentence
        Each with ``text``, ``nouns``, a tuple of two str, and ``frame``, the number of its
        kind.
    batches : list of (BatchEncoding, int64 Tensor of shape (texts,))
        For each `CHUNK` of sentences, at most 100: their tokens, padded, and the position
        of *it* in each.
    """
    tokenizer, _ = model_of(world)
    sentences = drawn_sentences(seed, each)
    batches = []
    for start in range(0, len(sentences), CHUNK):
        texts = [sentence.text for sentence in sentences[start : start + CHUNK]]
        batch = tokenizer(texts, return_tensors="pt", padding=True)
        at = [word_positions(batch, row, text, "it")[0] for row, text in enumerate(texts)]
        batches.append((batch, torch.tensor(at)))
    return sentences, batches


@cache
@torch.no_grad()
def states_of(world, seed, each):
    """Return a model's hidden states of all sentences, at all levels.

    Parameters
    ----------
    world : {"trained", "shuffled"}
        The model: BERT, or the same with the weights of its layers shuffled.
    seed : int
        Of the nouns that are drawn for the sentences.
    each : int
        How many sentences of each kind.

    Returns
    -------
    list of Tensor of shape (levels, batch, tokens, d_model)
        One for each batch, of at most 100 sentences; level 0 is what enters layer 0, the
        last the output of the last layer.
    """
    _, bert = model_of(world)
    batches = sample_sentences(world, seed, each)[1]
    return [
        torch.stack(bert(**batch, output_hidden_states=True).hidden_states)
        for batch, _ in batches
    ]


def it_with_all_heads(world, seed, each):
    """Return the vectors of *it* after the layers `READ`, 3 and 5, counted from 0.

    Parameters
    ----------
    world : {"trained", "shuffled"}
        The model: BERT, or the same with the weights of its layers shuffled.
    seed : int
        Of the nouns that are drawn for the sentences.
    each : int
        How many sentences of each kind.

    Returns
    -------
    dict of int to Tensor of shape (sentences, d_model)
        Layer, from 0 → its output at *it*.
    """
    batches = sample_sentences(world, seed, each)[1]
    pairs = list(zip(states_of(world, seed, each), batches, strict=True))
    return {
        layer: torch.cat([x[layer + 1, torch.arange(len(at)), at] for x, (_, at) in pairs])
        for layer in READ
    }


@torch.no_grad()
def it_with_other_heads(world, seed, each, layer, change):
    """Return the vectors of *it* after the layers `READ` if a layer's heads are changed.

    These are 3 and 5, counted from 0.

    Parameters
    ----------
    world : {"trained", "shuffled"}
        The model: BERT, or the same with the weights of its layers shuffled.
    seed : int
        Of the nouns that are drawn for the sentences.
    each : int
        How many sentences of each kind.
    layer : int
        Whose heads they are, from 0.
    change : callable
        From what the heads of the layer return, (batch, tokens, heads, d_head), and a bool
        mask, (batch, tokens), False at padding, to what they are to return, or to None if
        that is the same.

    Returns
    -------
    dict of int to Tensor of shape (sentences, d_model)
        Layer, from 0 → its output at *it*; of those in `READ` that are not below ``layer``.
    """
    _, bert = model_of(world)
    by_level = {level: [] for level in READ if level >= layer}
    batches = sample_sentences(world, seed, each)[1]
    for states, (batch, at) in zip(states_of(world, seed, each), batches, strict=True):
        mask = batch["attention_mask"].bool()
        bias = ~mask[:, None, None] * torch.finfo(states.dtype).min
        dense = bert.encoder.layer[layer].attention.output.dense
        x = states[layer]  # what the layer is given
        with hooked_heads_before(dense, HEADS, partial(change, mask=mask)):
            for level in range(layer, LAYERS):
                x = bert.encoder.layer[level](x, bias)
                if level in by_level:
                    by_level[level].append(x[torch.arange(len(at)), at])
    return {level: torch.cat(parts) for level, parts in by_level.items()}


def head_means(world, seed, each, layer):
    """Return the mean output of the heads of a layer, over all tokens but padding.

    Parameters
    ----------
    world : {"trained", "shuffled"}
        The model: BERT, or the same with the weights of its layers shuffled.
    seed : int
        Of the nouns that are drawn for the sentences.
    each : int
        How many sentences of each kind.
    layer : int
        From 0.

    Returns
    -------
    Tensor of shape (heads, d_head)
    """
    total = 0
    count = 0

    def add(outputs, mask):
        """Add a batch's outputs to the sums; return nothing, which leaves them as they are.

        ``outputs`` : Tensor (batch, tokens, heads, d_head); ``mask`` : bool (batch,
        tokens), False at padding.
        """
        nonlocal total, count
        total = total + outputs[mask].double().sum(dim=0)
        count += int(mask.sum())

    it_with_other_heads(world, seed, each, layer, add)
    return (total / count).float()


def accuracies(states, sentences, penalty):
    """Return how well the nouns of a sentence are told from the vector of *it*, as an AUC.

    A ridge regression is fitted on all kinds of sentences but one, and tested on that one,
    each in its turn. It gives a score to each of `NOUNS`, the forty nouns of which each
    sentence has two.

    Parameters
    ----------
    states : Tensor of shape (sentences, d_model)
        The vectors of *it*.
    sentences : list of Sentence
        Each with ``nouns``, a tuple of str, and ``frame``, the number of its kind.
    penalty : float
        Of the regression, relative to the mean square of the vectors.

    Returns
    -------
    float array of shape (kinds,)
        The mean AUC of each kind of sentence, 0–1: the share of pairs of a noun in the
        sentence and one that is not in which the first has the higher score.
    """
    truth = np.array([[noun in s.nouns for noun in NOUNS] for s in sentences])
    frames = np.array([s.frame for s in sentences])
    x = states.double().numpy()
    by_kind = []
    for kind in np.unique(frames):
        fit = frames != kind
        test = frames == kind
        mean = x[fit].mean(axis=0)
        shares = truth[fit].mean(axis=0)
        fitted = x[fit] - mean
        asked = x[test] - mean
        # Ridge regression in its dual form: an equation for each sentence.
        kernel = fitted @ fitted.T
        ridge = penalty * np.trace(kernel) / len(kernel)
        solved = np.linalg.solve(kernel + ridge * np.eye(len(kernel)), truth[fit] - shares)
        scores = asked @ fitted.T @ solved  # (sentences, nouns)
        of_sentences = [
            auc(row[present], row[~present])
            for row, present in zip(scores, truth[test], strict=True)
        ]
        by_kind.append(np.mean(of_sentences))
    return np.array(by_kind)


@cache
def penalties(world, each):
    """Choose the penalty with the highest mean AUC on other sentences, with all heads.

    Parameters
    ----------
    world : {"trained", "shuffled"}
        The model: BERT, or the same with the weights of its layers shuffled.
    each : int
        How many sentences of each kind.

    Returns
    -------
    dict of int to float
        Layer after which *it* is read, 3 or 5 → penalty, relative to the mean square of the
        vectors.
    """
    seed = SETTINGS["tuning_seed"]
    tried = SETTINGS["penalties"]
    sentences, _ = sample_sentences(world, seed, each)
    return {
        layer: max(tried, key=lambda size: accuracies(x, sentences, size).mean())
        for layer, x in it_with_all_heads(world, seed, each).items()
    }


def run(folder, group, world, layer=None, each=SETTINGS["each"]):
    """Measure how well "it" tells the nouns, with all heads or without each of a layer.

    A removed head returns the same at each token: its mean output over all tokens.

    Parameters
    ----------
    folder : Path
        Unused.
    group : {"whole", "heads"}
        "whole": with all heads; "heads": without each head of ``layer`` in turn.
    world : {"trained", "shuffled"}
        The model: BERT, or the same with the weights of its layers shuffled.
    layer : int, optional
        Whose heads are removed one at a time, from 0; of the group "heads".
    each : int
        How many sentences of each kind.

    Returns
    -------
    dict or list of dict
        ``world``; ``auc``, "after LAYER" (from 0) → AUC (0–1) by kind of sentence, a list;
        of the group "heads" one for each head, with ``layer`` and ``head``, from 0.
    """
    seed = SETTINGS["seed"]
    sentences, _ = sample_sentences(world, seed, each)
    chosen = penalties(world, each)

    def measured(states):
        """Return the AUC by kind of sentence after each layer, a dict of str to list.

        ``states`` : dict of int to Tensor (sentences, d_model), by layer.
        """
        return {
            f"after {level}": accuracies(x, sentences, chosen[level]).round(4).tolist()
            for level, x in states.items()
        }

    if group == "whole":
        return {"world": world, "auc": measured(it_with_all_heads(world, seed, each))}
    means = head_means(world, seed, each, layer)
    rows = []
    for head in range(HEADS):

        def without(outputs, mask, head=head):
            """Return the outputs of a layer's heads, one head's replaced by their mean.

            ``outputs`` : Tensor (batch, tokens, heads, d_head); ``mask`` is not used;
            ``head`` : int.
            """
            outputs = outputs.clone()
            outputs[..., head, :] = means[head]
            return outputs

        score = measured(it_with_other_heads(world, seed, each, layer, without))
        rows.append({"world": world, "layer": layer, "head": head, "auc": score})
    return rows


def falls(results, world, after):
    """Return by how much the AUC of telling the nouns falls without each head.

    Parameters
    ----------
    results : dict
        "whole" and "heads": lists of dict, one a run or head, with ``world``; ``auc``,
        "after LAYER" → AUC (0–1) by kind of sentence; of "heads" ``layer`` and ``head``.
    world : str
        "trained" or "shuffled".
    after : int
        The layer, from 0, after which *it* is read; heads above it are left out.

    Returns
    -------
    dict of (int, int) to float array of shape (kinds,)
        Layer and head, from 0 → the fall of the AUC, by kind of sentence: with all heads
        less without this one.
    """
    name = f"after {after}"
    whole = next(row for row in results["whole"] if row["world"] == world)
    before = np.array(whole["auc"][name])
    rows = [r for r in results["heads"] if r["world"] == world and name in r["auc"]]
    return {(r["layer"], r["head"]): before - np.array(r["auc"][name]) for r in rows}


def summary(results):
    """Ask whether any one head is needed, after the last layer, to tell the nouns in *it*.

    An AUC (0–1) says how well the nouns of a sentence can be told from the vector of *it*:
    it is the share of pairs of a noun in the sentence and one that is not in which a
    regression gives the first the higher score. Of all heads the one counts whose removal
    lowers it most; the claim is that even this one is not needed.

    Parameters
    ----------
    results : dict
        "whole" and "heads": lists of dict, one a run or head, with ``world``; ``auc``,
        "after LAYER" → AUC (0–1) by kind of sentence; of "heads" ``layer`` and ``head``.

    Returns
    -------
    dict
        ``n``, how many sentences; ``seeds``, that of their draw; ``interval``, [low, high],
        95 % of the fall of the AUC without that head, over kinds of sentences; ``verdict``,
        "holds" or "not so": whether the score with all heads is above 0.99 and the interval
        ends below 0.01.
    """
    by_head = falls(results, "trained", READ[-1])
    most = max(by_head.values(), key=np.mean)
    low, high = bootstrap_interval(most)
    whole = next(row for row in results["whole"] if row["world"] == "trained")
    score = np.mean(whole["auc"][f"after {READ[-1]}"])
    holds = score > 0.99 and high < 0.01
    record = {"n": len(drawn_sentences(0, SETTINGS["each"])), "seeds": [SETTINGS["seed"]]}
    return record | {"interval": [round(low, 4), round(high, 4)], "verdict": verdict(holds)}
