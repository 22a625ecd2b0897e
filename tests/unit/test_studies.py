"""Every study: what is stored is of one form and of this code, and a short run works."""

import importlib
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch
from safetensors import safe_open

import studies
from lmcourse import data
from lmcourse.lacking import LACKING
from lmcourse.numpy_nn.decoder import load
from studies import __main__ as command
from studies import depends, harness, running
from studies.transformer_block.models import model_without

STUDIES = command.load_studies()
MODELS = ["lstm", "mini-bert", "sonnets"]  # made without a question
FORM = {
    "claim": str,
    "rival": str,
    "null": str,
    "n": int,
    "seeds": list,
    "interval": list | None,
    "verdict": str,
    "command": str,
    "versions": dict | None,
    "seconds": float | None,
    "rests_on": dict,
    "settings": dict,
    "results": dict,
}


def assert_of_the_form(document):
    assert document.keys() == FORM.keys()
    assert all(isinstance(document[key], kind) for key, kind in FORM.items())
    assert document["verdict"] in ("holds", "not so")
    assert document["interval"] is None or document["interval"] == sorted(
        document["interval"]
    )
    assert document["n"] >= len(document["seeds"]) > 0


@pytest.mark.parametrize("name", [name for name in STUDIES if name not in MODELS])
def test_what_is_stored_is_of_this_code(name):
    study, document = STUDIES[name], data.stored(name)
    assert_of_the_form(document)
    expected = {"claim": study.CLAIM, "rival": study.RIVAL, "null": study.NULL}
    expected |= {"command": f"python -m studies {running.name_of(study)} --write"}
    expected |= study.summary(document["results"])
    expected |= {"settings": json.loads(json.dumps(study.SETTINGS))}
    assert {key: document[key] for key in expected} == expected
    for group, rows in document["results"].items():
        plan = [each for each in study.plan(small=False) if each["group"] == group]
        several = len(rows) % len(plan) == 0 and len(rows) > len(plan)
        for setting, row in zip(plan, rows, strict=True) if not several else []:
            shared = row.keys() & setting.keys() - {"steps"}  # of equal work: others
            for key in shared:
                assert row[key] == json.loads(json.dumps(setting[key])), (setting, key)


@pytest.mark.parametrize("name", STUDIES)
def test_no_stored_study_is_stale(name):
    """What it rests on is as it was: else run it again, or say why it still holds."""
    changed = running.stale(STUDIES[name])
    assert not changed, (
        f"{', '.join(changed)} changed since: run `python -m studies {name} --write`, or, "
        f'if no result can have changed, `python -m studies {name} --still-holds "REASON"`'
    )


def shapes(path):
    with safe_open(path, "pt") as file:
        return {name: file.get_slice(name).get_shape() for name in file.keys()}  # noqa: SIM118


def stored_shapes(short, whole):
    """Return shapes of what was made in short and of what is stored, of one form."""
    computed, stored = shapes(short), shapes(whole)
    if short.stem == "film":  # fewer stops, and what is compressed is as long as it comes
        stored = {name: stored[name] for name in computed}
        packed = {name: None for name in computed if name.endswith("numbers")}
        computed, stored = computed | packed, stored | packed
    return computed, stored


# What these do even in short is for `make steady`; the last is also in test_train.py.
HEAVY = {"backpropagation", "dickinson-layers", "fine-tuning", "in-context", "pretraining"}
HEAVY |= {
    "features",
    "models-you-talk-to",
    "preferences",
    "sizes",
    "speedrun",
    "parallel",
    "partners",
    "four-ideas",
}
SHORT = [
    pytest.param(name, marks=[pytest.mark.steady] if name in HEAVY else [])
    for name in STUDIES
]


@pytest.mark.slow
@pytest.mark.parametrize("name", SHORT)
def test_a_short_run_finds_what_is_stored_in_form(name, tmp_path):
    study = STUDIES[name]
    plan = study.plan(small=True)
    done = running.outcomes(study, plan, tmp_path)
    assert {each["threads"] for each in done} == {1}
    if name not in MODELS:
        document = running.document(study, done)
        assert_of_the_form(document)
        stored = data.stored(name)["results"]
        assert document["results"].keys() <= stored.keys()
        for group, rows in document["results"].items():
            for row in (row for row in rows if isinstance(row, dict)):
                known = set().union(*(each.keys() for each in stored[group]))
                assert row.keys() <= known | {"1"}, group  # so many warm steps
    for checkpoint in getattr(study, "CHECKPOINTS", ()):
        ours = running.checkpoint(checkpoint)
        computed, stored = stored_shapes(tmp_path / ours.name, ours)
        assert computed == stored
    seeded = [each for each in done if "seed" in each["setting"]]
    for quick in sorted(seeded, key=lambda each: each["seconds"])[:1]:
        again = json.loads(json.dumps(study.run(tmp_path, **quick["setting"])))
        for outcome in (quick["outcome"], again):
            if isinstance(outcome, dict):
                outcome.pop("seconds", None)
        assert quick["outcome"] == again


def table_rows(heading, text):
    """Return the first cell of each row of the table under a heading of data/README.md."""
    _, _, under = text.partition(heading)
    table = under.partition("\n#")[0].splitlines()
    return [line.split("`")[1] for line in table if line.startswith("| `")]


def test_what_lies_in_data_is_described_and_nothing_else():
    """Weights and studies each have a row, of the page that shows them."""
    text = (data.corpora_folder() / "README.md").read_text(encoding="utf-8")
    files = (data.corpora_folder() / "checkpoints").glob("*.safetensors")
    assert sorted(table_rows("### `checkpoints/`", text)) == sorted(x.stem for x in files)
    under = text.partition("### `studies/NAME.json`")[2].partition("| study |")[2]
    rows = [line.split("|") for line in under.splitlines() if line.startswith("| `")]
    chapters = {row[1].strip(" `"): row[-2].strip() for row in rows}
    studied = {name: study for name, study in STUDIES.items() if name not in MODELS}
    assert chapters == {name: study.CHAPTER for name, study in studied.items()}
    assert len(rows) == len(chapters)


def test_all_weights_are_made_by_a_study():
    """Those of a study without a claim have a record beside them."""
    weights = {
        f"{checkpoint}.safetensors"
        for study in STUDIES.values()
        for checkpoint in getattr(study, "CHECKPOINTS", ())
    }
    records = {running.stored_at(STUDIES[name]).name for name in MODELS}
    files = (data.corpora_folder() / "checkpoints").iterdir()
    assert {file.name for file in files} == weights | records


def test_weights_are_made_before_studies_that_read_them():
    """As their records say; the studies are listed and run in this order."""
    makers = {
        f"checkpoints/{checkpoint}.safetensors": name
        for name, study in STUDIES.items()
        for checkpoint in getattr(study, "CHECKPOINTS", ())
    }
    order, readers = [*STUDIES], set()
    for name, study in STUDIES.items():
        record = json.loads(running.stored_at(study).read_text())["rests_on"]
        for maker in {makers[file] for file in record["data"] if file in makers} - {name}:
            assert maker in getattr(study, "AFTER", ()), f"{name} reads weights of {maker}"
            assert order.index(maker) < order.index(name)
            readers.add(name)
    assert {"ladder", "preferences"} <= readers


# --- one study's own ------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["nothing", "norms", "attention", "feed-forward", "paths"])
def test_a_part_that_is_off_is_off(kind):
    lacking = LACKING[kind]
    model = model_without(lacking, 2, "Xavier", seed=0, vocab_size=11)
    ids = torch.randint(11, (3, 5))
    torch.nn.functional.cross_entropy(model(ids).mT, ids).backward()
    names = {n for n, p in model.named_parameters() if p.grad is not None}
    for part in ("norms", "attention", "feed-forward"):
        name = f"1.0.{part.replace('-', '_').replace('norms', 'norm_')}"
        assert any(name in n for n in names) == (part != kind)
    x, update = torch.ones(3, 5, 8), torch.zeros(3, 5, 8)
    assert (model[1][0].add(x, "", update) == x).all() == (kind != "paths")


def test_counting_is_what_is_stored(tmp_path):
    results, pretraining = data.stored("pretraining")["results"], STUDIES["pretraining"]
    (tmp_path / "vocabulary.txt").write_text(json.dumps(results["vocabulary"]))
    counted = pretraining.run(tmp_path, "counting", poems=3)
    for reach, losses in results["counting"][0]["losses"].items():
        assert counted["losses"][int(reach)] == pytest.approx(losses[:3], abs=1e-3)


def test_the_ladder_counts_what_is_stored(tmp_path):
    stored = data.stored("ladder")["results"]["counting"][0]
    counted = STUDIES["ladder"].run(tmp_path, "counting", every=1)
    assert counted["order"] == stored["order"]
    for name in ("test", "validation"):
        assert counted[name] == pytest.approx(stored[name], abs=1e-3)
    for kind, row in counted["reach"].items():
        assert row == pytest.approx(stored["reach"][kind], abs=1e-3)


def test_a_rung_has_the_parts_that_it_names():
    """Only the parts that a rung uses get a gradient: which rungs use a part, from 0."""
    ladder, seen = STUDIES["ladder"], []
    ids = torch.arange(24).reshape(2, 12) % 7
    for rung in ladder.RUNGS:
        torch.manual_seed(0)
        model = ladder.Rung(7, rung, spread=0.05)
        model(ids).sum().backward()
        seen.append({n for n, p in model.named_parameters() if p.grad is not None})
        assert model(ids).shape == (2, 12, 7)
    holders = {"pairs": [0], "attention": [1, 2, 3, 4, 5], "feed_forward": [3, 4, 5]}
    holders |= {"norm": [4, 5], "blocks.1": [5], "tokens": [1, 2, 3, 4, 5]}
    for part, rungs in holders.items():
        users = [i for i, names in enumerate(seen) if any(part in n for n in names)]
        assert users == rungs, part


def test_a_bag_counts_single_tokens_and_a_network_tries_each_rate():
    study = STUDIES["sequences"]
    assert study.counting_choices("bag of counts", "word") == [{"order": 1}]
    orders = [choice["order"] for choice in study.counting_choices("counts", "word")]
    assert orders == study.ORDERS["word"]
    trainings = study.training_choices([400, 1600])
    assert {each["rate"] for each in trainings} == set(study.SETTINGS["rates"])
    assert [each["steps"] for each in trainings] == [400] * 3 + [1600] * 3
    assert study.training_choices([9], 0.5) == [{"steps": 9, "rate": 0.5}]


def test_the_stored_decoder_has_the_stored_losses():
    study = STUDIES["backpropagation"]
    model = load(running.checkpoint("decoder"))
    _, _, text, other, known = study.load_words()
    last = data.stored("backpropagation")["results"]["sonnets"][0]["states"][-1]
    for name, part in {"trained": text, "unseen": other}.items():  # float16 weights
        assert study.loss_of_last(model, part, known) == pytest.approx(last[name], rel=0.02)
    looks = np.array(last["looks"])  # (layers, heads, tokens)
    np.testing.assert_allclose(looks.sum(axis=-1), 1, rtol=0, atol=1e-3)


# --- the harness ----------------------------------------------------------------------

TOY = '''"""Is two more than one?

Nothing varies."""
import os
from pathlib import Path
from studies.toys import toy_helper
CHAPTER, SETTINGS = "attention", {"x": 1}
CLAIM = "yes"; RIVAL = "no"; NULL = "equal"
AFTER = ()
RULES = Path(__file__).with_name("rules.toml")
LOG = Path(__file__).with_name("log")
def plan(small):
    return [{"group": "runs", "seed": seed} for seed in range(1 if small else 3)]
def run(folder, group, seed):
    with LOG.open("a") as log:
        log.write(str(seed))
    if seed == 2 and LOG.read_text().count("2") == 1:
        raise KeyboardInterrupt
    text = Path(os.environ["TOY_DATA"]).read_text()
    chosen = os.environ.get("LMCOURSE_BERT", "")
    return {"seed": seed + toy_helper.OFFSET, "length": len(text), "chosen": chosen}
def summary(results):
    return {"n": len(results["runs"]), "seeds": [0], "interval": [0, 1], "verdict": "holds"}
'''


HELPER = '"""Helps."""\nOFFSET = 0  # added\n'


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A study of three runs, the last of which is stopped the first time."""
    package = tmp_path / "toys"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "toy_study.py").write_text(TOY)
    (package / "toy_helper.py").write_text(HELPER)
    (package / "rules.toml").write_text("bar = 1  # low")
    (package / "unnamed.toml").write_text("bar = 1")
    (tmp_path / "data" / "studies").mkdir(parents=True)
    (tmp_path / "data" / "corpus.txt").write_text("a bee")
    monkeypatch.setattr(studies, "__path__", [*studies.__path__, str(tmp_path)])
    load = command.load_studies
    monkeypatch.setattr(command, "load_studies", lambda: {"toy-study": load()["toy-study"]})
    for place in (running, data):
        monkeypatch.setattr(place, "corpora_folder", lambda: tmp_path / "data")
    monkeypatch.setattr(running, "runs_folder", lambda: tmp_path / "runs")
    monkeypatch.setenv("TOY_DATA", str(tmp_path / "data" / "corpus.txt"))
    depends.module_path.cache_clear()
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("studies.toys")]:
        del sys.modules[name]
    depends.module_path.cache_clear()


def test_without_write_nothing_is_stored(toy, capsys):
    assert command.main(["--list"]) == 0
    assert capsys.readouterr().out.split(maxsplit=1) == [
        "toy-study",
        "Is two more than one?\n",
    ]
    assert command.main(["toy-study"]) == 0
    output = capsys.readouterr().out
    assert '"seed": 0' in output
    assert "a small part (3 runs with --write)" in output
    with pytest.raises(ValueError, match="python -m studies toy-study --write"):
        data.stored("toy-study")


def test_a_stopped_study_goes_on_where_it_was(toy):
    with pytest.raises(KeyboardInterrupt):
        command.main(["toy-study", "--write"])
    assert (toy / "toys" / "log").read_text() == "012"
    assert command.main(["toy-study", "--write"]) == 0
    assert (toy / "toys" / "log").read_text() == "0122"
    document = data.stored("toy-study")
    assert_of_the_form(document)
    row = {"length": 5, "chosen": ""}
    assert document["results"] == {"runs": [{"seed": seed} | row for seed in range(3)]}
    record = document["rests_on"]
    assert record["threads"] == [1]
    assert [*record["data"]] == ["corpus.txt"]
    assert {"studies.toys.toy_study", "studies.toys.toy_helper"} <= record["modules"].keys()
    assert "lmcourse.gpt.training" not in record["modules"]
    (toy / "data" / "studies" / "toy-study.json").write_text("{")
    with pytest.raises(
        ValueError, match=r"toy-study\.json is missing or damaged .*make it with"
    ):
        data.stored("toy-study")


@pytest.fixture
def stored(toy):
    """The study, all of it run and stored."""
    (toy / "toys" / "log").write_text("2")  # it was stopped before
    assert command.main(["toy-study", "--write"]) == 0
    return toy


def edit(path, was, now):
    text = path.read_text()
    assert was in text
    path.write_text(text.replace(was, now))


CHANGES = {
    "its code": ("toys/toy_study.py", '{"x": 1}', '{"x": 2}', "studies.toys.toy_study"),
    "a helper": (
        "toys/toy_helper.py",
        "OFFSET = 0",
        "OFFSET = 1",
        "studies.toys.toy_helper",
    ),
    "a corpus": ("data/corpus.txt", "bee", "fly", "data/corpus.txt"),
    "its claim": ("toys/toy_study.py", '"yes"', '"so"', None),
    "its order": ("toys/toy_study.py", "AFTER = ()", 'AFTER = ("toy",)', None),
    "a rule": ("toys/rules.toml", "bar = 1", "bar = 2", "studies.toys.rules.toml"),
    "a rule's comment": ("toys/rules.toml", "# low", "# high", None),
    "a comment": ("toys/toy_helper.py", "# added", "# nothing is added", None),
    "a file that it does not name": ("toys/unnamed.toml", "bar = 1", "bar = 2", None),
    "a variable's name": (
        "toys/toy_study.py",
        '"seed": seed} for seed in',
        '"seed": i} for i in',
        None,
    ),
    "a docstring": ("toys/toy_helper.py", "Helps.", "It helps.", None),
    "no docstring": ("toys/toy_helper.py", '"""Helps."""', "", None),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_results_rest_on_makes_them_stale(stored, capsys, change):
    path, was, now, named = CHANGES[change]
    assert command.main(["--stale"]) == 0
    edit(stored / path, was, now)
    capsys.readouterr()
    assert command.main(["--stale"]) == int(bool(named))
    assert (named or "No stored study is stale.") in capsys.readouterr().out
    sys.modules.pop("studies.toys.toy_helper", None)
    sys.modules.pop("studies.toys.toy_study", None)
    assert command.main(["toy-study", "--write"]) == 0
    log = (stored / "toys" / "log").read_text()
    assert log == ("2012012" if named else "2012")  # finished runs are not made again


WEIGHTS = TOY.replace(
    'CLAIM = "yes"; RIVAL = "no"; NULL = "equal"', 'CHECKPOINTS = ("toy",)'
)
WEIGHTS = WEIGHTS.replace(
    "    return {", '    (folder / "toy.safetensors").write_bytes(b"1")\n    return {'
)


@pytest.fixture
def weights(toy):
    """The study, which makes weights and has no claim, all of it run and stored."""
    (toy / "toys" / "toy_study.py").write_text(WEIGHTS)
    (toy / "data" / "checkpoints").mkdir()
    (toy / "toys" / "log").write_text("2")  # it was stopped before
    assert command.main(["toy-study", "--write"]) == 0
    return toy


def test_weights_are_stored_with_what_they_rest_on(weights):
    folder = weights / "data" / "checkpoints"
    assert (folder / "toy.safetensors").read_bytes() == b"1"
    record = json.loads((folder / "toy-study.json").read_text())
    assert record["results"]["runs"][0] == {"seed": 0, "length": 5, "chosen": ""}
    assert [*record["rests_on"]["data"]] == ["corpus.txt"]
    assert not list((weights / "data" / "studies").iterdir())


@pytest.mark.parametrize("change", [name for name in CHANGES if name != "its claim"])
def test_what_weights_rest_on_makes_them_stale(weights, capsys, change):
    path, was, now, named = CHANGES[change]
    assert command.main(["--stale"]) == 0
    edit(weights / path, was, now)
    capsys.readouterr()
    assert command.main(["--stale"]) == int(bool(named))
    assert (named or "No stored study is stale.") in capsys.readouterr().out


def test_a_record_of_weights_is_renewed_with_a_reason(weights):
    edit(weights / "toys" / "toy_helper.py", "OFFSET = 0", "OFFSET = 0 + 0")
    assert command.main(["--stale"]) == 1
    assert command.main(["toy-study", "--still-holds", "nothing is added, as before"]) == 0
    assert command.main(["--stale"]) == 0


def test_weights_without_a_record_are_stale(weights, capsys):
    (weights / "data" / "checkpoints" / "toy-study.json").unlink()
    capsys.readouterr()
    assert command.main(["--stale"]) == 1
    assert "no record" in capsys.readouterr().out
    assert command.main(["toy-study", "--still-holds", "as before"]) == 1
    assert "--write" in capsys.readouterr().err


def test_a_change_calls_those_stale_that_rest_on_it_and_no_others(monkeypatch, tmp_path):
    """Of the course's own studies, by a copy of the modules."""
    source = depends.ROOT / "src"
    for package in depends.PACKAGES:
        shutil.copytree(source / package, tmp_path / package)
    modules_of = {
        name: json.loads(running.stored_at(study).read_text())["rests_on"]["modules"]
        for name, study in STUDIES.items()
    }
    path = depends.module_path

    def copied(name):
        place = path(name)
        return place and tmp_path / place.relative_to(source)

    monkeypatch.setattr(depends, "module_path", copied)
    for module, named, others in (
        ("lmcourse.gpt.training", "sonnets", "embeddings"),
        ("lmcourse.masking", "mini-bert", "sonnets"),
        ("lmcourse.training_loop", "lstm", "sonnets"),
        ("lmcourse.pooling", "dickinson-layers", "sizes"),
    ):
        file = copied(module)
        program = file.read_text()
        file.write_text(f"{program}\nADDED = None\n")
        stale = {name for name, s in STUDIES.items() if module in running.stale(s)}
        assert stale == {name for name, modules in modules_of.items() if module in modules}
        assert named in stale
        assert others not in stale
        file.write_text(program)


def test_no_study_rests_on_what_pages_show():
    """A drawing that is moved changes no result, and calls none stale."""
    shown = ("lmcourse.views", "lmcourse.figures", "lmcourse.exercises", "lmbook")
    for name, study in STUDIES.items():
        modules = depends.modules_of(study)
        assert study.__name__ in modules
        assert not [module for module in modules if module.startswith(shown)], name


def test_weights_that_are_read_beside_python_are_recorded():
    from lmcourse.gpt.checkpoints import load_gpt

    with depends.recording(data.corpora_folder()) as files:
        load_gpt("sonnets", device="cpu")
    weights = os.path.join("checkpoints", "sonnets.safetensors")
    assert files[weights] == depends.file_hash(data.corpora_folder() / weights)


def test_a_study_ignores_what_the_reader_chose(toy, monkeypatch):
    monkeypatch.setenv("LMCOURSE_BERT", "./mine")
    (toy / "toys" / "log").write_text("2")
    assert command.main(["toy-study", "--write"]) == 0
    assert {row["chosen"] for row in data.stored("toy-study")["results"]["runs"]} == {""}
    assert os.environ["LMCOURSE_BERT"] == "./mine"


def test_a_record_is_renewed_with_a_reason(stored):
    edit(stored / "toys" / "toy_helper.py", "OFFSET = 0", "OFFSET = 0 + 0")
    results = data.stored("toy-study")["results"]
    assert command.main(["--stale"]) == 1
    assert command.main(["toy-study", "--still-holds", "nothing is added, as before"]) == 0
    assert command.main(["--stale"]) == 0
    record = data.stored("toy-study")
    assert record["results"] == results
    assert record["rests_on"]["renewals"][-1]["reason"] == "nothing is added, as before"


@pytest.mark.parametrize("build", ["", "elsewhere"])
@pytest.mark.parametrize("target", [["clean"], ["html", "FORCE=1"]])
def test_what_removes_a_build_keeps_finished_runs(target, build, tmp_path):
    """Of a folder with the same Makefile and an environment that does nothing."""
    run = tmp_path / running.runs_folder().relative_to(depends.ROOT) / "toy" / "1.json"
    place = build if build and "FORCE=1" in target else "_build"
    page, python = tmp_path / place / "html" / "index.html", tmp_path / ".venv/bin/python"
    needed = [tmp_path / name for name in ("pyproject.toml", "src/pyproject.toml")]
    needed += [tmp_path / name for name in ("requirements.lock", "requirements.txt")]
    for path in (*needed, tmp_path / ".venv" / ".installed", page, run):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    python.parent.mkdir()
    python.symlink_to(shutil.which("true"))
    shutil.copy(depends.ROOT / "Makefile", tmp_path)
    environment = os.environ | {"LMBOOK_BUILD": build}
    subprocess.run(["make", *target], cwd=tmp_path, env=environment, check=True)
    assert not page.exists()
    assert run.exists()


@pytest.mark.steady
def test_several_processes_find_what_one_does(tmp_path):
    study = STUDIES["in-context"]
    runs = [each for each in study.plan(small=True) if each["group"] == "tuning"][:2]
    ways = [running.outcomes(study, runs, tmp_path / str(n), n) for n in (1, 2)]
    one, two = ([(each["setting"], each["outcome"]) for each in way] for way in ways)
    assert one == two


def test_the_best_of_a_tuning_is_found_by_its_values(tmp_path):
    """Of runs of the group "tuning" alone: the last has the lowest loss, and is another."""
    finished = [
        ("tuning", "a", 1, 2.0),
        ("tuning", "a", 2, 1.5),
        ("tuning", "b", 3, 1.9),
        ("runs", "a", 2, 1.0),
    ]
    for number, (group, rung, rate, loss) in enumerate(finished):
        outcome = {"rung": rung, "rate": rate, "validation": loss}
        run = {"setting": {"group": group}, "outcome": outcome}
        (tmp_path / f"{number}.json").write_text(json.dumps(run))
    assert harness.best_tuned(tmp_path, rung="a")["validation"] == 1.5
    assert harness.best_tuned(tmp_path, rung="b")["validation"] == 1.9


def test_a_rate_is_chosen_by_the_mean_of_its_seeds(tmp_path):
    """The lowest loss of all, 1.0, is at the other rate."""
    finished = [
        ("new", 1e-3, 0, 1.0),
        ("new", 1e-3, 1, 2.0),
        ("new", 2e-3, 0, 1.2),
        ("new", 2e-3, 1, 1.3),
        ("other", 3e-3, 0, 5.0),
        ("other", 3e-3, 1, 0.0),
    ]
    for kind, rate, seed, loss in finished:
        outcome = {"kind": kind, "seed": seed, "rate": rate, "validation": loss}
        run = {"setting": {"group": "tuning"}, "outcome": outcome}
        (tmp_path / f"{seed}-{rate}.json").write_text(json.dumps(run))
    assert harness.best_rate(tmp_path, kind="new") == 2e-3
    assert harness.best_rate(tmp_path, kind="other") == 3e-3


def test_one_study_runs_at_a_time(toy, capsys):
    with running.lock("another"):
        assert command.main(["toy-study", "--write"]) == 1
    output = capsys.readouterr().err
    assert "python -m studies another (process " in output
    assert "is running" in output
    assert command.main(["toy-study"]) == 0


# --- what a record says is so ---------------------------------------------------------

CACHED = """
from functools import cache
from pathlib import Path
import os

@cache
def corpus():
    return Path(os.environ["TOY_DATA"]).read_text()
"""


def test_a_file_that_an_earlier_run_has_read_is_in_the_record_of_the_next(toy):
    """Who keeps what was read opens no file again; the outcome rests on it all the same."""
    (toy / "toys" / "toy_helper.py").write_text(HELPER + CACHED)
    edit(
        toy / "toys" / "toy_study.py",
        'Path(os.environ["TOY_DATA"]).read_text()',
        "toy_helper.corpus()",
    )
    (toy / "toys" / "log").write_text("2")  # it was stopped before
    assert command.main(["toy-study", "--write"]) == 0
    runs = [json.loads(path.read_text()) for path in (toy / "runs").rglob("*.json")]
    assert [[*each["data"]] for each in runs] == [["corpus.txt"]] * 3


@pytest.mark.parametrize("asked", [["--write"], ["--still-holds", "as before"]])
def test_a_process_that_has_run_a_study_stores_no_other(stored, monkeypatch, capsys, asked):
    """What the first has read may be in memory: nobody knows whether the second read it."""
    other = TOY.replace('os.environ["TOY_DATA"]', 'os.environ["OTHER_DATA"]')
    (stored / "toys" / "other_study.py").write_text(other)
    (stored / "data" / "prose.txt").write_text("clover")
    monkeypatch.setenv("OTHER_DATA", str(stored / "data" / "prose.txt"))
    module = importlib.import_module("studies.toys.other_study")
    monkeypatch.setattr(command, "load_studies", lambda: {"other-study": module})
    path = running.stored_at(module)
    row = {"seed": 0, "length": 6, "chosen": ""}
    running.write(path, {"settings": {}, "results": {"runs": [row]}})
    before = path.read_text()
    assert command.main(["other-study", *asked]) == 1
    output = capsys.readouterr().err
    assert "this process has run toy-study: " in output
    assert "in a process of its own: `python -m studies other-study …`" in output
    assert path.read_text() == before


LATE_LIBRARY = """
import json, sys, threadpoolctl, types
from pathlib import Path
from studies import running

def run(folder, group):
    import sklearn.cluster, numpy  # they bring threads of their own
    return sum(numpy.ones(3))


study = types.ModuleType("late")
study.run = run
sys.modules["late"] = study
path = Path(sys.argv[1])
running._finish("late", path.parent, ({"group": "runs"}, path))
"""


@pytest.mark.parametrize("asked", ["2", None])
def test_a_library_that_a_run_loads_has_as_many_threads_as_the_record_says(asked, tmp_path):
    """What reads its number of threads when it is loaded, in a process of its own."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = {k: v for k, v in os.environ.items() if k not in names}
    environment |= dict.fromkeys(names, asked) if asked else {}
    path = tmp_path / "run.json"
    subprocess.run(
        [sys.executable, "-c", LATE_LIBRARY, path],
        check=True,
        env=environment,
        cwd=depends.ROOT,
    )
    assert json.loads(path.read_text())["threads"] == 1


def test_a_study_that_trains_in_other_processes_rests_on_what_they_run():
    modules = depends.modules_of(STUDIES["parallel"])
    assert {"lmcourse.train", "lmcourse.gpt.training"} <= modules.keys()
    assert "sonnets.txt" in data.stored("parallel")["rests_on"]["data"]


def test_a_record_is_not_renewed_if_a_run_has_another_outcome(stored, capsys):
    edit(stored / "toys" / "toy_helper.py", "OFFSET = 0", "OFFSET = 1")
    sys.modules.pop("studies.toys.toy_helper", None)
    sys.modules.pop("studies.toys.toy_study", None)
    path = stored / "data" / "studies" / "toy-study.json"
    before = path.read_text()
    assert command.main(["toy-study", "--still-holds", "nothing changed, I think"]) == 1
    message = capsys.readouterr().err
    assert "seed" in message
    assert "--write" in message
    assert path.read_text() == before


def test_a_renewed_record_says_what_was_compared(stored):
    assert command.main(["toy-study", "--still-holds", "as before"]) == 0
    record = data.stored("toy-study")["rests_on"]
    (renewal,) = record["renewals"]
    assert renewal["compared"] == {"group": "runs", "seed": 0}
    assert record["threads"] == [1]  # those of the runs that were stored


def test_what_was_not_compared_is_said_and_what_was_before_is_kept(stored):
    ask = ["toy-study", "--still-holds", "as before"]
    assert command.main(ask) == 0
    assert command.main([*ask, "--uncompared"]) == 0
    before, last = data.stored("toy-study")["rests_on"]["renewals"]
    assert before["compared"] == {"group": "runs", "seed": 0}
    assert last["compared"] is None


def test_a_renewed_record_keeps_what_only_the_stored_runs_read(stored):
    """The small runs of a renewal do not read all of it."""
    path = running.stored_at(command.load_studies()["toy-study"])
    folder = stored / "data"
    (folder / "more.txt").write_text("an ant")
    record = json.loads(path.read_text())
    record["rests_on"]["data"] |= {"more.txt": "an earlier hash", "gone.txt": "a hash"}
    running.write(path, record)
    assert command.main(["toy-study", "--still-holds", "spelling"]) == 0
    files = data.stored("toy-study")["rests_on"]["data"]
    assert files.keys() == {"corpus.txt", "more.txt"}
    assert files["more.txt"] == depends.file_hash(folder / "more.txt")


def test_threads_of_runs_that_nobody_recorded_are_not_known(stored):
    path = stored / "data" / "studies" / "toy-study.json"
    record = json.loads(path.read_text())
    del record["rests_on"]
    running.write(path, record)
    assert command.main(["toy-study", "--still-holds", "a first record"]) == 0
    assert data.stored("toy-study")["rests_on"]["threads"] is None


def test_all_studies_run_in_a_process_each(stored, monkeypatch):
    """What one has read and keeps, the next would not be seen to open."""
    commands = []

    def run(arguments, **_options):
        commands.append(arguments[1:])
        return subprocess.CompletedProcess(arguments, 0)

    monkeypatch.setattr(command.subprocess, "run", run)
    assert command.main(["--write"]) == 0
    assert commands == [["-m", "studies", "toy-study", "--write"]]


@pytest.mark.parametrize(
    ("name", "reader", "other"),
    [
        ("checkpoints/sonnets.safetensors", "ladder", "embeddings"),
        ("dickinson.txt", "embeddings", "ladder"),
        ("dickinson.txt", "mini-bert", "sonnets"),
        ("sonnets.txt", "sonnets", "bottleneck"),
        ("sonnets.txt", "lstm", "bottleneck"),
    ],
)
def test_changed_data_call_those_stale_that_read_them_and_no_others(
    name, reader, other, tmp_path
):
    """Of the course's own studies, by a copy of the data."""
    folder = tmp_path / "data"
    shutil.copytree(data.corpora_folder(), folder)
    with (folder / name).open("ab") as file:
        file.write(b"!")
    records = {
        name: json.loads(running.stored_at(study).read_text())["rests_on"]
        for name, study in STUDIES.items()
    }
    stale = {
        study
        for study, record in records.items()
        if f"data/{name}" in depends.changed(record, STUDIES[study], folder)
    }
    assert stale == {study for study, record in records.items() if name in record["data"]}
    assert reader in stale
    assert other not in stale
