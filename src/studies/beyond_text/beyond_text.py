"""What else is a sequence: patches of digits, nodes of graphs, letters under a rule?

What varies: the method that classifies digits, on five folds of the file, with three seeds;
how a graph's edges enter the model, and its number of layers; whether sequences of letters
follow a rule.

Rivals: for digits, nearest neighbours, logistic regression and a small convolutional
network, all tuned alike on another fold than the one that tests; for graphs, look-up tables
of what is known of a node's neighbours, and a model that knows only how many there are; for
letters, models that count trigrams, letters at two distances, or pairs at every distance.

Null: images whose patches change places; the most frequent distance in a graph; a model of
letters that follow no rule.

Statistic: accuracy on digits and on nodes; the loss in nats a letter with a head ablated.
The interval is that of the vision Transformer's accuracy less that of the nearest
neighbours, from the lowest to the highest over folds and seeds.
"""

from itertools import combinations

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from torch import nn

from lmcourse import graphs, rules
from lmcourse.training_loop import train_one_cycle
from lmcourse.vision import (
    STARTS,
    VisionTransformer,
    digits,
    split_digits,
    train_classifier,
)
from lmcourse.weights import save_model
from studies.beyond_text.look_up_tables import table_accuracies
from studies.harness import count, grid, paired

CHAPTER = "beyond-text"
CHECKPOINTS = ("digits", "graphs", "rules")
CLAIM = (
    "Nearest neighbours classify more of scikit-learn's digits correctly than a small "
    "vision Transformer does"
)
RIVAL = "the Transformer was not trained for long enough: it gets ten times the steps"
NULL = "both classify equally many digits correctly"
SETTINGS = {
    "digits": {"steps": 200, "rates": [2e-3, 5e-3, 1e-2], "longer": 2000},
    "tuned": {"neighbours": [1, 3, 5, 9], "logistic": [0.01, 0.1, 1, 10, 100]},
    "graphs": {"steps": 400, "rate": 5e-3, "batch": 64, "judged": 500},
    "rules": {"steps": 400, "rate": 5e-3, "batch": 64, "judged": 500, "longer": 4000},
    "seeds": [0, 1, 2, 3, 4],
}
NETWORKS = ("Transformer", "convolution", "convolution, dealt")  # dealt: patches shuffled


class Convolution(nn.Module):
    """A convolutional network for digits: two convolutions of 3 × 3 and a linear layer."""

    def __init__(self):
        """Make the layers; their first weights are drawn from torch's global generator."""
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(512, 10),
        )

    def forward(self, images):
        """Score the classes of images.

        Parameters
        ----------
        images : Tensor of shape (batch, 8, 8)

        Returns
        -------
        tuple of one Tensor of shape (batch, 10)
            Logits.
        """
        return (self.layers(images[:, None]),)


def plan(small):
    """Return the settings of all runs.

    Parameters
    ----------
    small : bool
        Whether to return only those of seed 0, fold 0 and one rate, with two steps each.

    Returns
    -------
    list of dict
        The arguments of each run: ``group``, with ``seed`` and ``steps`` where something is
        trained. "graphs": ``counted``, whether the model knows only how many neighbours a
        node has, and ``layers``, how many it has. "rules": ``kept``, how probably a letter
        follows the rule. "counted": ``kind``, what is counted, "edges" or "letters".
        "simple": ``fold``, the test fold, from 0. "digits": ``fold``, too; ``reader``, the
        network ("Transformer"; "no places", a Transformer without positions; "convolution";
        "convolution, dealt", with the patches shuffled alike in all images); and ``rate``,
        the learning rate.
    """
    seeds = SETTINGS["seeds"]
    sizes = SETTINGS["rules"]
    settings = []
    for counted, layers in ((False, (3, 2, 1)), (True, 3)):
        settings += grid(
            group="graphs",
            counted=counted,
            layers=layers,
            seed=seeds[:3],
            steps=SETTINGS["graphs"]["steps"],
        )
    for ruled, rule_seeds, steps in (
        (rules.RULED, range(12), sizes["steps"]),
        (0.0, seeds[:3], sizes["steps"]),
        (rules.RULED, seeds[:1], sizes["longer"]),
    ):
        settings += grid(group="rules", kept=ruled, seed=rule_seeds, steps=steps)
    settings += grid(group="counted", kind=("edges", "letters"))
    settings += plan_digits()
    if not small:
        return settings
    first = {"seed": 0, "fold": 0, "rate": SETTINGS["digits"]["rates"][0]}
    few = [
        setting
        for setting in settings
        if all(setting.get(key, value) == value for key, value in first.items())
    ]
    return [each | {"steps": 2} if "steps" in each else each for each in few]


def plan_digits():
    """Return the settings of all runs on digits.

    Returns
    -------
    list of dict
        Of the groups "simple" (``fold``, the test fold, from 0 to 4) and "digits" (also
        ``reader``, ``seed``, ``rate`` and ``steps``). Each network of `NETWORKS` is trained
        on every fold at every rate from three seeds; a Transformer without positions, "no
        places", from one; a Transformer with ten times the steps at two rates from one.
    """
    folds = range(len(STARTS))
    sizes = SETTINGS["digits"]
    rates = sizes["rates"]
    seeds = SETTINGS["seeds"]
    kinds = [(name, rates, sizes["steps"], seeds[:3]) for name in NETWORKS]
    kinds.append(("no places", rates, sizes["steps"], seeds[:1]))  # without positions
    kinds.append(("Transformer", rates[:2], sizes["longer"], seeds[:1]))
    settings = grid(group="simple", fold=folds)
    for reader, some_rates, steps, some_seeds in kinds:
        settings += grid(
            group="digits",
            reader=reader,
            fold=folds,
            seed=some_seeds,
            rate=some_rates,
            steps=steps,
        )
    return settings


def run(folder, group, **setting):
    """Train a model, or count, and return how well it predicts.

    Parameters
    ----------
    folder : Path
        Where the models of the page are saved.
    group : {"simple", "digits", "graphs", "rules", "counted"}
        What to do. "simple": classify digits without a network; "digits": train on images
        of them; "graphs": train on distances in graphs; "rules": train on letters that
        follow a rule; "counted": count what can be predicted without a model.
    **setting
        The arguments of the group's function: of "simple" ``fold``
        (`classify_without_network`); of "digits" ``reader``, ``fold``, ``seed``, ``rate``
        and ``steps`` (`train_on_digits`); of "graphs" ``counted``, ``layers``, ``seed`` and
        ``steps`` (`train_on_graphs`); of "rules" ``kept``, ``seed`` and ``steps``
        (`train_on_rules`); of "counted" ``kind`` (`count_baselines`).

    Returns
    -------
    dict
        The setting, and what was measured; accuracies are from 0 to 1, losses in nats a
        letter:

        - "simple": the accuracies ``neighbours`` and ``logistic``, and ``neighbours at``
          and ``logistic at``, the number of neighbours and the inverse strength of the
          regularization that were chosen,
        - "digits": the accuracies ``validation`` and ``test``,
        - "graphs": ``right``, the accuracy; if the model knows edges also ``away``, ``other
          graph`` and ``back``, accuracies without the bias of edges, with another graph's
          edges, and with its own again,
        - "rules": the losses ``whole``, by rule, and ``without`` each head, (heads, rules);
          ``looks``, attention weights, (heads, distances),
        - "counted", of "edges": the accuracies ``nothing``, ``counts``, ``one step``, ``two
          steps`` of look-up tables; of "letters": the losses ``three in a row``, ``two
          places`` and ``again``, and the distances ``best two``.
    """
    functions = {
        "simple": classify_without_network,
        "digits": train_on_digits,
        "graphs": train_on_graphs,
        "rules": train_on_rules,
        "counted": count_baselines,
    }
    return functions[group](folder, **setting)


# --- digits ---------------------------------------------------------------------------


def classify_without_network(_folder, fold):
    """Classify digits by nearest neighbours and by logistic regression.

    How many neighbours count, and how strong the regularization is, are chosen on the
    validation fold.

    Parameters
    ----------
    _folder
        Unused.
    fold : int
        Which fifth of the digits is the test set, from 0 to 4.

    Returns
    -------
    dict
        ``fold``; ``seed``, the same; ``neighbours`` and ``logistic``, the accuracies on the
        test fold, 0 to 1; ``neighbours at``, how many neighbours were chosen, and
        ``logistic at``, the inverse strength of the regularization (scikit-learn's ``C``).
    """
    images, labels = (x.numpy() for x in digits())
    splits = [
        (images[rows].reshape(len(rows), -1), labels[rows]) for rows in split_digits(fold)
    ]
    training, validation, test = splits
    tuned = SETTINGS["tuned"]
    candidates = {
        "neighbours": [KNeighborsClassifier(k) for k in tuned["neighbours"]],
        "logistic": [LogisticRegression(C=c, max_iter=1000) for c in tuned["logistic"]],
    }
    row = {"fold": fold, "seed": fold}
    for name, models in candidates.items():
        accuracies = [model.fit(*training).score(*validation) for model in models]
        best = int(np.argmax(accuracies))
        row[name] = round(models[best].score(*test), 4)
        row[f"{name} at"] = tuned[name][best]
    return row


def train_on_digits(folder, reader, fold, seed, rate, steps):
    """Train one network on digits, and measure its accuracy.

    Parameters
    ----------
    folder : Path
        Where the Transformer of the page is saved, as ``digits.safetensors``: that of fold
        0, the lowest rate, and ten times the steps.
    reader : {"Transformer", "no places", "convolution", "convolution, dealt"}
        The network: a vision Transformer with positions, or without ("no places"); a
        convolutional network, or one whose images have their patches of 2 × 2 in another
        order, the same in all images ("convolution, dealt").
    fold : int
        The test fold, from 0 to 4; the next one is for validation.
    seed : int
        Of the first weights, and of all that is drawn.
    rate : float
        The highest learning rate.
    steps : int
        How many steps of training.

    Returns
    -------
    dict
        The settings ``reader``, ``fold``, ``seed``, ``rate``, ``steps``; ``validation`` and
        ``test``, the accuracies, 0 to 1.
    """
    images, labels = digits()
    if reader == "convolution, dealt":
        order = torch.randperm(16, generator=torch.Generator().manual_seed(seed))
        patches = nn.functional.unfold(images[:, None], 2, stride=2)  # (images, 4, 16)
        images = nn.functional.fold(patches[:, :, order], (8, 8), 2, stride=2)[:, 0]
    torch.manual_seed(seed)
    if reader.startswith("convolution"):
        model = Convolution()
    else:
        model = VisionTransformer(positions=reader == "Transformer")
    training, validation, test = split_digits(fold)
    train_classifier(model, images[training], labels[training], steps, rate, seed)
    row = {"reader": reader, "fold": fold, "seed": seed, "rate": rate, "steps": steps}
    sizes = SETTINGS["digits"]
    is_longer = steps != sizes["steps"]
    if (reader, fold, rate, is_longer) == ("Transformer", 0, sizes["rates"][0], True):
        save_model(folder / "digits.safetensors", model, dict(row))
    for name, rows in {"validation": validation, "test": test}.items():
        with torch.no_grad():
            right = model(images[rows])[0].argmax(-1) == labels[rows]
        row[name] = round(right.float().mean().item(), 4)
    return row


# --- graphs ---------------------------------------------------------------------------


def graph_loss(model, joined, marked):
    """Return the mean cross-entropy of all nodes but the marked one, in nats.

    The class of a node is its distance from the marked one, in edges, at most 4.

    Parameters
    ----------
    model : lmcourse.graphs.GraphTransformer
        From edges and marked nodes to logits, (graphs, nodes, classes), and weights.
    joined : bool Tensor of shape (graphs, nodes, nodes)
        Which nodes an edge joins.
    marked : int64 Tensor of shape (graphs,)
        The marked node of each graph.

    Returns
    -------
    Tensor of shape ()
    """
    logits, _ = model(joined, marked)
    judged = graphs.unmarked_nodes(joined, marked)
    return nn.functional.cross_entropy(
        logits[judged], graphs.distance_classes(joined, marked)[judged]
    )


def train_on_graphs(folder, counted, layers, seed, steps):
    """Train a graph Transformer, and measure its accuracy with and without edges.

    Parameters
    ----------
    folder : Path
        Where the model of the page is saved, as ``graphs.safetensors``: the one with three
        layers that knows edges, of seed 0.
    counted : bool
        Whether the model knows only how many neighbours a node has, instead of which.
    layers : int
        How many the model has.
    seed : int
        Of the first weights, and of all that is drawn.
    steps : int
        How many steps of training.

    Returns
    -------
    dict
        The settings ``counted``, ``layers``, ``seed``; ``right``, the share of test graphs'
        nodes whose distance from the marked one is predicted right, 0 to 1; and, if the
        model knows edges, the same share with the bias of edges at zero, ``away``, with the
        edges of another graph, ``other graph``, and with all as it was before, ``back``.
    """
    torch.manual_seed(seed)
    sizes = SETTINGS["graphs"]
    generator = torch.Generator().manual_seed(seed)
    model = graphs.GraphTransformer(counted, layers)

    def loss_at(step):
        """Return the mean loss of a batch of new graphs, in nats; ``step`` is not used."""
        return graph_loss(model, *graphs.sample_graphs(sizes["batch"], generator))

    train_one_cycle(model, loss_at, steps, sizes["rate"])
    test_graphs = sample_test_graphs()
    row = {"counted": counted, "layers": layers, "seed": seed}
    row["right"] = graphs.accuracy(model, *test_graphs)
    if (counted, layers, seed) == (False, 3, 0):
        save_model(folder / "graphs.safetensors", model, dict(row))
    if not counted:
        row |= accuracies_without_edges(model, *test_graphs)
    return row


def sample_test_graphs():
    """Return the 500 graphs on which models are tested.

    Returns
    -------
    joined : bool Tensor of shape (500, nodes, nodes)
        Which nodes an edge joins.
    marked : int64 Tensor of shape (500,)
        The marked node of each graph.
    """
    generator = torch.Generator().manual_seed(99)
    return graphs.sample_graphs(SETTINGS["graphs"]["judged"], generator)


def accuracies_without_edges(model, joined, marked):
    """Return a model's accuracy without edges, and with the edges of another graph.

    Parameters
    ----------
    model : lmcourse.graphs.GraphTransformer
        Its ``bonus``, (heads, 3), is added to the scores of pairs of nodes that no edge
        joins, that an edge joins, and of a node with itself: the bias of edges. The weights
        are the same before and afterwards.
    joined : bool Tensor of shape (graphs, nodes, nodes)
        Which nodes an edge joins.
    marked : int64 Tensor of shape (graphs,)
        The marked node of each graph.

    Returns
    -------
    dict of str to float
        Shares of nodes whose distance from the marked one is predicted right, 0 to 1.
        ``away``: the bias of edges is zero. ``other graph``: the edges are those of another
        graph. ``back``: the bias and the edges are the model's own again.
    """
    row = {}
    bonus = model.bonus.data.clone()
    model.bonus.data.zero_()
    row["away"] = graphs.accuracy(model, joined, marked)
    model.bonus.data.copy_(bonus)
    row["other graph"] = graphs.accuracy(model, joined, marked, joined.roll(1, 0))
    row["back"] = graphs.accuracy(model, joined, marked)
    return row


# --- rules ----------------------------------------------------------------------------


def train_on_rules(folder, kept, seed, steps):
    """Train a model of letters that follow a rule, and ablate its heads.

    Parameters
    ----------
    folder : Path
        Where the model of the page is saved, as ``rules.safetensors``: that of seed 0 whose
        letters follow a rule, after the shorter training.
    kept : float
        The probability that a letter follows its sequence's rule: it depends on the letter
        two places before, or on the one four places before. Other letters are random.
    seed : int
        Of the first weights, and of all that is drawn.
    steps : int
        How many steps of training.

    Returns
    -------
    dict
        The settings ``kept``, ``seed``, ``steps``; ``looks``, of each head the mean
        attention weights on letters that stand 1 to 8 (`rules.REACH`) places before the one
        to predict, (heads, 8); ``whole``, for each of the two rules the loss of sequences
        by it, in nats a letter; ``without``, the same with each head ablated (it returns
        its mean output) in its turn, (heads, rules).
    """
    torch.manual_seed(seed)
    sizes = SETTINGS["rules"]
    generator = torch.Generator().manual_seed(seed)
    model = rules.SequenceModel()

    def loss_at(step):
        """Return the mean loss of a batch of new sequences, in nats a letter.

        ``step`` is not used.
        """
        sequences, _ = rules.sample_sequences(sizes["batch"], generator, kept)
        return rules.letter_losses(model, sequences).mean()

    train_one_cycle(model, loss_at, steps, sizes["rate"])
    if (kept, seed) == (rules.RULED, 0) and steps != sizes["longer"]:
        save_model(folder / "rules.safetensors", model, {"steps": steps})
    heads = rules.ablate_heads(model, sizes["judged"])
    heads["looks"] = heads.pop("attention")  # the name that the stored runs have
    return {"kept": kept, "seed": seed, "steps": steps} | heads


def letter_baselines(seed=99, training_count=20_000):
    """Return the losses of models that count letters, on the test sequences.

    Parameters
    ----------
    seed : int
        Of the test sequences; that of the training sequences is one more.
    training_count : int
        How many training sequences there are.

    Returns
    -------
    dict
        In nats a letter, from letter 12 (`rules.FIRST_JUDGED`) of a sequence on: ``three in
        a row``, a trigram model; ``two places``, a model of the letters at two distances,
        ``best two`` (a pair of int), that predict the training sequences best; ``again``, a
        mixture of models each of which knows one distance.
    """
    training, _ = rules.sample_sequences(
        training_count, torch.Generator().manual_seed(seed + 1)
    )
    test, _ = rules.sample_sequences(
        SETTINGS["rules"]["judged"], torch.Generator().manual_seed(seed)
    )
    distances = range(1, rules.REACH + 1)
    best = min(
        combinations(distances, 2), key=lambda two: loss_by_two(training, training, *two)
    )
    return {
        "again": round(mixture_loss(training, test), 4),
        "best two": best,
        "three in a row": loss_by_two(training, test, 1, 2),
        "two places": loss_by_two(training, test, *best),
    }


def mixture_loss(training, test):
    """Return the loss of a mixture of models, each of which knows one distance.

    The model of a distance predicts a letter from the one that stands so far before. It is
    counted on all training sequences first, and then on those alone that it predicts better
    than the models of other distances do. On a test sequence each model's weight is the
    probability that it gave to the letters so far.

    Parameters
    ----------
    training, test : int64 Tensor of shape (sequences, letters)
        Letters from 0 to 19.

    Returns
    -------
    float
        In nats a letter, from position 12 (`rules.FIRST_JUDGED`, counted from 0) of a
        sequence on. Distances are 1 to 8 (`rules.REACH`).
    """
    reach = rules.REACH
    from_first_judged = slice(rules.FIRST_JUDGED - reach, None)

    def log_probs(counted_on, sequences):
        """Return what the model of each distance gives to each letter: log probabilities.

        ``counted_on`` : list of int64 Tensor (sequences, letters), for each distance those
        on which its model is counted; ``sequences`` : int64 Tensor (sequences, letters),
        those that are predicted. Returns a float64 Tensor (distances, sequences, letters -
        reach), of the letters from number ``reach`` on.
        """
        rows = []
        for distance, texts in enumerate(counted_on, start=1):
            table = log_shares(texts, distance)  # (20, 20)
            before = sequences[:, reach - distance : -distance]
            rows.append(table[before, sequences[:, reach:]])
        return torch.stack(rows)

    on_training = log_probs([training] * reach, training).sum(-1)  # (distances, sequences)
    best_distance = on_training.argmax(0)
    own = [training[best_distance == index] for index in range(reach)]
    by_model = log_probs(own, test)
    so_far = by_model.cumsum(-1) - by_model  # of the letters before
    mixed = (so_far.log_softmax(0) + by_model).logsumexp(0)  # (sequences, letters - reach)
    return -mixed[:, from_first_judged].mean().item()


def loss_by_two(training, test, near, far):
    """Return the loss of counts of a letter given the two at some distances before it.

    Parameters
    ----------
    training, test : int64 Tensor of shape (sequences, letters)
        Letters from 0 to 19: those that are counted, and those that are predicted.
    near, far : int
        The distances, in letters; ``near`` is the smaller one.

    Returns
    -------
    float
        In nats a letter, from position 12 (`rules.FIRST_JUDGED`, counted from 0) of a
        sequence on, rounded to 4 decimals.
    """
    first = rules.FIRST_JUDGED
    before = 20 * test[:, first - far : -far] + test[:, first - near : -near]
    log_probs = log_shares(training, near, far)[before, test[:, first:]]
    return round(-log_probs.mean().item(), 4)


def log_shares(texts, *distances):
    """Return the log probabilities of a letter given the letters at some distances before.

    They are counted.

    Parameters
    ----------
    texts : int64 Tensor of shape (sequences, letters)
        Letters from 0 to 19, which are counted.
    *distances : int
        How far before the letter to predict each of the known letters stands.

    Returns
    -------
    float64 Tensor of shape (20 ** len(distances), 20)
        A row for each combination of known letters: its number in base 20 has them as
        digits, the farthest letter first. A column for each letter that may follow. Half a
        count is added to each.
    """
    start = max(distances)
    key = 0
    for distance in sorted(distances, reverse=True):
        key = 20 * key + texts[:, start - distance : texts.shape[1] - distance]
    pairs = (20 * key + texts[:, start:]).flatten()
    counts = torch.bincount(pairs, None, 20 ** (1 + len(distances))).view(-1, 20)
    shares = (counts + 0.5).double()
    return (shares / shares.sum(1, keepdim=True)).log()


def count_baselines(_folder, kind):
    """Return how well counting alone predicts distances in graphs, or letters.

    Parameters
    ----------
    _folder
        Unused.
    kind : {"edges", "letters"}
        Distances in graphs, or letters of sequences.

    Returns
    -------
    dict
        ``seed``, 0. Of "edges" the accuracy of look-up tables, 0 to 1, by what they know:
        ``nothing``; ``counts``, how many neighbours the node and the marked one have; ``one
        step``, also whether an edge joins the two; ``two steps``, also whether they share a
        neighbour. Of "letters" the losses of models that count, in nats a letter: ``three
        in a row``, trigrams; ``two places``, the letters at the two distances ``best two``;
        ``again``, a mixture of models that know one distance each.
    """
    if kind == "edges":
        return {"seed": 0} | table_accuracies(*sample_test_graphs())
    return {"seed": 0} | letter_baselines()


# --- the comparison -------------------------------------------------------------------


def tuned_accuracies(results, steps):
    """Return the Transformer's test accuracy at its best rate, by fold and seed.

    Parameters
    ----------
    results : dict of str to list of dict
        "digits" → a dict for each training: ``reader``, the network, such as "Transformer";
        ``fold``, ``seed``, ``steps``; the accuracies ``validation`` and ``test``. May be
        missing.
    steps : int
        Of the trainings to compare.

    Returns
    -------
    dict of (int, int) to float
        (fold, seed) → test accuracy at the rate of the highest validation accuracy; of
        equal ones, at the lowest rate.
    """
    runs = [
        run
        for run in results.get("digits", [])
        if run["reader"] == "Transformer" and run["steps"] == steps
    ]
    best = {}
    for run in runs:
        key = run["fold"], run["seed"]
        if key not in best or run["validation"] > best[key]["validation"]:
            best[key] = run
    return {key: run["test"] for key, run in best.items()}


def summary(results):
    """Compare the vision Transformer with nearest neighbours, fold by fold.

    Parameters
    ----------
    results : dict of str to list of dict
        Group → outcomes of its runs, each with ``seed``. "simple": ``fold`` and
        ``neighbours``, the accuracy of nearest neighbours on it. "digits": ``reader``, the
        network, such as "Transformer"; ``fold``, ``steps``; the accuracies ``validation``
        and ``test``. Both may be missing.

    Returns
    -------
    dict
        ``n``, the number of outcomes, and their ``seeds``; ``interval``, of the
        Transformer's test accuracy less that of the nearest neighbours, lowest and highest
        over folds and seeds; ``verdict``, "holds" or "not so": whether the neighbours
        classify more correctly on every fold and seed, also after ten times the steps.
    """
    neighbours = {each["fold"]: each["neighbours"] for each in results.get("simple", [])}
    sizes = SETTINGS["digits"]

    def pairs_after(steps):
        """Return pairs of accuracies, the Transformer's and the neighbours'.

        One for each fold and seed, of trainings of ``steps`` steps: a list of (float,
        float).
        """
        return [
            (accuracy, neighbours[fold])
            for (fold, _), accuracy in tuned_accuracies(results, steps).items()
            if fold in neighbours
        ]

    pairs = pairs_after(sizes["steps"])
    every_pair = pairs + pairs_after(sizes["longer"])
    holds = bool(pairs) and all(ours < theirs for ours, theirs in every_pair)
    if not pairs:  # a short run
        pairs = [(0.0, 0.0)]
    ours, theirs = zip(*pairs, strict=True)
    rows = [row for group in results.values() for row in group]
    return count(rows) | paired(ours, theirs, holds)
