"""Does a vector show whether its word is used as a verb or as a noun?

Pairs of sentences with a gap: in the first a verb is missing, in the second a noun. The
word before the gap, its position and what follows are the same in both. The two are put
into one sentence, in either order: *They let her dance again, and they read her dance
again.*
"""

import numpy as np
import torch

from lmcourse.embeddings import unit
from lmcourse.levels import state_names

PAIRS = """
They let her _ again.|They read her _ again.
These are people that _ every day.|We all remember that _ every day.
I saw them run and _ all night.|I heard their song and _ all night.
You should now come and _ for a while.|We liked his voice and _ for a while.
Nobody made her _ that evening.|Nobody liked her _ that evening.
There are some that _ too much.|She talked about that _ too much.
They would sit down and _ in the sun.|They miss her voice and _ in the sun.
You and she may stay or _ with us.|There was not a word or _ with us.
We had to eat or _ before noon.|We had no meal or _ before noon.
They will each _ at night.|They praise each _ at night.
We may each _ once a year.|We count each _ once a year.
Now they can only _ in town.|It was the only _ in town.
The girls may only _ on Sundays.|That is her only _ on Sundays.
The women will first _ at noon.|It was our first _ at noon.
The girls will next _ in summer.|That is their next _ in summer.
Please let another _ here.|We need another _ here.
Please let one _ at a time.|We had one _ at a time.
When did any _ last week?|Was there any _ last week?
They say some _ in spring.|They planned some _ in spring.
The old men even _ in the rain.|It was an even _ in the rain.
His two sons just _ in the end.|It was a just _ in the end.
Our old friends still _ in the dark.|It was a still _ in the dark.
The people there daily _ at the gate.|It was the daily _ at the gate.
She would not speak or _ that night.|She left without word or _ that night.
We watched her _ on the hill.|We blamed her _ on the hill.
They help her _ at home.|They praise her _ at home.
You can either _ or rest.|You want either _ or rest.
I have seen him and her _ before.|I have heard much of her _ before.
Some people like to sit and _ alone.|Some people like the quiet and _ alone.
Let no one _ in the church.|There was one _ in the church.
Did you or any _ this morning?|Was there not any _ this morning?
He makes her _ too often.|He hates her _ too often.
"""
LESSONS = """
They _ every day.|It was the _ of the year.
You must _ now.|There is no _ of it.
I _ each spring.|The _ was lost.
We will _ again.|She had an old _.
She wants to _ for him.|A new _ was made.
Please _ here.|He gave his _.
"""
TAUGHT = ["record", "answer", "dream", "promise", "love", "fear", "hope", "work"]
TRIED = ["dance", "fight", "smile", "laugh", "call", "change"]
NEVER_VERBS = ["bee", "river", "idea", "music", "poem", "kitchen"]

BATCH = 128  # texts read at once
ROUNDING = 1e-5  # of a vector's length: nearer means are the same but for rounding


def pairs(lines=PAIRS) -> list[tuple[str, str]]:
    """Return pairs of sentences with a gap: the first lacks a verb, the second a noun.

    ``lines`` : str, a pair a line, with "|" between and "_" as the gap. Default: `PAIRS`.
    """
    return [tuple(line.split("|")) for line in lines.strip().splitlines()]


def joined(pair, word) -> list[str]:
    """Fill both gaps of a pair with a word, and join the sentences, in both orders.

    Parameters
    ----------
    pair : (str, str)
        Sentences with "_" as a gap: for a verb, and for a noun.
    word : str

    Returns
    -------
    list of str
        One with the verb first, one with the noun first.
    """
    verb, noun = (half.rstrip(".?").replace("_", word) for half in pair)
    return [f"{verb}, and {noun}.", f"{noun}, and {verb}."]


def _encoded(tokenizer, words):
    """Tokenize all pairs of sentences (`PAIRS`), filled with each word, in both orders.

    Parameters
    ----------
    tokenizer : PreTrainedTokenizerFast
    words : sequence of str
        Each must be one token.

    Returns
    -------
    batch : BatchEncoding
        The texts: pair by pair, word by word, the verb first and the noun first. A text is
        such as "They let her dance again, and they read her dance again."
    positions : int64 Tensor of shape (texts, 2)
        Where the word stands, both times.

    Raises
    ------
    ValueError
        If a word is several tokens, or occurs in a sentence by itself.
    """
    texts = []
    word_of = []  # of each text
    for pair in pairs():
        for word in words:
            both = joined(pair, word)  # one text for each order of the sentences
            texts += both
            word_of += [word] * len(both)
    batch = tokenizer(texts, return_tensors="pt", padding=True)
    wanted = torch.tensor(tokenizer.convert_tokens_to_ids(word_of))
    matches = batch["input_ids"] == wanted[:, None]  # (texts, tokens)
    unfit = (matches.sum(dim=1) != 2).nonzero()[:, 0]
    if len(unfit):
        word = word_of[int(unfit[0])]
        raise ValueError(
            f"{word!r} cannot stand in the sentences: a word must be one token of this "
            f"tokenizer, and this one is {tokenizer.tokenize(word)}, or a sentence has it "
            "already. Take another word"
        )
    return batch, matches.nonzero()[:, 1].view(-1, 2)


def _arranged(vectors, count) -> np.ndarray:
    """Arrange the vectors of words by their use.

    Parameters
    ----------
    vectors : Tensor of shape (texts, 2, d_model)
        Of the word's two occurrences in each text: pair by pair, word by word, the verb
        first and the noun first.
    count : int
        Of words.

    Returns
    -------
    float array of shape (2, pairs, 2, words, d_model)
        At length 1. First the verbs, then the nouns; the third axis is the order of the
        sentences.
    """
    units = unit(vectors.cpu().double().numpy())
    table = units.reshape(
        len(pairs()), count, 2, 2, -1
    )  # pairs, words, orders, occurrences
    verb_first = table[:, :, 0]
    noun_first = table[:, :, 1]
    verbs = np.stack([verb_first[:, :, 0], noun_first[:, :, 1]], axis=1)
    nouns = np.stack([verb_first[:, :, 1], noun_first[:, :, 0]], axis=1)
    return np.stack([verbs, nouns])


@torch.no_grad()
def encode_pairs(tokenizer, model, words) -> dict[str, np.ndarray]:
    """Encode the sentences of `PAIRS` with words in their gaps; return the words' vectors.

    Each pair is a sentence in which a verb is missing and one in which a noun is; the two
    are read as one text, in either order.

    Parameters
    ----------
    tokenizer : PreTrainedTokenizerFast
    model : BertModel
    words : list of str
        Each a token of its own.

    Returns
    -------
    dict of str to array of shape (2, pairs, 2, words, d_model)
        Level, such as "after layer 0" → unit vectors of the words. First axis: used as a
        verb, as a noun. Third axis: the verb's sentence comes first, the noun's does.

    Raises
    ------
    ValueError
        If a word is not one token, or occurs in a sentence of `PAIRS` already.
    """
    batch, at = _encoded(tokenizer, words)
    parts = []
    for start in range(0, len(at), BATCH):
        chunk = slice(start, start + BATCH)
        texts = {name: x[chunk].to(model.device) for name, x in batch.items()}
        positions = at[chunk]  # (texts, 2)
        rows = torch.arange(len(positions))[:, None]
        levels = model(**texts, output_hidden_states=True).hidden_states
        parts.append([state[rows, positions].cpu() for state in levels])
    states = [torch.cat(level) for level in zip(*parts, strict=True)]
    names = state_names(len(states) - 1)
    return {
        name: _arranged(state, len(words))
        for name, state in zip(names, states, strict=True)
    }


@torch.no_grad()
def words_before(tokenizer, model, words, decay) -> np.ndarray:
    """Add up the word vectors of all tokens before a word, and read no sentence.

    The sentences are the pairs of `PAIRS`, each with a gap that is filled with the word:
    used as a verb in one, as a noun in the other.

    Parameters
    ----------
    tokenizer, model
        A BERT's; of the model only the table of word vectors is used.
    words : list of str
        Those that are put into every pair of sentences.
    decay : float
        What the row of the word before is weighted with; the one before it with its
        square, and so on.

    Returns
    -------
    array of shape (2, pairs, 2, words, d_model)
        Sums, at length 1. First axis: the word used as a verb, as a noun; third axis: the
        verb's sentence comes first, the noun's does.
    """
    batch, at = _encoded(tokenizer, words)
    table = model.get_input_embeddings().weight.detach().cpu()
    positions = torch.arange(batch["input_ids"].shape[1])
    back = (at[:, :, None] - positions).double()  # (texts, occurrences, tokens)
    weights = torch.where(back > 0, decay**back, 0.0)
    weights[:, :, 0] = 0  # [CLS]
    return _arranged(weights @ table[batch["input_ids"]].double(), len(words))


def verb_direction(vectors) -> tuple[np.ndarray, float]:
    """Return the direction from the mean noun to the mean verb, and where its middle is.

    Parameters
    ----------
    vectors : array of shape (2, pairs, orders, words, d_model)
        Of words used as verbs, and as nouns; the other axes are averaged over.

    Returns
    -------
    direction : array of shape (d_model,)
        Of length 1; zeros if the means differ by rounding errors only.
    middle : float
        Half-way between the two means along this direction: a vector whose product with it
        is above leans to the verbs.
    """
    verbs, nouns = vectors.mean(axis=(1, 2, 3))
    difference = verbs - nouns
    if np.linalg.norm(difference) < ROUNDING * np.linalg.norm(verbs):
        difference = np.zeros_like(difference)  # else it would point anywhere
    direction = unit(difference)
    return direction, float((verbs + nouns) @ direction / 2)


def told_apart(taught, tried) -> np.ndarray:
    """Return in which pairs a word used as a verb leans more to the verbs than as a noun.

    For each pair the direction is that of the other pairs, and of other words.

    Parameters
    ----------
    taught, tried : array of shape (2, pairs, 2, words, d_model)
        Vectors of the words that give the direction, and of those that are tried. First
        axis: used as a verb, as a noun. Third axis: which of the two sentences comes first.

    Returns
    -------
    array of shape (pairs, words)
        1 where the verb leans more to the verbs, 0 where the noun does, one half for a tie:
        the mean over both orders.
    """
    verbs, nouns = taught.mean(axis=(2, 3))  # (pairs, d_model)
    own = verbs - nouns
    others = unit(own.sum(axis=0) - own)  # (pairs, d_model)
    leans = (tried * others[:, None, None]).sum(axis=-1)  # (2, pairs, orders, words)
    ahead = np.sign((leans[0] - leans[1]).round(5))
    return ((1 + ahead) / 2).mean(axis=1)


def before_direction(tokenizer, model) -> tuple[np.ndarray, float]:
    """Return the direction from the word before a noun to the word before a verb.

    It is learned from static vectors, in the six pairs of plain sentences `LESSONS`.

    Parameters
    ----------
    tokenizer, model
        A BERT's, such as those that `lmcourse.models.load_bert` loads.

    Returns
    -------
    direction : array of shape (d_model,)
        A unit vector.
    middle : float
        Where along it the two kinds of words are divided.
    """
    table = unit(model.get_input_embeddings().weight.detach().cpu().double().numpy())
    sides = []
    for gapped in zip(*pairs(LESSONS), strict=True):
        last = [tokenizer.tokenize(text.split("_")[0])[-1] for text in gapped]
        sides.append(table[tokenizer.convert_tokens_to_ids(last)])
    return verb_direction(np.stack(sides)[:, :, None, None])
