"""What can SmolLM2-135M-Instruct do, with how few bits, and where inside is it done?

Bits: every matrix is stored again with 8 to 2 bits a number, a scale and a minimum for
each block of 32, or for each row; statistic: nats a token on the first 64 tokens of 30
poems, the first that are long enough; rival: counting single tokens in the other poems;
null: the order of bits exchanged at random. The file itself has 4 bits in blocks of 32, so
that these change nothing: what the file lost against its makers' weights is not measured.

Asks: the capital of each country and the opposite of each word, asked in the chat template
as it is shipped, without its system turn, with a plain one, and bare (one token). An answer
is right if it has the capital, or a word that begins as the opposite; greedy, 16 tokens.
Shots: three tasks by examples of other words drawn at random, all right, or each with the
next one's answer.

Heads: what each of the 270 heads returned at the last token for a sentence's twin, in which
the other person gives, is copied into the sentence; 20 pairs of twins, of the first twenty
names. Moves: one token's state before each layer is copied from another country's (or
word's) prompt; how many answers become the other's; and from which state on the lens reads
the answer. Chat and writing: what it answers and how it continues, for the page to show.
"""

import copy
import re
from functools import cache

import numpy as np
import torch
import torch.nn.functional as F

from lmcourse.data import load_poems
from lmcourse.gguf import quantise, restore
from lmcourse.gpt.generation import generate
from lmcourse.gpt.inside import lens, outputs, states
from lmcourse.llama import load_talker, sample_tokens
from lmcourse.numbers import bootstrap_interval
from lmcourse.patching import copied_heads, copied_state
from lmcourse.prompts import (
    CAPITAL_IS,
    CAPITALS,
    NAMES,
    errands,
    examples_prompt,
    task_pairs,
    twins,
)
from studies.harness import grid, verdict

CHAPTER = "models-you-talk-to"
CLAIM = (
    "With two bits for each weight SmolLM2 predicts poems worse than a count of single "
    "tokens does; with four it predicts them far better"
)
RIVAL = "counting single tokens in the other poems"
NULL = "losses exchanged at random between two and four bits"
SETTINGS = {"bits": [8, 6, 5, 4, 3, 2], "poems": 30, "tokens": 64, "answer": 16}
SETTINGS |= {"tasks": ["opposites", "past tense", "French"]}
SETTINGS |= {"shots": [0, 1, 4, 8], "pairs": 20, "seeds": [0]}
FORMS = ("template", "no system", "plain system", "bare")
PLAIN = "You are a helpful assistant."
QUESTIONS = {
    "capitals": "What is the capital of {}?",
    "opposites": "What is the opposite of {}?",
}
RELATIONS = {"capitals": CAPITAL_IS, "opposites": "The opposite of {} is"}
BEGINNING = "Once upon a time, in a small village by the sea,"
CHATS = (
    "What is the capital of France?",
    "What is the capital of Italy?",
    "What is the capital of Iceland?",
    "Who wrote Hamlet?",
    "Who was the first woman on the moon?",
    "What is 7 times 8?",
    "Is a whale a fish?",
    "Write two lines about the sea.",
    "What did I say to you yesterday?",
)
LINES = (
    "The old woman opened the door, and",
    "Dear Sir, I write to you because",
)
WAYS = {  # of choosing the next token
    "greedy": {"temperature": 0.0},
    "temperature 0.7": {"temperature": 0.7},
    "temperature 1": {"temperature": 1.0},
    "temperature 1, nucleus 0.9": {"temperature": 1.0, "top_p": 0.9},
    "temperature 1.5": {"temperature": 1.5},
    "temperature 1.5, nucleus 0.9": {"temperature": 1.5, "top_p": 0.9},
}


@cache
def talker():
    """Return SmolLM2's tokenizer and the model, on the CPU.

    Returns
    -------
    tokenizer : PreTrainedTokenizerFast
        Called with a str, it gives the ids as ``input_ids``.
    model : Llama
        With the weights of SmolLM2-135M-Instruct.
    """
    return load_talker(device="cpu")


def ids_of(*texts):
    """Return texts as SmolLM2's ids, an int64 Tensor of shape (texts, tokens).

    ``texts`` : str; a ValueError is raised if they have different numbers of tokens.
    """
    return torch.tensor([talker()[0](text).input_ids for text in texts])


def first_id(answer):
    """Return SmolLM2's id of the first token of an answer, a str, after a space: an int."""
    return talker()[0](f" {answer}").input_ids[0]


def plan(small):
    """Return the settings of all runs.

    Parameters
    ----------
    small : bool
        Whether it is one quick run of each group but "moves".

    Returns
    -------
    list of dict
        The arguments of each run: ``group``, what is done. "heads": ``layer``, counted from
        0, whose heads are tried. "moves": ``task``, "capitals" or "opposites". "asks":
        ``task``, the same, and ``form``, the form of the prompt. "bits": ``bits`` of each
        weight, 8 to 2, and ``block``, how many weights share a scale, 32 or 0 (a row).
        "shots": ``task``, such as "French"; ``shots``, how many examples; ``right``,
        whether their answers are right. "chat": ``question``. "writing": ``line``, the
        beginning; ``way`` of sampling; ``seed``. "counting" takes none. A small plan also
        has ``count``, how many texts or questions; of "chat" and "writing" ``tokens``, how
        many the model writes at most.
    """
    layers = [0] if small else range(talker()[1].config.layers)
    runs = grid(group="heads", layer=layers)
    runs += grid(group="moves", task=[*RELATIONS])
    runs += grid(group="asks", task="capitals", form=FORMS)
    runs += grid(group="asks", task="opposites", form=FORMS[:2])
    runs += grid(group="bits", block=32, bits=SETTINGS["bits"])
    runs += grid(group="bits", block=0, bits=SETTINGS["bits"][3:])
    runs += [{"group": "counting"}]
    runs += grid(group="shots", task=SETTINGS["tasks"], shots=SETTINGS["shots"], right=True)
    runs += grid(group="shots", task=SETTINGS["tasks"], shots=[8], right=False)
    runs += grid(group="chat", question=CHATS)
    runs += grid(group="writing", line=LINES, way=[*WAYS], seed=SETTINGS["seeds"])
    if not small:
        return runs
    quick = {each["group"]: each for each in reversed(runs) if each["group"] != "moves"}
    short = {"chat": {"tokens": 6}, "writing": {"tokens": 3}}
    return [each | short.get(group, {"count": 3}) for group, each in quick.items()]


def run(folder, group, **setting):
    """Do one run of the study: ask SmolLM2, or count tokens.

    Parameters
    ----------
    folder : Path
        Unused.
    group : str
        What is done: "bits", the model with fewer bits for each weight; "counting", a
        unigram model; "asks", questions; "shots", examples before a question; "heads" and
        "moves", heads' outputs or states copied from another prompt; "chat", one question;
        "writing", a line continued.
    **setting
        The arguments of the function of that name in this module, such as ``task`` and
        ``form``.

    Returns
    -------
    dict or list of dict
        What the function of that name returns: the setting, and

        - of "bits" ``losses``, one of each poem, in nats a token, and ``text``, what the
          model writes; of "counting" ``losses`` alone,
        - of "asks" a list, one dict a question, with ``right``, bool,
        - of "shots" ``hits``, 1 or 0 for each word,
        - of "heads" a list, one dict a head, with ``effect``, in logits, and ``flips``, how
          many answers change,
        - of "moves" lists of how many answers change, by layer and by head (`moves`),
        - of "chat" and "writing" ``text``, what the model writes.
    """
    return GROUPS[group](**setting)


# --- bits -----------------------------------------------------------------------------


@cache
def poem_ids(count):
    """Return the first 64 tokens of each of Dickinson's poems that are long enough.

    ``count`` : int, how many poems, the first ones. The result is an int64 Tensor of shape
    (poems, 64) with SmolLM2's ids; it is cached.
    """
    tokenizer, _ = talker()
    tokens = SETTINGS["tokens"]
    texts = [tokenizer(text).input_ids[:tokens] for text in load_poems().text]
    return torch.tensor([ids for ids in texts if len(ids) == tokens][:count])


@torch.no_grad()
def poem_losses(model, count):
    """Return the mean loss of each poem, in nats a token.

    Parameters
    ----------
    model : Llama
    count : int
        How many poems, the first ones.

    Returns
    -------
    list of float
        One a poem, over its first tokens; rounded to four decimals.
    """
    losses = []
    for ids in poem_ids(count):
        logits = model(ids[None])[0, :-1]
        losses.append(round(F.cross_entropy(logits, ids[1:]).item(), 4))
    return losses


def requantised(model, bits, block):
    """Return a copy of a model whose matrices have been rounded to fewer bits.

    A number is its scale times a whole number, plus a minimum.

    Parameters
    ----------
    model : Llama
    bits : int
        For each number.
    block : int
        How many numbers of a row share a scale and a minimum; 0: the whole row.

    Returns
    -------
    Llama
        In float32 again.
    """
    other = copy.deepcopy(model)
    with torch.no_grad():
        for weight in other.parameters():
            if weight.ndim == 2:
                stored = quantise(weight, bits, block or weight.shape[1])
                weight.copy_(restore(*stored))
    return other


def bits(block, bits, count=None):
    """Measure SmolLM2's losses with so many bits for each number, and let it write.

    Parameters
    ----------
    block : int
        How many numbers of a row share a scale and a minimum; 0: the whole row.
    bits : int
        For each number.
    count : int, optional
        How many poems are read. Default: 30.

    Returns
    -------
    dict
        The settings ``block``, ``bits``; ``text``, str, how it continues "Once upon a time,
        in a small village by the sea," by 30 tokens; ``losses``, one of each poem, in nats
        a token.
    """
    tokenizer, model = talker()
    other = requantised(model, bits, block)
    written = sample_tokens(other, ids_of(BEGINNING), 30)
    row = {"block": block, "bits": bits, "text": tokenizer.decode(list(written))}
    return row | {"losses": poem_losses(other, count or SETTINGS["poems"])}


def counting(count=None):
    """Measure a unigram model of all of Dickinson's poems but those that are tested.

    It counts SmolLM2's tokens, and adds one to each count.

    Parameters
    ----------
    count : int, optional
        How many test poems. Default: 30.

    Returns
    -------
    dict
        ``losses``, one for each test poem, in nats a token.
    """
    tokenizer, model = talker()
    judged = poem_ids(count or SETTINGS["poems"])
    begun = {tuple(ids.tolist()) for ids in judged}
    counts = torch.ones(model.config.vocab_size)
    for text in load_poems().text:
        ids = tokenizer(text).input_ids
        if tuple(ids[: SETTINGS["tokens"]]) not in begun:
            counts += torch.bincount(torch.tensor(ids), minlength=len(counts))
    losses = -(counts / counts.sum()).log()[judged[:, 1:]].mean(1)
    return {"losses": [round(x, 4) for x in losses.tolist()]}


# --- questions ------------------------------------------------------------------------


def prompt(question, form):
    """Return a question as the text that SmolLM2 is given.

    Parameters
    ----------
    question : str
    form : str
        How the question is put to the model: "template", in the chat template as it is
        shipped; "no system", without its system turn; "plain system", with "You are a
        helpful assistant." in its place; "bare", alone.

    Returns
    -------
    str
    """
    if form == "bare":
        return question
    turns = [{"role": "user", "content": question}]
    if form == "plain system":
        turns = [{"role": "system", "content": PLAIN}, *turns]
    text = talker()[0].apply_chat_template(
        turns, tokenize=False, add_generation_prompt=True
    )
    if form == "no system":
        text = text[text.index("<|im_start|>user") :]
    return text


def by_length(texts):
    """Group texts by their number of tokens.

    Parameters
    ----------
    texts : list of str

    Yields
    ------
    rows : list of int
        Which texts have one length: their numbers in the list, counted from 0.
    ids : int64 Tensor of shape (texts, tokens)
        Their ids; lengths ascend from one pair to the next.
    """
    every = [talker()[0](text).input_ids for text in texts]
    for length in sorted({len(ids) for ids in every}):
        rows = [row for row, ids in enumerate(every) if len(ids) == length]
        yield rows, torch.tensor([every[row] for row in rows])


@torch.no_grad()
def answers(texts, tokens):
    """Return what SmolLM2 writes after each text, greedily, until it ends its turn.

    Parameters
    ----------
    texts : list of str
        As the model reads them: a chat template, if it is wanted, is already in them.
    tokens : int
        How many at most.

    Returns
    -------
    list of dict
        In the order of the texts. ``text``, the answer alone; ``ended``, whether it ended
        its turn within so many tokens; ``sure``, the geometric mean of the probabilities of
        the answer's tokens (0 if it has none); ``end``, the probability of ending the turn
        at once, without an answer.
    """
    tokenizer, model = talker()
    end = tokenizer.eos_token_id
    replies = {}
    for rows, ids in by_length(texts):
        whole = generate(model, ids, tokens, temperature=0.0)
        at = ids.shape[1]
        states = model.norm(model.states(whole)[:, at - 1 : -1])
        log_probs = F.linear(states, model.output_matrix).log_softmax(-1)
        chosen = log_probs.gather(2, whole[:, at:, None])[..., 0]  # (texts, tokens)
        for row, drawn, sure, first in zip(
            rows, whole[:, at:].tolist(), chosen, log_probs[:, 0, end], strict=True
        ):
            ended = end in drawn
            answer = drawn[: drawn.index(end)] if ended else drawn
            geometric = sure[: len(answer)].mean().exp().item() if answer else 0.0
            replies[row] = {
                "text": tokenizer.decode(answer).strip(),
                "ended": ended,
                "sure": round(geometric, 4),
                "end": round(first.exp().item(), 4),
            }
    return [replies[row] for row in range(len(texts))]


# The rest of cities of which `CAPITALS` has the first word or the letters without accents.
SPELLED = {
    "Bogot": "Bogot[aá]",
    "Bras": "Bras[ií]lia",
    "Kuala": "Kuala Lumpur",
    "Mexico": "Mexico City",
}


def asks(task, form, count=None):
    """Ask SmolLM2 all questions of a task, such as "What is the capital of Italy?".

    An answer is right if it holds the capital, or a word that begins with the opposite.

    Parameters
    ----------
    task : {"capitals", "opposites"}
    form : str
        Of the prompt: "template", as the model was tuned to be asked; "no system", without
        its system turn; "plain system", with a system turn of common words; "bare", the
        question alone, after which the model answers with one token, else with sixteen at
        most.
    count : int, optional
        How many questions. Default: all.

    Returns
    -------
    list of dict
        One a question: ``task``, ``form``, the ``word`` that is asked about, whether the
        answer is ``right``; and of the answer its ``text``; ``ended``, whether the model
        ended its turn; ``sure``, the geometric mean of its tokens' probabilities; ``end``,
        the probability of ending at once.
    """
    asked = pairs(task)[:count]
    texts = [prompt(QUESTIONS[task].format(word), form) for word, _ in asked]
    replies = answers(texts, 1 if form == "bare" else SETTINGS["answer"])
    rows = []
    for (word, right), reply in zip(asked, replies, strict=True):
        spelled = SPELLED.get(right, right)
        # "Tunis" must not be found in "Tunisia"; of opposites any ending will do.
        pattern = rf"\b{spelled}\b" if task == "capitals" else rf"\b{spelled}"
        hit = re.search(pattern, reply["text"], re.IGNORECASE)
        rows.append({"task": task, "form": form, "word": word, "right": bool(hit)} | reply)
    return rows


def pairs(task):
    """Return a task's questions and answers, a list of (str, str): a word or country, and
    its answer.

    ``task`` : str, "capitals" or a task of `lmcourse.prompts`: "opposites", "past tense" or
    "French".
    """
    return [*CAPITALS.items()] if task == "capitals" else task_pairs(task)


def chat(question, tokens=60):
    """Ask SmolLM2 one question in the chat template as it is shipped.

    Parameters
    ----------
    question : str
    tokens : int
        How many the answer has at most.

    Returns
    -------
    dict
        The setting ``question``; ``text``, the answer; ``ended``, whether the model ended
        its turn; ``sure``, the geometric mean of its tokens' probabilities; ``end``, the
        probability of ending at once.
    """
    replies = answers([prompt(question, "template")], tokens)
    return {"question": question} | replies[0]


# --- examples -------------------------------------------------------------------------


@torch.no_grad()
def shots(task, shots, right, count=None):
    """Ask SmolLM2 for the answer to each word of a task after some examples.

    Parameters
    ----------
    task : str
        "opposites", "past tense" or "French": what is asked of each word.
    shots : int
        How many examples, drawn at random from the other words.
    right : bool
        Whether the examples are right; else each has the answer of the next.
    count : int, optional
        How many words are asked. Default: all.

    Returns
    -------
    dict
        The arguments ``task``, ``shots`` and ``right``; and two lists with an entry for
        each word: ``hits``, 1 if the token that the model answers with begins the right
        answer, else 0, and ``said``, that token, a str.
    """
    tokenizer, model = talker()
    words = task_pairs(task)
    rng = np.random.default_rng(0)
    texts = []
    for at, (word, _) in enumerate(words[:count]):
        others = [i for i in range(len(words)) if i != at]
        shown = [words[i] for i in rng.choice(others, shots, replace=False)]
        if not right:
            moved = [b for _, b in shown[1:] + shown[:1]]
            shown = [(a, b) for (a, _), b in zip(shown, moved, strict=True)]
        texts.append(examples_prompt(shown, word))
    answered = {}
    for rows, ids in by_length(texts):
        drawn = model(ids, last=True)[:, -1].argmax(-1).tolist()
        answered |= dict(zip(rows, drawn, strict=True))
    wanted = [first_id(answer) for _, answer in words[:count]]
    hits = [int(answered[row] == token) for row, token in enumerate(wanted)]
    decoded = [tokenizer.decode([answered[row]]) for row in range(len(wanted))]
    return {"task": task, "shots": shots, "right": right, "hits": hits, "said": decoded}


# --- inside ---------------------------------------------------------------------------


@cache
def twin_texts(count):
    """Return what SmolLM2 computes of sentences about two people, and of their twins.

    In a sentence one person gives something; it ends before the name of the other. In its
    twin that other person gives. The names are the first twenty of `NAMES`. The result is
    cached.

    Parameters
    ----------
    count : int
        How many pairs of twins.

    Returns
    -------
    other, giver : int64 Tensor of shape (pairs,)
        The first tokens of the two names in the sentences: who is given it, and who gives.
    stream : Tensor of shape (layers + 1, pairs, tokens, d_model)
        The states of the sentences.
    outputs : dict of (int, int) to Tensor of shape (pairs, tokens, d_head)
        Layer and head, from 0 → what the head returns in the twins. (The feed-forward
        networks' are in it, too, unused.)
    """
    one = errands(count, seed=1, names=NAMES[:20])
    other, giver = (
        torch.tensor([first_id(name) for name in names]) for names in (one[1], one[2])
    )
    model = talker()[1]
    head_outputs = outputs(model, ids_of(*twins(one).texts))
    return other, giver, states(model, ids_of(*one.texts)), head_outputs


@torch.no_grad()
def logits_from(stream, layer):
    """Return SmolLM2's logits at the last token from the states before one of its layers.

    Parameters
    ----------
    stream : Tensor of shape (layers + 1, texts, tokens, d_model)
        The states before the first layer and after each.
    layer : int
        From 0. This layer and those after it are computed anew; only ``stream[layer]`` is
        used.

    Returns
    -------
    Tensor of shape (texts, vocab_size)
    """
    model = talker()[1]
    x = stream[layer]
    for block in model.blocks[layer:]:
        x, _ = block(x)
    return F.linear(model.norm(x[:, -1]), model.output_matrix)  # (texts, vocab_size)


def heads(layer, count=None):
    """Measure how each head of a layer, copied from twins, changes which name comes next.

    A sentence tells who gives something and ends before the name of the other; in its twin
    that other person gives. The lead is by how many logits the other's name is ahead of the
    giver's. One head's output at the last token is replaced by that in the twin.

    Parameters
    ----------
    layer : int
        Whose heads are copied, from 0.
    count : int, optional
        How many pairs of twins. Default: 20.

    Returns
    -------
    list of dict
        One a head: ``layer``, ``head``, both from 0; ``effect``, the mean change of the
        lead, in logits, below 0 if the copy speaks for the giver; ``flips``, in how many
        pairs the giver leads then.
    """
    other, giver, stream, head_outputs = twin_texts(count or SETTINGS["pairs"])
    row = torch.arange(len(other))

    def leads():
        """Return the lead in each pair, a Tensor (pairs,), in logits."""
        logits = logits_from(stream, layer)
        return logits[row, other] - logits[row, giver]

    leads_before = leads()
    rows = []
    for head in range(talker()[1].config.heads):
        with copied_heads(talker()[1], [(layer, head)], head_outputs):
            leads_after = leads()
        effect = (leads_after - leads_before).mean().item()
        flips = int((leads_after < 0).sum())
        rows.append(
            {"layer": layer, "head": head, "effect": round(effect, 4), "flips": flips}
        )
    return rows


def known(task):
    """Return the prompts of a relation that SmolLM2 answers rightly.

    Parameters
    ----------
    task : {"capitals", "opposites"}

    Returns
    -------
    words : list of str
        What is asked about, such as countries: those that are one token each and whose
        answer the model gives.
    ids : int64 Tensor of shape (words, tokens)
        Their prompts, such as "The opposite of hot is".
    right : int64 Tensor of shape (words,)
        The token with which each answer begins.
    """
    tokenizer, model = talker()
    form = RELATIONS[task]
    asked = [pair for pair in pairs(task) if len(tokenizer(f" {pair[0]}").input_ids) == 1]
    ids = ids_of(*[form.format(word) for word, _ in asked])
    right = torch.tensor([first_id(answer) for _, answer in asked])
    with torch.no_grad():
        hits = model(ids, last=True)[:, -1].argmax(-1) == right
    words = [word for (word, _), hit in zip(asked, hits.tolist(), strict=True) if hit]
    return words, ids[hits], right[hits]


@torch.no_grad()
def moves(task):
    """Count, layer by layer, how often SmolLM2 gives the answer of another prompt when that
    prompt's state is copied.

    The prompts ask for one word each, such as a country; the other prompt is the one before
    in their list. Only pairs whose two answers begin with different tokens are counted.

    Parameters
    ----------
    task : {"capitals", "opposites"}

    Returns
    -------
    dict
        - ``task``; ``words``, list of str, which the model knows (`known`); ``of``, int,
          how many pairs count,
        - ``word`` and ``last``: lists of int, one a layer: how many answers become the
          other's if the state of the word, or of the last token, is copied before the
          layer,
        - ``layers``: list of int, one a layer: the same if the outputs of all its heads are
          copied at the last token,
        - ``best``: the layer, from 0, for which that is most; ``heads``: list of int, the
          same if one of its heads is copied,
        - ``lens``: list of int, one a word: from which state on, from 0 to the number of
          layers, the logit lens always reads the right answer; layers + 1 if from none.
    """
    model = talker()[1]
    words, ids, right = known(task)
    depth = model.config.layers
    order = torch.arange(len(words)).roll(1)
    stream = states(model, ids)
    head_outputs = outputs(model, ids)
    place = int((ids[0] != ids[1]).nonzero()[0])
    differ = right[order] != right

    def taken(layer):
        """Return in how many pairs the patched model predicts the other prompt's answer.

        Only pairs whose answers differ count; ``order`` has for each prompt the number of
        the other one. ``layer`` : int, from 0: it is given the clean states before it
        (``stream``), and it and all later layers run again. Called inside `copied_state` or
        `copied_heads`, which do the patching.
        """
        predicted = logits_from(stream, layer).argmax(-1)
        return int((predicted == right[order])[differ].sum())

    row = {"task": task, "words": words, "of": int(differ.sum())}
    for name, token in (("word", place), ("last", ids.shape[1] - 1)):
        row[name] = []
        for layer in range(depth):
            with copied_state(model, layer, token, stream[layer, order, token]):
                row[name].append(taken(layer))
    swapped = {key: value[order] for key, value in head_outputs.items()}
    each = range(model.config.heads)
    heads_by_layer = [[(layer, head) for head in each] for layer in range(depth)]

    def taken_with(heads):
        """Return how many answers become the other's if heads are copied at the last token.

        ``heads`` : list of (int, int), layer and head, both from 0, all of one layer.
        """
        with copied_heads(model, heads, swapped):
            return taken(heads[0][0])

    row["layers"] = [taken_with(heads) for heads in heads_by_layer]
    row["best"] = int(np.argmax(row["layers"]))
    row["heads"] = [taken_with([head]) for head in heads_by_layer[row["best"]]]
    read = lens(model, ids)[:, :, -1].argmax(-1) == right  # (layers + 1, words)
    from_then_on = read.flip(0).cummin(0).values.flip(0)
    row["lens"] = (~from_then_on).sum(0).tolist()
    return row


# --- writing --------------------------------------------------------------------------


def writing(line, way, seed, tokens=45):
    """Let SmolLM2 continue a line.

    Parameters
    ----------
    line : str
        With which the text begins.
    way : str
        Of choosing tokens: "greedy", "temperature 0.7", "temperature 1, nucleus 0.9" or
        another key of `WAYS`.
    seed : int
        Of all that is drawn at random.
    tokens : int
        How many at most.

    Returns
    -------
    dict
        The settings ``line``, ``way``, ``seed``; ``text``, what the model adds to the line.
    """
    tokenizer, model = talker()
    drawn = sample_tokens(
        model,
        ids_of(line),
        tokens,
        stop={tokenizer.eos_token_id},
        generator=torch.Generator().manual_seed(seed),
        **WAYS[way],
    )
    text = tokenizer.decode(list(drawn))
    return {"line": line, "way": way, "seed": seed, "text": text}


GROUPS = {
    "bits": bits,
    "counting": counting,
    "asks": asks,
    "shots": shots,
    "heads": heads,
    "moves": moves,
    "chat": chat,
    "writing": writing,
}


def summary(results):
    """Compare the model with two bits, and with four, with the unigram model, poem by poem.

    Parameters
    ----------
    results : dict of str to list of dict
        Group → outcomes of its runs. Of "bits": ``bits`` of each weight, int; ``block``,
        how many weights share a scale, of which those with 32 count; ``losses``, one of
        each poem, in nats a token. Of "counting", one outcome: ``losses`` of the same
        poems.

    Returns
    -------
    dict
        ``n``, how many poems; ``seeds``, [0]; ``interval``, [low, high], 95 % of the loss
        with two bits less that of counting, in nats a token, None after a short run;
        ``verdict``, "holds" or "not so": whether it is above zero, and that of four bits
        ends below -2.
    """
    rows = {row["bits"]: row["losses"] for row in results["bits"] if row["block"] == 32}
    counted = np.array(results["counting"][0]["losses"])
    if not {2, 4} <= rows.keys():  # a short run
        return {
            "n": len(counted),
            "seeds": [0],
            "interval": None,
            "verdict": verdict(False),
        }
    two, four = (np.array(rows[bits]) - counted for bits in (2, 4))
    low, high = bootstrap_interval(two)
    holds = low > 0 and bootstrap_interval(four)[1] < -2
    interval = [round(low, 4), round(high, 4)]
    return {
        "n": len(counted),
        "seeds": [0],
        "interval": interval,
        "verdict": verdict(holds),
    }
