"""A reader's own texts: what is read of a file, what is refused, and what is computed."""

import csv

import bs4
import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import Ridge
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from transformers import BertConfig, BertModel

from lmcourse import own_poems, views
from lmcourse.figures.dickinson_layers import own_texts
from lmcourse.models import load_bert

STANZAS = "A bird\ncame down\n\nthe walk\n\n\nHe bit\na worm\n\n\nand ate"
GOOD = {  # name: (what is stored, the texts)
    "lines.txt": (b"one\n\ntwo\nlines\n\nthree", ["one", "two\nlines", "three"]),
    "stanzas.txt": (STANZAS.encode(), STANZAS.split("\n\n\n")),
    "windows.txt": (b"one\r\n\r\ntwo\r\nlines\r\n", ["one", "two\nlines"]),
    "bom.txt": ("\ufeffone\n\ntwo".encode(), ["one", "two"]),
    "sixteen.txt": ("one\n\nzwölf".encode("utf-16"), ["one", "zwölf"]),
    "spaces.txt": (b"one\n  \t\ntwo\n\n", ["one", "two"]),
    "hebrew.txt": ("שלום\n\nעולם 🙂".encode(), ["שלום", "עולם 🙂"]),
    "one.txt": (b"only one", ["only one"]),
    "table.csv": (b'label,text\na,"one, or\ntwo"\nb,three\n\n', ["one, or\ntwo", "three"]),
    "header.csv": (b'\xef\xbb\xbf" Text ",n\none,1\n', ["one"]),
    "table.TSV": (b"Text\tLabel\r\none, two\ta\r\n \tb\r\n", ["one, two"]),
}
BAD = {  # name: (what is stored, what is said)
    "empty.txt": (b"", "empty.txt holds no text"),
    "blank.txt": (b" \n\n\t\n", "blank.txt holds no text"),
    "latin.txt": ("eins\n\nzwölf".encode("latin-1"), r'latin.txt, line 3: .*"latin-1"'),
    "picture.txt": (b"GIF\n\0\0", "picture.txt, line 2: a zero byte"),
    "named.csv": (b"poem,label\na,b\n", r"named.csv, line 1: .*`poem`, `label`; .*`text`"),
    "short.csv": (b"text,label\none,a\ntwo\n", "short.csv, line 3: 1 cell, .* has 2"),
    "open.csv": (b"text,label\none, two,a\n", "open.csv, line 2: 3 cells"),
    "long.csv": (b'text,label\n"a\nb",c\n"d\ne"\n', "long.csv, line 4: 1 cell,"),
    "quote.csv": (b'text\none\n"two\n\nthree\n', "quote.csv, line 3: a quote opens"),
    "inside.csv": (b'text\n"one" two\n', "inside.csv, line 2: .* written twice"),
    "semicolon.csv": (b'"Text";label\na;b\n', "line 1: .* by semicolons, where commas"),
    "tabs.csv": (b"label\ttext\na\tb\n", "line 1: .* by tabs, where commas"),
    "commas.tsv": (b"label,text\na,b\n", "line 1: .* by commas, where tabs"),
    "twice.csv": (b"text, Text \na,b\n", "line 1: 2 columns are named `text`"),
    "half.txt": (b"\xff\xfea\0b", "half.txt begins as UTF-16"),
    "mine.docx": (b"PK\x03\x04\x14\0", "mine.docx is a packed file.* save it as a text"),
    "sheet.csv": (b"PK\x03\x04\x14\0", "sheet.csv is a packed file: .*xlsx"),
    "mine.pdf": (b"%PDF-1.7\n", "mine.pdf is a PDF"),
    "mine.txt": (b"{\\rtf1 Hope}", "mine.txt is a document in RTF"),
}


def stored(folder, name, content):
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("name", GOOD)
def test_a_file_is_cut_into_its_texts(tmp_path, name):
    content, wanted = GOOD[name]
    texts = own_poems.read(stored(tmp_path, name, content))
    assert [text.strip() for text in texts.text] == wanted
    assert texts.title.tolist() == [text.split("\n")[0] for text in wanted]


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_cannot_be_read_is_told_where_and_why(tmp_path, name):
    content, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        own_poems.read(stored(tmp_path, name, content))


def test_a_file_is_read_as_it_is_said_to_be_stored_and_its_titles_are_kept(tmp_path):
    content = "text,title\nzwölf,\neins,Nur eins\n".encode("latin-1")
    texts = own_poems.read(stored(tmp_path, "t.csv", content), encoding="latin-1")
    assert texts.text.tolist() == ["zwölf", "eins"]
    assert texts.title.tolist() == ["zwölf", "Nur eins"]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (pd.DataFrame({"poem": ["a"] * 5}), r"columns \['poem'\]"),
        (pd.DataFrame({"text": ["a"] * 3}), "3 texts, .*nothing to compare"),
        (pd.DataFrame({"text": ["a"] * 3001}), "3,001 texts, .*take a part"),
        (pd.DataFrame({"text": [*"abcd"], "label": [*"xx y"]}), "1 of 4 texts .*: c"),
        (pd.DataFrame({"text": [*"abcd"], "label": [*"xxy", None]}), "1 of 4 texts .*: d"),
        (pd.DataFrame({"text": ["a", " a", "a\n", "a"]}), "all 4 texts are equal"),
        (pd.DataFrame({"text": ["a", "b", None, "c"]}), "row 2 of the table has no text"),
        (pd.DataFrame({"text": ["a", "b", "c", 4]}), "row 3 .* 4: leave the row out"),
        (
            pd.DataFrame([[*"ab"]] * 5, columns=["text", "Text "]),
            "two columns .* `text`",
        ),
        (pd.DataFrame({"text": [*"abcd"], "label": ["x"] * 4}), "the label 'x'"),
        (
            pd.DataFrame({"text": [*"abcd"], "label": [*"xxx", " "]}),
            "1 of 4 texts has no label: d",
        ),
        (
            pd.DataFrame({"text": [*"abcd"], "label": [*"xx", "", " "]}),
            "2 of 4 texts have no label: c; d",
        ),
        (
            pd.DataFrame({"text": [*"abcde"], "label": [*"xxxyy"]}),
            r"\['y'\]: a label needs",
        ),
    ],
)
def test_texts_that_cannot_be_compared_are_refused_before_a_model_reads(texts, message):
    with pytest.raises(ValueError, match=message):
        own_poems.encode_texts(texts)


def test_what_is_no_file_is_told_with_what_to_give_instead(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"gone.txt: there is no such file in .*pd"):
        own_poems.encode_texts(tmp_path / "gone.txt")
    with pytest.raises(ValueError, match="is a folder: give the path of one file"):
        own_poems.encode_texts(tmp_path)
    with pytest.raises(ValueError, match=r"'Hope\\nis' is a text .*pd.DataFrame"):
        own_poems.encode_texts("Hope\nis")
    with pytest.raises(ValueError, match=r"'' is a text and no path"):
        own_poems.encode_texts("")
    with pytest.raises(TypeError, match=r"a path is needed, not a list; .*pd.DataFrame"):
        own_poems.encode_texts(["Hope", "is", "the", "thing"])


def test_a_cell_may_be_longer_than_a_table_usually_takes(tmp_path):
    limit = csv.field_size_limit()
    line = "hope " * 200_000
    texts = own_poems.read(stored(tmp_path, "t.csv", f"text\n{line}\n".encode()))
    assert texts.text.tolist() == [line]
    assert csv.field_size_limit() == limit


@pytest.fixture(scope="module")
def climbed():
    tokenizer, _ = load_bert()
    torch.manual_seed(0)
    sizes = {"hidden_size": 24, "num_attention_heads": 3, "intermediate_size": 40}
    config = BertConfig(vocab_size=len(tokenizer), num_hidden_layers=2, **sizes)
    words = ["sun moon star", "stone tree river", "hate love fear"]
    texts = [f"{words[i % 3]} {i} {words[i % 3][:5]}\nagain" for i in range(15)]
    frame = pd.DataFrame({"text": texts, "label": [i % 3 for i in range(15)]})
    model = BertModel(config).eval()
    return own_poems.encode_texts(frame, tokenizer, model), tokenizer, model


def test_levels_are_the_means_of_transformers_own_states(climbed):
    mine, tokenizer, model = climbed
    assert mine.names == ["static", "before layer 0", "after layer 0", "after layer 1"]
    inputs = tokenizer([mine.texts.text[4]], return_tensors="pt")
    with torch.no_grad():
        states = model(**inputs, output_hidden_states=True).hidden_states
    for level, state in zip(mine.levels[1:], states, strict=True):
        torch.testing.assert_close(level[4], state[0].mean(dim=0), rtol=0, atol=1e-5)
    assert torch.equal(mine.levels[:2], mine.random_levels[:2])
    assert not torch.allclose(mine.levels[3], mine.random_levels[3], atol=1e-2)


def test_nearest_are_those_of_the_cosine_around_the_mean(climbed):
    mine, _, _ = climbed
    titles = mine.nearest(7)
    x = (mine.levels[3] - mine.levels[3].mean(dim=0)).numpy()
    cosines = x @ x[7] / np.linalg.norm(x, axis=1)
    others = [i for i in np.argsort(-cosines) if i != 7][:3]
    assert titles.loc["after layer 1"].tolist() == mine.texts.title[others].tolist()
    assert titles.index[0] == "after layer 1"


def test_labels_are_told_by_words_and_not_when_they_are_dealt(climbed):
    mine, _, _ = climbed
    table = mine.table
    assert table.right["words counted"] == 1
    assert table.right["labels shuffled"] < 0.6
    other = table[["random weights", "shuffled words"]]
    assert other["words counted":].isna().all(axis=None)
    assert not other[:"after layer 1"].isna().any(axis=None)
    assert (table["from"] <= table.right).all()
    assert (table.right <= table.to).all()
    assert (table["random weights"][:2] == table.right[:2]).all()
    labels = mine.texts.label.to_numpy()
    truth = np.eye(3)[labels]
    x = mine.levels[3].double().numpy()
    guesses = [
        cross_val_predict(Ridge(alpha), x, truth, cv=LeaveOneOut()).argmax(axis=1)
        for alpha in (1e-3, 1e-2, 0.1, 1)
    ]
    right = [(guess == labels).mean() for guess in guesses]
    assert min(right) - 0.1 <= table.right["after layer 1"] <= max(right) + 0.1


def test_without_scripts_shares_are_written_as_everywhere_in_the_book(climbed):
    mine, tokenizer, _ = climbed
    view = views.own_poems(mine, tokenizer)
    rows = bs4.BeautifulSoup(view.stored, "html.parser").find_all("table")[1]
    shown = [cell.text for cell in rows.select("td")]
    assert shown == [f"{100 * s:.0f}\N{NO-BREAK SPACE}%" for s in mine.table.right]
    assert f"At the last level {shown[-3]} of the labels" in view.alt


def test_the_view_shows_the_texts_escaped_with_both_models(climbed):
    mine, _, _ = climbed
    data = own_texts(mine).data
    assert data["names"] == ["0", "1", "2"]
    assert np.shape(data["near"]) == (4, 15, 10)
    assert np.shape(data["untrained"]["support"]) == (4, 15, 3)


def test_the_view_shows_the_words_in_another_order_as_the_model_reads_them(climbed):
    mine, tokenizer, model = climbed
    data = own_texts(mine).data
    mixed = data["reordered"]["texts"]
    words = [[sorted(text.split()) for text in texts] for texts in (mixed, mine.texts.text)]
    assert words[0] == words[1]
    assert mixed != mine.texts.text.tolist()
    read = own_poems.encode_texts(pd.DataFrame({"text": mixed}), tokenizer, model)
    own = [vectors - vectors.mean(0) for vectors in read.levels]
    for near, vectors in zip(data["reordered"]["near"], own, strict=True):
        cosines = torch.cosine_similarity(vectors[:, None], vectors[None], dim=-1)
        closest = cosines.fill_diagonal_(-2).argmax(-1)
        shown = [cosines[i, row[0]].item() for i, row in enumerate(near)]
        best = [cosines[i, j].item() for i, j in enumerate(closest)]
        assert shown == pytest.approx(best, abs=1e-5)


def test_words_in_another_order_are_the_same_words_to_a_level_without_context(climbed):
    mine, tokenizer, model = climbed
    mixed, levels = mine.shuffled
    torch.testing.assert_close(levels[0], mine.levels[0])
    assert not torch.allclose(levels[2], mine.levels[2], atol=1e-3)
    read = own_poems.encode_texts(mine.texts.assign(text=mixed), tokenizer, model)
    assert torch.equal(read.levels, levels)
    shares = mine.table["shuffled words"].dropna()
    assert shares.tolist() == read.table.right[mine.names].tolist()


def test_a_long_text_is_mixed_where_it_is_read(climbed):
    mine, tokenizer, model = climbed
    long = [f"{words} {i} " * 200 for i, words in enumerate(mine.texts.text[:4])]
    with pytest.warns(UserWarning, match="4 of 4 texts are longer"):
        read = own_poems.encode_texts(pd.DataFrame({"text": long}), tokenizer, model)
    with pytest.warns(UserWarning, match="4 of 4 texts are longer"):
        mixed, levels = read.shuffled
    assert [text[-400:] for text in mixed] == [text[-400:] for text in long]
    torch.testing.assert_close(levels[0], read.levels[0])


def test_without_labels_neighbours_are_told_and_the_rest_says_what_it_needs(climbed):
    mine, tokenizer, model = climbed
    plain = own_poems.encode_texts(mine.texts[["text"]], tokenizer, model)
    assert plain.nearest(7).equals(mine.nearest(7))
    other = mine.texts[["text"]].rename(columns={"text": " Text "})
    assert (
        own_poems.encode_texts(other, tokenizer, model).nearest(7).equals(mine.nearest(7))
    )
    with pytest.raises(ValueError, match="columns `text` and `label`"):
        plain.table  # noqa: B018
