"""Sentences with a pronoun that may stand for two nouns, and what a BERT's heads do there.

The sentences are made by rules, so that nobody chooses those in which a head does well.
`noun_shares` says how much of its attention a word gives to two nouns, in every head;
`word_shares` does it for all words in one head; `head_parts` has the queries, keys and
values of a head. The model must be loaded with ``attn_implementation="eager"``: fused
attention has no weights to show.
"""

import random
import re
from dataclasses import dataclass

import pandas as pd
import torch

__all__ = ["Sentence", "crossings", "drawn_sentences", "head_parts", "noun_shares"]
__all__ += ["encode_attention", "stops", "twin_sentences", "word_positions", "word_shares"]


@dataclass(frozen=True)
class Sentence:
    """A sentence and the two nouns that its pronoun may stand for.

    Attributes
    ----------
    text : str
    nouns : tuple of str
        In the order in which they stand, unless it is said otherwise.
    frame : int
        Number of the frame that the nouns were put into.
    """

    text: str
    nouns: tuple[str, ...]
    frame: int = 0


def _words(text: str) -> list[str]:
    """Return the words of a text, a list of str."""
    return text.split()


# --- pairs of sentences that differ in one word ------------------------------------------

# A sentence with a gap, and the two words that fill it.
TWINS = (
    ("The animal didn't cross the street because it was too _.", "tired wide"),
    ("The street wasn't crossed by the animal because it was too _.", "tired wide"),
    ("The trophy didn't fit in the suitcase because it was too _.", "big small"),
    ("The council refused the crowd a permit because it _ violence.", "feared preached"),
    ("The ball broke the table because it was made of _.", "steel paper"),
    ("The snow covered the garden because it was _.", "heavy low"),
)
TWIN_NOUNS = (
    ("animal", "street"),
    ("street", "animal"),
    ("trophy", "suitcase"),
    ("council", "crowd", "permit", "violence"),
    ("ball", "table"),
    ("snow", "garden"),
)


def twin_sentences() -> list[Sentence]:
    """Return twelve sentences, two of each kind, which differ in one word.

    The word decides what *it* stands for, as in Winograd schemas (Levesque et al. 2012).
    The first is the best known of them: "The animal didn't cross the street because it was
    too tired." Each `Sentence` has ``text``, its ``nouns``, two or four, and ``frame``, the
    number of its kind, 0 to 5.
    """
    sentences = []
    for frame, (text, ends) in enumerate(TWINS):
        for end in ends.split():
            sentences.append(Sentence(text.replace("_", end), TWIN_NOUNS[frame], frame))
    return sentences


ANIMALS = _words("dog horse cow fox wolf bear")
PLACES = _words("street river field bridge")
CROSSINGS = (
    "The {animal} didn't cross the {place} because it was too {end}.",
    "The {place} wasn't crossed by the {animal} because it was too {end}.",
)


def crossings(end: str) -> list[Sentence]:
    """Return sentences of 6 animals and 4 places that end in the same word.

    Parameters
    ----------
    end : str
        "tired" can be said of the animal, "wide" of the place.

    Returns
    -------
    list of Sentence
        24, all places with the first animal, then with the next. In half of them (``frame``
        0) the text is such as "The dog didn't cross the street because it was too wide.",
        in the others (``frame`` 1) the place stands first, "The street wasn't crossed by
        the dog …". ``nouns`` is always (animal, place).
    """
    sentences = []
    for i, animal in enumerate(ANIMALS):
        for j, place in enumerate(PLACES):
            frame = (i + j) % 2
            text = CROSSINGS[frame].format(animal=animal, place=place, end=end)
            sentences.append(Sentence(text, (animal, place), frame))
    return sentences


# What can be said of these animals and hardly of these places, the contrary, and pairs of
# words of which neither decides: what "it" stands for is open.
SAID_OF_ANIMALS = _words(
    "tired hungry sleepy sick lazy thirsty afraid weak scared shy nervous clever wild tame "
    "blind lame stubborn angry young injured"
)
SAID_OF_PLACES = _words(
    "wide narrow broad crowded deep long steep slippery flooded shallow busy bumpy winding "
    "rocky uneven swampy straight remote icy paved"
)
SAID_OF_BOTH = _words(
    "late early bad good dark bright old new far near quiet loud strange normal ugly "
    "pretty cold warm wet dry clean dirty red blue black white big small rare common cheap "
    "expensive plain fancy famous unknown dull shiny green brown different similar odd "
    "usual nice awful hot cool real fake boring exciting fat thin light heavy gray pale "
    "beautiful hideous"
)

# --- sentences with nouns drawn at random ------------------------------------------------

FRAMES = (
    "We put the {} beside the {} because it was too big.",
    "The {} fell on the {} and it broke.",
    "When the {} touched the {}, it made a noise.",
    "She sold the {} with the {} although it was still new.",
    "The {} was under the {} until it was moved.",
    "Nobody noticed the {} behind the {} because it was small.",
    "He painted the {} after the {} because it looked old.",
    "The {} came with the {}, but it was never used.",
    "They left the {} near the {} and forgot about it.",
    "If the {} leans against the {}, it may fall.",
    "He placed the {} on the {} because it was heavy.",
    "She moved the {} away from the {} so that it could dry.",
    "The {} hid the {} because it was so large.",
    "I bought the {} for the {}, but it was too expensive.",
    "The {} matched the {} until it was painted.",
    "You can see the {} through the {} when it is open.",
    "The {} rolled towards the {} before it stopped.",
    "They carried the {} past the {}, but it was damaged.",
    "He tied the {} to the {} so that it would not move.",
    "The {} scratched the {} when it was lifted.",
)
NOUNS = _words(
    "lamp ball box table chair clock mirror bottle basket ladder bell candle drum guitar "
    "piano bag bucket bowl cup plate knife hammer wheel engine radio camera book picture "
    "pillow blanket carpet curtain door window barrel chest statue stone machine bicycle"
)


def drawn_sentences(seed: int = 0, each: int = 6) -> list[Sentence]:
    """Return sentences of twenty kinds, whose two nouns are drawn at random.

    Parameters
    ----------
    seed : int
    each : int
        How many of each kind.

    Returns
    -------
    list of Sentence
        20 · ``each``; all of a kind stand together. A text is such as "The lamp fell on the
        ball and it broke."; ``nouns`` are its two nouns, of forty, and ``frame`` is the
        number of its kind, from 0.
    """
    rng = random.Random(seed)
    sentences = []
    for frame, text in enumerate(FRAMES):
        for _ in range(each):
            nouns = tuple(rng.sample(NOUNS, 2))
            sentences.append(Sentence(text.format(*nouns), nouns, frame))
    return sentences


# --- a line by Dickinson -----------------------------------------------------------------

LINE = "Because I could not stop for {}, He kindly stopped for me;"
PERSONS = _words(
    "doctor teacher farmer soldier king priest lawyer judge sailor driver waiter baker "
    "butcher painter poet singer actor captain officer guard boss clerk tailor barber "
    "gardener hunter shepherd monk knight prince duke pilot miner porter plumber lord "
    "brother father uncle neighbour"
)
THINGS = _words(
    "lunch train water music rain mail coffee lamp table flower letter window garden river "
    "market church harvest summer silence money weather dinner bread winter thunder dust "
    "morning grain fire shadow thread paper candle bottle carpet engine basket ladder "
    "stone mirror"
)


def stops(words) -> list[Sentence]:
    """Return Dickinson's line with other words in the place of *Death*, each with "the".

    ``words`` : list of str. Of each a `Sentence` is made: its ``text`` is "Because I could
    not stop for the lamp, He kindly stopped for me;", its only noun the word.
    """
    return [Sentence(LINE.format(f"the {word}"), (word,)) for word in words]


# --- reading them ------------------------------------------------------------------------


@torch.no_grad()
def encode_attention(tokenizer, model, texts):
    """Run a BERT on texts and return its attention weights.

    Parameters
    ----------
    tokenizer, model
        A BERT that returns its attention weights: `lmcourse.models.load_bert` with
        ``attn_implementation="eager"``.
    texts : sequence of str

    Returns
    -------
    batch : BatchEncoding
        The tokens, padded to the longest text.
    weights : Tensor of shape (texts, layers, heads, tokens, tokens)
        On the CPU; rows are queries, columns keys.
    """
    batch = tokenizer(list(texts), return_tensors="pt", padding=True).to(model.device)
    output = model(**batch, output_attentions=True)
    return batch, torch.stack(output.attentions, dim=1).cpu()


def word_positions(batch, row: int, text: str, word: str) -> list[int]:
    """Return the positions of a word's tokens, where it first occurs in a text.

    Parameters
    ----------
    batch : BatchEncoding
        Of a fast tokenizer.
    row : int
        The text's row in the batch, from 0.
    text, word : str
        The text of that row, and the word, whole and with the same capitals.

    Returns
    -------
    list of int
        From 0, ascending.

    Raises
    ------
    ValueError
        If the text has no such word.
    """
    match = re.search(rf"\b{re.escape(word)}\b", text)
    if match is None:
        raise ValueError(f"there is no word {word!r} in {text!r}")
    at = {batch.char_to_token(row, place) for place in range(*match.span())}
    return sorted(at - {None})


def noun_shares(tokenizer, model, sentences, word: str = "it"):
    """Return how much of its attention a word gives to each noun, in every head.

    Parameters
    ----------
    tokenizer, model
        A BERT that returns its attention weights: `lmcourse.models.load_bert` with
        ``attn_implementation="eager"``.
    sentences : list of Sentence
        Each with ``text`` and ``nouns``, as many in all; the word is in each text.
    word : str
        Whose attention; if it has several tokens, its first one's.

    Returns
    -------
    Tensor of shape (sentences, nouns, layers, heads)
        From 0 to 1; a noun of several tokens gets the sum.

    Raises
    ------
    ValueError
        If a sentence lacks the word or one of its nouns.
    """
    texts = [sentence.text for sentence in sentences]
    batch, weights = encode_attention(tokenizer, model, texts)
    shares = []
    for row, (sentence, text) in enumerate(zip(sentences, texts, strict=True)):
        query = word_positions(batch, row, text, word)[0]
        of_query = weights[row, :, :, query]  # (layers, heads, tokens)
        keys = [word_positions(batch, row, text, noun) for noun in sentence.nouns]
        shares.append(torch.stack([of_query[..., key].sum(dim=-1) for key in keys]))
    return torch.stack(shares)


def word_shares(tokenizer, model, sentences, layer: int, head: int) -> pd.DataFrame:
    """Return how much of its attention each word gives to the nouns in one head.

    Parameters
    ----------
    tokenizer, model
        A BERT that returns its attention weights: `lmcourse.models.load_bert` with
        ``attn_implementation="eager"``.
    sentences : list of Sentence
        Each with ``text``, its two ``nouns``, and ``frame``, the number of its pattern.
    layer, head : int
        Both from 0.

    Returns
    -------
    DataFrame
        A row for each word of each sentence, nouns and special tokens left out:
        ``sentence``, its number from 0; ``frame``; ``word``, in small letters; ``share``,
        what its first token gives both nouns, 0 to 1.
    """
    texts = [sentence.text for sentence in sentences]
    batch, weights = encode_attention(tokenizer, model, texts)
    rows = []
    for row, sentence in enumerate(sentences):
        keys = [word_positions(batch, row, sentence.text, noun) for noun in sentence.nouns]
        both = [position for key in keys for position in key]
        to_nouns = weights[row, layer, head][:, both].sum(dim=-1)  # (tokens,)
        for match in re.finditer(r"\w+", sentence.text):
            if match[0] not in sentence.nouns:
                query = batch.char_to_token(row, match.start())
                share = to_nouns[query].item()
                rows.append((row, sentence.frame, match[0].lower(), share))
    return pd.DataFrame(rows, columns=["sentence", "frame", "word", "share"])


@torch.no_grad()
def head_parts(tokenizer, model, text: str, layer: int, head: int):
    """Return the queries, keys and values of one head.

    Parameters
    ----------
    tokenizer, model
        Of `lmcourse.models.load_bert` with ``attn_implementation="eager"``.
    text : str
    layer, head : int
        Both from 0.

    Returns
    -------
    query, key, value : Tensor of shape (tokens, d_head)
        In double precision, on the CPU.
    """
    batch = tokenizer(text, return_tensors="pt").to(model.device)
    states = model(**batch, output_hidden_states=True).hidden_states
    x = states[layer][0]  # what the layer is given: (tokens, d_model)
    layers = model.encoder.layer[layer].attention.self
    heads = model.config.num_attention_heads
    parts = (layers.query(x), layers.key(x), layers.value(x))
    return tuple(p.unflatten(-1, (heads, -1))[:, head].cpu().double() for p in parts)
