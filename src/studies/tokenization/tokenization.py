"""Why does verse cost fewer tokens in GPT-4's vocabulary than in GPT-2's, and who pays?

**Verse.** GPT-4's vocabulary is OpenAI's cl100k_base. Varied: the vocabulary, GPT-2's or
cl100k, each with its own pattern, on the poems and the sonnets; and a vocabulary of 2,048
pieces trained here on half of the texts, with the pattern of either, on the other half.
Then one thing alone changes: the joining of a line's end to the punctuation before it is
taken from cl100k's pattern, or put into GPT-2's. Rival: all of cl100k's pieces with GPT-2's
pattern. Null: the same texts as prose, without ends of lines. Statistic: the share of the
saving that stays; the interval is the widest over all rows, texts drawn again.

**Languages.** One sentence in sixteen languages, and the names of countries and languages
in CLDR, the Unicode Consortium's collection, as the package Babel has it. Every language
counts in which at least 500 of these names differ from the English ones. BPE learns 1,000
merges from half of the names, in English or in the language, and cuts the other half in
both; three halvings. A language whose names are all another's is left out.

cl100k is downloaded once from OpenAI's address and verified by the SHA-256 that tiktoken
has for it; a copy may be put into the folder ``LMCOURSE_CACHE`` before.
"""

import base64
import os
from functools import cache
from pathlib import Path

import numpy as np
import pooch
import regex
from babel import Locale, localedata

from lmcourse.data import load_poems, load_sonnets
from lmcourse.declaration import SENTENCES
from lmcourse.models import load_gpt2_vocabulary
from lmcourse.numbers import bootstrap_interval
from lmcourse.tokenization import (
    CL100K_PATTERN,
    GPT2_PATTERN,
    BPETokenizer,
    byte_characters,
    segment,
)
from studies.harness import count, grid, verdict
from studies.measures import ratio_of_sums

CHAPTER = "tokenization"
CLAIM = (
    "Verse costs fewer tokens in GPT-4's vocabulary than in GPT-2's, mostly because a "
    "comma and the line's end after it may be one token"
)
RIVAL = "all of GPT-4's pieces, with GPT-2's pattern"
NULL = "the same texts as prose, without ends of lines"
URL = "https://openaipublic.blob.core.windows.net/encodings/cl100k_base.tiktoken"
SHA256 = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"
SETTINGS = {
    "seeds": [0, 1, 2],
    "vocab_size": 2048,
    "draws": 2000,
    "sha256": SHA256,
    "names": 500,  # at least, of a language
    "merges": 1000,  # learned from half of the names
}
# What joins the end of a line to the sign before it, taken away and put in
APART = regex.compile(CL100K_PATTERN.pattern.replace(r"[\r\n]*+", ""))
JOINED = regex.compile(GPT2_PATTERN.pattern.replace(r"\p{N}]+", r"\p{N}]+[\r\n]*"))
WAYS = {"old": GPT2_PATTERN, "now": CL100K_PATTERN, "apart": APART, "joined": JOINED}
TEXTS = {"poems": load_poems, "sonnets": load_sonnets}


@cache
def published():
    """Return cl100k_base's merges, which its list of ranked pieces does not state.

    The list is downloaded once from OpenAI, into the folder ``LMCOURSE_CACHE`` or pooch's
    own; a ValueError is raised if its SHA-256 is another. Each piece is cut by the merges
    of those before it; if two parts are left, they are the next merge.

    Returns
    -------
    list of (str, str)
        Pairs of symbols, a character for each byte, the first merge first.
    """
    folder = os.environ.get("LMCOURSE_CACHE") or pooch.os_cache("lmcourse")
    path = pooch.retrieve(URL, f"sha256:{SHA256}", "cl100k_base.tiktoken", folder)
    characters = byte_characters()
    ranks = {}
    for line in Path(path).read_bytes().splitlines():
        piece = base64.b64decode(line.split()[0])
        parts = segment("".join(characters[byte] for byte in piece), ranks)
        if len(parts) == 2:
            ranks[parts] = len(ranks)
    return list(ranks)


def plan(small):
    """Return the settings of all runs.

    Parameters
    ----------
    small : bool
        Whether to return only two runs of "ours", one for each corpus.

    Returns
    -------
    list of dict
        The arguments of each run: ``group``: "ours", trainings on half of a corpus;
        "names", of countries and languages; "published", GPT-2's and GPT-4's merges;
        "sentences", one sentence in sixteen languages. Of "ours" and "published" ``texts``,
        the corpus, "poems" or "sonnets"; of all but "sentences" ``seed``, of halves and
        draws.
    """
    if small:
        return grid(group="ours", texts=[*TEXTS], seed=SETTINGS["seeds"][:1])
    settings = grid(group="ours", texts=[*TEXTS], seed=SETTINGS["seeds"])
    settings += grid(group="names", seed=SETTINGS["seeds"])
    settings += grid(group="published", texts=[*TEXTS], seed=0)
    settings.append({"group": "sentences"})
    return settings


def run(folder, group, texts=None, seed=None):
    """Count the tokens of texts, of names, or of one sentence in several languages.

    Parameters
    ----------
    folder : Path
        Unused.
    group : {"ours", "published", "names", "sentences"}
        What is counted: tokens of half of a corpus by merges from the other half; of a
        corpus by published merges; of names in several languages; of one sentence in
        several.
    texts : {"poems", "sonnets"}, optional
        The corpus.
    seed : int, optional
        Of the halves of a corpus, and of what is drawn for an interval.

    Returns
    -------
    dict or list of dict
        - "ours" and "published": ``texts``, ``seed``, ``n``, how many texts; by the name of
          a tokenizer how many tokens they have, and by "NAME prose" how many without line
          ends. "old" has GPT-2's pattern, "now" GPT-4's, "apart" GPT-4's without the
          joining of line ends to the punctuation before, "joined" GPT-2's with it.
          ``saved`` and ``left`` are 95 % intervals: of the share of the tokens of "old"
          that "now" saves, and of the share of this saving that is left with "apart". Of
          "published" also ``pieces``, GPT-4's merges with GPT-2's pattern, and ``size``, of
          GPT-4's vocabulary,
        - "names": a list, one dict a language: ``language``, ``seed``, ``n``, how many
          names, and by tokenizer ("bytes", "gpt2", "english", "own") a pair: how many
          tokens the names have in English, and in the language,
        - "sentences": a list, one dict a language: ``language``, and how many tokens its
          sentence has by "gpt2", "now" (GPT-4's merges) and "half" (the first of these, as
          many as GPT-2 has).
    """
    gpt2 = BPETokenizer(load_gpt2_vocabulary()[0])
    if group == "names":
        return [price(language, names, gpt2, seed) for language, names in translated()]
    if group != "ours":
        ways = {way: BPETokenizer(published(), pattern) for way, pattern in WAYS.items()}
        ways |= {"pieces": ways["old"], "old": gpt2}
    if group == "sentences":
        sentences = SENTENCES.items()
        half = BPETokenizer(published()[: len(gpt2.merges)], CL100K_PATTERN)
        sized = {"gpt2": gpt2, "now": ways["now"], "half": half}
        return [
            {"language": name} | {k: len(t.encode(text)) for k, t in sized.items()}
            for name, text in sentences
        ]
    chosen = list(TEXTS[texts]().text)
    if group == "published":
        size = {"size": ways["now"].vocab_size}
        return compare(chosen, ways, seed) | {"texts": texts} | size
    order = np.random.default_rng(seed).permutation(len(chosen))
    seen = "\n\n".join(chosen[i] for i in order[::2])
    size = SETTINGS["vocab_size"]
    ways = {way: BPETokenizer.train(seen, size, pattern) for way, pattern in WAYS.items()}
    return compare([chosen[i] for i in order[1::2]], ways, seed) | {"texts": texts}


def names_of(code):
    """Return a language's names of countries and languages.

    ``code`` : str, the language's, such as "hi". The result is a dict from (kind, code) to
    the name; the kind is "country" or "language".
    """
    locale = Locale(code)
    countries = {
        ("country", k): v for k, v in locale.territories.items() if not k.isdigit()
    }
    return countries | {("language", k): v for k, v in locale.languages.items()}


@cache
def translated():
    """Return the names that differ from the English ones, of each language that has enough.

    Names are those of countries and languages; 500 are enough. A language whose pairs are
    all those of one before it is left out.

    Returns
    -------
    list of (str, list of (str, str))
        The English name of the language, and pairs of names, in English and in the
        language.
    """
    english = names_of("en")
    languages = []
    known = set()
    for code in sorted(localedata.locale_identifiers()):
        if "_" in code or code == "en":
            continue
        names = names_of(code)
        keys = sorted(key for key in english.keys() & names.keys())
        pairs = [(english[k], names[k]) for k in keys if english[k] != names[k]]
        if len(pairs) >= SETTINGS["names"] and tuple(pairs) not in known:
            known.add(tuple(pairs))
            languages.append((Locale(code).english_name, pairs))
    return languages


def price(language, pairs, gpt2, seed):
    """Return how many tokens names have in English and in a language, by four vocabularies.

    Parameters
    ----------
    language : str
        Its name.
    pairs : list of (str, str)
        Names in English and in the language; one half is learned from, the other cut.
    gpt2 : BPETokenizer
        With GPT-2's merges.
    seed : int
        Of the halves.

    Returns
    -------
    dict
        ``language``, ``seed``; ``n``, how many names were cut; and by vocabulary [how many
        tokens they have in English, how many in the language]: ``bytes`` (no merges),
        ``gpt2``, ``english`` (1,000 merges learned from the other half of the English
        names), ``own`` (1,000 from the other half of the language's).
    """
    order = np.random.default_rng(seed).permutation(len(pairs))
    # Of each half the English names, and those in the language.
    learned_from = zip(*(pairs[i] for i in order[::2]), strict=True)
    cut = list(zip(*(pairs[i] for i in order[1::2]), strict=True))
    size = 256 + SETTINGS["merges"]
    learned = [
        BPETokenizer.train("\n".join(f" {x}" for x in each), size) for each in learned_from
    ]
    ways = {"bytes": BPETokenizer([]), "gpt2": gpt2}
    ways |= dict(zip(("english", "own"), learned, strict=True))

    def cost(tokenizer, names):
        """Return how many tokens names have, each after a space, an int.

        ``tokenizer`` : BPETokenizer; ``names`` : list of str.
        """
        return sum(len(tokenizer.encode(f" {name}")) for name in names)

    counts = {way: [cost(t, names) for names in cut] for way, t in ways.items()}
    return {"language": language, "seed": seed, "n": len(cut[0])} | counts


def compare(texts, ways, seed):
    """Return how many tokens texts have by several tokenizers.

    Parameters
    ----------
    texts : list of str
    ways : dict of str to BPETokenizer
        "old" and "now" have GPT-2's and GPT-4's patterns, "apart" the new one without the
        joining of line ends; these three must be there. Others, such as "joined" (the old
        one with it), are counted only.
    seed : int
        Of the draws.

    Returns
    -------
    dict
        ``seed``; ``n``, how many texts; by the name of each tokenizer the number of tokens,
        and by "NAME prose" that of the texts without line ends. ``saved``, [low, high], the
        95 % interval of the share of tokens that "now" saves of "old"; ``left``, of the
        share of this saving that is left with "apart".
    """
    row = {"seed": seed, "n": len(texts)}
    counts = {}
    for name, tokenizer in ways.items():
        counts[name] = np.array([len(tokenizer.encode(text)) for text in texts])
        prose = (" ".join(text.split()) for text in texts)
        row[f"{name} prose"] = sum(len(tokenizer.encode(text)) for text in prose)
        row[name] = int(counts[name].sum())
    old, now, apart = (counts[name] for name in ("old", "now", "apart"))
    for name, part, whole in (("saved", old - now, old), ("left", old - apart, old - now)):
        interval = bootstrap_interval(
            part, whole, statistic=ratio_of_sums, draws=SETTINGS["draws"], seed=seed
        )
        row[name] = np.round(interval, 4).tolist()
    return row


def summary(results):
    """Return the widest interval of what is left of the saving without the joining.

    Parameters
    ----------
    results : dict of str to list of dict
        Group → outcomes of its runs. Those of "ours" and "published": ``texts``, the name
        of a corpus; ``n``, how many texts it has; ``seed``; ``saved`` and ``left``, [low,
        high], intervals of the share of tokens that is saved, and of the share of this
        saving that is left without the joining.

    Returns
    -------
    dict
        ``n``, how many texts both corpora have; ``seeds`` of the runs; ``interval``, the
        lowest and the highest end of the intervals, of all rows, of the share of the saving
        that is left; ``verdict``, "holds" or "not so": whether it ends below a half, and
        every row saves something.
    """
    rows = [*results["ours"], *results.get("published", [])]
    low = min(r["left"][0] for r in rows)
    high = max(r["left"][1] for r in rows)
    holds = high < 0.5 and all(r["saved"][0] > 0 for r in rows)
    record = {"interval": [low, high], "verdict": verdict(holds)}
    return count(rows) | {"n": sum({r["texts"]: r["n"] for r in rows}.values())} | record
