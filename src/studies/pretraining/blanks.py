"""What did a model learn by guessing the next word? Six kinds of blanks are filled.

What varies: the kind of knowledge that a blank takes (`KINDS`), and whether the model is
trained.

A blank is tested by twins: two sentences with one blank and the same two words to choose
from. In the first sentence one word is right, in the second the other. A model fills a
blank by reading the whole sentence with each word, and takes the word with which the
sentence is more probable. Whoever ignores what differs between the twins chooses the same
word in both, and is right in exactly half of them. The sentences were written, and the
sums drawn, before any model had read them; none was left out afterwards.

Rivals: word vectors without order, the word that is closer to the mean of the sentence's
words (`similarity`); and, for agreement, the noun nearest to the verb, which is always
wrong in the kind "agreement", and the first noun, which is always wrong in "agreement,
turned" (`turned_agreements`).

Null: SmolLM2 with shuffled weights, from three seeds.

Statistic: the share of right choices; the interval is that of the kind with the lowest
share among `FILLED`, 95 % over pairs of twins drawn again.
"""

from functools import cache

import numpy as np
import torch
from torch.nn.functional import cosine_similarity, cross_entropy
from torch.nn.utils.rnn import pad_sequence

from lmcourse.llama import load_talker
from lmcourse.models import load_bert
from lmcourse.numbers import bootstrap_interval
from lmcourse.shuffled import shuffled_weights
from studies.harness import grid, verdict

CHAPTER = "pretraining"
CLAIM = (
    "Trained on what comes next, SmolLM2 fills most blanks that take a fact, grammar, a "
    "topic or a judgement, but hardly those that take a sum"
)
RIVAL = "the word whose static vector is closer to those of the sentence"
NULL = "SmolLM2 with shuffled weights, three seeds: about half of its choices are right"
FILLED = ("a fact", "agreement", "agreement, turned", "topic", "a judgement")
BATCH = 24  # sentences that are read at once
SETTINGS = {"twins": 30, "seeds": [0, 1, 2], "numbers seed": 1886}

# Each line is a pair of twins: the two beginnings, the end, and the right word of each.
FACTS = """
Hamlet was written by|Oliver Twist was written by|.|Shakespeare|Dickens
Don Quixote was written by|War and Peace was written by|.|Cervantes|Tolstoy
The Divine Comedy was written by|Faust was written by|.|Dante|Goethe
Moby-Dick was written by|Paradise Lost was written by|.|Melville|Milton
The Odyssey was written by|The Aeneid was written by|.|Homer|Virgil
The Mona Lisa was painted by|Guernica was painted by|.|Leonardo|Picasso
The Magic Flute was composed by|The Ring of the Nibelung was composed by|.|Mozart|Wagner
The theory of evolution is due to|The theory of relativity is due to|.|Darwin|Einstein
The Eiffel Tower stands in|Big Ben stands in|.|Paris|London
The Colosseum stands in|The Parthenon stands in|.|Rome|Athens
The pyramids of Giza are in|The Taj Mahal is in|.|Egypt|India
The people of Brazil speak|The people of Austria speak|.|Portuguese|German
The people of Argentina speak|The people of Quebec speak|.|Spanish|French
The money of Japan is called the|The money of Mexico is called the|.|yen|peso
The largest planet is|The planet nearest to the sun is|.|Jupiter|Mercury
A baby cat is called a|A baby dog is called a|.|kitten|puppy
A baby sheep is called a|A baby cow is called a|.|lamb|calf
The colour of snow is|The colour of coal is|.|white|black
The colour of grass is|The colour of blood is|.|green|red
Bees make|Cows give|.|honey|milk
Bread is baked from|Wine is made from|.|flour|grapes
The heart pumps|The lungs breathe|.|blood|air
A person who flies planes is a|A person who bakes bread is a|.|pilot|baker
A person who cuts hair is a|A person who mends pipes is a|.|barber|plumber
The month after January is|The month after June is|.|February|July
The season after winter is|The season after summer is|.|spring|autumn
The opposite of hot is|The opposite of high is|.|cold|low
A week has seven|A day has twenty-four|.|days|hours
The first book of the Bible is|The last book of the Bible is|.|Genesis|Revelation
Water freezes into|Water boils into|.|ice|steam
"""

# A noun, what stands between, another noun, and what follows the verb.
AGREEMENT = """
poem poems|in the|booklet booklets|never printed.
letter letters|from the|soldier soldiers|found in the attic.
key keys|to the|cabinet cabinets|lost for years.
picture pictures|of the|child children|taken in the garden.
window windows|above the|door doors|broken by the storm.
road roads|to the|village villages|closed in winter.
song songs|about the|sailor sailors|sung every night.
book books|on the|table tables|covered with dust.
tree trees|behind the|house houses|cut down last year.
story stories|by the|teacher teachers|read aloud.
box boxes|under the|bed beds|full of papers.
bird birds|near the|river rivers|seen at dawn.
rule rules|of the|game games|easy to learn.
wall walls|around the|town towns|built of stone.
bell bells|in the|tower towers|heard for miles.
boat boats|beside the|bridge bridges|painted blue.
flower flowers|in the|basket baskets|gone by noon.
coat coats|of the|guest guests|hung in the hall.
lamp lamps|over the|desk desks|bright enough.
answer answers|to the|question questions|not easy to find.
student students|of the|professor professors|happy with the news.
nurse nurses|with the|doctor doctors|tired after work.
horse horses|of the|farmer farmers|fed in the evening.
report reports|about the|accident accidents|sent to London.
ship ships|from the|island islands|late again.
map maps|of the|country countries|drawn by hand.
cup cups|on the|shelf shelves|made in China.
knife knives|beside the|plate plates|very sharp.
shop shops|near the|station stations|open on Sunday.
speech speeches|of the|lawyer lawyers|far too long.
"""

# Somebody does something for or because of somebody else; the blank is the first of them.
COREFERENCE = (
    ("{} copied the poems because {}, who was ill, had asked", "to."),
    ("{} went home when {}, who was tired of the noise, told", "to leave."),
    ("{} was glad that {}, after so many years, still remembered", "so well."),
    ("{} knew that {}, who had read the letter, would never forgive", "."),
    ("{} cried because {}, without a word, had left", "behind."),
)
WOMEN = (
    "Mary Anna Emma Sarah Laura Alice Susan Karen Lisa Helen Ruth Jane Kate Lucy Maria "
    "Rose Emily Charlotte Margaret Elizabeth Julia Martha Clara Nancy Linda Barbara "
    "Jennifer Jessica Rachel Hannah"
)
MEN = (
    "John James Robert Michael David William Richard Thomas Mark Paul George Peter Jack "
    "Henry Frank Scott Adam Daniel Martin Simon Tom Joe Ben Edward Charles Walter Arthur "
    "Philip Andrew Steven"
)

# A place, and three things that are found there.
TOPICS = """
sea: waves, gulls, salt|bakery: flour, butter, ovens
library: books, shelves, silence|church: candles, prayers, hymns
farm: cows, hay, tractors|theatre: actors, curtains, applause
forest: trees, moss, deer|hospital: nurses, beds, medicine
school: pupils, teachers, blackboards|station: trains, platforms, tickets
airport: planes, passports, luggage|kitchen: pots, spoons, stoves
garden: roses, bees, tulips|prison: guards, cells, bars
bank: money, loans, coins|desert: sand, camels, heat
cinema: screens, popcorn, films|museum: paintings, statues, vases
harbour: ships, ropes, fishermen|mountain: snow, rocks, climbers
court: judges, lawyers, trials|stable: horses, saddles, straw
zoo: lions, monkeys, cages|cemetery: graves, crosses, mourners
brewery: beer, hops, barrels|vineyard: grapes, wine, hills
stadium: fans, goals, players|laboratory: microscopes, scientists, tubes
castle: knights, towers, kings|factory: machines, workers, smoke
hotel: guests, rooms, keys|pharmacy: pills, syrups, prescriptions
circus: clowns, acrobats, elephants|office: desks, printers, meetings
gym: weights, sweat, muscles|pool: swimmers, towels, divers
pond: frogs, ducks, lilies|cave: bats, darkness, stone
attic: dust, trunks, cobwebs|nursery: babies, toys, lullabies
market: fruit, stalls, bargains|battlefield: soldiers, guns, blood
orchard: apples, ladders, cherries|mine: coal, shafts, lamps
studio: easels, brushes, paint|barracks: uniforms, sergeants, rifles
jungle: vines, parrots, tigers|glacier: ice, cold, crevasses
palace: queens, thrones, crowns|monastery: monks, bells, prayer
restaurant: waiters, menus, dinner|tailor's shop: needles, thread, cloth
port: cargo, cranes, sailors|campsite: tents, fires, marshmallows
beach: sand, shells, umbrellas|concert: violins, music, singers
wedding: brides, rings, vows|funeral: coffins, tears, wreaths
garage: cars, tyres, mechanics|henhouse: eggs, feathers, roosters
"""

# What somebody did, and what was thought of it: a kind word and an unkind one.
SENTIMENT = """
The reviewer loved the book and called its rhymes|The reviewer hated the book and called its rhymes|.|graceful|clumsy
The guests praised the soup, which was|The guests sent back the soup, which was|.|delicious|disgusting
She smiled at the news, which was|She wept at the news, which was|.|wonderful|terrible
We left the film in the best of moods: it was|We left the film in the worst of moods: it was|.|brilliant|boring
He thanked the nurse for being so|He complained that the nurse was so|.|kind|rude
They stayed a week because the hotel was|They left at once because the hotel was|.|lovely|filthy
Everybody enjoyed the party; it was|Nobody enjoyed the party; it was|.|great|awful
The critics admired the play as|The critics mocked the play as|.|powerful|silly
I recommend this shop: the staff are|Avoid this shop: the staff are|.|friendly|unfriendly
The teacher was pleased, and said that the essay was|The teacher was angry, and said that the essay was|.|excellent|careless
He won the prize because his picture was|He lost the contest because his picture was|.|beautiful|ugly
The children cheered, for the clown was|The children yawned, for the clown was|.|funny|dull
I would buy these shoes again: they are|I returned these shoes: they are|.|comfortable|painful
Luckily the weather was|Unfortunately the weather was|.|fine|bad
She trusted him, because he had always been|She distrusted him, because he had never been anything but|.|honest|false
The audience applauded a performance that was|The audience booed a performance that was|.|splendid|poor
Five stars: the room was|One star: the room was|.|clean|dirty
The patient felt better, and the doctor found the results|The patient felt worse, and the doctor found the results|.|good|alarming
My friends adore this song; they say that it is|My friends detest this song; they say that it is|.|beautiful|horrible
He was delighted with the gift, which was|He was disappointed by the gift, which was|.|perfect|cheap
The journey was a pleasure, since the train was|The journey was a nightmare, since the train was|.|fast|late
The boss promoted her for work that was|The boss fired her for work that was|.|outstanding|sloppy
I finished the novel in one night: it was|I gave up on the novel after a page: it was|.|gripping|unreadable
The jury congratulated the singer on a voice that was|The jury criticised the singer for a voice that was|.|pure|shrill
Thank heaven, the answer was|Alas, the answer was|.|yes|no
The wine was a success: it tasted|The wine was a failure: it tasted|.|sweet|sour
To my joy the garden looked|To my horror the garden looked|.|lovely|ruined
The town is proud of its bridge, which is|The town is ashamed of its bridge, which is|.|magnificent|ugly
They hugged after a talk that was|They quarrelled after a talk that was|.|warm|bitter
The cake was eaten at once, it was so|The cake was thrown away, it was so|.|tasty|stale
"""

NUMBERS = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen"
).split()
SUMS = (
    "She wrote {} poems in May and {} in June, which makes",
    "He ate {} apples in the morning and {} at night, which makes",
    "They bought {} red roses and {} white ones, which makes",
    "I read {} books last week and {} this week, which makes",
    "We saw {} swans on the lake and {} on the river, which makes",
)


def rows_of(text):
    """Return the lines of a table of twins, each a list of str, split at vertical bars.

    ``text`` : str.
    """
    return [line.split("|") for line in text.strip().splitlines()]


def twins_of(kind):
    """Return the pairs of twins of a kind of knowledge.

    Parameters
    ----------
    kind : str
        "a fact", "agreement", "agreement, turned", "coreference", "topic", "a judgement" or
        "a sum".

    Returns
    -------
    list of dict
        ``begins``, the two beginnings; ``end``, what follows the blank in both; ``words``,
        the right word of the first sentence and that of the second.
    """
    return [
        {"begins": [one, other], "end": end, "words": [first, second]}
        for one, other, end, first, second in KINDS[kind]()
    ]


def written(text):
    """Return a function, without arguments, that returns the rows of a table of twins.

    ``text`` : str, a line for each row, with vertical bars between its cells. A row is a
    list of its cells, str.
    """
    return lambda: rows_of(text)


def agreements():
    """Return twins of sentences in which subject and nearest noun differ in number.

    Each line of the module's table AGREEMENT gives a pair: "The poems in the booklet" and
    "The poem in the booklets", with "were" and "was".

    Returns
    -------
    list of list of str
        Of each pair of twins the two beginnings, the end that both have, and the word that
        is right in the blank of the first, then that of the second.
    """
    rows = []
    for nouns, between, nearer, end in rows_of(AGREEMENT):
        one, many = nouns.split()
        near_one, near_many = nearer.split()
        plural = f"The {many} {between} {near_one}"
        singular = f"The {one} {between} {near_many}"
        rows.append([plural, singular, f" {end}", "were", "was"])
    return rows


def turned_agreements():
    """Return twins of sentences in which the subject is the second noun.

    The first noun differs from it in number: whoever goes by that one is wrong. Each line
    of the module's table AGREEMENT gives a pair: "We saw the booklet and knew that the
    poems" and "We saw the booklets and knew that the poem", with "were" and "was".

    Returns
    -------
    list of list of str
        Of each pair of twins the two beginnings, the end that both have, and the word that
        is right in the blank of the first, then that of the second.
    """
    rows = []
    for nouns, _, nearer, end in rows_of(AGREEMENT):
        one, many = nouns.split()
        near_one, near_many = nearer.split()
        plural = f"We saw the {near_one} and knew that the {many}"
        singular = f"We saw the {near_many} and knew that the {one}"
        rows.append([plural, singular, f" {end}", "were", "was"])
    return rows


def coreferences():
    """Return twins of sentences in which two people, a woman and a man, change places.

    Five sentences of the module take thirty pairs of first names in turn: "Mary copied the
    poems because John, who was ill, had asked" and the same with the names exchanged, with
    the end " to."; "her" is right in the first, "him" in the second.

    Returns
    -------
    list of list of str
        Of each pair of twins the two beginnings, the end that both have, and the word that
        is right in the blank of the first, then that of the second.
    """
    rows = []
    for i, (woman, man) in enumerate(zip(WOMEN.split(), MEN.split(), strict=True)):
        begin, end = COREFERENCE[i % len(COREFERENCE)]
        end = end if end == "." else f" {end}"
        rows.append([begin.format(woman, man), begin.format(man, woman), end, "her", "him"])
    return rows


def topics():
    """Return twins of sentences that list things of two places.

    Each line of the module's table TOPICS gives a pair: "Waves, gulls, salt: we had come to
    the" and "Flour, butter, ovens: we had come to the", with "sea" and "bakery".

    Returns
    -------
    list of list of str
        Of each pair of twins the two beginnings, the end that both have, and the word that
        is right in the blank of the first, then that of the second.
    """
    rows = []
    for pair in rows_of(TOPICS):
        (one, ones), (other, others) = (each.split(": ") for each in pair)
        begins = [f"{x.capitalize()}: we had come to the" for x in (ones, others)]
        rows.append([*begins, " at last.", one, other])
    return rows


def sums():
    """Return twins of sums of which one number differs, thirty pairs.

    All numbers are words. "She wrote two poems in May and three in June, which makes" has
    the end " in all." and the right word "five"; in its twin the second number is another
    one. Numbers added are from two to nine, drawn from a fixed seed.

    Returns
    -------
    list of list of str
        Of each pair of twins the two beginnings, the end that both have, and the word that
        is right in the blank of the first, then that of the second.
    """
    rng = np.random.default_rng(SETTINGS["numbers seed"])
    rows = []
    for i in range(SETTINGS["twins"]):
        first, second, third = rng.choice(np.arange(2, 10), 3, replace=False).tolist()
        begins = []
        words = []
        for addend in (second, third):
            named = [NUMBERS[number - 1] for number in (first, addend)]
            begins.append(SUMS[i % len(SUMS)].format(*named))
            words.append(NUMBERS[first + addend - 1])
        rows.append([*begins, " in all.", *words])
    return rows


KINDS = {
    "a fact": written(FACTS),
    "agreement": agreements,
    "agreement, turned": turned_agreements,
    "coreference": coreferences,
    "topic": topics,
    "a judgement": written(SENTIMENT),
    "a sum": sums,
}


@cache
def talker():
    """Return SmolLM2's tokenizer and the model, a Llama, on the CPU."""
    return load_talker(device="cpu")


@cache
def random_talker(seed):
    """Return SmolLM2, a Llama, with the numbers of each matrix shuffled.

    ``seed`` : int, of the shuffling.
    """
    return shuffled_weights(talker()[1], seed)


@torch.no_grad()
def log_probabilities(model, tokenizer, texts):
    """Return the log probability of each text, in nats, its first token given.

    Parameters
    ----------
    model : Llama
        Each token sees those before it only, so padding behind a text changes nothing.
    tokenizer : PreTrainedTokenizerFast
    texts : list of str
        They are read in batches of 24.

    Returns
    -------
    list of float
        One a text: the sum over its tokens but the first.
    """
    ids = [torch.tensor(tokenizer(text).input_ids) for text in texts]
    totals = []
    for start in range(0, len(ids), BATCH):
        batch = pad_sequence(ids[start : start + BATCH], batch_first=True, padding_value=-1)
        targets = batch[:, 1:]  # (batch, tokens - 1)
        logits = model(batch.clamp(min=0))[:, :-1]  # (batch, tokens - 1, vocab_size)
        losses = cross_entropy(logits.mT, targets, ignore_index=-1, reduction="none")
        totals += (-losses.sum(1)).tolist()
    return totals


def leads_of_model(twins, model, tokenizer):
    """Return how far the right word is ahead in each sentence of pairs of twins.

    Parameters
    ----------
    twins : list of dict
        ``begins``, the two beginnings of a pair of sentences; ``end``, what follows the
        blank in both; ``words``, the right word of each.
    model : Llama
    tokenizer : PreTrainedTokenizerFast

    Returns
    -------
    list of list of float
        By pair, of its two sentences: the log probability of the sentence with its right
        word, less that with the wrong one, in nats.
    """
    texts = [
        f"{begin} {word}{twin['end']}"
        for twin in twins
        for place, begin in enumerate(twin["begins"])
        for word in (twin["words"][place], twin["words"][1 - place])
    ]
    # (pairs, sentences, words): of each sentence with the right word, then the wrong one
    log_probs = np.array(log_probabilities(model, tokenizer, texts)).reshape(-1, 2, 2)
    return (log_probs[..., 0] - log_probs[..., 1]).round(3).tolist()


@cache
def word_vectors():
    """Return the tokenizer of the course's BERT and its table of token vectors, centred.

    Returns
    -------
    tokenizer : PreTrainedTokenizerFast
    vectors : Tensor of shape (vocab_size, d_model)
        Less their mean, so that what all vectors have in common does not count.
    """
    tokenizer, bert = load_bert(device="cpu")
    table = bert.embeddings.word_embeddings.weight.detach()
    return tokenizer, table - table.mean(0)


def mean_vector(text):
    """Return the mean of the static vectors of a text's tokens, a Tensor (d_model,).

    They are the token vectors of the course's BERT, less the mean of all.
    """
    tokenizer, vectors = word_vectors()
    return vectors[tokenizer(text, add_special_tokens=False)["input_ids"]].mean(0)


def leads_by_similarity(twin):
    """Return how much closer the right word is than the wrong one, in each sentence.

    Parameters
    ----------
    twin : dict
        A pair of sentences: ``begins``, two beginnings; ``end``, what both end with;
        ``words``, the right one of each, which is the wrong one of the other.

    Returns
    -------
    list of float
        The cosine of the right word with the mean of the sentence's words, less that of
        the wrong one.
    """
    leads = []
    for place, begin in enumerate(twin["begins"]):
        context = mean_vector(begin + twin["end"])
        right, wrong = (
            cosine_similarity(mean_vector(word), context, dim=0).item()
            for word in (twin["words"][place], twin["words"][1 - place])
        )
        leads.append(round(right - wrong, 5))
    return leads


def plan(small):
    """Return the settings of all runs.

    Parameters
    ----------
    small : bool
        Whether each is of two pairs of twins, and of one random model.

    Returns
    -------
    list of dict
        The arguments of each run: ``group``, who fills the blanks, "trained", "random" or
        "similarity"; ``kind`` of the blanks, such as "a fact"; ``count``, how many pairs of
        twins; of "random" ``seed`` of the shuffled weights.
    """
    count = SETTINGS["twins"]
    seeds = SETTINGS["seeds"]
    if small:
        count = 2
        seeds = seeds[:1]
    runs = grid(group="trained", kind=[*KINDS], count=count)
    runs += grid(group="random", seed=seeds, kind=[*KINDS], count=count)
    runs += grid(group="similarity", kind=[*KINDS], count=count)
    return runs


def run(folder, group, kind, count, seed=0):
    """Fill the blanks of one kind.

    Parameters
    ----------
    folder : Path
        Unused.
    group : {"trained", "random", "similarity"}
        Who fills them: SmolLM2, SmolLM2 with shuffled weights, or word vectors.
    kind : str
        Of blanks: "a fact", "agreement", "agreement, turned", "coreference", "topic", "a
        judgement" or "a sum".
    count : int
        How many pairs of twins, the first.
    seed : int
        Of the shuffled weights.

    Returns
    -------
    dict
        The settings ``kind``, ``seed``; ``leads``, how far each right word is ahead of the
        wrong one, a list of two by pair of twins: in nats of log probability, or, of
        "similarity", a difference of cosines; ``twins`` (of "trained" alone), the
        sentences: of each pair ``begins``, the two beginnings, ``end``, what follows the
        blank in both, and ``words``, the right ones.
    """
    twins = twins_of(kind)[:count]
    row = {"kind": kind, "seed": seed}
    if group == "similarity":
        return row | {"leads": [leads_by_similarity(twin) for twin in twins]}
    tokenizer, model = talker()
    if group == "random":
        return row | {"leads": leads_of_model(twins, random_talker(seed), tokenizer)}
    return row | {"leads": leads_of_model(twins, model, tokenizer), "twins": twins}


def shares(leads):
    """Return the share of right choices in each pair of twins: 0, 0.5 or 1.

    ``leads`` : (pairs, 2) floats, above 0 where the right word is ahead. The result is an
    array (pairs,).
    """
    return (np.array(leads) > 0).mean(axis=1)


def summary(results):
    """Say how often the right word is chosen in the kind of `FILLED` with the lowest share.

    `FILLED` has all kinds of blanks but "coreference" and "a sum".

    Parameters
    ----------
    results : dict of str to list of dict
        Group → outcomes of its runs. Of "trained", one for each kind of blanks: ``kind``;
        ``leads``, of each pair of twins two floats, above 0 where the right word is ahead.
        Those of "random" have ``seed``.

    Returns
    -------
    dict
        ``n``, how many pairs of twins of all kinds; ``seeds``, those of the random weights;
        ``interval``, [low, high], 95 % of the lowest share of right choices, 0 to 1;
        ``verdict``, "holds" or "not so": whether the interval of each kind of `FILLED`
        begins above a half, and that of sums ends below 60 %.
    """
    by_kind = {row["kind"]: shares(row["leads"]) for row in results["trained"]}
    filled = [by_kind[kind] for kind in FILLED]
    holds = all(bootstrap_interval(each)[0] > 0.5 for each in filled)
    holds = holds and bootstrap_interval(by_kind["a sum"])[1] < 0.6
    interval = bootstrap_interval(min(filled, key=np.mean))
    return {
        "n": sum(len(each) for each in by_kind.values()),
        "seeds": sorted({row["seed"] for row in results["random"]}),
        "interval": [round(end, 4) for end in interval],
        "verdict": verdict(holds),
    }
