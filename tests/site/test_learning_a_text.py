"""What the page computes of a reader's text: it is what Python computes."""

import numpy as np
import pytest
import torch

from lmcourse import own_text
from lmcourse.data import load_corpus
from lmcourse.gpt.model import GPT, GPTConfig
from lmcourse.ngrams import NgramModel, discounts
from test_engine import near
from test_training import given

pytestmark = pytest.mark.browser

VERSE = "so long as men can breathe or eyes can see\n"
TEXTS = {
    "sonnets": load_corpus("sonnets")[:30_000],
    "one verse": VERSE * 40,
    "few counts": "abcdefgh" * 150,
    "emoji": "ja 🦋🦋 nein 👩‍👩‍👧 doch\n" * 60,
    "many characters": "".join(chr(0x4E00 + i * i % 700) for i in range(4000)),
}
GIVE_IDS = """const ids = (text) => Array.from(text, (c) => alphabet.indexOf(c));"""
SETTINGS = {"batch": 2, "learning_rate": 0.01, "seed": 3, "state": None}
CONFIG = {"context": 8, "layers": 1, "heads": 2, "d_model": 8, "d_ff": 32}
CONFIG |= {"positions": "learned", "norm_first": True, "eps": 1e-5, "causal": True}
CONFIG |= {"activation": "gelu_new", "output": "tied"}


@pytest.mark.parametrize("name", TEXTS)
def test_counting_is_pythons(lab, name):
    text = TEXTS[name]
    alphabet = sorted(set(text))
    parts = own_text.parts_of(text)
    result = lab.evaluate(
        f"""async ([text, alphabet, longest]) => {{
          const {{ Ngrams }} = await import("/play/ngrams.js");
          const texts = await import("/play/own-texts.js");
          const {{ charactersOf, partsOf, alphabetOf }} = texts;
          {GIVE_IDS}
          const parts = partsOf(charactersOf(text));
          const joined = Object.values(parts).map((all) => all.flat().join(""));
          const [training, validation] = joined.map(ids);
          const counted = new Ngrams(training, alphabet.length, longest);
          const orders = Array.from({{ length: longest }}, (_, i) => i + 1);
          const before = validation.slice(0, 9);
          return {{
            joined, alphabet: alphabetOf(charactersOf(text)),
            losses: counted.losses(validation),
            each: Array.from(counted.lossesOf(validation, 3)),
            next: orders.map((order) => Array.from(counted.next(before, order))),
            first: Array.from(counted.next([], 4)),
          }};
        }}""",
        [text, alphabet, 6],
    )
    assert result["joined"] == [*parts]
    assert result["alphabet"] == alphabet
    training, validation, _ = ([alphabet.index(c) for c in part] for part in parts)
    models = [NgramModel(training, order, len(alphabet)) for order in range(1, 7)]
    near_all = {"rtol": 1e-9, "atol": 0}
    losses = [model.loss(validation) for model in models]
    np.testing.assert_allclose(result["losses"], losses, **near_all)
    each = -np.log(models[2].probabilities(validation))
    np.testing.assert_allclose(result["each"], each, **near_all)
    for model, probs in zip(models, result["next"], strict=True):
        np.testing.assert_allclose(probs, model.next_probs(validation[:9]), **near_all)
    np.testing.assert_allclose(result["first"], models[3].next_probs([]), **near_all)


@pytest.mark.parametrize("counts", [[1, 1, 1, 2, 2, 3, 4], [5, 6], [1, 1, 1, 2, 3, 3, 3]])
def test_discounts_are_pythons(lab, counts):
    result = lab.evaluate(
        """async (counts) => {
          const { discounts } = await import("/play/ngrams.js");
          return discounts(Int32Array.from([0, ...counts]));
        }""",
        counts,
    )
    np.testing.assert_allclose(result, [0, *discounts(np.array(counts))])


def test_what_is_held_out_is_read_as_in_python(lab):
    torch.manual_seed(0)
    model = GPT(GPTConfig(11, 8, 2, heads=2, d_model=8)).eval()
    ids = torch.randint(11, (45,))
    losses = given(
        lab,
        model,
        {"ids": ids.tolist()},
        """const { predictions } = await import("/play/own-text-worker.js");
        return Array.from(predictions(trainer.model, settings.ids),
          ({ position, probs }) => -Math.log(probs[settings.ids[position]]));""",
    )
    near(torch.tensor(losses), torch.tensor(own_text.losses(model, ids)))


def learn(lab, steps, *, stop=None):
    """Train in the page; go on in a new training after `stop` steps, if it is said."""
    settings = SETTINGS | {"text": list(VERSE * 40), "config": CONFIG, "steps": steps}
    return lab.evaluate(
        """async ([settings, stop]) => {
          const { Learning } = await import("/play/own-text-worker.js");
          let learning = new Learning(settings);
          learning.report();
          while (learning.trainer.step < (stop ?? settings.steps)) learning.learn();
          if (stop) {
            const state = structuredClone(learning.state());
            learning = new Learning({ ...settings, state });
            while (learning.trainer.step < settings.steps) learning.learn();
          }
          const counted = learning.count();
          const { loss, sample } = learning.report();
          const { letters, ...result } = Array.from(function* () {
            const reading = learning.result();
            for (;;) {
              const { done, value } = reading.next();
              if (done) return yield value;
            }
          }())[0];
          return { loss, sample, counted, result, letters };
        }""",
        [settings, stop],
    )


def test_a_training_that_was_stopped_goes_on_as_if_undisturbed(lab):
    whole, parts = learn(lab, 20), learn(lab, 20, stop=7)
    assert parts == whole
    assert learn(lab, 21)["loss"] != whole["loss"]


def test_the_best_moment_outlives_a_stop(lab):
    """What is judged and taken along are the weights of the lowest loss so far."""
    settings = SETTINGS | {"text": list(VERSE * 40), "config": CONFIG, "steps": 20}
    result = lab.evaluate(
        """async (settings) => {
          const { Learning } = await import("/play/own-text-worker.js");
          const first = new Learning(settings);
          first.report();
          const state = structuredClone(first.state());
          state.best.loss = -1; // no later moment is as good
          const { weights } = state.best;
          const learning = new Learning({ ...settings, state });
          while (learning.trainer.step < settings.steps) learning.learn();
          learning.report();
          const { best } = learning.state();
          const same = (name) => String(best.weights[name]) === String(weights[name]);
          return [best.step, Object.keys(weights).every(same)];
        }""",
        settings,
    )
    assert result == [0, True]


def test_the_end_tells_of_both_what_they_predicted(lab):
    text = VERSE * 40
    alphabet = sorted(set(text))
    parts = own_text.parts_of(text)
    training, validation, test = ([alphabet.index(c) for c in part] for part in parts)
    answer = learn(lab, 10)
    result, counted = answer["result"], answer["counted"]
    best = own_text.best_ngrams(np.array(training), np.array(validation), len(alphabet))
    assert counted["order"] == best.order
    sizes = dict(zip(("training", "validation", "test"), map(len, parts), strict=True))
    assert counted["sizes"] == sizes
    each = -np.log(best.probabilities(test))[1:]
    assert result["characters"] == len(test) - 1 == len(each)
    assert result["losses"]["ngrams"] == pytest.approx(each.mean(), rel=1e-9)
    assert result["passage"] == parts.test[1:280]
    shares = [share / 100 for share, _, _ in answer["letters"]["ngrams"]]
    np.testing.assert_allclose(-np.log(shares), each[: len(shares)], rtol=1e-9)
    shares = [share / 100 for share, _, _ in answer["letters"]["gpt"]]
    if len(shares) == result["characters"]:
        assert result["losses"]["gpt"] == pytest.approx(-np.log(shares).mean(), rel=1e-6)
    for _, _, guesses in answer["letters"]["gpt"]:
        assert [name in alphabet for name, _ in guesses] == [True] * 4
    assert [len(text) for text in result["samples"].values()] == [400, 400]


def test_an_interval_is_that_of_pieces(lab):
    differences = np.random.default_rng(0).normal(0.1, 1, 3050)
    intervals = lab.evaluate(
        """async (all) => {
          const { interval } = await import("/play/own-text-worker.js");
          return [interval(all), interval(all.slice(0, 999))];
        }""",
        differences.tolist(),
    )
    means = differences[:3000].reshape(-1, 100).mean(1)
    wide = 2.1 * means.std(ddof=1) / np.sqrt(len(means))
    wanted = [means.mean() - wide, means.mean() + wide]
    np.testing.assert_allclose(intervals[0], wanted)
    assert intervals[1] is None


FAULTS = {
    "": "There is no text yet",
    " \n\t ": "There is no text yet",
    VERSE: "1,000 are the least",
    "a": "has 1 character, and 1,000 are the least",
    "🦋🙂" * 600: "",
    VERSE * 40 + "\0": "",
    "a" * 5000: "one character, “a”, over and over",
    "🦋" * 5000: "one character, “🦋”, over and over",
    "PK\x03\x04\0\0\0" * 500: "not text",
    "\ufffd" + VERSE * 40: "",
    VERSE * 40: "",
    "".join(map(chr, range(0x3400, 0x4DB0))): "6,000 at the most",
}


@pytest.mark.parametrize(("text", "words"), FAULTS.items(), ids=map(repr, range(12)))
def test_what_cannot_be_learned_is_told(lab, text, words):
    fault = lab.evaluate(
        """async (text) => {
          const { charactersOf, faultOf } = await import("/play/own-texts.js");
          return faultOf(charactersOf(text));
        }""",
        text,
    )
    assert words in fault
    assert bool(words) == bool(fault)


FILES = {
    "UTF-8": ("Über 🦋\n".encode(), "Über 🦋\n", ""),
    "with a mark before it": ("\ufeffÜber\n".encode(), "Über\n", ""),
    "Windows line ends": (b"one\r\ntwo\rthree", "one\ntwo\nthree", ""),
    "Latin-1": ("Über\n".encode("latin-1"), "Über\n", "Latin-1"),
    "UTF-16": ("Über 🦋\n".encode("utf-16"), "Über 🦋\n", ""),
    "UTF-16, the other way": ("\ufeffÜber".encode("utf-16-be"), "Über", ""),
    "Chinese": ("床前明月光\n".encode(), "床前明月光\n", ""),
    "right to left": ("בראשית ברא\n".encode(), "בראשית ברא\n", ""),
    "empty": (b"", "", ""),
}


@pytest.mark.parametrize("name", FILES)
def test_files_of_all_kinds_are_read(lab, name):
    content, text, note = FILES[name]
    decoded = lab.evaluate(
        """async (bytes) => {
          const { charactersOf, decodeText } = await import("/play/own-texts.js");
          const { text, note } = decodeText(Uint8Array.from(bytes));
          return [charactersOf(text).join(""), note];
        }""",
        [*content],
    )
    assert decoded[0] == text
    assert note in decoded[1]
    assert bool(note) == bool(decoded[1])


def test_half_a_character_does_not_stop_the_page(lab):
    codes = lab.evaluate(
        """async () => {
          const { charactersOf } = await import("/play/own-texts.js");
          return charactersOf("a\\ud83db").map((c) => c.codePointAt(0));
        }"""
    )
    assert codes == [97, 0xFFFD, 98]


def test_a_million_characters_are_counted(lab):
    """One line without an end: no order of n-grams, and no call, is too much for it."""
    counts = lab.evaluate(
        """async () => {
          const { charactersOf, faultOf, partsOf } = await import("/play/own-texts.js");
          const { Ngrams } = await import("/play/ngrams.js");
          const random = (i) => (Math.imul(i, 2654435761) >>> 0) % 7;
          const all = Array.from({ length: 1100000 }, (_, i) => "abc def"[random(i)]);
          const characters = charactersOf(all.join(""));
          const ids = characters.map((c) => "abc def".indexOf(c));
          const parts = partsOf(ids);
          const counted = new Ngrams(parts.training.flat(), 7, 7);
          return [characters.length, faultOf(characters), parts.test.flat().length,
            counted.losses(parts.validation.flat()).length];
        }"""
    )
    assert counts == [1_000_000, "", 20_000, 7]
