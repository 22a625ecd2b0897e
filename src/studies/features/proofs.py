"""What the chapter *features* claims, checked where the page places it.

The ``page`` of a proof or a null is a `studies.findings.Page`: the names that the page has
defined so far, as attributes.
"""

import copy

import numpy as np
import torch

from lmcourse.sparse import ITSELF, train_toy
from studies.features.features import FIRST, losses_with
from studies.findings import Page, finding, proof

SEEDS = range(1, 6)  # first weights of the toy
LONG = 0.8
HALF = 0.5


# --- the toy ------------------------------------------------------------------------------


def dense(page: Page):
    """Features that are always there.

    Parameters
    ----------
    page : Page
        ``SPARSITY`` is the probability that a feature of the toy is 0.

    Returns
    -------
    Page
        ``SPARSITY`` is 0.
    """
    return page.replaced(SPARSITY=0.0)


@finding(
    "From most starts, a toy learns to keep five rarely present things in two numbers; "
    "without a ReLU only two fit.",
    rival="the same toy without a ReLU: its squared lengths sum to {room:.1f}",
    null=dense,
    n="{trainings} trainings of each from different first weights",
    interval="loss with the ReLU: {span:.4f}",
)
def five_in_two(page: Page):
    """Check that a toy keeps five features in two dimensions, and without a ReLU two.

    All five arrows are longer than 0.8 from each of five starts.

    Without a ReLU their squared lengths sum to 2, within 0.1, and the lowest loss is more
    than twice the highest loss with it.

    From a few others one feature is lost; the sentence therefore says *most*.

    Parameters
    ----------
    page : Page
        ``SPARSITY`` is the probability that a feature is 0.

    Returns
    -------
    dict
        ``shortest``, the length of the shortest arrow; ``room``, the sum of squared lengths
        without a ReLU; ``span``, lowest and highest loss (a mean square) with it;
        ``times``, the lowest loss without it over the highest with it; ``trainings``, how
        many; ``answer``, the letter of the choice that is nearest to ``room``.
    """
    bent = [train_toy(page.SPARSITY, seed=seed) for seed in SEEDS]
    plain = [train_toy(page.SPARSITY, seed=seed, bend=False) for seed in SEEDS]
    shortest = min(weights.norm(dim=0).min().item() for weights, _, _ in bent)
    rooms = [weights.square().sum().item() for weights, _, _ in plain]
    losses = [loss for _, _, loss in bent]
    linear = [loss for _, _, loss in plain]
    offered = {"a": 5, "b": 2, "c": 0}  # sums of squared lengths, in the task's choices
    assert shortest > LONG
    assert max(abs(room - 2) for room in rooms) < 0.1
    assert min(linear) > 2 * max(losses)
    return {
        "shortest": shortest,
        "room": np.mean(rooms),
        "span": (min(losses), max(losses)),
        "times": min(linear) / max(losses),
        "trainings": len(bent),
        "answer": min(offered, key=lambda letter: abs(offered[letter] - np.mean(rooms))),
    }


# --- what a layer is worth ----------------------------------------------------------------


def fixed_directions(page: Page):
    """Eight directions, the same for every state, in the place of the features.

    Parameters
    ----------
    page : Page
        ``study["gpt"]`` lists the outcomes of the study *features*, one a seed; each has
        ``["trained"]["losses"]``: what takes the place of the states, such as "features"
        and "principal directions" → the loss of each window.

    Returns
    -------
    Page
        In ``study``, the losses of "features" are those of "principal directions".
    """
    study = copy.deepcopy(page.study)
    for row in study["gpt"]:
        losses = row["trained"]["losses"]
        losses["features"] = losses["principal directions"]
    return page.replaced(study=study)


@finding(
    "Give a layer of our GPT eight of 512 learned features in place of each state, and it "
    "predicts sonnets almost as before.",
    rival="eight principal directions: worse by {rival:.2f} nats a character",
    null=fixed_directions,
    n="{windows} windows of held-out sonnets, {seeds} autoencoders",
    interval="share of the layer's worth that is kept: {span:.1%}",
)
def eight_are_enough(page: Page):
    """Check that eight features in place of each state keep 95 % of a layer's worth.

    A layer's worth is by how much the loss rises if each state is replaced by the mean
    state. The features keep more than 95 % of it with each seed.

    With eight principal directions the loss rises by more than five times as much.

    Parameters
    ----------
    page : Page
        ``study["gpt"]`` lists the outcomes of the study *features*, one a seed. Of each,
        ``["trained"]["losses"]``: what takes the place of the states ("whole" for nothing,
        "features", "mean", "principal directions") → the loss of each window in nats a
        character; and ``["trained"]["quality"]``, of the autoencoder: ``dead``, the share
        of features that are nowhere, and ``unexplained``, the share of variance that does
        not come back.

    Returns
    -------
    dict
        In nats a character: ``rise`` and ``rival``, by how much the loss rises with the
        features and with principal directions, means over seeds; ``mean`` and ``whole``,
        the first outcome's losses with the mean state and with nothing replaced. ``span``,
        the share of the layer's worth that is kept, lowest and highest over seeds.
        ``dead``, the share of features that are nowhere, and ``unexplained``, the share of
        variance that does not come back: means over seeds. ``windows``, ``seeds``: how
        many.
    """
    shares = []
    rises = []
    rival = []
    for row in page.study["gpt"]:
        losses = {name: np.mean(x) for name, x in row["trained"]["losses"].items()}
        worth = losses["mean"] - losses["whole"]
        rises.append(losses["features"] - losses["whole"])
        rival.append(losses["principal directions"] - losses["whole"])
        shares.append(1 - rises[-1] / worth)
    assert min(shares) > 0.95
    assert min(rival) > 5 * max(rises)
    quality = [row["trained"]["quality"] for row in page.study["gpt"]]
    return {
        "rise": np.mean(rises),
        "rival": np.mean(rival),
        "mean": np.mean(page.study["gpt"][0]["trained"]["losses"]["mean"]),
        "whole": np.mean(page.study["gpt"][0]["trained"]["losses"]["whole"]),
        "span": (min(shares), max(shares)),
        "windows": len(page.study["gpt"][0]["trained"]["losses"]["whole"]),
        "seeds": len(shares),
        "dead": np.mean([each["dead"] for each in quality]),
        "unexplained": np.mean([each["unexplained"] for each in quality]),
    }


def pursued(states, store, active):
    """Write each state as a sum of a few rows of a store: orthogonal matching pursuit.

    Parameters
    ----------
    states : Tensor of shape (places, d_model)
    store : Tensor of shape (rows, d_model)
        Each row of length 1.
    active : int
        How many rows a state may use. The next one is that to which what is left of the
        state is most nearly parallel; then all weights are fitted again.

    Returns
    -------
    Tensor of shape (places, d_model)
        The sums.
    """
    residual = states
    chosen = []
    for _ in range(active):
        chosen.append((residual @ store.T).abs().argmax(dim=1))
        rows = store[torch.stack(chosen, dim=1)]  # (places, chosen, d_model)
        gram = rows @ rows.mT + 1e-6 * torch.eye(len(chosen))  # a row may be chosen twice
        weights = torch.linalg.solve(gram, rows @ states[..., None])
        residual = states - (weights * rows).sum(dim=1)
    return states - residual


@proof(
    "A sum of eight raw states, in place of a state, raises the loss by less than twice as "
    "much as eight learned features do."
)
def raw_states_stand_in(page: Page):
    """Check that eight raw states, summed in place of a state, hardly raise the loss.

    With each of three draws it rises, by less than a tenth of a nat, and by less than twice
    as much as with eight features (the study's mean).

    The store are 512 states from the training sonnets. For each state of held-out sonnets
    eight of them are chosen by orthogonal matching pursuit, at the places where the
    autoencoder's are.

    Parameters
    ----------
    page : Page
        ``held`` are states of the training sonnets that go into layer 3, Tensor (places,
        d_model); ``model`` and ``tokenizer`` are the GPT's; ``test`` is held-out text, a
        str. ``study["gpt"]`` lists the outcomes of the study *features*, one a seed, with
        ``["trained"]["losses"]``: "whole" and "features" → the loss of each window.

    Returns
    -------
    dict
        Rise of the loss in nats a character: ``rise``, the mean over draws; ``span``, the
        lowest and the highest.
    """
    ids = torch.tensor(page.tokenizer.encode(page.test))
    windows = ids.unfold(0, 65, 64)[:64]  # (windows, 65)
    inputs = windows[:, :-1]
    targets = windows[:, 1:]
    centre = page.held.mean(dim=0)

    def rise(seed):
        """Return by how much the mean loss rises, a float, in nats a character.

        In place of each state that goes into layer 3, from position ``FIRST`` of a window
        on, stands a sum of eight of 512 stored states (`pursued`).

        ``seed`` : int, by which the stored states are drawn.
        """
        drawn = torch.randperm(len(page.held), generator=torch.manual_seed(seed))[:512]
        store = torch.nn.functional.normalize(page.held[drawn] - centre, dim=1)

        def change(x):
            """Put sums of eight of the store in the place of states.

            ``x`` : Tensor (windows, places, d_model), so is what is returned.
            """
            sums = pursued((x - centre).flatten(0, 1), store, 8) + centre
            return sums.unflatten(0, x.shape[:2])

        return np.mean(losses_with(page.model, inputs, targets, 3, FIRST, change)) - whole

    whole = np.mean(losses_with(page.model, inputs, targets, 3, FIRST, None))
    rises = [rise(seed) for seed in range(3)]
    assert min(rises) > 0
    assert max(rises) < 0.1
    losses = [row["trained"]["losses"] for row in page.study["gpt"]]
    learned = np.mean(
        [np.mean(each["features"]) - np.mean(each["whole"]) for each in losses]
    )
    assert max(rises) < 2 * learned
    return {"rise": np.mean(rises), "span": (min(rises), max(rises))}


@proof("In SmolLM2 the loss rises less with 32 features than with 32 principal directions.")
def talker_is_alike(page: Page):
    """Check that features replace states of SmolLM2 better than principal directions.

    The highest rise of the loss with features is below the lowest with principal
    directions.

    With each seed, differences of means beat features in most of 13 properties, and
    features beat neurons in less than half.

    Parameters
    ----------
    page : Page
        ``study["talker"]`` lists the outcomes of the study *features* for SmolLM2, one a
        seed. Of each, ``["trained"]["losses"]``: what takes the place of the states
        ("whole" for nothing, "features", "principal directions") → the loss of each window
        in nats a token; and ``["trained"]["scores"]``: kind of unit ("features", "neurons",
        "labels") → F1 of each of 13 properties.

    Returns
    -------
    dict
        ``rise`` and ``rival``, by how much the loss rises with features and with principal
        directions, means over seeds, in nats a token; ``wins``, in how many properties
        features beat neurons, and ``labels``, differences of means beat features, lowest
        and highest over seeds: texts such as "3 to 5".
    """
    rises = []
    rival = []
    for row in page.study["talker"]:
        losses = {name: np.mean(x) for name, x in row["trained"]["losses"].items()}
        rises.append(losses["features"] - losses["whole"])
        rival.append(losses["principal directions"] - losses["whole"])
    assert max(rises) < min(rival)
    wins = counts(page.study["talker"], "features", "neurons")
    better = counts(page.study["talker"], "labels", "features")
    assert min(better) > 13 / 2
    assert max(wins) < 13 / 2
    return {
        "rise": np.mean(rises),
        "rival": np.mean(rival),
        "wins": f"{min(wins)} to {max(wins)}",
        "labels": f"{min(better)} to {max(better)}",
    }


# --- reading ------------------------------------------------------------------------------


def counts(rows, one, other):
    """Return, for each seed, in how many properties one kind of unit has the higher F1.

    ``rows`` : list of dict, the outcomes of a model, one a seed, with
    ``["trained"]["scores"]``: kind of unit → F1 of each property; ``one``, ``other`` : str,
    two of these kinds, such as "features" and "neurons". Returns a list of int.
    """
    ahead = []
    for row in rows:
        scores = row["trained"]["scores"]
        ahead.append(int(np.sum(np.array(scores[one]) > np.array(scores[other]))))
    return ahead


def labels_without_a_model(page: Page):
    """Differences of means in a GPT with shuffled weights.

    Parameters
    ----------
    page : Page
        ``study["gpt"]`` lists the outcomes of the study *features*, one a seed. Each has,
        of our GPT ("trained") and of one with shuffled weights ("shuffled"), ``scores``:
        kind of unit → F1 of each property.

    Returns
    -------
    Page
        In ``study``, the trained model's scores of "labels" (differences of means) are
        those of the shuffled one.
    """
    study = copy.deepcopy(page.study)
    for row in study["gpt"]:
        row["trained"]["scores"]["labels"] = row["shuffled"]["scores"]["labels"]
    return page.replaced(study=study)


@finding(
    "In our GPT the plain difference of two means detects most of sixteen properties of a "
    "character better than the best of 512 learned features.",
    rival="the best neuron, which beats the best feature in {neurons} properties",
    null=labels_without_a_model,
    n="{marks} properties, {seeds} autoencoders, {characters:,} held-out characters",
    interval="properties in which the difference of means is better: {better}",
)
def labels_tell_more(page: Page):
    """Check that differences of means detect more properties than features do.

    It is so in most properties with each seed; and features are ahead of neurons in half at
    most. On average the best feature has no higher F1 than the best neuron, and at most
    0.02 more than the best random direction.

    The unit is chosen on training sonnets, and judged on others by F1.

    Parameters
    ----------
    page : Page
        ``study["gpt"]`` lists the outcomes of the study *features*, one a seed, with
        ``["trained"]["scores"]``: kind of unit ("features", "neurons", "labels", "random
        directions") → F1 of each property. ``MARKS`` are the properties, by name, and
        ``test`` is the text that judges, a str.

    Returns
    -------
    dict
        In how many properties, lowest and highest over seeds, as texts: ``better``, labels
        than features; ``neurons``, than features; ``ahead``, features than neurons. Mean
        F1, 0 to 1: ``f1`` of features, ``f1_neurons``, ``f1_labels``, ``f1_random``.
        ``marks`` (properties), ``seeds``, ``characters``: how many.
    """
    rows = page.study["gpt"]
    total = len(page.MARKS)
    better = counts(rows, "labels", "features")
    ahead = counts(rows, "features", "neurons")
    neurons = counts(rows, "neurons", "features")
    assert min(better) > total / 2
    assert max(ahead) <= total / 2
    means = {
        kind: np.mean([row["trained"]["scores"][kind] for row in rows])
        for kind in ("features", "neurons", "labels", "random directions")
    }
    assert means["features"] <= means["neurons"]
    assert means["features"] < means["random directions"] + 0.02
    return {
        "better": f"{min(better)} to {max(better)}",
        "neurons": f"{min(neurons)} to {max(neurons)}",
        "ahead": f"{min(ahead)} to {max(ahead)}",
        "marks": total,
        "seeds": len(rows),
        "characters": len(page.test),
        "f1": means["features"],
        "f1_neurons": means["neurons"],
        "f1_labels": means["labels"],
        "f1_random": means["random directions"],
    }


def nothing_was_learned(page: Page):
    """The features of a GPT with shuffled weights in the place of our GPT's.

    Parameters
    ----------
    page : Page
        ``study["gpt"]`` lists the outcomes of the study *features*, one a seed. Each has,
        of our GPT ("trained") and of one with shuffled weights ("shuffled"), ``named``:
        kind of unit → how many units were tried, and which got a name.

    Returns
    -------
    Page
        In ``study``, ``named`` of the trained model is that of the shuffled one.
    """
    study = copy.deepcopy(page.study)
    for row in study["gpt"]:
        row["trained"]["named"] = row["shuffled"]["named"]
    return page.replaced(study=study)


def names_of(row, model):
    """Return the share of features with a name, how right names are, and how complete.

    Parameters
    ----------
    row : dict
        An outcome of the study *features*: model → ``["named"]["features"]``, a dict:
        ``tried``, how many features; ``names``, a list for each that got one: feature,
        property, share of the feature's places where the name is right, and share of the
        property's places where the feature is.
    model : {"trained", "shuffled"}
        Our GPT, or one with shuffled weights.

    Returns
    -------
    named, right, complete : float
        From 0 to 1; the last two are medians over the names.
    """
    named = row[model]["named"]["features"]
    names = np.array(named["names"])
    return len(names) / named["tried"], np.median(names[:, 2]), np.median(names[:, 3])


def share_of_earlier(row, model, marks):
    """Return the share of names that say more than which character stands there.

    ``row`` : dict, an outcome of the study *features*, with
    ``[model]["named"]["features"]``: ``names``, lists whose second entry is the number of a
    property; ``model`` : "trained" or "shuffled"; ``marks`` : list of str, the properties'
    names. Those in `ITSELF`, such as "a vowel", are true of the character itself.
    """
    names = [marks[name] for _, name, *_ in row[model]["named"]["features"]["names"]]
    return np.mean([name not in ITSELF for name in names])


def right_of(row, model, mark):
    """Return how often a typical name of one property is right, the median of shares.

    ``row`` : dict, an outcome of the study *features*, with
    ``[model]["named"]["features"]``: ``names``, lists of feature, property, and of the
    feature's places the share that has the property, where the name is right, then of the
    property's places the share that has the feature; ``model`` : "trained" or "shuffled";
    ``mark`` : int, the property's number.
    """
    names = row[model]["named"]["features"]["names"]
    return np.median([right for _, name, right, _ in names if name == mark])


@finding(
    "A GPT with shuffled weights has features with names, too; but nearly all name the "
    "character itself, and hardly any what came before.",
    rival="the trained GPT, in which more features get a name: {named:.0%}",
    null=nothing_was_learned,
    n="{tried} features that got a name, of {seeds} autoencoders on shuffled weights",
    interval="names of more than the character: {span:.0%}; trained: {trained_span:.0%}",
)
def names_come_without_learning(page: Page):
    """Check how many features get names in the trained GPT and in a shuffled one.

    With shuffled weights and each seed at least a third get a name, and less than a tenth
    of these say more than which character stands there.

    In the trained GPT more than half of the names do, and more features get one. All names
    together are right there no more often, but for 0.05; those of a vowel are right more
    often with each seed. In both, typical names find less than a tenth of the property's
    places.

    Parameters
    ----------
    page : Page
        ``study["gpt"]`` lists the outcomes of the study *features*, one a seed. Each has,
        of our GPT ("trained") and of one with shuffled weights ("shuffled"),
        ``["named"]["features"]``: ``tried``, how many, and ``names``, a list for each that
        got one: the feature, the property's number, the share of places where the name is
        right, and the share of the property's places that are found. ``MARKS`` are the
        properties, by name.

    Returns
    -------
    dict
        Shares, of the trained GPT and (``…_blank``) the shuffled one: ``named``, features
        that get a name; ``more``, names of more than the character (``span`` and
        ``trained_span``: lowest and highest); ``right``, places where the name is right;
        ``vowel``, the same for a vowel; ``complete``, places of the property that are
        found. ``tried`` (features), ``seeds``: how many; ``answer``, the letter of the
        right choice: "c" if ``right`` is below 0.8, else "a".
    """
    rows = page.study["gpt"]
    marks = [*page.MARKS]
    shuffled = np.array([names_of(row, "shuffled") for row in rows])
    ours = np.array([names_of(row, "trained") for row in rows])
    more_shuffled = [share_of_earlier(row, "shuffled", marks) for row in rows]
    more = [share_of_earlier(row, "trained", marks) for row in rows]
    vowel = marks.index("a vowel")
    vowels = np.array(
        [[right_of(row, model, vowel) for model in ("trained", "shuffled")] for row in rows]
    )
    assert 1 / 3 < shuffled[:, 0].min() <= shuffled[:, 0].max() < ours[:, 0].min()
    assert max(more_shuffled) < 0.1
    assert min(more) > 0.5
    assert shuffled[:, 1].min() > ours[:, 1].max() - 0.05
    assert (vowels[:, 0] > vowels[:, 1]).all()
    assert max(shuffled[:, 2].max(), ours[:, 2].max()) < 0.1
    return {
        "named": ours[:, 0].mean(),
        "named_blank": shuffled[:, 0].mean(),
        "span": (min(more_shuffled), max(more_shuffled)),
        "trained_span": (min(more), max(more)),
        "more": np.mean(more),
        "more_blank": np.mean(more_shuffled),
        "vowel": vowels[:, 0].mean(),
        "vowel_blank": vowels[:, 1].mean(),
        "right": ours[:, 1].mean(),
        "right_blank": shuffled[:, 1].mean(),
        "complete": ours[:, 2].mean(),
        "tried": sum(len(row["shuffled"]["named"]["features"]["names"]) for row in rows),
        "seeds": len(rows),
        "answer": "c" if ours[:, 1].mean() < 0.8 else "a",
    }


# --- steering -----------------------------------------------------------------------------


def reached(rows, way):
    """Return the targets that a way brings to a probability of one half, by any strength.

    ``rows`` : list of dict, what each push of one seed does: ``target``, the name of a
    character; ``way``, the kind of direction; ``probs``, the target's probability in each
    window, whose mean counts; ``way`` : str, such as "difference of means". Returns a set
    of str.
    """
    chosen = [row for row in rows if row["way"] == way]
    return {row["target"] for row in chosen if np.mean(row["probs"]) >= HALF}


def pushed_at_random(page: Page):
    """Random directions in the place of differences of means.

    Parameters
    ----------
    page : Page
        ``study["gpt"]`` lists the outcomes of the study *features*, one a seed, with
        ``["trained"]["steering"]``, dicts, one a push: ``way``, the kind of direction, and
        ``probs``, the probability of its target in each window.

    Returns
    -------
    Page
        In ``study``, the probabilities of "difference of means" are those of "random
        direction".
    """
    study = copy.deepcopy(page.study)
    for row in study["gpt"]:
        steering = row["trained"]["steering"]
        drawn = [each for each in steering if each["way"] == "random direction"]
        means = [each for each in steering if each["way"] == "difference of means"]
        for one, other in zip(means, drawn, strict=True):
            one["probs"] = other["probs"]
    return page.replaced(study=study)


@finding(
    "Push our GPT along a difference of means, and five of six characters reach a "
    "probability of one half; along the features that detect them best, at most three do.",
    rival="a random direction of the same length: {random} of six",
    null=pushed_at_random,
    n="{windows} windows of held-out sonnets, {seeds} autoencoders, six strengths",
    interval="characters that the best of five features brings to one half: {features}",
)
def means_reach_further(page: Page):
    """Check how many characters each kind of direction makes as likely as not.

    They are a line's end, a space, a comma, *e*, *t* and *s*. With each seed a difference
    of means reaches five, the best of five features three at most.

    Reached is a mean probability of one half, by any of six strengths. A random direction
    reaches none.

    Of the five features that tell a character best, the one that pushes furthest counts.
    A feature chosen from all 512 by what it does may push further.

    Parameters
    ----------
    page : Page
        ``study["gpt"]`` lists the outcomes of the study *features*, one a seed, with
        ``["trained"]["steering"]``, dicts, one a push: ``target``, a character; ``way``,
        the kind of direction; ``strength``, 0 to 2; by window, ``probs``, the target's
        probability, and ``losses`` of the other characters, in nats.

    Returns
    -------
    dict
        ``features`` (text, lowest and highest) and ``random``, how many of six characters
        are reached; of a line's end pushed along a difference of means with strength 1,
        mean probabilities ``before`` and ``after``, with ``low`` and ``high``;
        ``loss_before`` and ``loss_after`` of the other characters, in nats; ``windows``,
        ``seeds``: how many; ``answer``, the letter of the right choice: "a" if ``low`` and
        ``high`` are more than 0.2 apart, else "b".
    """
    runs = [row["trained"]["steering"] for row in page.study["gpt"]]
    means = [len(reached(rows, "difference of means")) for rows in runs]
    features = [len(reached(rows, "best of five")) for rows in runs]
    drawn = [len(reached(rows, "random direction")) for rows in runs]
    assert min(means) >= 5
    assert max(features) <= 3
    assert max(drawn) == 0
    start = next(row for row in runs[0] if row["strength"] == 0)
    strong = next(
        row
        for row in runs[0]
        if (row["target"], row["way"]) == (start["target"], "difference of means")
        and row["strength"] == 1.0
    )
    return {
        "features": f"{min(features)} to {max(features)}",
        "random": max(drawn),
        "windows": len(start["probs"]),
        "seeds": len(runs),
        "before": np.mean(start["probs"]),
        "after": np.mean(strong["probs"]),
        "loss_before": np.mean(start["losses"]),
        "loss_after": np.mean(strong["losses"]),
        "low": min(strong["probs"]),
        "high": max(strong["probs"]),
        "answer": "a" if max(strong["probs"]) - min(strong["probs"]) > 0.2 else "b",
    }
