"""A training as a film: weights in few bits, where something begins, and what is asked."""

import json
import shutil
import zlib
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from lmbook.play.stores import film_file
from lmcourse import data, views
from lmcourse.ablation import hooked_heads
from lmcourse.film import Film, first_for_good, load_film, pack
from lmcourse.gpt.checkpoints import load_gpt
from lmcourse.gpt.model import GPT, GPTConfig
from lmcourse.views.film import named_stops, sentence_of
from lmcourse.views.view import tidy
from studies.mini_gpt import film as study


def states(changes, seed=0):
    """Return the weights of a made-up training, whose steps have these lengths."""
    generator = torch.Generator().manual_seed(seed)
    shapes = {"table": (7, 20), "middle": (5, 3, 24), "vector": (30,)}
    now = {name: torch.zeros(*shape) for name, shape in shapes.items()}
    stops = []
    for change in changes:
        now = {
            name: x + change * torch.randn(x.shape, generator=generator)
            for name, x in now.items()
        }
        stops.append(now)
    return stops


def unpacked(stops):
    tensors = pack(stops)
    shapes = {name: x.shape for name, x in stops[0].items()}
    film = Film(None, range(len(stops)), shapes, tensors)
    return [film.state(i) for i in range(len(stops))]


def error(one, other):
    return float((one - other).square().mean().sqrt())


def test_weights_come_back_rounded_and_errors_do_not_add_up():
    stops = states([1.0] * 12)
    for before, restored, wanted in zip(
        [None, *stops], unpacked(stops), stops, strict=False
    ):
        assert restored.keys() == wanted.keys()
        for name, x in wanted.items():
            assert restored[name].shape == x.shape
            step = error(x, before[name]) if before else error(x, 0 * x)
            assert error(restored[name], x) < (0.03 if name == "vector" else 0.35) * step


def test_a_small_step_is_not_drowned_by_what_was_rounded_off_before():
    stops = states([1.0, 1e-3, 1e-3])
    restored = unpacked(stops)
    for i in (1, 2):
        for name in stops[0]:
            wanted = (stops[i][name] - stops[i - 1][name]).flatten()
            got = (restored[i][name] - restored[i - 1][name]).flatten()
            assert torch.cosine_similarity(wanted, got, dim=0) > 0.9


def test_a_stop_is_the_sum_of_rounded_changes_by_numpy():
    stops = states([1.0, 0.1, 0.5])
    tensors = pack(stops)
    total = np.zeros(7 * 20 + 5 * 3 * 24 + 30, np.float32)
    widths = np.repeat([20, 24, 30], [7, 15, 1])
    for i, restored in enumerate(unpacked(stops)):
        numbers = np.frombuffer(zlib.decompress(tensors[f"{i}.numbers"].numpy()), np.int8)
        scales = np.repeat(tensors[f"{i}.scales"].numpy().astype(np.float64), widths)
        total = (total + scales * numbers).astype(np.float32)  # rounded once, as in a page
        assert np.array_equal(torch.cat([x.flatten() for x in restored.values()]), total)


def test_no_such_stop():
    film = Film(None, [0, 1], {}, {})
    for stop in (-1, 2):
        with pytest.raises(IndexError, match="from 0 to 1"):
            film.state(stop)


@pytest.mark.parametrize(
    ("holds", "place"),
    [("0110", None), ("0111", 1), ("1111", 0), ("1011", 2), ("0000", None)],
)
def test_what_holds_to_the_end_begins_somewhere(holds, place):
    assert first_for_good([each == "1" for each in holds]) == place


# --- what comes with the course -----------------------------------------------------------


def test_the_film_that_comes_with_the_course_ends_in_the_book_s_gpt():
    tokenizer, film, record = load_film()
    book_tokenizer, book, book_record = load_gpt("sonnets", device="cpu")
    assert tokenizer.alphabet == book_tokenizer.alphabet
    assert record["training"] == book_record["training"]
    assert film.steps == list(study.STEPS)
    last, theirs = film.state(len(film.steps) - 1), book.state_dict()
    assert last.keys() == theirs.keys()
    for name, x in theirs.items():
        assert torch.cosine_similarity(last[name].flatten(), x.flatten(), dim=0) > 0.98


def test_a_film_is_found_in_the_home_folder(monkeypatch, tmp_path):
    stored = data.corpora_folder() / "checkpoints" / "film.safetensors"
    shutil.copy(stored, tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))  # of Windows
    assert load_film("~/film.safetensors")[1].steps == load_film()[1].steps


def test_weights_that_are_no_film_are_refused():
    path = data.corpora_folder() / "checkpoints" / "sonnets.safetensors"
    with pytest.raises(ValueError, match=r"sonnets\.safetensors holds no film"):
        load_film(path)


def test_the_record_is_of_these_weights():
    tokenizer, film, _ = load_film()
    packed = data.stored("film")["results"]["packed"]
    ids, starts, _, _ = study.held_out(tokenizer)
    for stop in (0, 8, len(film.steps) - 1):
        model, total = film.model(stop), 0
        for start in starts[::8].tolist():
            with torch.no_grad():
                logits = model(ids[None, start : start + 64])[0, 32:]
            total += torch.nn.functional.cross_entropy(logits, ids[start + 33 : start + 65])
        # Every eighth window: sonnets differ.
        loss = float(total / len(starts[::8]))
        assert loss == pytest.approx(packed[stop]["held_out"], abs=0.05)


def test_what_thou_adds_grows_before_it_decides():
    """Told on *Play*: the lead of *t* grows for long, then it passes *l*."""
    stops = {each["step"]: each for each in data.stored("film")["results"]["stops"]}
    leads = [stops[step]["told"] for step in (300, 500, 700, 1500, 2000)]
    assert leads == sorted(leads)
    assert leads[2] > leads[-1] / 2
    shares = [each["t"]["thou"] for step, each in stops.items() if step >= 50]
    assert max(shares[:-1]) < 0.2 < 0.9 < shares[-1]


def test_the_page_is_told_how_the_weights_are_stored():
    _, film, _ = load_film()
    content = film_file()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    config = json.loads(header["__metadata__"]["config"])
    assert config["steps"] == film.steps
    shapes = {name: x.shape for name, x in GPT(film.config).state_dict().items()}
    assert {name: torch.Size(shape) for name, shape in config["weights"]} == shapes
    assert len(header) == 1 + 2 * len(film.steps)


# --- the study ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small():
    tokenizer, _, _ = load_gpt("sonnets", device="cpu")
    torch.manual_seed(0)
    config = GPTConfig(tokenizer.vocab_size, context=64, layers=2, heads=3, d_model=24)
    model = GPT(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(3)
    return tokenizer, model


def test_the_lead_of_t_is_that_of_each_text_alone(small):
    tokenizer, model = small
    texts = [
        "And they sweet shal",
        "And they w wil",
        "they doth shal",
        "And they love shal",
    ]
    leads = study.lead_of_t(tokenizer, model, texts)
    for text, lead in zip(texts, leads, strict=True):
        with torch.no_grad():
            logits = model(torch.tensor([tokenizer.encode(text)]))[0, -1]
        wanted = logits[tokenizer.encode("t")[0]] - logits[tokenizer.encode("l")[0]]
        assert lead == pytest.approx(float(wanted), abs=1e-4)


def test_heads_are_copied_from_the_other_text_s_last_character(small):
    tokenizer, model = small
    text, source = "And they sweet shal", "And we sweet shal"
    stored = []

    def keep(heads):
        stored.append(heads[0, -1, 2].clone())

    def put(heads):
        changed = heads.clone()
        changed[0, -1, 2] = stored[0]
        return changed

    ids = {each: torch.tensor([tokenizer.encode(each)]) for each in (text, source)}
    attention = model.blocks[1].attention
    with torch.no_grad():
        with hooked_heads(attention, keep):
            model(ids[source])
        with hooked_heads(attention, put):
            logits = model(ids[text])[0, -1]
    yes, no = tokenizer.encode("tl")
    (lead,) = study.lead_of_t(tokenizer, model, [text], [source], [(1, 2)])
    assert lead == pytest.approx(float(logits[yes] - logits[no]), abs=1e-4)
    assert lead != pytest.approx(study.lead_of_t(tokenizer, model, [text])[0], abs=1e-4)


def test_agreement_is_counted_at_the_places_that_n_grams_are_asked(small):
    tokenizer, model = small
    ids, _, positions, sonnets = study.held_out(tokenizer)
    assert len(positions) == len(sonnets) == len({*positions})
    assert positions[0] == 33
    assert sonnets[0] == 0
    assert sonnets[-1] == sonnets.max() > 5
    own = []
    for position in positions:
        start = (position - 1) // 32 * 32 - 32
        if len(own) < 40:
            with torch.no_grad():
                own.append(int(model(ids[None, start:position])[0, -1].argmax()))
    likeliest = np.zeros((6, len(positions)), int)
    likeliest[2, :40] = own
    likeliest[2, 40:] = -1
    likeliest[:2] = likeliest[3:] = -1
    result = study.agreement(likeliest, tokenizer, model)
    assert result["agrees"][2] == pytest.approx(40 / len(positions), abs=1e-4)
    assert result["closest"] == 3


def row(step, **more):
    """Return what the study records of a stop, with other values."""
    plain = {"step": step, "held_out": 3.0, "spaces": 0.01, "interval": [-1, 1]}
    plain |= {
        "told": 0.2,
        "words": {"2": None, "4": 0.1},
        "t": {"thou": 0.2, "they": 0.1, "though": 0.3},
        "closest": 1,
    }
    return plain | {"agrees": [0.5, 0.4], "brought": 0.123, "from_we": -0.01} | more


def test_stops_are_where_something_begins_for_good():
    late = {"spaces": 0.15, "words": {"2": 0.6, "4": 0.1}}
    rows = [row(0, spaces=0.16), row(5), row(10, **late), row(20, **late, held_out=1.9)]
    rows.append(
        row(
            40,
            **late,
            held_out=1.7,
            interval=[0.5, 3],
            t={"thou": 0.9, "they": 0.1, "though": 0.3},
        )
    )
    stops = named_stops(rows, {"spaces": 0.16, "losses": [2.5, 1.8]})
    assert [(each["stop"], each["name"]) for each in stops] == [
        (2, "first spaces"),
        (2, "words of two letters"),
        (4, "better than n-grams"),
        (4, "“thou” begins to matter"),
        (4, "“thou” decides"),
    ]
    assert stops[0]["told"].startswith("From step 10 on, first spaces: 15\xa0% of")


def test_one_step_is_a_step():
    for step, words in (
        (0, "0 steps"),
        (1, "1 step"),
        (2, "2 steps"),
        (1200, "1,200 steps"),
    ):
        assert sentence_of(row(step)).startswith(f"After {words} the loss")


def test_verdict_asks_which_came_first():
    def summary(thou, four):
        matters = {"interval": [0.5, 3], "t": {"thou": 0.9, "they": 0.1}}
        rows = [
            row(i) | (matters if i >= thou else {}) | ({"closest": 4} if i >= four else {})
            for i in range(6)
        ]
        return study.summary({"stops": rows})

    assert summary(4, 2)["verdict"] == "holds"
    assert summary(4, 2)["interval"] == [0.5, 3]
    assert summary(2, 2)["verdict"] == "not so"
    assert summary(6, 2)["verdict"] == "not so"
    assert summary(4, 6)["verdict"] == "not so"


# --- the view -----------------------------------------------------------------------------


def test_a_view_is_of_the_stops_of_its_record():
    tokenizer, film, _ = load_film()
    results = data.stored("film")["results"]
    other = SimpleNamespace(steps=[0, 1], config=film.config)
    with pytest.raises(ValueError, match="other stops"):
        views.film("And", tokenizer, other, results)
    for text in ("", "x" * 65):
        with pytest.raises(ValueError, match="1 to 64 tokens"):
            views.film(text, tokenizer, film, results)


def test_the_table_says_what_is_recorded_and_written():
    tokenizer, film, _ = load_film()
    results = data.stored("film")["results"]
    view = (
        views.film("<And", tokenizer, film, results | {})
        if "<" in tokenizer.alphabet
        else (views.film("And thou", tokenizer, film, results))
    )
    assert len(view.data["stops"]) == len(film.steps)
    assert view.stored.count("<tr>") == 1 + len(film.steps)
    for each in results["stops"]:
        assert (
            f"<td>{each['held_out']:.2f}</td><td>{each['closest']}-grams</td>"
            in view.stored
        )
    assert len(view.data["written"]) == 120
    for stop in view.data["named"]:
        assert tidy(stop["told"]) in view.alt
