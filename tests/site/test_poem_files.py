"""What the page reads of a reader's file of texts: what `lmcourse.own_poems` does."""

import base64

import pandas as pd
import pytest

from lmcourse import own_poems

pytestmark = pytest.mark.browser

STANZAS = "A bird\ncame down\n\nthe walk\n\n\nHe bit\na worm\n\n\nand ate"
FILES = {
    "lines.txt": b"one\n\ntwo\nlines\n\n\tthree ",
    "stanzas.txt": STANZAS.encode(),
    "windows.txt": b"one\r\n\r\ntwo\r\nlines\r\n",
    "old-mac.txt": b"one\r\rtwo\rlines",
    "bom.txt": "\ufeffone\n\ntwo".encode(),
    "sixteen.txt": "one\n\nzwölf 🙂".encode("utf-16"),
    "sixteen-big.txt": "\ufeffone\n\nzwölf".encode("utf-16-be"),
    "half.txt": b"\xff\xfea\0b",
    "latin.txt": "eins\n\nzwölf\n\nfünf".encode("latin-1"),
    "emoji.txt": "👩‍👩‍👧 one\n\n🦋\n \u3000\u2003\nthree".encode(),
    "hebrew.txt": "שלום\n\nעולם".encode(),
    "inside-bom.txt": "one\n\ufeff\ntwo\n\x1c\nthree\n\x85\nfour".encode(),
    "long.txt": b"hope " * 200_000 + b"\n\ntwo",
    "one.txt": b"only one",
    "empty.txt": b"",
    "blank.txt": b" \n\n\t\n",
    "zero.txt": b"GIF\n\0\0",
    "mine.docx": b"PK\x03\x04\x14\0",
    "old.doc": b"\xd0\xcf\x11\xe0\xa1",
    "mine.pdf": b"%PDF-1.7\n",
    "table.csv": b'label,text\na,"one, or\n""two"""\nb,three\n\n,\nc,"four"',
    "titles.csv": " Title ,TEXT,n\n Eins ,one,1\n ,two\u2003,2\n".encode(),
    "table.TSV": b"Text\tLabel\r\none, two\ta\r\n \tb\r\nit's 5\" long\tb",
    "long.csv": b"text\n" + b"hope " * 200_000,
    "empty.csv": b"",
    "named.csv": b"poem,label\na,b\n",
    "short.csv": b'text,label\n"a\nb",c\n\n"d\ne"\n',
    "one-cell.csv": b"text,label\none,a\ntwo\n",
    "long-row.csv": b"text,label\none, two,a\n",
    "quote.csv": b'text\none\n"two\n\nthree\n',
    "inside.csv": b'text,label\none,a\n"one" two,a\n',
    "semicolon.csv": b'"Text";label\na;b\n',
    "commas.tsv": b"label,text\na,b\n",
    "twice.csv": b"text, Text \na,b\n",
}
READ = """async ([content, name]) => {
  const { decoded, poemsOf } = await import("/play/poem-files.js");
  const bytes = Uint8Array.from(atob(content), (c) => c.charCodeAt(0));
  try {
    return poemsOf(decoded(bytes, name), name);
  } catch (error) {
    return error.message;
  }
}"""


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_read_or_refused_as_in_python(lab, tmp_path, name):
    path = tmp_path / name
    path.write_bytes(FILES[name])
    result = lab.evaluate(READ, [base64.b64encode(FILES[name]).decode(), name])
    assert result == in_python(path)


def in_python(path):
    """Return the rows that Python reads, or the message with which it refuses a file."""
    try:
        return own_poems.read(path).to_dict("records")
    except ValueError as error:
        # Python has one way more: to say how a file is stored.
        return str(error).removesuffix(', or say how it is stored: encoding="latin-1"')


@pytest.mark.parametrize("name", ["lines.txt", "stanzas.txt", "windows.txt", "old-mac.txt"])
def test_the_page_says_by_which_rule_python_cuts(lab, tmp_path, name):
    path = tmp_path / name
    path.write_bytes(FILES[name])
    rule = lab.evaluate(
        """async (content) => {
          const { tellCut } = await import("/play/poem-files.js");
          return tellCut(content);
        }""",
        FILES[name].decode(),
    )
    keeps = any("\n\n" in text for text in own_poems.read(path).text)
    assert rule.startswith(
        "Two empty lines in a row" if keeps else "A new text begins after"
    )


CHECKED = {
    "three": [{"text": text} for text in "abc"],
    "equal": [{"text": text} for text in ("a", " a", "a\n", "a")],
    "some labels": [{"text": text, "label": text.strip("cd")} for text in "abcd"],
    "one lacks a label": [{"text": text, "label": text.strip("d")} for text in "abcd"],
    "one label": [{"text": text, "label": "x"} for text in "abcd"],
    "rare labels": [{"text": text, "label": text} for text in "abcd"],
    "labels": [{"text": text, "label": "x" if text <= "c" else "y"} for text in "abcdef"],
    "no labels": [{"text": text} for text in "abcd"],
}


@pytest.mark.parametrize("name", CHECKED)
def test_texts_that_cannot_be_compared_are_refused_as_in_python(lab, name):
    poems = [row | {"title": row["text"]} for row in CHECKED[name]]
    fault = lab.evaluate(
        """async (poems) => {
          const { faultOf } = await import("/play/poem-files.js");
          return faultOf(poems);
        }""",
        poems,
    )
    frame = pd.DataFrame(poems)
    if name in ("labels", "no labels"):
        own_poems.check(frame)
        assert fault == ""
        return
    with pytest.raises(ValueError, match=r"[a-z]") as error:
        own_poems.check(frame)
    assert fault
    # The page says in its own words what is wrong, such as with other quotation marks; only
    # the end, what to do, is that of Python. Of missing labels all of it is.
    assert fault[-40:] == str(error.value)[-40:]
    if "lack" in name or name == "some labels":
        assert fault == str(error.value)
