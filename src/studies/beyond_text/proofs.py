"""What the chapter *beyond-text* claims, checked where the page places it.

The ``page`` of a proof or a null is a `studies.findings.Page`: the names that the page has
defined so far, as attributes. ``page.study`` and ``page.farther`` are the stored studies
*beyond-text* and *one-edge-farther*.
"""

import copy
from itertools import permutations

import numpy as np
import torch
from scipy.ndimage import rotate as turned
from sklearn.neighbors import KNeighborsClassifier
from torch.nn import functional as F

from lmcourse.digit_readers import reader_accuracies
from lmcourse.graphs import FAR, GraphTransformer, accuracy
from lmcourse.rules import RULED, TURNS
from lmcourse.shuffled import shuffled_weights
from lmcourse.vision import split_digits
from studies.beyond_text.look_up_tables import table_accuracies
from studies.beyond_text.one_edge_farther import LAYERS, told_apart
from studies.findings import finding, proof, right_letter
from studies.harness import alike
from studies.measures import share_interval

SEEDS = range(5)  # of random weights
ANGLES = (-10, -5, 5, 10)  # degrees by which digits are turned
GUESS = float(np.log(20))  # nats, of one letter in twenty
close = torch.testing.assert_close


# --- digits ---------------------------------------------------------------------------


@proof("With random weights the first picture's model only guesses the digits.")
def nothing_learned(page):
    """Check that with random weights the vision Transformer only guesses.

    Five times the weights are shuffled within each of the model's parameters.

    Parameters
    ----------
    page : Page
        ``reader`` is the trained vision Transformer, from images to logits (digits, 10) and
        a list of attention weights; ``images`` (digits, 8, 8) and ``labels`` (digits,) are
        Tensors of all digits, ``judged`` the rows of those that it was not trained on.

    Returns
    -------
    dict
        ``trained`` and ``random``: the share of digits predicted right, of random weights
        the highest; ``moves``: how far an attention weight differs from digit to digit
        (its standard deviation) with random weights, as a share of the same when trained.
    """
    asked = page.images[page.judged]
    wanted = page.labels[page.judged]

    def measured(model):
        """Return a model's accuracy, and how far its attention weights vary, two floats.

        ``model`` : nn.Module, from images to logits (digits, 10) and a list of attention
        weights, a Tensor for each layer. The second is a weight's standard deviation over
        digits, on average.
        """
        with torch.no_grad():
            logits, weights = model(asked)
        right = (logits.argmax(-1) == wanted).float().mean().item()
        return right, torch.stack(weights).std(1).mean().item()

    right, moved = measured(page.reader)
    others = [measured(shuffled_weights(page.reader, seed)) for seed in SEEDS]
    most_right, most_moved = np.max(others, axis=0).tolist()
    assert right > 0.9
    assert most_right < 0.2
    assert most_moved < moved / 2
    return {"trained": right, "random": most_right, "moves": most_moved / moved}


@proof("The patches are those of PyTorch's `unfold`, and not what `reshape` makes.")
def patches_are_unfold(page):
    """Compare the patches of all digits, exactly.

    Parameters
    ----------
    page : Page
        ``patches`` cuts ``images``, a Tensor (digits, 8, 8), into 16 squares of 2 × 2
        pixels: (digits, 16, 4).

    Returns
    -------
    dict
        ``digits``: how many there are.
    """
    patches = page.patches(page.images)
    close(patches, F.unfold(page.images[:, None], 2, stride=2).mT, rtol=0, atol=0)
    assert not torch.equal(patches, page.images.reshape(-1, 16, 4))
    return {"digits": len(page.images)}


def exchanged(page):
    """The Transformer's accuracies and the neighbours' change places on every other part.

    Parameters
    ----------
    page : Page
        ``study`` is the stored study *beyond-text*. In its results, "simple" lists dicts
        with the accuracy ``neighbours`` on each part of the file (``fold``, from 0), and
        "digits" dicts with the accuracy ``test`` of a network (``reader``) on a part.

    Returns
    -------
    Page
        In ``study``, on parts with an even number, ``neighbours`` is the Transformer's mean
        accuracy, and ``test`` of the Transformer that of the neighbours.
    """
    simple, networks = (page.study["results"][name] for name in ("simple", "digits"))
    neighbours = {row["fold"]: row["neighbours"] for row in simple}
    means = {
        fold: np.mean([r["test"] for r in alike(networks, reader="Transformer", fold=fold)])
        for fold in neighbours
    }
    swapped = [
        row | {"neighbours": means[row["fold"]]} if row["fold"] % 2 == 0 else row
        for row in simple
    ]
    mixed = [
        row | {"test": neighbours[row["fold"]]}
        if row["reader"] == "Transformer" and row["fold"] % 2 == 0
        else row
        for row in networks
    ]
    results = page.study["results"] | {"simple": swapped, "digits": mixed}
    return page.replaced(study=page.study | {"results": results})


@finding(
    "With about 1,100 small images of digits to learn from, looking up the most similar "
    "ones beats a small vision Transformer at reading new ones.",
    rival="ten times the training; logistic regression, {logistic:.0%} on average",
    null=exchanged,
    n="{digits:,} digits in five parts, each tested in turn; three trainings each",
    interval="neighbours less Transformer, from training to training: {gap:.1%}",
)
def neighbours_lead(page):
    """Check that looking up the most similar digits beats the vision Transformer.

    The neighbours beat every training, on every part, and logistic regression, too.

    Settings are chosen on a part of their own.

    They also lead after ten times the steps, with one training on each part; on average the
    Transformer then makes up more than half of what it lacked. Without positions it is
    right less often by more than a tenth on every part, with one training each, and on
    average for half of the digits, give or take ten points.

    Parameters
    ----------
    page : Page
        ``labels`` are those of all digits; ``study`` is the stored study *beyond-text*: in
        ``results``, "simple" and "digits" list dicts with the accuracies of readers on each
        part (``fold``), which `reader_accuracies` makes a table with the columns
        ``reader``, ``steps`` of training, ``fold``, ``seed`` and ``accuracy``, 0 to 1; in
        ``settings["digits"]``, ``steps`` and ``longer`` are the steps of the shorter and of
        the longer training.

    Returns
    -------
    dict
        Accuracies: ``neighbours``, ``logistic``, ``transformer`` and ``longer`` are means,
        ``without`` is the lowest and the highest without positions; ``gap`` and
        ``gap_longer`` the lowest and the highest lead of the neighbours; ``digits``,
        ``steps``: how many.
    """
    table = reader_accuracies(page.study)
    steps = page.study["settings"]["digits"]

    def accuracies_of(reader, count):
        """Return the accuracies of a reader, a Series by fold and seed.

        ``reader`` : str; ``count`` : int, the number of training steps.
        """
        rows = table[(table.reader == reader) & (table.steps == count)]
        return rows.set_index(["fold", "seed"]).accuracy

    # What is no network has 0 steps and the seed 0.
    neighbours = accuracies_of("nearest neighbours", 0).droplevel("seed")
    ours = accuracies_of("Transformer", steps["steps"])
    longer = accuracies_of("Transformer", steps["longer"])
    without = accuracies_of("no places", steps["steps"])
    gap = -ours.sub(neighbours, level="fold")
    gap_longer = -longer.sub(neighbours, level="fold")
    logistic = accuracies_of("logistic regression", 0).droplevel("seed")
    assert gap.min() > 0
    assert gap_longer.min() > 0
    assert (neighbours - logistic).min() > 0
    assert (ours[without.index] - without).min() > 0.1
    assert abs(without.mean() - 0.5) < 0.1
    assert longer.mean() > (ours.mean() + neighbours.mean()) / 2
    return {
        "neighbours": neighbours.mean(),
        "logistic": logistic.mean(),
        "transformer": ours.mean(),
        "longer": longer.mean(),
        "without": (without.min(), without.max()),
        "gap": (gap.min(), gap.max()),
        "gap_longer": (gap_longer.min(), gap_longer.max()),
        "digits": len(page.labels),
        "steps": steps["steps"],
    }


@proof("The page's training and rivals find on the first part what the study found.")
def here_as_in_the_study(page):
    """Check that the page's accuracies on the first part are those of the study.

    The Transformer's accuracies agree within five points, the others' within two.

    Parameters
    ----------
    page : Page
        ``accuracy_here``: "Transformer", "nearest neighbours" and "logistic regression" →
        the accuracy on the first part, 0 to 1. ``study`` is the stored study *beyond-text*,
        of which `reader_accuracies` makes a table with the columns ``reader``, ``steps`` of
        training (0 of what is no network), ``fold`` (the part, from 0), ``seed`` and
        ``accuracy``, 0 to 1.
    """
    table = reader_accuracies(page.study)
    table = table[table.fold == 0]
    for reader, share in page.accuracy_here.items():
        # The page's training is the shorter one; the longer one has ten times the steps.
        rows = table[(table.reader == reader) & (table.steps < 1000)]
        near = 0.05 if reader == "Transformer" else 0.02
        assert abs(share - rows.accuracy.mean()) < near


@proof("With the patches in another order a convolution loses accuracy; two others do not.")
def shuffled_patches(page):
    """Check that shuffled patches cost a convolution accuracy, and two other readers none.

    The Transformer's logits and all distances between digits stay the same, to 1e-9.

    The trained Transformer is given the rows of its position table in the new order. The
    convolution was trained anew, with three orders of the patches: on average it loses on
    each of five parts, and is still ahead of the Transformer.

    Parameters
    ----------
    page : Page
        ``learner`` is a trained vision Transformer, ``images`` are all digits, a Tensor
        (digits, 8, 8), ``judged`` rows of test digits; ``patches`` cuts images into
        squares, (digits, 16, 4). ``study`` is the stored study *beyond-text*, of which
        `reader_accuracies` makes a table with the columns ``reader`` (such as "convolution,
        dealt", with the patches shuffled), ``steps``, ``fold``, ``seed`` and ``accuracy``;
        ``settings["digits"]["steps"]`` are those of the shorter training.

    Returns
    -------
    dict
        Pairs, lowest and highest over parts, in shares of the digits: ``lost``, by how much
        the convolution's accuracy falls; ``lead``, by how much it is still ahead of the
        Transformer's. ``answer``, the letter of the right choice in a task, "b".
    """
    asked = page.images[page.judged].double()
    order = torch.randperm(16, generator=torch.Generator().manual_seed(0))
    cut = page.patches(asked)[:, order]  # (digits, 16, 4)
    mixed = F.fold(cut.mT, (8, 8), 2, stride=2)[:, 0]
    model = copy.deepcopy(page.learner).double()
    reordered = copy.deepcopy(model)
    reordered.positions.data = reordered.positions.data[order]
    with torch.no_grad():
        logits_move = (reordered(mixed)[0] - model(asked)[0]).abs().max().item() > 1e-9
    flat = asked.flatten(1)
    flat_mixed = mixed.flatten(1)
    exact = {"compute_mode": "donot_use_mm_for_euclid_dist"}
    before, after = (torch.cdist(x, x, **exact) for x in (flat, flat_mixed))
    distances_move = (after - before).abs().max().item() > 1e-9

    short = page.study["settings"]["digits"]["steps"]
    table = reader_accuracies(page.study)
    table = table[table.steps == short]
    means = table.groupby(["reader", "fold"]).accuracy.mean()
    lost = means["convolution"] - means["convolution, dealt"]
    lead = means["convolution, dealt"] - means["Transformer"]
    assert not logits_move
    assert not distances_move
    assert lost.min() > 0
    assert lead.min() > 0
    loses = {"a": logits_move, "b": lost.min() > 0, "c": distances_move}
    return {
        "lost": (lost.min(), lost.max()),
        "lead": (lead.min(), lead.max()),
        "answer": "d" if all(loses.values()) else max(loses, key=loses.get),
    }


# --- graphs ---------------------------------------------------------------------------


@proof("Without the bonuses all unmarked nodes of all graphs get the same answer.")
def no_bias_no_answer(page):
    """Check that without the bonuses all unmarked nodes get the same answer.

    The logits are equal to nine decimals, whatever the weights.

    Parameters
    ----------
    page : Page
        ``walker`` is the trained graph Transformer, whose ``bonus`` (heads, 3) is added to
        the scores of pairs of nodes. Of the test graphs, ``joined`` says which nodes an
        edge joins, bool Tensor (graphs, nodes, nodes), and ``marked`` is each one's marked
        node, int64 Tensor (graphs,).

    Returns
    -------
    dict
        ``answer``, the letter of the right choice in a task, "c".
    """
    without_bias = copy.deepcopy(page.walker).double()
    with torch.no_grad():
        without_bias.bonus.zero_()
        logits, _ = without_bias(page.joined, page.marked)  # (graphs, nodes, classes)
    unmarked = F.one_hot(page.marked, page.joined.shape[-1]) == 0
    answers = logits[unmarked]
    are_the_same = (answers - answers[0]).abs().max() < 1e-9
    assert are_the_same
    return {"answer": "c" if are_the_same else "b"}


@proof("Of the model's four heads one favours neighbours, three favour other nodes.")
def heads_differ(page):
    """Check that one of the heads favours neighbours, and three favour other nodes.

    Head 0 adds at least 0.1 more to scores of neighbours than of others, the rest less.

    Parameters
    ----------
    page : Page
        ``walker`` is the trained graph Transformer; its ``bonus`` (heads, 3) is what each
        head adds to the score of a pair of nodes that no edge joins, that an edge joins,
        and of a node with itself.

    Returns
    -------
    dict
        ``favour`` and ``avoid``: how many heads add more, and less, to the scores of
        neighbours than to those of other nodes.
    """
    apart, joined, _ = page.walker.bonus.T  # (heads,) each
    gaps = (joined - apart).tolist()
    assert gaps[0] > 0.1
    assert max(gaps[1:]) < -0.1
    return {"favour": sum(x > 0 for x in gaps), "avoid": sum(x < 0 for x in gaps)}


def untrained_walker(page):
    """A graph Transformer with its weights shuffled.

    Parameters
    ----------
    page : Page
        ``walker`` is the trained one.

    Returns
    -------
    Page
        ``walker`` is the shuffled one.
    """
    return page.replaced(walker=shuffled_weights(page.walker))


@finding(
    "Told which points are linked, our graph Transformer finds nearly every distance from"
    " a marked one; told only how many links each has, under half.",
    rival="tables of how many edges both nodes have, {counts:.0%}",
    null=untrained_walker,
    n="500 graphs of {nodes} nodes; three trainings of each kind",
    interval="told the edges: {told:.1%}; told their number: {numbers:.0%}",
)
def edges_are_used(page):
    """Check that the graph Transformer finds distances by the edges it is told.

    The page's model has more than 99 % right, and so has each of three trainings.

    With its bonuses (what it adds to scores of joined nodes) at zero, or with another
    graph's edges, none is better than always giving the most frequent distance by more than
    half a point; with its bonuses back it is as before.

    Parameters
    ----------
    page : Page
        ``walker`` is the trained graph Transformer. Of the test graphs, ``joined`` says
        which nodes an edge joins, bool Tensor (graphs, nodes, nodes), and ``marked`` is
        each one's marked node, int64 Tensor (graphs,). ``study`` is the stored study
        *beyond-text*: ``results["graphs"]`` lists dicts, one a training, with ``counted``
        (whether only the number of links was told), ``layers``, and accuracies: ``right``,
        ``away`` (bonuses at zero), ``other graph`` and ``back``.

    Returns
    -------
    dict
        Accuracies, 0 to 1. Of three trainings, lowest and highest: ``told``, told the
        edges, and ``numbers``, told only how many each node has. ``away`` and ``other``,
        the highest without bonuses and with another graph's edges. Of tables: ``frequent``,
        always the most frequent distance; ``counts``, by how many neighbours the node and
        the marked one have; ``two_steps``, also by whether they are joined or share a
        neighbour. How many: ``nodes`` of a graph, ``steps`` of a training.
    """
    tables = table_accuracies(page.joined, page.marked)
    rows = page.study["results"]["graphs"]
    plain = alike(rows, counted=False, layers=3)
    right = [row["right"] for row in plain]
    numbers = [row["right"] for row in alike(rows, counted=True)]
    away = max(row["away"] for row in plain)
    by_other_graph = max(row["other graph"] for row in plain)
    assert accuracy(page.walker, page.joined, page.marked) > 0.99
    assert min(right) > 0.99
    assert max(away, by_other_graph) < tables["nothing"] + 0.005
    assert [row["back"] for row in plain] == right
    assert max(*numbers, tables["counts"]) < 0.5
    return {
        "told": (min(right), max(right)),
        "numbers": (min(numbers), max(numbers)),
        "away": away,
        "other": by_other_graph,
        "frequent": tables["nothing"],
        "counts": tables["counts"],
        "two_steps": tables["two steps"],
        "nodes": page.joined.shape[-1],
        "steps": page.study["settings"]["graphs"]["steps"],
    }


@proof(
    "One layer gives equal answers to nodes of equal degree that the mark is not joined to."
)
def one_layer_sees_neighbours(page):
    """Compare logits, with random weights from five seeds, on the test graphs, to 1e-9.

    A node's degree is the number of its neighbours. The nodes are not the marked one. Those
    that are joined to it get other answers.

    Parameters
    ----------
    page : Page
        Of the test graphs, ``joined`` says which nodes an edge joins, bool Tensor (graphs,
        nodes, nodes), and ``marked`` is each one's marked node, int64 Tensor (graphs,).

    Returns
    -------
    dict
        ``seeds``: how many models there are; ``nodes``: how many of all graphs' nodes are
        neither marked nor joined to the mark.
    """
    nodes = page.joined.shape[-1]
    to_marked = page.joined[torch.arange(len(page.marked)), page.marked]  # (graphs, nodes)
    unmarked = F.one_hot(page.marked, nodes) == 0
    degree = page.joined.sum(-1)  # (graphs, nodes)
    for seed in SEEDS:
        torch.manual_seed(seed)
        model = GraphTransformer(layers=1).double()
        with torch.no_grad():
            logits, _ = model(page.joined, page.marked)
        for each in degree.unique():
            far = logits[unmarked & ~to_marked & (degree == each)]
            near = logits[unmarked & to_marked & (degree == each)]
            close(far, far[:1].expand_as(far), rtol=0, atol=1e-9)
            assert not len(near) or not len(far) or (near[0] - far[0]).abs().max() > 1e-3
    return {"seeds": len(SEEDS), "nodes": int((unmarked & ~to_marked).sum())}


def other_edges(page):
    """The same models, given the edges of another graph.

    Parameters
    ----------
    page : Page
        ``farther`` is the stored study *one-edge-farther*: in the dicts of
        ``results["graphs"]``, ``own`` counts how many nodes of each distance (rows: 1, 2,
        3, 4 or more) are given each distance (columns) with the graph's own edges,
        ``other`` with another graph's.

    Returns
    -------
    Page
        In ``farther``, each ``own`` is the row's ``other``.
    """
    rows = page.farther["results"]["graphs"]
    changed = [row | {"own": row["other"]} for row in rows]
    results = page.farther["results"] | {"graphs": changed}
    return page.replaced(farther=page.farther | {"results": results})


@finding(
    "With each layer a small graph Transformer can see one edge farther: with three, "
    "it can recognise nodes up to three edges from a marked one.",
    rival="a layer fewer, also trained five times as long: at most {fewer:.0%} recognised",
    null=other_edges,
    n="500 graphs; {trainings} trainings of one, two and three layers, and {again} of one "
    "and two for longer",
    interval="within reach {within:.1%}; farther {beyond:.0%}; a guess has 50 %",
)
def each_layer_sees_one_edge_farther(page):
    """Check that with each layer distances of one edge more are told apart.

    Nodes at a distance are told apart from farther nodes; a guess has one half.

    That is the mean of two shares: of the nodes at the distance that are placed there, and
    of the farther ones that are not. It is above 98 % up to as many edges as there are
    layers, and below 80 % for more, in each training.

    Parameters
    ----------
    page : Page
        ``farther`` is the stored study *one-edge-farther*. ``results["graphs"]`` lists
        dicts, one a training: ``layers``, ``steps`` and ``own``, how many nodes of each
        distance (rows: 1, 2, 3, 4 or more) are given each distance (columns); ``settings``
        has ``steps`` and ``longer``, the steps of the shorter and of the longer training.

    Returns
    -------
    dict
        ``within`` and ``beyond``, the lowest and the highest share told apart, up to as
        many edges as layers and for more; ``fewer``, the highest of the latter after five
        times the steps. How many: ``trainings``, shorter and longer; ``steps`` and
        ``longer``, the steps of a shorter and of a longer one.
    """
    rows = page.farther["results"]["graphs"]
    sizes = page.farther["settings"]

    def recognised(steps, is_within):
        """Return how well distances are told apart, within reach or beyond it.

        ``steps`` : int, of the training; ``is_within`` : bool, whether the distance is at
        most the number of layers. A list of float from 0 to 1.
        """
        return [
            told_apart(row["own"], distance)
            for row in alike(rows, steps=steps)
            for distance in LAYERS
            if (distance <= row["layers"]) == is_within
        ]

    within, beyond = (recognised(sizes["steps"], is_within) for is_within in (True, False))
    within_long, beyond_long = (recognised(sizes["longer"], each) for each in (True, False))
    assert max(LAYERS) == FAR - 1
    assert min(within + within_long) > 0.98
    assert max(beyond + beyond_long) < 0.8
    return {
        "within": (min(within), max(within)),
        "beyond": (min(beyond), max(beyond)),
        "fewer": max(beyond_long),
        "trainings": len(alike(rows, steps=sizes["steps"])),
        "again": len(alike(rows, steps=sizes["longer"])),
        "steps": sizes["steps"],
        "longer": sizes["longer"],
    }


# --- letters --------------------------------------------------------------------------


def stored_rules(page, kept=RULED):
    """Return what both studies stored of models of letters after the shorter training.

    Parameters
    ----------
    page : Page
        ``study`` and ``farther`` are the stored studies *beyond-text* and
        *one-edge-farther*: in ``results["rules"]`` of both are the dicts that are returned;
        ``settings["rules"]["steps"]`` of the first are the steps of the shorter training.
    kept : float
        The share of letters that follow a rule: 0.8 or 0.

    Returns
    -------
    list of dict
        Stored outcomes, one a model: ``kept``, ``seed``, ``steps``; ``looks``, each head's
        mean attention by distance; ``whole``, the loss by rule, in nats a letter;
        ``without``, the same with each head ablated.
    """
    steps = page.study["settings"]["rules"]["steps"]
    both = page.study["results"]["rules"] + page.farther["results"]["rules"]
    return alike(both, kept=kept, steps=steps)


def no_rule(page):
    """Models that read letters in a random order, which follow no rule.

    Parameters
    ----------
    page : Page
        ``study`` and ``farther`` are the stored studies *beyond-text* and
        *one-edge-farther*; in ``results["rules"]`` of both, dicts, one a model, have
        ``kept``, the share of letters that follow a rule.

    Returns
    -------
    Page
        In ``study``, the runs whose letters follow no rule are called those that do;
        ``farther`` has no run on letters.
    """
    plain = [row | {"kept": RULED} for row in stored_rules(page, kept=0.0)]
    study = page.study | {"results": page.study["results"] | {"rules": plain}}
    farther = page.farther | {"results": page.farther["results"] | {"rules": []}}
    return page.replaced(study=study, farther=farther)


def losses_by_owner(run):
    """Return the losses of two rules without their heads, if each head alone carries one.

    Parameters
    ----------
    run : dict
        Of a model of the two rules (two letters back, and four): losses in nats a letter,
        ``whole``, by rule, and ``without``, (heads, rules), with each head ablated;
        ``looks``, how much attention each head gives to letters 1, 2, 3 … places back,
        (heads, distances).

    Returns
    -------
    list of float, or None
        By rule, the loss without the head that carries it, in nats a letter: more than a
        guess has, while the other rule's loss rises by less than a tenth of a nat. None if
        there is no such head for each rule, or if it does not attend most to the letters
        at its rule's distance.
    """
    whole = np.array(run["whole"])
    without = np.array(run["without"])
    most = [int(np.argmax(weights)) + 1 for weights in run["looks"]]
    for owners in permutations(range(len(TURNS))):  # the head of each rule
        lost = [without[head, rule] for rule, head in enumerate(owners)]
        rises = [
            without[head, 1 - rule] - whole[1 - rule] for rule, head in enumerate(owners)
        ]
        attended = [most[head] for head in owners]
        if min(lost) > GUESS and max(rises) < 0.1 and attended == [*TURNS]:
            return lost
    return None


@finding(
    "Most small models that learned two rules about letters keep each in its own "
    "attention head: remove that head, and only its rule is lost.",
    rival="the other head of the same model",
    null=no_rule,
    n="{models} models of one layer and two heads; 500 sequences",
    interval="of the models, {share:.0%}",
)
def a_head_for_each_rule(page):
    """Check that in most of the models each head carries one rule.

    A rule is lost if sequences by it have a loss above that of a guess.

    The other rule's loss rises by less than a tenth of a nat. An ablated head gives its
    mean output. The interval is over models, which differ by their random seed.

    Parameters
    ----------
    page : Page
        ``study`` and ``farther`` are the stored studies *beyond-text* and
        *one-edge-farther*. In ``results["rules"]`` of both, dicts, one a model, have
        ``kept`` and ``steps``; ``looks``, each head's attention by distance; the losses in
        nats a letter, ``whole``, by rule, and ``without`` each head, (heads, rules).

    Returns
    -------
    dict
        ``models``, how many; ``clean``, in how many each head has one rule; ``share``, the
        95 % interval of their share; ``with`` and ``without``, the mean losses of a rule
        with all heads and without its own, in those models, or the loss of a guess if there
        are none; ``guess``, the loss of a guess (losses are in nats a letter); ``steps`` of
        training.
    """
    runs = stored_rules(page)
    owners = [losses_by_owner(run) for run in runs]
    clean = [own is not None for own in owners]
    share = share_interval(clean)
    assert share[0] > 0.5
    whole = [run["whole"] for run, is_clean in zip(runs, clean, strict=True) if is_clean]
    without = [own for own in owners if own is not None]
    return {
        "models": len(runs),
        "clean": sum(clean),
        "share": share,
        "with": float(np.mean(whole)) if whole else GUESS,
        "without": float(np.mean(without)) if without else GUESS,
        "guess": GUESS,
        "steps": page.study["settings"]["rules"]["steps"],
    }


@proof("The model of the picture has one head for each rule.")
def shown_model_has_both(page):
    """Check that the pictured model has one head for each rule.

    Each head attends most at one rule's distance, and its rule is lost without it.

    Head 0 attends two letters back, head 1 four.

    Parameters
    ----------
    page : Page
        ``heads`` is a dict that tells of the model's heads: ``attention``, how much each
        gives to letters 1, 2, 3 … places back, (heads, distances); losses in nats a letter,
        ``whole``, by rule, and ``without`` each head, (heads, rules).

    Returns
    -------
    dict
        ``two`` and ``four``: the loss of each rule (two and four letters back) without its
        head, in nats a letter.
    """
    run = page.heads | {"looks": page.heads["attention"]}
    without = losses_by_owner(run)
    assert without is not None
    assert [int(np.argmax(weights)) + 1 for weights in run["looks"]] == [*TURNS]
    return {"two": without[0], "four": without[1]}


@proof(
    "Counting letters at a distance does about as well as the model; with sorting, better."
)
def counting_the_rules(page):
    """Check that counting at a distance is about as good as the model.

    The loss of counts of two letters lies among those of the study's twelve models.

    With sorting, a model of one distance is counted on the sequences that it predicts best,
    and the models are mixed; that beats also the model that is trained ten times as long.

    Parameters
    ----------
    page : Page
        ``study`` is the stored study *beyond-text*. In ``results``, the second dict of
        "counted" has losses of models that count letters, in nats a letter (``three in a
        row``; ``two places``, at the distances ``best two``; ``again``, with sorting), and
        those of "rules", one a model, have ``kept``, ``steps`` and the losses ``whole``, by
        rule.

    Returns
    -------
    dict
        Losses in nats a letter of models that count: ``row``, trigrams; ``two``, letters at
        the best two distances; ``sorted``, with sorting. ``model``, the lowest and the
        highest of the trained ones, with the shorter training.
    """
    counted = page.study["results"]["counted"][1]
    short = page.study["settings"]["rules"]["steps"]
    rows = alike(page.study["results"]["rules"], kept=RULED)
    model = [np.mean(row["whole"]) for row in rows if row["steps"] == short]
    longer = [np.mean(row["whole"]) for row in rows if row["steps"] != short]
    assert counted["best two"] == [*TURNS]
    assert min(model) < counted["two places"] < max(model)
    assert max(longer) + 0.05 < counted["two places"]
    assert counted["again"] + 0.05 < min(model + longer)
    assert max(model) + 0.5 < counted["three in a row"] < GUESS
    return {
        "row": counted["three in a row"],
        "two": counted["two places"],
        "sorted": counted["again"],
        "model": (min(model), max(model)),
    }


# --- what leaks -----------------------------------------------------------------------


def in_another_order(page):
    """The digits in a random order, so that a part of the file is no form.

    Parameters
    ----------
    page : Page
        ``images``, (digits, 8, 8), and ``labels``, (digits,), are Tensors of all digits in
        the order of the file, in which each form, filled in by one writer, is in one piece.

    Returns
    -------
    Page
        ``images`` and ``labels`` are in one random order.
    """
    order = torch.randperm(len(page.labels), generator=torch.Generator().manual_seed(0))
    return page.replaced(images=page.images[order], labels=page.labels[order])


def with_turned(images):
    """Return images, and four copies of each, turned by −10, −5, 5 and 10 degrees.

    Parameters
    ----------
    images : ndarray of shape (digits, 8, 8)

    Returns
    -------
    ndarray of shape (digits, 5, 64)
        Of each digit the image as it is, then the turned ones.
    """
    copies = [turned(images, a, (1, 2), reshape=False, order=1) for a in ANGLES]
    return np.stack([images, *copies], axis=1).reshape(len(images), 1 + len(ANGLES), -1)


def nearest_accuracy(versions, labels, learned, tested, leaks, rng):
    """Return the share of test digits that a nearest neighbour gets right.

    It learns from the digits of the training and their turned copies.

    Parameters
    ----------
    versions : ndarray of shape (digits, 5, 64)
        Of each digit the image as it is, then four copies that are turned a little.
    labels : ndarray of shape (digits,)
        Which digit each shows, 0 to 9.
    learned, tested : ndarray of int
        Rows of the training and of the test digits.
    leaks : bool
        Whether turned copies of test digits are added; of all images as many are drawn, at
        random, as there are without them.
    rng : numpy.random.Generator
        For these draws.

    Returns
    -------
    float
        From 0 to 1; test digits are as they are.
    """
    count = versions.shape[1]
    x = versions[learned].reshape(-1, versions.shape[-1])
    y = np.repeat(labels[learned], count)
    if leaks:
        copies = versions[tested, 1:].reshape(-1, versions.shape[-1])
        drawn = rng.permutation(len(x) + len(copies))[: len(x)]
        x = np.concatenate([x, copies])[drawn]
        y = np.concatenate([y, np.repeat(labels[tested], count - 1)])[drawn]
    nearest = KNeighborsClassifier(1).fit(x, y)
    return nearest.score(versions[tested, 0], labels[tested])


@finding(
    "Looking up similar digits seems more accurate than it is if the examples include "
    "rotated test digits, or digits from the same sheets.",
    rival="neither of the two in training: {apart:.1%} right",
    null=in_another_order,
    n="{digits:,} digits in five parts, each tested in turn; as many to learn from",
    interval="by part: copies {copies:.1%}, hands {hands:.1%}",
)
def test_digits_leak(page):
    """Check that turned copies of test digits, or digits of their forms, raise accuracy.

    Each alone lifts the share of right answers by two to four and a half points.

    The means over parts do so; with copies the share rises on each part. *The same hands*
    are digits of the same forms: nobody wrote down whose they are, but the file goes from
    form to form. Where hands are apart a part of the file is tested, else as many digits
    drawn at random, three times.

    Parameters
    ----------
    page : Page
        ``images`` (digits, 8, 8) and ``labels`` (digits,) are Tensors of all digits, in the
        order of the file.

    Returns
    -------
    dict
        Accuracies, 0 to 1, means over five parts: ``apart``, with neither; ``with_copies``,
        with turned copies of test digits to learn from; ``with_hands``, with digits of the
        same forms; ``both``. ``copies`` and ``hands``, the lowest and the highest gain over
        ``apart`` on a part; ``digits``, how many; ``answer``, the letter of the right
        choice in a task: "a" if the same forms raise the mean, else "b" if copies do, else
        "c".
    """
    labels = page.labels.numpy()
    versions = with_turned(page.images.numpy())
    every = np.arange(len(labels))
    by_part = []
    for fold in range(5):
        tested = split_digits(fold)[2].numpy()
        rng = np.random.default_rng(fold)
        drawn = [rng.permutation(every)[: len(tested)] for _ in range(3)]
        by_case = {}
        for leaks in (False, True):
            for same_hands, parts in ((False, [tested]), (True, drawn)):
                scores = [
                    nearest_accuracy(
                        versions, labels, np.setdiff1d(every, part), part, leaks, rng
                    )
                    for part in parts
                ]
                by_case[leaks, same_hands] = np.mean(scores)
        by_part.append(by_case)

    def accuracies_if(leaks, same_hands):
        """Return the accuracy on each part, a float array (parts,).

        ``leaks`` : bool, whether turned copies of test digits are learned from;
        ``same_hands`` : bool, whether digits of the same forms are.
        """
        return np.array([row[leaks, same_hands] for row in by_part])

    apart = accuracies_if(False, False)
    copies = accuracies_if(True, False) - apart
    hands = accuracies_if(False, True) - apart
    assert 0.02 < copies.mean() < 0.045
    assert 0.02 < hands.mean() < 0.045
    assert copies.min() > 0
    copies_leak = copies.mean() > 0
    hands_leak = hands.mean() > 0
    return {
        "apart": apart.mean(),
        "with_copies": accuracies_if(True, False).mean(),
        "with_hands": accuracies_if(False, True).mean(),
        "both": accuracies_if(True, True).mean(),
        "copies": (copies.min(), copies.max()),
        "hands": (hands.min(), hands.max()),
        "digits": len(labels),
        "answer": right_letter({"a": hands_leak, "b": copies_leak}, otherwise="c"),
    }
