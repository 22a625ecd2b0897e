"""A training as a film: when does a GPT learn which n-grams, and when does *thou* matter?

The book's GPT is trained as `studies.mini_gpt.sonnets` trains it: same seed, same recipe.
At fifteen stops its weights are kept, and at each they are asked the same questions.

What varies: the steps that were made, from none to 2,000. One training, one seed.

Rivals: n-gram models of 1 to 6 characters counted in the training text, whose likeliest
next character is compared with the GPT's at every position of held-out sonnets; a *we* in
the place of *thou*, whose heads are copied in the same way.

Null: the GPT before its first step.

Statistic: by how many logits the two heads that carry *thou* in the end raise *t* above
*l*, copied from *And thou … shal* into *And they … shal*, less the same from *And we …
shal*. The interval is over the forty words in between, drawn again. It is that of the first
stop from which on it stays above zero, and *t* is likelier than *l* after most prompts with
*thou*.

Foretold before it was run, and why: `FORETOLD`. The rule above asks for both, so it finds
the stop where *thou* decides. The heads alone bring something from an earlier stop on: what
they add grows step by step, and *t* passes *l* late.
"""

import re
from collections import Counter

import numpy as np
import torch

from lmcourse.data import fingerprint, load_corpus, load_texts, train_val_test_split
from lmcourse.film import Film, first_for_good, pack, thou_matters
from lmcourse.gpt import checkpoints
from lmcourse.gpt.checkpoints import load_gpt
from lmcourse.gpt.generation import generate
from lmcourse.gpt.inside import outputs
from lmcourse.gpt.training import cross_entropy, cut_windows
from lmcourse.ngrams import NgramModel
from lmcourse.numbers import bootstrap_interval
from lmcourse.patching import copied_heads
from lmcourse.train import new_run
from lmcourse.weights import read_record, save_tensors
from studies.harness import verdict
from studies.measures import ratio_of_sums
from studies.mini_gpt.sonnets import CHANGES

CHAPTER = "mini-gpt"
AFTER = ("sonnets",)
CHECKPOINTS = ("film",)
CLAIM = (
    "In training, our GPT expects the t of “thou … shalt” in most prompts only after it "
    "agrees with 4-grams more than with shorter n-grams"
)
RIVAL = "n-gram models of 1 to 6 characters; a “we” in the place of “thou”"
NULL = "the GPT before its first step"
STEPS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 300, 500, 700, 1000, 1500, 2000)
FORETOLD = {
    "n-grams": (
        "The order that the GPT agrees with most is 1 up to step 20, 2 around step 100, 3 "
        "by step 300, 4 by step 700, and 5 or 6 at the end: a longer context pays only "
        "once a shorter one is used up. In the end it agrees with the closest order in "
        "more than 60 % of places and less than 80 %, since it reads farther and smooths "
        "otherwise."
    ),
    "thou": (
        "It begins to matter between steps 700 and 1,500, after the GPT agrees with "
        "4-grams more than with shorter ones: few letters hang on it, so spelling comes "
        "first."
    ),
    "heads": (
        "Heads 3.0 and 3.3 are the two strongest from the stop on where thou matters; "
        "before it they bring no more from thou than from we."
    ),
    "though": (
        "Though is taken for thou from the stop on where thou matters: four letters are "
        "easier to learn than a word, so there is no stop at which only thou will do."
    ),
    "last": (
        "The last checkpoint has the weights of the book's GPT to the bit on a processor "
        "like the one it was made on; on another one its loss is within 0.02 nats of it, "
        "since training makes small differences of rounding large."
    ),
    "packed": (
        "Stored in less than three bits a number, a checkpoint loses less than 0.02 nats "
        "at every stop: only what changed since the stop before is rounded."
    ),
}


WORDS = 40  # that stand between a pronoun and its verb
ENDS = ("shal", "wil")  # verbs, to be ended by "t" or "l"
TWO = [(3, 0), (3, 3)]  # the two heads that carry "thou": layer and head, from 0
ORDERS = (1, 2, 3, 4, 5, 6)  # of n-grams
STRIDE = 32  # from window to window: the GPT sees 33 to 64 characters before each position
SETTINGS = {"steps": STEPS, "changes": CHANGES, "orders": ORDERS, "heads": TWO}
SETTINGS |= {"words": WORDS, "samples": 60, "sample": 60, "foretold": FORETOLD}


def plan(small):
    """Return the settings of all runs.

    Parameters
    ----------
    small : bool
        Whether two steps are made instead of 2,000.

    Returns
    -------
    list of dict
        The arguments of each run: ``group``, which is "training", "counting", "stops" or
        "packed"; ``steps``, after which the model is kept, fifteen from 0 to 2,000; of
        "stops" also ``stop``, the index in that list, from 0.
    """
    steps = STEPS[:3] if small else STEPS
    stops = [{"group": "stops", "steps": steps, "stop": i} for i in range(len(steps))]
    others = [{"group": group, "steps": steps} for group in ("training", "counting")]
    return [*others, *stops, {"group": "packed", "steps": steps}]


def run(folder, group, **setting):
    """Train, count, or ask one checkpoint or all.

    Parameters
    ----------
    folder : Path
        Holds the checkpoints, ``likeliest.npy``, the n-grams' answers, and what is packed:
        each is written there by its group.
    group : {"training", "counting", "stops", "packed"}
        What to do: train the GPT and keep its checkpoints; ask n-gram models for the
        likeliest characters; ask the checkpoint of one stop; pack all stops into one file.
    **setting
        ``steps``, after which the model is kept, a sequence of int; of "stops" also
        ``stop``, the index in it, from 0.

    Returns
    -------
    dict or list of dict
        Losses are in nats a character.

        - "training": ``history``, of the losses; ``largest`` and ``apart``, how far the
          model is from the book's; ``seconds`` (`train_and_compare`),
        - "counting": ``losses`` of n-grams, a list by order; ``right``, a list by order of
          the share of positions where they are right; and more (`count_ngrams`),
        - "stops": ``step``; ``train`` and ``held_out``, losses; ``agrees``, the agreement
          with n-grams, a list by order; ``brought``, by how many logits two heads that are
          copied from *thou* raise a *t*; and more (`ask_stop`),
        - "packed": a list with such a dict for each stop (`pack_stops`).
    """
    functions = {"training": train_and_compare, "counting": count_ngrams}
    functions |= {"stops": ask_stop, "packed": pack_stops}
    return functions[group](folder, **setting)


# --- training -----------------------------------------------------------------------------


def train_and_compare(folder, steps):
    """Train the book's GPT, and measure how far the last checkpoint is from the book's own.

    Parameters
    ----------
    folder : Path
        Where the checkpoints are written.
    steps : sequence of int
        After how many training steps a checkpoint is kept: ascending, from 0; the training
        ends at the last.

    Returns
    -------
    dict
        ``history``: list of dict, one a stop: ``step``, and ``train`` and ``validation``,
        the losses that the training reports, in nats a character (``train`` is None at step
        0). ``largest``: the largest difference, in size, of a weight of the last checkpoint
        from the same in ``sonnets.safetensors``; ``apart``: by how many nats the validation
        losses differ, in size. ``seconds``: of the whole training, also if it was stopped
        and went on.
    """
    _, trainer = train_with_stops(folder, steps)
    _, book, record = load_gpt("sonnets", device="cpu")
    book_weights = book.state_dict()
    pairs = [(x, book_weights[name]) for name, x in trainer.gpt.state_dict().items()]
    history = [
        {
            "step": each["step"],
            "train": each["train_loss"] and round(each["train_loss"], 4),
            "validation": round(each["val_loss"], 4),
        }
        for each in trainer.history
    ]
    return {
        "history": history,
        "largest": max(float((x - y).abs().max()) for x, y in pairs),
        "apart": round(abs(trainer.history[-1]["val_loss"] - record["val_loss"]), 6),
        "seconds": round(trainer.progress.seconds, 1),
    }


def train_with_stops(folder, steps, device="cpu"):
    """Train the book's GPT, and save a checkpoint at each stop.

    Where a stop's checkpoint is there, it is read, and the training goes on from it.
    PyTorch has one thread from then on.

    Parameters
    ----------
    folder : Path
        Where the checkpoints are written, ``step-0100.safetensors`` of step 100.
    steps : sequence of int
        The stops, ascending, from 0; the last is the recipe's last. The recipe is that of
        `studies.mini_gpt.sonnets`.
    device : str
        Where it is trained, such as "cpu".

    Returns
    -------
    tokenizer : lmcourse.tokenization.CharTokenizer
    trainer : lmcourse.gpt.training.Trainer
        After its last step. Its history has an estimate of each stop.
    """
    text = load_corpus("sonnets")
    parts = train_val_test_split(load_texts("sonnets"))
    torch.set_num_threads(1)
    changes = CHANGES | {"steps": max(steps[-1], 2)}
    changes["warmup"] = min(100, changes["steps"] - 1)
    tokenizer, trainer = new_run(text, "classic", (), device, parts, **changes)
    corpus = fingerprint(text)
    for step in steps:
        path = stop_path(folder, step)
        if path.is_file():
            checkpoints.restore(path, trainer, corpus)
            continue
        while trainer.progress.step < step:
            trainer.step()
        trainer.evaluate()
        checkpoints.save(path, trainer, tokenizer.alphabet, corpus)
    return tokenizer, trainer


def stop_path(folder, step):
    """Return the path of a stop's checkpoint: ``folder`` (Path), ``step`` (int)."""
    return folder / f"step-{step:04}.safetensors"


def load_stop(folder, step):
    """Return the tokenizer, a CharTokenizer, and the GPT at a stop in evaluation mode.

    ``folder`` : Path, with its checkpoint; ``step`` : int.
    """
    tokenizer, model, _ = load_gpt(stop_path(folder, step), device="cpu")
    return tokenizer, model


# --- counting -----------------------------------------------------------------------------


def held_out(tokenizer):
    """Return the held-out sonnets as windows, and which positions are asked.

    Parameters
    ----------
    tokenizer : CharTokenizer

    Returns
    -------
    ids : int64 Tensor of shape (characters,)
        The test text.
    starts : int64 Tensor of shape (windows,)
        The position in the text, from 0, of the first character of each window of 64. Of
        the GPT's predictions in a window the last 32 are used.
    positions : int array of shape (windows · 32,)
        The positions in the text of the characters that are predicted there.
    sonnets : int array of the same shape
        The number of the sonnet in which each is.
    """
    text = train_val_test_split(load_texts("sonnets")).test
    ids = torch.tensor(tokenizer.encode(text))
    starts = torch.arange(0, len(ids) - 2 * STRIDE, STRIDE)
    positions = (starts[:, None] + STRIDE + torch.arange(STRIDE) + 1).flatten().numpy()
    sonnets = np.array([text.count("\n\n", 0, each) for each in positions])
    return ids, starts, positions, sonnets


def count_ngrams(folder, steps):
    """Ask n-gram models for the likeliest next character at positions of the test sonnets.

    They have counted the training text. The positions are those of `held_out`.

    Parameters
    ----------
    folder : Path
        ``likeliest.npy`` is saved there, int (orders, positions): the id of each order's
        likeliest character at each position.
    steps : sequence of int
        Unused.

    Returns
    -------
    dict
        ``places``: how many are asked; ``losses``: a list, the loss of each order of
        `ORDERS` (1 to 6) on them, in nats a character; ``right``: a list, the share where
        that order's likeliest character is the one that stands there; ``spaces``: the share
        of spaces in the training text.
    """
    tokenizer, _, _ = load_gpt("sonnets", device="cpu")
    training = train_val_test_split(load_texts("sonnets")).training
    ids, _, positions, _ = held_out(tokenizer)
    ids = ids.numpy()
    counted = np.array(tokenizer.encode(training))
    likeliest = []
    losses = []
    right = []
    for order in ORDERS:
        model = NgramModel(counted, order, tokenizer.vocab_size)
        contexts = [ids[max(0, each - order + 1) : each] for each in positions]
        likeliest.append([int(model.next_probs(each).argmax()) for each in contexts])
        losses.append(round(float(-np.log(model.probabilities(ids)[positions]).mean()), 4))
        right.append(round(float((ids[positions] == likeliest[-1]).mean()), 4))
    np.save(folder / "likeliest.npy", np.array(likeliest))
    spaces = round(training.count(" ") / len(training), 4)
    return {"places": len(positions), "losses": losses, "right": right, "spaces": spaces}


# --- a stop -------------------------------------------------------------------------------


def ask_stop(folder, steps, stop):
    """Measure the checkpoint of one stop: losses, n-grams, *thou*, and what it writes.

    Parameters
    ----------
    folder : Path
        With the checkpoints and ``likeliest.npy``, int (orders, positions): the ids of
        the likeliest next characters by n-gram models, at positions of the held-out text.
    steps : sequence of int
        The steps of all stops, ascending.
    stop : int
        The index of its step in ``steps``, from 0.

    Returns
    -------
    dict
        ``step``, after how many steps of training it was kept; and

        - the losses ``train`` and ``held_out``, in nats a character,
        - at positions of the held-out text (`agreement`): ``right``, the share where its
          likeliest character is the one that stands there; ``agrees``, a list, for each
          order of n-grams the share where both find the same one likeliest; ``closest``,
          the order with the highest share, and ``ahead``, the interval of by how much,
        - after prompts such as "And thou sweet shal" (`thou`): ``t``, by the word in the
          place of *thou*, the share of prompts where *t* is likelier than *l*; and in
          logits, by how much the lead of *t* over *l* is larger: ``told``, with *thou* in
          place of *they*; ``brought`` and ``from_we``, if two heads are copied from prompts
          with *thou* or with *we*, and ``interval``, of the difference of these two;
          ``heads``, a list, if one head is copied from *thou*,
        - of what it writes (`written`): ``spaces``, their share; ``words``, by length the
          share of its words that are in the training text.
    """
    tokenizer, model = load_stop(folder, steps[stop])
    row = {"step": steps[stop]} | ask(folder, tokenizer, model)
    return row | written(tokenizer, model)


def ask(folder, tokenizer, model):
    """Return what a model does at a stop of its training: losses, n-grams, and *thou*.

    Parameters
    ----------
    folder : Path
        With ``likeliest.npy``, the likeliest next characters of n-gram models, (orders,
        positions).
    tokenizer : CharTokenizer
    model : GPT

    Returns
    -------
    dict
        - the losses ``train``, on an eighth of the training text, and ``held_out``, on the
          test text, in nats a character,
        - at positions of the test text: ``right``, the share where the character that the
          model finds likeliest stands there; ``agrees``, a list, for each order of n-grams
          the share where it is theirs, too; ``closest``, the order with the highest share,
          and ``ahead``, the interval of by how much,
        - after prompts: ``t``, *thou* or another word in its place → share of prompts where
          *t* is likelier than *l*; and in logits, by how much the lead of *t* is larger:
          ``told``, with *thou* in place of *they*; ``brought`` and ``from_we``, if two
          heads are copied from prompts with *thou* or with *we*, and ``interval``, of the
          difference of these two; ``heads``, a list, if one head is copied from *thou*.
    """
    training = torch.tensor(
        tokenizer.encode(train_val_test_split(load_texts("sonnets")).training)
    )
    starts = torch.arange(0, len(training) - 2 * STRIDE, 8 * STRIDE)
    logits, targets = answers(model, training, starts)
    train = round(cross_entropy(logits, targets).item(), 4)
    agreed = agreement(np.load(folder / "likeliest.npy"), tokenizer, model)
    return {"train": train} | agreed | thou(tokenizer, model)


@torch.no_grad()
def answers(model, ids, starts):
    """Return a model's logits after 33 to 64 characters, and the characters that follow.

    Parameters
    ----------
    model : GPT
    ids : int64 Tensor of shape (characters,)
        A text.
    starts : int64 Tensor of shape (windows,)
        Where windows of 64 characters begin, from 0.

    Returns
    -------
    logits : Tensor of shape (windows, 32, vocab_size)
    targets : int64 Tensor of shape (windows, 32)
    """
    inputs, targets = cut_windows(ids, starts, 2 * STRIDE)
    logits = torch.cat([model(part)[:, STRIDE:] for part in inputs.split(64)])
    return logits, targets[:, STRIDE:]


@torch.no_grad()
def agreement(likeliest, tokenizer, model):
    """Compare the character that a GPT finds likeliest next with those of n-gram models.

    Parameters
    ----------
    likeliest : int array of shape (orders, positions)
        The ids of the likeliest next characters by n-gram models of orders 1 to 6, at the
        positions of the test text that are asked.
    tokenizer : CharTokenizer
    model : GPT

    Returns
    -------
    dict
        ``held_out``: the loss at these positions of the test text, in nats a character;
        ``right``: the share of positions where the model's likeliest character is the one
        that stands there; ``agrees``: a list, for each order the share of positions where
        it is that of the n-gram model; ``closest``: the order with the highest share;
        ``ahead``: [low, high], by how much that share is above the second highest, a 95 %
        interval over sonnets drawn again.
    """
    ids, starts, positions, sonnets = held_out(tokenizer)
    logits, targets = answers(model, ids, starts)
    own = logits.argmax(-1).flatten().numpy()  # (positions,)
    same = own == likeliest  # (orders, positions)
    shares = same.mean(1)
    first, second = np.argsort(-shares, kind="stable")[:2]
    lead = same[first].astype(float) - same[second]
    groups = [sonnets == number for number in np.unique(sonnets)]
    ahead = bootstrap_interval(
        [lead[group].sum() for group in groups],
        [group.sum() for group in groups],
        statistic=ratio_of_sums,
    )
    return {
        "held_out": round(cross_entropy(logits, targets).item(), 4),
        "right": round(float((own == ids.numpy()[positions]).mean()), 4),
        "agrees": shares.round(4).tolist(),
        "closest": ORDERS[first],
        "ahead": rounded(ahead),
    }


def rounded(interval):
    """Return the two ends of an interval, rounded to four decimals, a list of float."""
    return [round(float(end), 4) for end in interval]


def written(tokenizer, model):
    """Let a model write 60 texts of 60 characters; count which of its words are known.

    A word is known if it is in the training text.

    Parameters
    ----------
    tokenizer : CharTokenizer
    model : GPT

    Returns
    -------
    dict
        ``spaces``: their share of the characters that it writes; ``words``: length, "1" to
        "6" → the share of the words it writes of that length that are known, or None if it
        wrote none.
    """
    known = set(words_of(train_val_test_split(load_texts("sonnets")).training))
    start = torch.tensor([tokenizer.encode("\n")] * SETTINGS["samples"])
    generator = torch.Generator().manual_seed(1)
    ids = generate(model, start, SETTINGS["sample"], 1.0, generator)
    texts = [tokenizer.decode(row) for row in ids[:, 1:].tolist()]
    spaces = sum(text.count(" ") for text in texts) / sum(map(len, texts))
    words = [word for text in texts for word in words_of(text)]
    shares = {}
    for length in range(1, 7):
        hits = [word in known for word in words if len(word) == length]
        shares[str(length)] = round(float(np.mean(hits)), 4) if hits else None
    return {"spaces": round(spaces, 4), "words": shares}


def words_of(text):
    """Return the words of a text (str) without their capitals, a list of str."""
    return re.findall(r"[a-z]+", text.lower())


# --- thou ---------------------------------------------------------------------------------


def words_between():
    """Return the words that stand after the pronoun, as the chapter *inside-gpt* has them.

    Returns
    -------
    list of str
        The forty most frequent of the training text of four letters or more, without
        "thou", "thee", "they" and "them".
    """
    counted = Counter(words_of(train_val_test_split(load_texts("sonnets")).training))
    words = [word for word, _ in counted.most_common() if len(word) >= 4]
    return [word for word in words if word not in ("thou", "thee", "they", "them")][:WORDS]


def thou(tokenizer, model):
    """Measure how much *thou* matters for the end of *shalt* and *wilt*, over a word.

    Prompts are "And thou WORD shal" and "And thou WORD wil", with forty words.

    Parameters
    ----------
    tokenizer : CharTokenizer
    model : GPT

    Returns
    -------
    dict
        - ``t``: the word in the place of *thou*, "thou", "they" or "though" → after which
          share of prompts *t* is likelier than *l*,
        - ``told``: by how many logits the lead of *t* over *l* is larger after *thou* than
          after *they*,
        - ``brought``: by how many logits that lead rises in the prompts with *they* if the
          heads 3.0 and 3.3 (layer and head) are copied from those with *thou*; ``from_we``:
          the same if from those with *we*,
        - ``interval``: [low, high], 95 % of ``brought`` less ``from_we``, over the words in
          between drawn again,
        - ``heads``: a list, layer by layer, of by how many logits the lead rises if one
          head alone is copied from *thou*.
    """
    prompts = {
        who: [f"And {who} {word} {end}" for end in ENDS for word in words_between()]
        for who in ("thou", "they", "though", "we")
    }
    leads = {who: lead_of_t(tokenizer, model, texts) for who, texts in prompts.items()}

    def brought(who, heads):
        """Return by how many logits the lead of *t* rises after *they*: array (prompts,).

        ``who`` : the word from whose prompts heads are copied; ``heads`` : list of (layer,
        head), those that are copied.
        """
        copied = lead_of_t(tokenizer, model, prompts["they"], prompts[who], heads)
        return copied - leads["they"]

    by_two = brought("thou", TWO)
    from_we = brought("we", TWO)
    gaps = (by_two - from_we).reshape(len(ENDS), -1).mean(0)  # (words,)
    config = model.config
    heads = [(i, j) for i in range(config.layers) for j in range(config.heads)]
    alone = [round(float(brought("thou", [head]).mean()), 4) for head in heads]
    return {
        "t": {
            who: round(float((leads[who] > 0).mean()), 4) for who in prompts if who != "we"
        },
        "told": round(float((leads["thou"] - leads["they"]).mean()), 4),
        "brought": round(float(by_two.mean()), 4),
        "from_we": round(float(from_we.mean()), 4),
        "interval": rounded(bootstrap_interval(gaps)),
        "heads": alone,
    }


@torch.no_grad()
def lead_of_t(tokenizer, model, texts, sources=None, heads=()):
    """Return how much larger the logit of *t* is than that of *l* after some texts.

    Some heads may be copied: at the last character they return what they return at the last
    character of another text.

    Parameters
    ----------
    tokenizer : CharTokenizer
    model : GPT
    texts : list of str
    sources : list of str, optional
        A text for each, from whose last character the outputs of ``heads`` are copied.
    heads : list of (int, int)
        Layer and head, from 0.

    Returns
    -------
    float array of shape (texts,)
        In logits.
    """
    sources = sources or texts
    id_of_t, id_of_l = tokenizer.encode("tl")
    leads = np.zeros(len(texts))
    lengths = [(len(a), len(b)) for a, b in zip(texts, sources, strict=True)]
    for each in sorted(set(lengths)):  # texts of one length are read at once
        rows = [row for row, both in enumerate(lengths) if both == each]
        here, there = (
            torch.tensor([tokenizer.encode(some[row]) for row in rows])
            for some in (texts, sources)
        )
        with copied_heads(model, heads, outputs(model, there) if heads else {}):
            logits = model(here)[:, -1]
        leads[rows] = (logits[:, id_of_t] - logits[:, id_of_l]).numpy()
    return leads


# --- packed -------------------------------------------------------------------------------


def pack_stops(folder, steps):
    """Write the weights of all stops into one small file, and ask the packed models again.

    Parameters
    ----------
    folder : Path
        With the checkpoints; ``film.safetensors`` is written there.
    steps : sequence of int
        The steps of all stops, ascending.

    Returns
    -------
    list of dict
        For each stop ``step``, and of the weights as they are packed ``train`` and
        ``held_out``, losses in nats a character, ``agrees``, the agreement with n-grams, a
        list by order, ``brought``, what heads bring from *thou*, in logits, and the other
        values of `ask`.
    """
    record = read_record(stop_path(folder, steps[-1]))
    tokenizer, model = load_stop(folder, steps[0])
    states = [load_stop(folder, step)[1].state_dict() for step in steps]
    tensors = pack(states)
    shapes = {name: list(x.shape) for name, x in states[0].items()}
    fields = ("model", "training", "alphabet", "corpus_sha256", "torch", "threads")
    save_tensors(
        folder / "film.safetensors",
        tensors,
        {name: record[name] for name in fields} | {"steps": list(steps), "shapes": shapes},
    )
    film = Film(model.config, steps, shapes, tensors)
    rows = []
    for stop, step in enumerate(steps):
        rows.append({"step": step} | ask(folder, tokenizer, film.model(stop)))
    return rows


def summary(results):
    """Say whether *thou* begins to matter later than the GPT agrees most with 4-grams.

    Parameters
    ----------
    results : dict of str to list of dict
        Group → outcomes of its runs. Those of "stops", in the order of training: ``t``,
        dict, with the share of prompts with "thou" after which *t* is likelier than *l*;
        ``interval``, [low, high], of what two heads bring from *thou* less what they bring
        from *we*, in logits; ``closest``, the length of the n-grams with which the GPT
        agrees most.

    Returns
    -------
    dict
        ``n``, how many stops; ``seeds``, [0]; ``interval``, that of the stop from which on
        *thou* matters (the last, if there is none): it is above zero, and *t* likelier
        after most prompts; ``verdict``, "holds" or "not so": whether that is a later stop
        than the one from which on the GPT is closest to 4-grams or longer ones.
    """
    rows = results["stops"]
    matters = first_for_good([thou_matters(row) for row in rows])
    four = first_for_good([row["closest"] >= 4 for row in rows])
    holds = matters is not None and four is not None and matters > four
    row = rows[-1 if matters is None else matters]
    record = {"n": len(rows), "seeds": [0], "interval": row["interval"]}
    return record | {"verdict": verdict(holds)}
