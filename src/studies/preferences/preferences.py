"""What do dialogues and preferences make of our GPT, and at what price?

What varies: the seed; dialogues as they are, or with their requests shuffled; how a
preference for echoes is used: best of four, fine-tuning on the best of each four (at two
learning rates, as many tokens as DPO), DPO for two numbers of steps and at four times
the rate; DPO on equally long pairs, and on choices made at random; a reward that is fitted
to choices and does not know of echoes, and what the best of n by it have. Of SmolLM2: what
it is called in its system turn, or no system turn.

Rivals: best of four and filtered fine-tuning. Nulls: requests shuffled; choices at random.

Statistics: of answers to drawn requests the share that begin with the letter asked for;
echoes a line and a word, characters; the loss of held-out lines; how far the model is from
where it began, in nats an answer (KL).

Foretold before it was run, and why: `FORETOLD`. A pilot with another seed then chose the
learning rate of DPO and brought the number of steps in what was foretold down from 300 to
100; it also showed what a fourfold rate does, which is why that is among the runs.
"""

import numpy as np
import torch

from lmcourse.data import load_texts, train_val_test_split
from lmcourse.gpt.checkpoints import load_gpt
from lmcourse.gpt.inside import window_losses
from lmcourse.llama import chat, load_talker, sample_tokens
from lmcourse.numbers import bootstrap_interval
from lmcourse.preferences import (
    LONGEST,
    PROPERTIES,
    RATE,
    best_of,
    differences,
    encode_dialogues,
    fit_reward,
    properties,
    reference_log_probs,
    request,
    train_answers,
    train_dpo,
    write_answers,
)
from lmcourse.weights import save_model
from studies.harness import count, grid, verdict

CHAPTER = "preferences"
AFTER = ("sonnets",)
CHECKPOINTS = ("answering",)
CLAIM = (
    "Trained by DPO on choices between its own lines, our GPT writes more words that echo "
    "each other than are in the best of four lines of the model it was made from"
)
RIVAL = "the best of four lines; fine-tuning on the best of each four"
NULL = "DPO on choices made at random"
FORETOLD = {
    "dialogues": (
        "After fine-tuning on dialogues, nearly all answers begin with the letter asked "
        "for, and without it about one in ten: the letter stands in the request, and the "
        "model has heads that copy. With shuffled requests it stays where it was. For "
        "letters never asked for in training it is less than half: what is learned are "
        "ten letters, rather than to copy."
    ),
    "echoes": (
        "DPO beats the best of four in echoes a line at 100 steps, with every seed; "
        "filtered fine-tuning does not reach the best of four, since it can at most "
        "imitate them."
    ),
    "length": (
        "Lines become longer, since a longer line has more echoes; with pairs of equal "
        "length they hardly do, and echoes a word rise still."
    ),
    "price": (
        "The loss of held-out lines rises by a tenth of a nat a character at 100 steps, "
        "several times as much as with filtered fine-tuning; and fewer answers begin with "
        "the letter that was asked for."
    ),
    "random": "Choices made at random move echoes by less than 0.2 a line.",
    "reward": (
        "A reward without echoes foretells two thirds of choices or more, by length. Best "
        "of n by it: length rises with n, echoes a word hardly."
    ),
    "SmolLM2": (
        "It takes the name that its system turn gives it more often than not; without a "
        "system turn it seldom says that it is SmolLM: the name is in the prompt, not in "
        "the weights."
    ),
}
SETTINGS = {
    "seeds": [0, 1, 2],
    "dialogue steps": 200,
    "steps": [40, 100],
    "beta": 0.1,
    "batch": 16,
    "rates": [1e-4, 1e-3],
    "groups": 400,
    "answers": 20,
    "n": [1, 2, 4, 8, 16],
    "foretold": FORETOLD,
}
LETTERS = "ABDFHILMNOSTWY"  # which begin thirty lines at least
HELD_OUT = "BHNW"  # not in any dialogue: every fourth, from the second
ASKED = "".join(letter for letter in LETTERS if letter not in HELD_OUT)
PROXIES = tuple(name for name in PROPERTIES if name != "echoes")
PEOPLE = [
    "Ada", "Ben", "Clara", "Daniel", "Emily", "Felix", "Grace", "Henry", "Iris", "Jonas",
    "Karin", "Leo", "Mina", "Noah", "Olga", "Peter", "Rosa", "Simon", "Tara", "Victor",
]  # fmt: skip
QUESTION = "What is your name?"
SHOWN = "How can I learn to write better poems?"


def plan(small):
    """Return the settings of all runs: our GPT from each of three seeds, then SmolLM2.

    Parameters
    ----------
    small : bool
        Whether to return one short run, of our GPT.

    Returns
    -------
    list of dict
        The arguments of each run: ``group``, the model, "gpt" or "talker"; ``seed``;
        ``share`` of all steps and answers, 1 for a whole run.
    """
    if small:
        return grid(group="gpt", seed=0, share=0.05)
    return grid(group="gpt", seed=SETTINGS["seeds"], share=1.0) + grid(
        group="talker", seed=0, share=1.0
    )


def run(folder, group, seed, share):
    """Train our GPT from one seed in all ways and measure its answers, or ask SmolLM2.

    Parameters
    ----------
    folder : Path
        Where ``answering.safetensors`` is written: with seed 0, our GPT fine-tuned on
        dialogues.
    group : {"gpt", "talker"}
        The model: our GPT, trained in several ways, or SmolLM2, asked as it is.
    seed : int
        Of all that is drawn at random.
    share : float
        Which part of all steps and answers is done, above 0 to 1.

    Returns
    -------
    dict
        The setting ``seed``. Of "gpt" also

        - ``dialogues``: model ("before", "answers" or "shuffled": not, rightly or wrongly
          fine-tuned on dialogues) → dict: ``asked`` and ``never asked``, shares of answers
          that begin with the letter asked for, and ``losses``,
        - ``ways``: list of dict, one a way of training by preferences: its name ``way``,
          ``steps``, and means of its answers,
        - ``pairs``: dict, "DPO" and "equal lengths" → how many pairs of answers,
        - ``lines``: dict, name of a model → list of ten of its answers, str,
        - ``reward``: dict: ``pairs``, how many; ``fits``, rewards fitted to choices;
          ``best``, the best of n by one of them.

        Of "talker" also ``named``, a list, and ``unnamed`` and ``shown``, dicts: SmolLM2's
        answers to "What is your name?" and to a request for advice.
    """
    if group == "talker":
        return {"seed": seed} | ask_talker()
    runs = Runs(seed, share)
    row = {"seed": seed} | runs.all()
    if seed == 0:
        record = {"steps": SETTINGS["dialogue steps"], "seed": seed}
        save_model(folder / "answering.safetensors", runs.answering, record)
    return row


def dialogues_of(part, letters):
    """Return as dialogues all lines of sonnets that begin with one of some letters.

    Lines of more than 59 characters are left out: with their request they would not fit
    into our GPT.

    Parameters
    ----------
    part : {"training", "validation", "test"}
        Of the sonnets.
    letters : str
        Which letters lines may begin with.

    Returns
    -------
    requests, answers : list of str
        A request, such as "(T)" with a new line, asks for a line that begins with a letter;
        the answer is such a line, and ends in a new line.
    """
    text = getattr(train_val_test_split(load_texts("sonnets")), part)
    lines = [line for line in text.split("\n") if line and line[0] in letters]
    lines = [line for line in lines if len(line) <= LONGEST]
    return [request(line[0]) for line in lines], [f"{line}\n" for line in lines]


class Runs:
    """Trains our GPT from one seed, on dialogues and by preferences, and measures it.

    Parameters
    ----------
    seed : int
        Of all that is drawn at random.
    share : float
        Which part of all steps and answers is done, above 0 to 1.

    Attributes
    ----------
    tokenizer : CharTokenizer
    base : GPT
        Our GPT of the sonnets, of characters, as it is stored.
    held_dialogues : (Tensor, Tensor)
        Dialogues of lines of the test sonnets: ids, int64 (dialogues, tokens), and whether
        each belongs to an answer, bool.
    windows : int64 Tensor of shape (windows, 65)
        The ids of the test sonnets, cut into pieces of 65, of which every second is kept.
    answering : GPT
        The model fine-tuned on dialogues; set by `all`.
    """

    def __init__(self, seed, share):
        """Load our GPT and what models are tested on; ``answering`` is not set yet.

        ``seed``, ``share`` : see the class.
        """
        self.seed = seed
        self.share = share
        self.tokenizer, self.base, _ = load_gpt("sonnets", device="cpu")
        held = dialogues_of("test", ASKED)
        self.held_dialogues = encode_dialogues(self.tokenizer, *held)
        text = train_val_test_split(load_texts("sonnets")).test
        ids = torch.tensor(self.tokenizer.encode(text))
        self.windows = ids[: len(ids) // 65 * 65].view(-1, 65)[::2]

    def part(self, number):
        """Return how many steps or answers this run does where a whole one does ``number``.

        ``number`` : int. The result is an int, 1 at least; of a whole run it is ``number``.
        """
        return max(1, round(self.share * number))

    def encoded(self, requests, answers):
        """Return dialogues as ids.

        ``requests`` and ``answers`` are lists of str of one length, the answers without
        their new line, which is added; the result is two Tensors (dialogues, tokens): the
        ids, int64, and whether each belongs to an answer, bool.
        """
        ended = [f"{answer}\n" for answer in answers]
        return encode_dialogues(self.tokenizer, requests, ended)

    def all(self):
        """Do the whole run; return what was found.

        The model fine-tuned on dialogues is kept as ``answering``.

        Returns
        -------
        dict
            - ``dialogues``: model, "before", "answers" (fine-tuned on dialogues) or
              "shuffled" (on shuffled ones) → dict: ``asked`` and ``never asked``, shares of
              answers that begin with the letter asked for, and ``losses`` (`obeyed`),
            - ``ways``: list of dict, one a way of training by preferences: its name
              ``way``, ``steps``, and means of its answers (`preferences`),
            - ``pairs``: dict, "DPO" and "equal lengths" → how many pairs of answers,
            - ``lines``: dict, name of a model → list of ten of its answers, str,
            - ``reward``: dict: ``pairs``, how many; ``fits``, rewards fitted to choices;
              ``best``, the best of n by one of them (`reward`).
        """
        models = self.dialogues()
        outcome = {"dialogues": {name: self.obeyed(each) for name, each in models.items()}}
        reference = self.answering = models["answers"]
        return outcome | self.preferences(reference) | {"reward": self.reward(reference)}

    # --- dialogues

    def dialogues(self):
        """Fine-tune our GPT on dialogues; return three models by name.

        A whole run takes 200 steps.

        The result is a dict of str to GPT. "before" is the GPT as it is, "answers" the one
        trained on requests and their answers, "shuffled" the one trained with the requests
        shuffled among the answers.
        """
        requests, answers = dialogues_of("training", ASKED)
        shuffled = [
            requests[i] for i in np.random.default_rng(self.seed).permutation(len(requests))
        ]
        right = encode_dialogues(self.tokenizer, requests, answers)
        wrong = encode_dialogues(self.tokenizer, shuffled, answers)
        steps = self.part(SETTINGS["dialogue steps"])
        how = {"steps": steps, "batch": SETTINGS["batch"], "seed": self.seed}
        return {
            "before": self.base,
            "answers": train_answers(self.base, right, **how),
            "shuffled": train_answers(self.base, wrong, **how),
        }

    def obeyed(self, model):
        """Return how often a model begins its answer with the letter that is asked for.

        Parameters
        ----------
        model : GPT

        Returns
        -------
        dict
            ``asked`` and ``never asked``: the share of answers that begin with the letter,
            of the ten letters that dialogues ask for and of four others; ``losses``: a
            dict, ``text``, on held-out sonnets, and ``answers``, on held-out answers to
            requests, in nats a character.
        """
        result = {}
        for name, letters in {"asked": ASKED, "never asked": HELD_OUT}.items():
            requests = [request(each) for each in letters] * self.part(SETTINGS["answers"])
            answers = write_answers(model, self.tokenizer, requests, 1000 + self.seed)
            result[name] = share_obeyed(requests, answers)
        return result | {"losses": self.losses(model)}

    @torch.no_grad()
    def losses(self, model):
        """Return a model's mean losses on held-out text and on held-out answers.

        ``model`` : GPT. The result is a dict of two floats in nats a character: ``text``,
        on the test sonnets; ``answers``, on lines of these as answers to requests, where
        the characters of the request are not counted.
        """
        windows = window_losses(model, self.windows[:, :-1], self.windows[:, 1:])
        log_probs = reference_log_probs(model, *self.held_dialogues)
        answers = -log_probs.sum() / self.held_dialogues[1].sum()
        return {
            "text": round(windows.mean().item(), 4),
            "answers": round(answers.item(), 4),
        }

    # --- preferences

    def groups(self, reference, count, n, seed):
        """Let a model write several answers to each of some requests.

        Parameters
        ----------
        reference : GPT
            The model that writes.
        count : int
            How many requests.
        n : int
            How many answers to each.
        seed : int
            Of the characters that are drawn.

        Returns
        -------
        requests : list of str
            Those that were asked, ``count`` of them; the ten letters come in turn.
        groups : list of list of str
            Of each request the answers, at temperature 0.7.
        """
        requests = [request(ASKED[i % len(ASKED)]) for i in range(count)]
        repeated = [each for each in requests for _ in range(n)]
        answers = write_answers(reference, self.tokenizer, repeated, seed)
        return requests, [answers[i : i + n] for i in range(0, len(answers), n)]

    def preferences(self, reference):
        """Train models to prefer echoes in several ways, and measure their answers.

        An echo is a word that begins with the same letter as another word of its line. Of
        four answers to a request, the one with the most echoes is preferred to the one with
        the fewest; if all have equally many, they make no pair. A request, such as "(T)"
        and a new line, asks for a line that begins with a letter.

        Parameters
        ----------
        reference : GPT
            The model that answers, with which all begin. It is left as it is.

        Returns
        -------
        dict
            - ``ways``: list of dict. ``way`` is the name: "reference", "best of four",
              "DPO", "DPO, too far" (at four times the rate), "filtered, RATE" (fine-tuned
              on the best of four), "equal lengths" (DPO on pairs of nearly equal length) or
              "choices at random" (DPO on the same pairs, of which either may be the
              preferred one). ``steps``: of training in a whole run. What it was measured to
              do (`measured`, `measured_best`): means of its answers, ``losses``, and ``kl``
              from the reference, in nats an answer (missing of "best of four"),
            - ``pairs``: how many there were, a dict, "DPO" (any lengths) and "equal
              lengths",
            - ``lines``: dict, "before", "after DPO", "four times the rate" or "choices at
              random" → the first ten answers of that model to the requests that judge it.
        """
        count = self.part(SETTINGS["groups"])
        requests, groups = self.groups(reference, count, 4, 2000 + self.seed)
        asked = list(zip(requests, groups, strict=True))
        pairs = [(ask, *extremes(group)) for ask, group in asked]
        pairs = [pair for pair in pairs if echoes(pair[1]) > echoes(pair[2])]
        alike = [(ask, *alike_pair(group)) for ask, group in asked]
        alike = [pair for pair in alike if echoes(pair[1]) > echoes(pair[2])]
        rng = np.random.default_rng(self.seed)
        coin = [(ask, *rng.permutation([one, other])) for ask, one, other in pairs]
        best = best_of(groups, echoes)
        rows = [
            {"way": "reference", "steps": 0} | self.measured(reference, reference),
            {"way": "best of four", "steps": 0} | self.measured_best(reference),
        ]
        models = {}
        for steps in SETTINGS["steps"]:
            models["DPO", steps] = self.dpo(reference, pairs, steps)
        last = SETTINGS["steps"][-1]
        models["DPO, too far", last] = self.dpo(reference, pairs, last, 4 * RATE)
        for rate in SETTINGS["rates"]:
            models[f"filtered, {rate:g}", last] = train_answers(
                reference,
                self.encoded(requests, best),
                self.part(last),
                rate,
                batch=2 * SETTINGS["batch"],  # DPO reads two answers a pair
                seed=self.seed,
            )
        models["equal lengths", last] = self.dpo(reference, alike, last)
        models["choices at random", last] = self.dpo(reference, coin, last)
        for (way, step_count), model in models.items():
            row = {"way": way, "steps": step_count}
            rows.append(row | self.measured(model, reference))
        shown = {"before": reference}
        shown |= {"after DPO": models["DPO", last]}
        shown |= {"four times the rate": models["DPO, too far", last]}
        shown |= {"choices at random": models["choices at random", last]}
        lines = {name: self.answers(model)[:10] for name, model in shown.items()}
        return {
            "ways": rows,
            "pairs": {"DPO": len(pairs), "equal lengths": len(alike)},
            "lines": lines,
        }

    def dpo(self, reference, pairs, steps, rate=RATE):
        """Return a model trained by DPO.

        Parameters
        ----------
        reference : GPT
            The model that training begins with.
        pairs : list of (str, str, str)
            Request, chosen answer, rejected answer; the answers without their new line.
        steps : int
            How many a whole run has; of a shorter one its ``share`` of them is taken.
        rate : float
            The learning rate at the beginning; it falls to zero.

        Returns
        -------
        GPT
            A trained copy.
        """
        requests, chosen, rejected = zip(*pairs, strict=True)
        sides = [self.encoded(requests, side) for side in (chosen, rejected)]
        how = {
            "beta": SETTINGS["beta"],
            "batch": SETTINGS["batch"],
            "seed": self.seed,
            "rate": rate,
        }
        return train_dpo(reference, *sides, self.part(steps), **how)

    def answers(self, model):
        """Return a model's answers to the requests on which models are judged, list of str.

        ``model`` : GPT, which writes them at temperature 0.7.
        """
        return write_answers(model, self.tokenizer, self.judged(), 3000 + self.seed)

    def judged(self):
        """Return the requests on which models are judged, list of str such as "(T)\\n".

        Of a whole run 200: each of the ten letters that dialogues ask for, twenty times.
        """
        return [request(each) for each in ASKED] * self.part(SETTINGS["answers"])

    def measured(self, model, reference):
        """Measure a model: its answers, its losses, and how far it is from the reference.

        An echo is a word that begins with a letter with which another word of its line
        begins.

        Parameters
        ----------
        model, reference : GPT
            The trained model, and the one that it began with.

        Returns
        -------
        dict
            Of its answers the means a line of ``echoes``, ``characters`` and ``words``; ``a
            word``, all echoes over all words; ``span``, the 95 % interval of the mean of
            echoes; ``n``, how many lines; ``different``, the share of different ones;
            ``obeyed``, the share that begin with the letter asked for. ``losses``: a dict,
            ``text``, on held-out sonnets, and ``answers``, on held-out answers, in nats a
            character; ``kl``, over answers drawn from the model at temperature 1 the mean
            of their log-probability under the model less that under the reference, in nats
            an answer.
        """
        answers = self.answers(model)
        result = counted(answers) | {"obeyed": share_obeyed(self.judged(), answers)}
        drawn = write_answers(model, self.tokenizer, self.judged(), 4000 + self.seed, 1.0)
        dialogues = self.encoded(self.judged(), drawn)
        gaps = reference_log_probs(model, *dialogues)
        gaps = gaps - reference_log_probs(reference, *dialogues)
        return result | {
            "losses": self.losses(model),
            "kl": round(gaps.mean().item(), 3),
        }

    def measured_best(self, reference):
        """Measure the answers with the most echoes of each four that a model writes.

        An echo is a word that begins with a letter with which another word of its line
        begins.

        ``reference`` : GPT, which writes them. The result is a dict: means a line of
        ``echoes``, ``characters`` and ``words``; ``a word``, echoes for each word;
        ``span``, the 95 % interval of the mean of echoes; ``n``, how many lines;
        ``different``, the share of different ones; ``obeyed``, the share that begin with
        the letter asked for; ``losses`` of the reference in nats a character, a dict with
        ``text`` and ``answers``.
        """
        repeated = [each for each in self.judged() for _ in range(4)]
        answers = write_answers(reference, self.tokenizer, repeated, 3000 + self.seed)
        best = best_of([answers[i : i + 4] for i in range(0, len(answers), 4)], echoes)
        result = counted(best) | {"obeyed": share_obeyed(self.judged(), best)}
        return result | {"losses": self.losses(reference)}

    # --- a reward

    def reward(self, reference):
        """Fit rewards to choices by echoes; let one that does not know of echoes choose.

        An echo is a word that begins with the same letter as another word of its line; of
        two answers to a request the one with more is chosen. A reward is a weighted sum of
        properties of a line.

        Parameters
        ----------
        reference : GPT
            The model that writes the answers.

        Returns
        -------
        dict
            - ``pairs``: how many pairs of answers differ in echoes,
            - ``fits``: "all" (properties), "without echoes", "length alone" or "choices at
              random" → dict: ``weights``, property of a line ("characters", "words",
              "echoes", "capitals", "marks" of punctuation) → its weight, where the
              property's difference within a pair is measured in its standard deviations;
              ``each``, the same weights where it is measured in words, characters and so
              on; ``right``, the share of choices predicted in the half of the pairs that no
              fit has seen,
            - ``best``: list of dict, one for each n (1, 2, 4, 8, 16, in this order), of the
              answers that have the highest reward "without echoes" among n: the mean
              ``reward``, and ``echoes`` and other means a line, those of `counted`.
        """
        count = self.part(2 * SETTINGS["groups"])
        _, groups = self.groups(reference, count, 2, 5000 + self.seed)
        groups = [pair for pair in groups if echoes(pair[0]) != echoes(pair[1])]
        first, second = zip(*groups, strict=True)
        chosen = np.array([echoes(a) > echoes(b) for a, b in groups])
        coin = np.random.default_rng(self.seed).random(len(chosen)) < 0.5
        half = len(groups) // 2
        fits = {}
        proxy_weights = None
        for name, names, choices in (
            ("all", PROPERTIES, chosen),
            ("without echoes", PROXIES, chosen),
            ("length alone", ("characters",), chosen),
            ("choices at random", PROPERTIES, coin),
        ):
            rows = differences(first, second, names)
            spread = rows[:half].std(0) + 1e-9
            weights = fit_reward(rows[:half] / spread, choices[:half])
            right = (rows[half:] / spread @ weights > 0) == choices[half:]
            fits[name] = {
                "weights": dict(zip(names, np.round(weights, 3).tolist(), strict=True)),
                "each": dict(
                    zip(names, np.round(weights / spread, 5).tolist(), strict=True)
                ),
                "right": round(float(right.mean()), 4),
            }
            if name == "without echoes":
                proxy_weights = weights / spread

        def score(line):
            """Return the reward of a line by the fit that knows no echoes, a float."""
            values = properties(line)
            return float(
                sum(
                    w * values[name] for w, name in zip(proxy_weights, PROXIES, strict=True)
                )
            )

        largest = max(SETTINGS["n"])
        _, groups = self.groups(reference, self.part(100), largest, 6000 + self.seed)
        best = []
        for n in SETTINGS["n"]:
            lines = best_of([group[:n] for group in groups], score)
            mean = round(float(np.mean([score(line) for line in lines])), 3)
            best.append({"reward": mean} | counted(lines))
        return {"pairs": len(first), "fits": fits, "best": best}


# --- lines --------------------------------------------------------------------------------


def echoes(line):
    """Return how many words of a line begin with the letter of another one, an int.

    ``line`` : str. Capitals do not matter.
    """
    return properties(line)["echoes"]


def extremes(group):
    """Return the answer of a group with the most echoes, and the one with the fewest.

    An echo is a word that begins with the same letter as another word of its line.
    ``group`` : list of str. Returns a pair of str; of several with as many echoes the first
    is taken, so that both may be the same answer.
    """
    return max(group, key=echoes), min(group, key=echoes)


def alike_pair(group):
    """Return the two answers of nearly equal length that differ most in echoes.

    An echo is a word that begins with the same letter as another word of its line.
    ``group`` : list of str. The one with more echoes comes first; they differ by two
    characters at the most. If no such pair differs in echoes, both are the first answer.
    """
    pairs = [
        (one, other) for one in group for other in group if abs(len(one) - len(other)) <= 2
    ]
    return max(pairs, key=lambda pair: echoes(pair[0]) - echoes(pair[1]))


def share_obeyed(requests, answers):
    """Return the share, 0 to 1, of answers that begin with the letter of their request.

    ``requests`` and ``answers`` : lists of str, of one length; the second character of a
    request is the letter it asks for, as in "(T)".
    """
    pairs = zip(requests, answers, strict=True)
    return round(float(np.mean([answer[:1] == ask[1] for ask, answer in pairs])), 4)


def counted(lines):
    """Return the means of some lines' properties, and the interval of the mean of echoes.

    Parameters
    ----------
    lines : list of str
        Each a line of verse.

    Returns
    -------
    dict
        Means a line: ``echoes`` (words that begin with the letter of another word of the
        line), ``characters`` and ``words``. ``a word``: all echoes over all words;
        ``span``: [low, high], the 95 % interval of the mean of echoes; ``n``: how many
        lines; ``different``: how many different ones there are, as a share.
    """
    rows = {name: [properties(line)[name] for line in lines] for name in PROPERTIES}
    means = {name: round(float(np.mean(rows[name])), 3) for name in PROPERTIES[:3]}
    low, high = bootstrap_interval(np.array(rows["echoes"], dtype=float))
    return means | {
        "a word": round(sum(rows["echoes"]) / max(1, sum(rows["words"])), 4),
        "span": [round(float(low), 3), round(float(high), 3)],
        "n": len(lines),
        "different": round(len(set(lines)) / len(lines), 4),
    }


# --- SmolLM2 ------------------------------------------------------------------------------


def ask_talker():
    """Ask SmolLM2 for its name, and how to write better poems, in several forms.

    All answers are greedy: the most probable token at each step.

    Returns
    -------
    dict
        ``named``: list of dict, one for each of twenty first names: ``name``, which the
        system turn gives ("You are NAME, an assistant."), and ``answer`` to "What is your
        name?", both str. ``unnamed``: dict of answers to it with the system turn that is
        shipped ("as shipped"), with one that has "no name", and with "no system turn".
        ``shown``: dict, form of "How can I learn to write better poems?" ("in the
        template", "without system turn", "bare", "bare, and a line break") → the answer.
    """
    tokenizer, model = load_talker(device="cpu")

    def turns(system, question):
        """Return a dialogue of a system turn and a question, both str, as `chat` takes it.

        A list of two dicts with ``role``, "system" or "user", and ``content``.
        """
        roles = {"system": system, "user": question}
        return [{"role": role, "content": text} for role, text in roles.items()]

    def answer(messages, tokens=24):
        """Return the greedy answer to a dialogue, str, of at most ``tokens`` tokens.

        ``messages`` : list of dict with ``role`` and ``content``; or a question, str,
        before which the system turn that is shipped is put.
        """
        return chat(tokenizer, model, messages, tokens=tokens)

    def go_on(text, tokens=60):
        """Return what SmolLM2 writes after a text, str, of at most ``tokens`` tokens.

        ``text`` : str, encoded as it stands, without the template of dialogues.
        """
        ids = tokenizer(text, return_tensors="pt", add_special_tokens=False).input_ids
        return tokenizer.decode(
            list(sample_tokens(model, ids, tokens, {tokenizer.eos_token_id}))
        )

    template = tokenizer.apply_chat_template(
        turns("", QUESTION)[1:], tokenize=False, add_generation_prompt=True
    )
    without = template[template.index("<|im_start|>user") :]
    named = [
        {"name": name, "answer": answer(turns(f"You are {name}, an assistant.", QUESTION))}
        for name in PEOPLE
    ]
    unnamed = {
        "as shipped": answer(QUESTION),
        "no name": answer(turns("You are an assistant.", QUESTION)),
        "no system turn": go_on(without, 24),
    }
    shown = {
        "in the template": answer(SHOWN, 60),
        "without system turn": go_on(without.replace(QUESTION, SHOWN)),
        "bare": go_on(SHOWN),
        "bare, and a line break": go_on(f"{SHOWN}\n"),
    }
    return {"named": named, "unnamed": unnamed, "shown": shown}


def summary(results):
    """Return what is stored beside the outcomes.

    Parameters
    ----------
    results : dict of str to list of dict
        Group → outcomes of its runs. Those of "gpt", one a seed, have ``ways``, list of
        dict: ``way``, "DPO" or "best of four" for two; ``steps``, int; ``echoes``, the mean
        number of words a line that begin with the letter of another word of the line.

    Returns
    -------
    dict
        ``n``, the number of outcomes of all groups, and their ``seeds``; ``interval``:
        [lowest, highest] gap of echoes a line, DPO with most steps less the best of four,
        over seeds; ``verdict``, "holds" or "not so": whether all are above 0.
    """
    gaps = []
    for row in results["gpt"]:
        mean = {(each["way"], each["steps"]): each["echoes"] for each in row["ways"]}
        gaps.append(mean["DPO", SETTINGS["steps"][-1]] - mean["best of four", 0])
    span = [round(min(gaps), 4), round(max(gaps), 4)]
    record = count([row for rows in results.values() for row in rows])
    return record | {"interval": span, "verdict": verdict(min(gaps) > 0)}
