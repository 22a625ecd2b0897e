"""Checks for the tasks of the chapter *models-you-talk-to*."""

from functools import cache
from types import SimpleNamespace

import numpy as np
import torch

from lmcourse.data import stored
from lmcourse.exercises import Case, Faults, exercise, judge, predict
from lmcourse.exercises.answers import NotTried, Unfit, normal, unpack
from lmcourse.gguf import dequantise, unpack_nibbles
from lmcourse.gpt.inside import outputs
from lmcourse.llama import load_talker
from lmcourse.patching import copied_heads


@exercise("models-you-talk-to.shared", kind="spot the bug")
def shared():
    """Check a reader's keys that several heads share (grouped-query attention).

    The answer is a function of keys (kv_heads, tokens, d_head) and the number of heads,
    which returns (heads, tokens, d_head): neighbouring heads share keys. Oracle: the keys
    of each head, looked up by its number.

    Yields
    ------
    Case
        Arguments, the right result, and the results that known mistakes give.
    """
    key = normal(3, 2, 4, seed=5)  # (kv_heads, tokens, d_head)
    heads = 6
    want = torch.stack([key[head // 2] for head in range(heads)])
    mistakes = {
        "heads 0, 1, 2 get keys 0, 1, 2 and then it begins again; but neighbouring "
        "heads share.": key.repeat(2, 1, 1),
        "there are still as many as before: each head needs its own copy.": key,
        "the tokens were repeated, not the heads.": key.repeat_interleave(2, 1),
        "each is there once for every head; repeat it once for each sharing head.": (
            key.repeat_interleave(heads, 0)
        ),
        "all heads get the first keys.": key[:1].repeat(heads, 1, 1),
        "all heads get the mean of the keys.": key.mean(0, keepdim=True).repeat(
            heads, 1, 1
        ),
        "the order is turned round.": want.flip(0),
    }
    yield Case([key, heads], want, mistakes)


@exercise("models-you-talk-to.dequantised")
def dequantised():
    """Check a reader's reader of four-bit weights.

    The answer is a function of a block of 20 bytes, a uint8 array, in the format Q4_1 of
    GGUF: scale and minimum in float16, then 32 numbers of four bits. It returns 32 numbers:
    scale times number plus minimum. Oracle: the package's `dequantise`, on blocks of random
    bytes.

    Yields
    ------
    Case
        Arguments, the right result, and the results that known mistakes give.
    """
    rng = np.random.default_rng(4)
    for scale, minimum in ((0.0125, -0.0875), (0.25, -1.5)):
        head = np.array([scale, minimum], np.float16)
        packed = rng.integers(0, 256, 16).astype(np.uint8)
        block = np.concatenate([head.view(np.uint8), packed])
        want = dequantise(block, "Q4_1")
        low = packed & 15
        high = packed >> 4
        scale, minimum = head.astype(np.float32)
        integers = unpack_nibbles(packed[None])[0].astype(np.float32)
        in_turn = np.stack([low, high], 1).reshape(-1).astype(np.float32)
        mistakes = {
            "the two halves of a byte stand side by side in yours; byte i holds the "
            "numbers i and i + 16.": scale * in_turn + minimum,
            "the upper halves come first in yours; the lower halves do.": (
                scale * np.roll(integers, 16) + minimum
            ),
            "the minimum is missing.": scale * integers,
            "the minimum is subtracted; it is added.": scale * integers - minimum,
            "scale and minimum have changed places.": minimum * integers + scale,
            "8 is subtracted, as in Q4_0; here the minimum does that.": (
                scale * (integers - 8) + minimum
            ),
            "these are the integers, from 0 to 15, without scale and minimum.": integers,
            "these are sixteen numbers: every byte holds two.": scale * low + minimum,
            "the bytes themselves are used: take each apart into two halves.": (
                scale * np.tile(packed, 2) + minimum
            ),
        }
        yield Case([block], want, mistakes)


predict(
    "models-you-talk-to.bare",
    a="the model could answer. But who speaks next in this text, after a question mark?",
    b=None,
    c="that is what a base model may do, which was trained on text alone.",
)


predict(
    "models-you-talk-to.early",
    a="a third of the way up the lens reads a full stop or a space there.",
    b="halfway up the lens still reads a space there.",
    c=None,
)


@cache
def _talker():
    """Return the tokenizer and the model that talks, on the CPU; they are loaded once.

    The tokenizer is one of `transformers`, called with a str; the model goes from ids
    (batch, tokens) to logits (batch, tokens, vocab_size), at the last token alone if
    ``last``.
    """
    return load_talker(device="cpu")


@cache
def _heads():
    """Return the two heads, (layer, head) from 0, that decide most on the next name.

    The study "models-you-talk-to" has the sentences in which a person gives something to
    another, and twins with the roles swapped. ``effect`` of a head is the mean change, in
    logits, of the other person's lead over the giver when the head's output is copied in
    from the twin sentence. The two with the lowest are returned, a list of (int, int).
    """
    rows = sorted(
        stored("models-you-talk-to")["results"]["heads"], key=lambda r: r["effect"]
    )
    return [(row["layer"], row["head"]) for row in rows[:2]]


def _texts(answer):
    """Return the two sentences and the word of an answer.

    Parameters
    ----------
    answer : sequence of three str
        A sentence; its twin, another sentence of equally many tokens; and the word that
        follows. Anything else is `Unfit`, and dots are `NotTried`.

    Returns
    -------
    SimpleNamespace
        ``text``, ``twin`` and ``word``, each a str without spaces at its ends.
    """
    parts = unpack(answer, 3, "a sentence, its twin, and the word that follows")
    if any(part is ... for part in parts):
        raise NotTried
    if not all(isinstance(part, str) for part in parts):
        raise Unfit("three texts are expected: two sentences and a word.")
    text, twin, word = (part.strip() for part in parts)
    return SimpleNamespace(text=text, twin=twin, word=word)


def _ids(answer):
    """Return the tokens of a reader's sentence and of its twin.

    Parameters
    ----------
    answer : object
        What the reader hands in: a sentence, its twin, and the word that follows, three
        str; anything else is `Unfit`.

    Returns
    -------
    SimpleNamespace
        ``text`` and ``twin``, int64 Tensors (1, tokens); ``length`` and ``twin_length``,
        how many tokens each has.
    """
    tokenizer, _ = _talker()
    texts = _texts(answer)
    text, twin = (
        tokenizer(each, return_tensors="pt").input_ids for each in (texts.text, texts.twin)
    )
    lengths = {"length": text.shape[1], "twin_length": twin.shape[1]}
    return SimpleNamespace(text=text, twin=twin, **lengths)


@torch.no_grad()
def _followed(answer):
    """Return what follows a sentence, its twin, and the sentence with the twin's heads.

    The twin is another sentence of equally many tokens. At the last token of the sentence
    the two heads of `_heads` are given the outputs that they have at the last one of the
    twin.

    Parameters
    ----------
    answer : object
        What the reader hands in: a sentence, its twin, and the word that follows, three
        str; anything else is `Unfit`.

    Returns
    -------
    SimpleNamespace
        ``word``, which the reader predicts, and the likeliest words ``before`` (after the
        sentence as it is), ``at_twin`` and ``copied``, each a str.
    """
    tokenizer, model = _talker()
    ids = _ids(answer)

    def next_word(ids):
        """Return the model's likeliest next token, a str without spaces at its ends.

        ``ids`` : int64 Tensor (1, tokens).
        """
        likeliest = model(ids, last=True)[0, -1].argmax()
        return tokenizer.decode([int(likeliest)]).strip()

    with copied_heads(model, _heads(), outputs(model, ids.twin)):
        copied = next_word(ids.text)
    words = {
        "before": next_word(ids.text),
        "at_twin": next_word(ids.twin),
        "copied": copied,
    }
    return SimpleNamespace(word=_texts(answer).word, **words)


@exercise("models-you-talk-to.own", kind="experiment")
def own():
    """Check what follows a reader's sentence when two heads are copied from another one.

    The answer is (sentence, twin, word), three str: the twin is another sentence of equally
    many tokens, the word what the reader predicts. Oracle: the default model reads both;
    the outputs of the two heads that decide most on the next name (`_heads`) at the last
    token of the twin are copied into the sentence, and its next word is compared with the
    reader's.

    Yields
    ------
    Faults
        What is measured of the answer, and how known mistakes show in it.
    """
    handed_in = {
        "a sentence is empty.": lambda seen: not seen.text or not seen.twin,
        "the word is missing.": lambda seen: not seen.word,
        "the two sentences are the same.": lambda seen: seen.text == seen.twin,
        "that is too long for one sentence.": (
            lambda seen: max(len(seen.text), len(seen.twin)) > 500
        ),
    }
    yield Faults(_texts, handed_in)
    unequal = (
        "your sentence has {length} tokens and its twin {twin_length}: they should be "
        "equally long, word by word."
    )
    yield Faults(_ids, {unequal: lambda seen: seen.length != seen.twin_length})
    words = {
        "the model continues both in the same way, so nothing can be copied from one to "
        "the other. Does each end before a name, and is one person named twice?": (
            lambda seen: seen.before == seen.at_twin
        ),
        "that is what follows your sentence as it is. Copy the heads first.": (
            lambda seen: seen.word == seen.before != seen.copied
        ),
        "that is what follows the twin; your sentence with the two heads copied continues "
        "otherwise.": lambda seen: seen.word == seen.at_twin != seen.copied,
        "the check copies the same two heads at the last token and reads another word.": (
            lambda seen: seen.word != seen.copied
        ),
    }
    yield Faults(_followed, words)


judge(
    "models-you-talk-to.carried",
    a=None,
    b="then the model would name people who are not in its sentence.",
    c="then what the heads carry would be of use only with its own names.",
)
