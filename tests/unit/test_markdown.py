"""MyST turned into plain Markdown: every form that the chapters use, nothing left over."""

from types import SimpleNamespace

import pytest

from lmbook.publish.markdown import folded_outputs, split_at_solutions, to_markdown

LINKS = SimpleNamespace(
    reference=lambda label, text: f"[{text or label.upper()}](site/{label})",
    number=lambda label: f"[Figure 3](site/{label})",
    equation=lambda label: "2.1",
    exercise=lambda label: f"Exercise 7 ({label})",
    cite=lambda keys, in_sentence: f"<{keys}|{in_sentence}>",
    glue=lambda name, form: f"{3.14159:{form}}",
    page=lambda target, text: f"[{text}](site/{target})",
    drawing=lambda name: f"<img {name}>",
    check={"key": "", "mask": "attention.mask"}.get,
)


def plain(text):
    return to_markdown(text, LINKS)


@pytest.mark.parametrize(
    ("myst", "markdown"),
    [
        ("See {ref}`attention`.", "See [ATTENTION](site/attention)."),
        ("a\x00b, {ref}`a` \x000\x00", "a\ufffdb, [A](site/a) \ufffd0\ufffd"),
        ("See {ref}`that page <attention>`.", "See [that page](site/attention)."),
        ("{numref}`fig-a` shows", "[Figure 3](site/fig-a) shows"),
        ("{cite:t}`a2017b` says", "<a2017b|True> says"),
        ("so {cite}`a`", "so <a|False>"),
        ("it is {glue:text}`pi:.2f` here", "it is 3.14 here"),
        ("a {term}`token` and {term}`tokens <token>`", "a *token* and *tokens*"),
        ("(label)=\n# Title", '<a id="label"></a>\n# Title'),
        ("[text](#label)", "[text](site/#label)"),
        ("[text](page.md)", "[text](site/page.md)"),
        ("[text](https://example.org/a)", "[text](https://example.org/a)"),
        ("$$\na = b\n$$ (e)", "$$\na = b \\tag{2.1}\n$$"),
        ("`{ref}` in code", "`{ref}` in code"),
        ("``a `b` c``", "``a `b` c``"),
        (r"letters are `\p{L}`, digits `\p{N}`", r"letters are `\p{L}`, digits `\p{N}`"),
    ],
)
def test_inline(myst, markdown):
    assert plain(myst) == markdown


LISTING = "```python\n(label)=\n{ref}`x` $$a$$ (e)\n:::{note}\n```"
DRAWING = '<img bees>\n\n<a id="fig-bees"></a>[Figure 3](site/fig-bees). Two *bees*.'


@pytest.mark.parametrize(
    ("myst", "markdown"),
    [
        (LISTING, LISTING),
        ("```{code-block} bash\nls `{ref}`\n```", "```bash\nls `{ref}`\n```"),
        (
            "```{dropdown} A *hint*\nA {term}`token`.\n```",
            "<details>\n<summary>A *hint*</summary>\n\nA *token*.\n\n</details>\n<br>",
        ),
        ("```{math}\n:label: e\na = b\n```", "$$\na = b \\tag{2.1}\n$$"),
        (
            ":::{exercise-start} A mask\n:label: ex-a\n:::\nDo.\n:::{exercise-end}\n:::",
            '<a id="ex-a"></a>\n\n**Exercise 7 (ex-a)**\n\nDo.',
        ),
        (
            ":::{exercise-start} M\n:label: a\n:class: judge minutes-2 level-2\n:::\nD.",
            '<a id="a"></a>\n\n**Judge · 2 minutes · level 2 of 3 · Exercise 7 (a)**\n\nD.',
        ),
        (
            "```{solution-start} ex-a\n:class: dropdown\n```",
            "**Solution to** [EX-A](site/ex-a), folded.",
        ),
        (":::{deeper-start} Why $d$\n:::\nSo.", "***\n\n**Going deeper: Why $d$**\n\nSo."),
        ("So.\n:::{deeper-end}\n:::\nOn.", "So.\n\n***\n\nOn."),
        (
            "So.\n:::{deeper-end}\n:::\n\n:::{deeper-start} B\n:::\nOn.",
            "So.\n\n***\n\n**Going deeper: B**\n\nOn.",
        ),
        (
            "So.\n:::{deeper-end}\n:::\n\n(b)=\n:::{deeper-start} B\n:::\nOn.",
            'So.\n\n<a id="b"></a>\n\n***\n\n**Going deeper: B**\n\nOn.',
        ),
        (":::{workshop-start}\n:::\nSo.\n:::{workshop-end}\n:::", "So."),
        (":::{drawing} bees\n:name: fig-bees\nTwo {term}`bees`.\n:::", DRAWING),
    ],
)
def test_blocks(myst, markdown):
    assert plain(myst) == markdown


def test_choices_get_letters_and_keep_what_is_told_to_themselves():
    text = ":::{choices} key\n- one — no, *two*\n- two\n  and more\n- three\n\n  No.\n:::"
    letters = "**a.** one\n\n**b.** two\n  and more\n\n**c.** three"
    assert plain(text) == letters
    asked = plain(text.replace("key", "mask"))
    assert (
        asked == f'{letters}\n\nCheck a letter: `exercises.check("attention.mask", "a")`.'
    )


@pytest.mark.parametrize(
    ("text", "markdown", "what"),
    [
        (
            "```{unheard-of} A *title*\nx\n```",
            "> **A *title***\n>\n> x",
            "directive {unheard-of}",
        ),
        ("{unheardof}`x`", "x", "role {unheardof}"),
        ("{cite:year}`x`", "x", "role {cite:year}"),
    ],
)
def test_of_what_is_not_known_the_text_is_kept_and_it_is_named(text, markdown, what):
    unknown = []
    links = SimpleNamespace(**vars(LINKS), unknown=unknown.append)
    assert to_markdown(text, links) == markdown
    assert unknown == [what]


@pytest.mark.parametrize(
    ("myst", "markdown"),
    [
        ("```{note}\nTwo\n\nbees.\n```", "> **Note**\n>\n> Two\n>\n> bees."),
        (":::{admonition} A *bee*\nBuzz.\n:::", "> **A *bee***\n>\n> Buzz."),
        (":::{seealso}\nBuzz.\n:::", "> **See also**\n>\n> Buzz."),
        ("{math}`a^2` and x {sub}`<2`", "$a^2$ and x <sub>&lt;2</sub>"),
        ("{eq}`eq-a`", "(1)"),
        ("{cite:p}`a` {cite:t}`a`", "[cite a False] [cite a True]"),
        ("![A bee](bee.svg)", "[image bee.svg A bee]"),
        ("![A bee](https://a.b/bee.svg)", "![A bee](https://a.b/bee.svg)"),
        ("`![A bee](bee.svg)`", "`![A bee](bee.svg)`"),
        (":::{image} bee.svg\n:alt: A bee\n:::", "[image bee.svg A bee]"),
        (
            ":::{figure} bee.svg\n:name: fig-bees\n:alt: A bee\nIt *flies*.\n:::",
            '[image bee.svg A bee]\n\n<a id="fig-bees"></a>[number fig-bees]. It *flies*.',
        ),
    ],
)
def test_what_is_common_elsewhere_becomes_markdown(myst, markdown):
    links = SimpleNamespace(
        image=lambda target, alt: f"[image {target} {alt}]",
        number=lambda label: f"[number {label}]",
        equation=lambda label: "1",
        cite=lambda keys, in_sentence: f"[cite {keys} {in_sentence}]",
    )
    assert to_markdown(myst, links) == markdown


def test_what_a_check_says_is_folded():
    line = {"output_type": "stream", "text": "a < b"}
    verdict = {"data": {"text/plain": "✗ no", "text/html": "<p>✗ no</p>"}}
    opened = "<details><summary>What does the check say?</summary>"
    assert (
        folded_outputs([line, verdict])
        == f"{opened}<pre>a &lt; b</pre><p>✗ no</p></details>"
    )


def test_solutions_are_cut_out():
    start, end = "```{solution-start} ex-a\n:class: dropdown\n```", "```{solution-end}\n```"
    text = f"before\n\n{start}\nwords\n{end}\nafter"
    assert split_at_solutions(text, False) == [
        (False, f"before\n\n{start}"),
        (True, "\nwords\n"),
        (False, "\nafter"),
    ]
    assert split_at_solutions(f"words\n{end}\nafter {start}", True)[0] == (True, "words\n")
    assert split_at_solutions(f"a\n{start}\nb", False)[-1] == (True, "\nb")
    assert split_at_solutions("a", True) == [(True, "a")]
