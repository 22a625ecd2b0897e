"""Prompts for a model that talks, made by a rule, and what should follow them.

Names and errands for sentences in which one of two people gives something away, countries
and their capitals, and pairs of words for tasks that are told by examples.
"""

from typing import NamedTuple

import numpy as np

_NAMES = (
    "Mary John James Robert Michael David William Richard Thomas Mark Paul George Peter "
    "Anna Emma Sarah Laura Alice Susan Karen Lisa Helen Ruth Jack Henry Frank Scott Adam "
    "Daniel Martin Jane Kate Lucy Maria Rose Simon Sam Tom Joe Ben"
)
NAMES = _NAMES.split()  # each is one token of SmolLM2
PLACES = ("store", "park", "school", "station")
THINGS = ("drink", "book", "ring", "letter")
# The names of two people, a place, who gives, a thing.
ERRAND = "When {} and {} went to the {}, {} gave a {} to"
LUNCH = "Then {} and {} met at the {}. After lunch {} showed the {} to"


class Errands(NamedTuple):
    """Sentences about two people, for indirect object identification (IOI).

    Each ends before a name, which is to be predicted: that of the person who gets a thing,
    and not that of the giver, who is named twice.
    """

    texts: list[str]
    other: list[str]  # who gets it
    giver: list[str]


def errands(count, seed=0, form=ERRAND, first_gives=None, names=NAMES):
    """Return sentences about two people, which end before the name of one of them.

    The task is known as indirect object identification (IOI): the right next word is the
    person who is given something.

    With the default form, one is "When Mary and John went to the store, John gave a drink
    to".

    Parameters
    ----------
    count : int
        How many sentences.
    seed : int
        Of the draw of two different names for each; places and things take turns.
    form : str
        `ERRAND`, `LUNCH`, or another with five gaps: both names, a place, the giver's name,
        a thing.
    first_gives : bool, optional
        Whether the person named first gives; by default in every second sentence.
    names : sequence of str
        Those of which two are drawn for each sentence. Default: forty first names.

    Returns
    -------
    Errands
        Lists of str: ``texts``; ``other``, who gets the thing, the right next word;
        ``giver``.
    """
    rng = np.random.default_rng(seed)
    texts = []
    other = []
    giver = []
    for i in range(count):
        pair = [names[at] for at in rng.choice(len(names), 2, replace=False)]
        giving = i % 2 if first_gives is None else int(not first_gives)  # 0: the first
        place = PLACES[i % 4]
        thing = THINGS[i // 4 % 4]
        texts.append(form.format(*pair, place, pair[giving], thing))
        other.append(pair[1 - giving])
        giver.append(pair[giving])
    return Errands(texts, other, giver)


def twins(errands):
    """Return the same sentences with the other person giving.

    Parameters
    ----------
    errands : Errands
        Lists of str: ``texts``; ``other``, who gets the thing; ``giver``, whose name stands
        twice in the text, the second time as giver.

    Returns
    -------
    Errands
        In the same order; in each text the second name of the giver is replaced by the
        other one, and ``other`` and ``giver`` are exchanged.
    """
    texts = []
    for text, other, giver in zip(*errands, strict=True):
        start, end = text.rsplit(f" {giver} ", 1)
        texts.append(f"{start} {other} {end}")
    return Errands(texts, errands.giver, errands.other)


# Country and a name of its capital, or the beginning of one.
_CAPITALS = (
    "France:Paris Italy:Rome Spain:Madrid Germany:Berlin Japan:Tokyo China:Beijing "
    "Russia:Moscow Egypt:Cairo Greece:Athens Portugal:Lisbon Austria:Vienna "
    "Poland:Warsaw Hungary:Budapest Sweden:Stockholm Norway:Oslo Finland:Helsinki "
    "Denmark:Copenhagen Ireland:Dublin Belgium:Brussels Turkey:Ankara Iran:Tehran "
    "Iraq:Baghdad Syria:Damascus Thailand:Bangkok Vietnam:Hanoi Indonesia:Jakarta "
    "Cuba:Havana Peru:Lima Chile:Santiago Argentina:Buenos Brazil:Bras Mexico:Mexico "
    "Canada:Ottawa Australia:Canberra Kenya:Nairobi Nigeria:Abuja Ukraine:Kiev "
    "Scotland:Edinburgh England:London Lebanon:Beirut Afghanistan:Kabul "
    "Pakistan:Islamabad Nepal:Kathmandu Libya:Tripoli Tunisia:Tunis Algeria:Algiers "
    "Morocco:Rabat Ethiopia:Addis Ghana:Accra Senegal:Dakar Uganda:Kampala "
    "Switzerland:Bern Romania:Bucharest Bulgaria:Sofia Serbia:Belgrade "
    "Croatia:Zagreb Iceland:Reykjavik Colombia:Bogot Venezuela:Caracas Ecuador:Quito "
    "Philippines:Manila Malaysia:Kuala India:Delhi Uruguay:Montevideo"
)
CAPITALS = dict(pair.split(":") for pair in _CAPITALS.split())
CAPITAL_IS = "The capital of {} is"

# Task → pairs of a word and the answer.
TASKS = {
    "opposites": (
        "hot:cold big:small up:down left:right light:dark young:old rich:poor fast:slow "
        "high:low open:closed wet:dry hard:soft early:late good:bad happy:sad strong:weak "
        "long:short thick:thin full:empty near:far clean:dirty loud:quiet day:night "
        "black:white first:last true:false alive:dead inside:outside above:below win:lose "
        "buy:sell push:pull love:hate north:south east:west war:peace friend:enemy"
    ),
    "plurals": (
        "child:children man:men woman:women foot:feet tooth:teeth mouse:mice leaf:leaves "
        "wife:wives knife:knives wolf:wolves life:lives city:cities baby:babies "
        "lady:ladies party:parties story:stories box:boxes bus:buses church:churches "
        "dish:dishes class:classes house:houses tree:trees book:books dog:dogs cat:cats "
        "friend:friends flower:flowers king:kings word:words star:stars hand:hands "
        "eye:eyes road:roads ship:ships bird:birds song:songs letter:letters"
    ),
    "past tense": (
        "go:went see:saw take:took give:gave come:came know:knew think:thought find:found "
        "tell:told write:wrote speak:spoke begin:began break:broke drive:drove eat:ate "
        "fall:fell fly:flew grow:grew hold:held keep:kept leave:left lose:lost make:made "
        "meet:met run:ran sing:sang sit:sat sleep:slept stand:stood swim:swam "
        "teach:taught wear:wore win:won buy:bought catch:caught bring:brought build:built"
    ),
    "capitals": " ".join(_CAPITALS.split()[:38]),
    "French": (
        "dog:chien cat:chat house:maison water:eau bread:pain book:livre night:nuit "
        "sun:soleil moon:lune hand:main love:amour war:guerre peace:paix king:roi "
        "queen:reine child:enfant man:homme woman:femme friend:ami city:ville road:route "
        "tree:arbre flower:fleur bird:oiseau fish:poisson milk:lait cheese:fromage "
        "apple:pomme red:rouge black:noir white:blanc two:deux three:trois ten:dix "
        "sea:mer sky:ciel sister:soeur"
    ),
}


def task_pairs(task):
    """Return a task's pairs of word and answer, a list of (str, str).

    ``task`` : "opposites" ("hot", "cold"), "plurals", "past tense", "capitals" (of
    countries) or "French" (from English).
    """
    return [tuple(pair.split(":")) for pair in TASKS[task].split()]


def examples_prompt(pairs, word):
    """Return a prompt of examples, one a line, and the word whose answer is to follow.

    A line is "hot -> cold"; the last one ends with the arrow: "big ->".

    Parameters
    ----------
    pairs : iterable of (str, str)
        Words and their answers.
    word : str
        The last one, whose answer is left open.
    """
    lines = [f"{one} -> {answer}" for one, answer in pairs]
    return "\n".join([*lines, f"{word} ->"])
