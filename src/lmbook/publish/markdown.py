"""MyST turned into plain Markdown, for notebooks that Colab and JupyterLab show bare.

Sphinx understands directives and roles; a notebook's reader sees their source. Each one
that chapters use, and others that are common, are rewritten here. Of one that is not known
the text is kept, and ``links`` is told of it. What only the built book knows is found in
``links``, too: `lmbook.publish.links`.
"""

import re
from html import escape
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt
from mdit_py_plugins.colon_fence import colon_fence_plugin

from lmbook.pages.choices import LETTERS
from lmbook.pages.tasks import VERDICT_SUMMARY, read_classes

if TYPE_CHECKING:
    from lmbook.publish.links import BookLinks

_BLOCKS = MarkdownIt("commonmark").use(colon_fence_plugin).disable("inline")
_DIRECTIVE = re.compile(r"\{([\w:-]+)\}(.*)")
_OPTION = re.compile(r"^:([\w-]+):(.*)\n", re.MULTILINE)
_ROLE = re.compile(r"(?<![\w\\`])\{([\w:-]+)\}(`+)(.+?)\2", re.DOTALL)
_LABEL = re.compile(r"^\(([\w:-]+)\)=\s*$", re.MULTILINE)
_EQUATION = re.compile(r"\$\$(.+?)\$\$[ \t]*(?:\(([\w:-]+)\))?", re.DOTALL)
_LINK = re.compile(r"(?<!!)\[([^\[\]]+)\]\((#[\w:-]+|[\w./-]+\.md(?:#[\w:-]+)?)\)")
_IMAGE = re.compile(r"!\[([^\[\]]*)\]\((?!https?:|data:)([^()\s]+)(?:\s+\"[^\"]*\")?\)")
_CODE = re.compile(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
_SOLUTION = re.compile(
    r"^(?P<fence>`{3,}|:{3,})\{solution-(?P<edge>start|end)\}.*?^(?P=fence) *$", re.M | re.S
)

ADMONITIONS = (
    "admonition",
    "attention",
    "caution",
    "danger",
    "error",
    "hint",
    "important",
    "note",
    "seealso",
    "tip",
    "topic",
    "warning",
    "margin",
    "sidebar",
)
# The call that `_choices` writes below a multiple-choice task.
LETTER_CHECK = re.compile(r'`exercises\.check\("([\w.-]+)", "a"\)`')
# Jupyter leaves no room below what folds: what follows would stick to it.
FOLD_END = "</details>\n<br>"
# Between two folded sections one rule is enough, also where a label stands between them.
_TWO_RULES = re.compile(
    r"""^\*\*\*\n\n(?=(?:<a id="[^"]*"></a>\n+)*\*\*\*$)""", re.MULTILINE
)


def to_markdown(text: str, links: "BookLinks") -> str:
    """Turn MyST into Markdown without directives, roles or labels.

    Parameters
    ----------
    text : str
    links : BookLinks
        The chapter, and how to resolve what it refers to. Its ``unknown`` is called with
        "directive {NAME}" or "role {NAME}" for each that is not known here, whose text is
        kept.

    Returns
    -------
    str
        Markdown; a label is an empty HTML anchor.
    """
    lines = text.split("\n")
    out = []
    last = 0
    for token in _BLOCKS.parse(text):
        if token.type in ("fence", "colon_fence"):
            begin, end = token.map
            out.append(_rewrite_inline("\n".join(lines[last:begin]), links))
            named = _DIRECTIVE.match(token.info.strip())
            if named:
                out.append(_directive(*named.groups(), token.content, links))
            else:
                out += lines[begin:end]
            last = end
    out.append(_rewrite_inline("\n".join(lines[last:]), links))
    plain = re.sub(r"\n{3,}", "\n\n", "\n".join(out)).strip("\n")
    return _TWO_RULES.sub("", plain)


def split_at_solutions(text: str, inside: bool) -> list[tuple[bool, str]]:
    """Cut MyST where a solution begins or ends.

    Parameters
    ----------
    text : str
    inside : bool
        Whether the text begins in a solution.

    Returns
    -------
    list of (bool, str)
        Whether a piece is in a solution, and the piece, in order. The directive that begins
        a solution is outside it, since it is not folded; the one that ends it is in none.
    """
    parts = []
    last = 0
    for edge in _SOLUTION.finditer(text):
        begins = edge["edge"] == "start"
        parts.append((inside, text[last : edge.end() if begins else edge.start()]))
        last = edge.end()
        inside = begins
    parts.append((inside, text[last:]))
    return parts


def without_solution_lines(text: str) -> str:
    """Return MyST without the directives ``solution-start`` and ``solution-end``.

    What stands between a start and its end is kept.
    """
    return _SOLUTION.sub("", text)


def folded_outputs(outputs: list) -> str:
    """Return the outputs of a cell that calls a check, as HTML that opens at a click.

    The line to click on is "What does the check say?". Of each output its HTML is shown, as
    it is, or else its text, escaped; of one that has neither, as an SVG alone or an error,
    an empty block.

    ``outputs`` : list of dict, as notebooks hold them: with ``data``, MIME type → content,
    or with ``text``, what was printed; each content is a str.
    """
    verdicts = []
    for output in outputs:
        data = output.get("data", {})
        text = f"<pre>{escape(output.get('text') or data.get('text/plain', ''))}</pre>"
        verdicts.append(data.get("text/html", text))
    return f"<details><summary>{VERDICT_SUMMARY}</summary>{''.join(verdicts)}</details>"


# --- directives -----------------------------------------------------------------------


def _directive(name: str, argument: str, content: str, links: "BookLinks") -> str:
    """Return a directive as Markdown.

    Parameters
    ----------
    name : str
        The directive's, such as "note". One that is not known is reported by
        ``links.unknown``, and its text is quoted.
    argument : str
        What stands behind its name.
    content : str
        The lines inside, its options (``:key: value``) first.
    links : BookLinks
        Resolves what the text refers to.
    """
    argument = argument.strip()
    options = {}
    while option := _OPTION.match(content):
        options[option[1]] = option[2].strip()
        content = content[option.end() :]
    if name in _WITHOUT_BODY:
        return _WITHOUT_BODY[name](argument, options, content, links)
    body = to_markdown(content, links)
    if name in _WITH_BODY:
        return _WITH_BODY[name](argument, options, body, links)
    title = _rewrite_inline(argument, links)
    if name in ADMONITIONS:
        title = title or name.replace("seealso", "see also").capitalize()
    else:
        links.unknown(f"directive {{{name}}}")
    return _quoted(f"**{title}**\n\n{body}" if title else body)


# Functions of directives: from the argument, the options, and what stands inside, as it
# stands (_WITHOUT_BODY) or rewritten (_WITH_BODY). ``links`` is as for `to_markdown`. All
# of them take these four, since `_directive` calls them alike.


def _nothing(argument: str, options: dict, content: str, links: "BookLinks") -> str:
    """Return "", for a directive that a notebook does without; no argument is used."""
    return ""


def _task(argument: str, options: dict, content: str, links: "BookLinks") -> str:
    """Return a task's heading in Markdown, for the directive ``exercise-start``.

    It is such as "**Build · 10 minutes · level 2 of 3 · Exercise 3 (Merge the heads)**",
    with an anchor before it.

    ``options`` : dict of str to str, the directive's: ``label``, such as
    "ex-attention-heads", and ``class``, such as "build minutes-10 level-2". ``links`` : its
    ``exercise`` returns the task's name by its label. ``argument`` and ``content`` are not
    used.
    """
    label = options.get("label", "")
    heading = [*read_classes(options.get("class", "").split()), links.exercise(label)]
    return f"{_anchor(options)}**{' · '.join(heading)}**\n"


def _solution(argument: str, options: dict, content: str, links: "BookLinks") -> str:
    """Return the heading of a solution in Markdown, with a link to its task.

    ``argument`` : the label of its task; ``options`` : dict of str to str, maybe with a
    ``label``, whose anchor stands before it; ``links`` : makes the link. ``content`` is not
    used.
    """
    return f"{_anchor(options)}**Solution to** {links.reference(argument, None)}, folded.\n"


def _deeper(argument: str, options: dict, content: str, links: "BookLinks") -> str:
    """Return the heading of a section that the site folds, in Markdown, below a rule.

    ``argument`` : its title, in MyST; ``links`` : for what the title refers to. ``options``
    and ``content`` are not used.
    """
    return f"\n***\n\n**Going deeper: {_rewrite_inline(argument, links)}**\n"


def _equation(argument: str, options: dict, content: str, links: "BookLinks") -> str:
    """Return an equation in Markdown, between ``$$``, numbered if it has a label.

    ``content`` : the equation, in TeX; ``options`` : dict of str to str, maybe with a
    ``label``; ``links`` : for its number. ``argument`` is not used.
    """
    return _display_math(content, options.get("label", ""), links)


def _code(argument: str, options: dict, content: str, links: "BookLinks") -> str:
    """Return a fenced block of code, which is not run, in Markdown.

    ``argument`` : its language, such as "python"; ``content`` : the code, which ends in a
    new line. ``options`` and ``links`` are not used.
    """
    return f"```{argument}\n{content}```"


def _image(argument: str, options: dict, content: str, links: "BookLinks") -> str:
    """Return an image as HTML that holds its data.

    ``argument`` : its path; ``options`` : dict of str to str, with ``alt``, its alternative
    text, and maybe a ``label``, whose anchor stands before it; ``links`` : reads the image,
    and gives the alternative text if there is none. ``content`` is not used.
    """
    return f"{_anchor(options)}{links.image(argument, options.get('alt', ''))}"


def _anchor(options: dict) -> str:
    """Return an empty HTML anchor, to which links with a directive's label lead.

    ``options`` : dict of str to str, the directive's; the anchor's id is its ``label``. ""
    if it has none.
    """
    label = options.get("label", "")
    return f'<a id="{label}"></a>\n\n' if label else ""


# What is made of the text as it stands.
_WITHOUT_BODY = {
    **dict.fromkeys(("exercise-end", "solution-end"), _nothing),
    **dict.fromkeys(("workshop-start", "workshop-end"), _nothing),
    **dict.fromkeys(("proof", "index", "tableofcontents"), _nothing),
    "exercise-start": _task,
    "solution-start": _solution,
    "deeper-start": _deeper,
    "deeper-end": lambda *_: "\n***\n",
    "math": _equation,
    "code-block": _code,
    "code": _code,
    "image": _image,
}


def _drawing(argument: str, options: dict, body: str, links: "BookLinks") -> str:
    """Return a drawing by hand as an HTML image, and its caption below it.

    ``argument`` : the drawing's name, that of a file in ``_figures`` without ".svg";
    ``options`` : dict of str to str, with ``name``, its label; ``body`` : the caption, in
    Markdown; ``links`` : for the drawing and its number.
    """
    return f"{links.drawing(argument)}\n\n{_caption(options['name'], body, links)}"


def _figure(argument: str, options: dict, body: str, links: "BookLinks") -> str:
    """Return a figure as an HTML image, and its caption below it.

    ``argument`` : the path of its image; ``options`` : dict of str to str, with ``alt``,
    its alternative text, and maybe ``name``, its label; ``body`` : the caption, in
    Markdown; ``links`` : reads the image, gives the alternative text if there is none, and
    knows the figure's number.
    """
    picture = links.image(argument, options.get("alt", ""))
    return f"{picture}\n\n{_caption(options.get('name', ''), body, links)}"


def _caption(label: str, body: str, links: "BookLinks") -> str:
    """Return a figure's caption, with an anchor and its number if it has a label.

    ``label`` is "" or the figure's label; ``body`` is the caption in Markdown; ``links``
    knows the number.
    """
    place = f'<a id="{label}"></a>{links.number(label)}. ' if label else ""
    return f"{place}{body}\n"


def _choices(argument: str, options: dict, body: str, links: "BookLinks") -> str:
    """Return choices with letters, in Markdown, and a line that says how one is checked.

    ``argument`` : the key under which the chapter glues the right letter; ``body`` : the
    choices, a list in Markdown; ``links`` : its ``check`` returns by that key the name of
    the task's check, "" if there is none, and then the line is missing. ``options`` are not
    used.
    """
    task = links.check(argument)
    check = f'\n\nCheck a letter: `exercises.check("{task}", "a")`.'
    return _lettered(body) + (check if task else "")


def _dropdown(argument: str, options: dict, body: str, links: "BookLinks") -> str:
    """Return a text that folds out, as an HTML element ``<details>``.

    ``argument`` : the line that always shows, in MyST; ``body`` : the text, in Markdown;
    ``links`` : for what the line refers to. ``options`` are not used.
    """
    summary = _rewrite_inline(argument, links)
    return f"\n<details>\n<summary>{summary}</summary>\n\n{body}\n\n{FOLD_END}\n"


# What holds more MyST, which is Markdown already.
_WITH_BODY = {
    "drawing": _drawing,
    "figure": _figure,
    "choices": _choices,
    "dropdown": _dropdown,
    **dict.fromkeys(
        ("epigraph", "pull-quote", "highlights"), lambda _, __, body, ___: _quoted(body)
    ),
}


def _quoted(text: str) -> str:
    """Return Markdown as a block quotation: each line begins with ">"."""
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n")) + "\n"


def _lettered(text: str) -> str:
    """Turn a list of choices into paragraphs, each behind its letter: "**a.** …".

    ``text`` : MyST, a list with a hyphen before each choice. What the site tells who clicks
    on a choice stands behind it, after an empty line or a spaced dash (—), and is left out.
    """
    options = re.split(r"^- +", text.strip(), flags=re.MULTILINE)[1:]
    asked = [re.split(r"\n\n|\s—\s", option)[0] for option in options]
    pairs = zip(LETTERS, asked, strict=False)
    return "\n\n".join(f"**{letter}.** {words.strip()}" for letter, words in pairs)


def _display_math(formula: str, label: str, links: "BookLinks") -> str:
    """Return a formula in TeX between ``$$``, numbered by ``links`` if it has a label.

    ``label`` is "" if it has none.
    """
    tag = f" \\tag{{{links.equation(label)}}}" if label else ""
    return f"$$\n{formula.strip()}{tag}\n$$"


# --- roles and links ------------------------------------------------------------------


def _rewrite_inline(text: str, links: "BookLinks") -> str:
    """Return MyST with its labels, equations, roles, links and images rewritten.

    Code is left as it is. Roles are code to a Markdown parser, so they go first, into
    placeholders that what follows does not touch.

    ``text`` : MyST without directives; ``links`` : resolves what it refers to.
    """
    stored: list[str] = []
    text = text.replace("\x00", "\ufffd")  # as Markdown has it; placeholders are made of it

    def store(rewritten: str) -> str:
        """Put a finished piece aside; return a placeholder that nothing rewrites."""
        stored.append(rewritten)
        return f"\x00{len(stored) - 1}\x00"

    text = _ROLE.sub(lambda role: store(_role(role[1], role[3], links)), text)
    text = _CODE.sub(lambda code: store(code[0]), text)
    text = _EQUATION.sub(lambda m: store(_display_math(m[1], m[2] or "", links)), text)
    text = _LABEL.sub(lambda label: f'<a id="{label[1]}"></a>', text)
    text = _LINK.sub(lambda link: links.page(link[2], link[1]), text)
    text = _IMAGE.sub(lambda image: links.image(image[2], image[1]), text)
    while "\x00" in text:
        text = re.sub(r"\x00(\d+)\x00", lambda m: stored[int(m[1])], text)
    return text


def _role(name: str, content: str, links: "BookLinks") -> str:
    """Return a role as Markdown.

    Parameters
    ----------
    name : str
        The role's, such as "ref" or "cite:t". One that is not known is reported by
        ``links.unknown``, and its content returned.
    content : str
        What stands between the backticks. For a role that leads somewhere it is "TARGET" or
        "TEXT <TARGET>".
    links : BookLinks
        Resolves what the text refers to.
    """
    titled = re.fullmatch(r"(.+?)\s*<(.+)>", content, re.DOTALL)
    text, target = titled.groups() if titled else (None, content)
    if name in _ABOUT_TARGETS:
        return _ABOUT_TARGETS[name](links, target, text)
    if name in _ABOUT_TEXT:
        return _ABOUT_TEXT[name](links, content)
    links.unknown(f"role {{{name}}}")
    return content


# Roles that lead somewhere: from what they lead to, and the text if one is given.
_ABOUT_TARGETS = {
    "ref": lambda links, target, text: links.reference(target, text),
    "numref": lambda links, target, text: links.number(target),
    "eq": lambda links, target, text: f"({links.equation(target)})",
    "doc": lambda links, target, text: links.page(target.removeprefix("/"), text or ""),
    "term": lambda links, target, text: f"*{text or target}*",
}


# Roles that are made of their text alone. ``content`` is what stands between the backticks,
# ``links`` is as for `to_markdown`; each returns Markdown.


def _glued(links: "BookLinks", content: str) -> str:
    """Return as text the value that a chapter quotes from a proof or a cell.

    ``content`` : "PROOF.KEY:FORMAT" or "KEY:FORMAT", such as "it_attends.share:.0%";
    ``links`` : knows the values.
    """
    name, _, form = content.partition(":")
    return links.glue(name, form)


def _cited(links: "BookLinks", content: str) -> str:
    """Return links to works in brackets, such as "([Vaswani et al., 2017](…))".

    ``content`` : the works' keys in the bibliography, "one,two"; ``links`` : makes them.
    """
    return links.cite(content, in_sentence=False)


def _cited_in_sentence(links: "BookLinks", content: str) -> str:
    """Return links to works as part of a sentence: "[Vaswani et al. (2017)](…)".

    ``content`` : the works' keys in the bibliography, "one,two"; ``links`` : makes them.
    """
    return links.cite(content, in_sentence=True)


def _as_code(links: "BookLinks", content: str) -> str:
    """Return a name as code in Markdown, between backticks.

    ``content`` : the name; ``links`` are not used.
    """
    return f"`{content}`"


_ABOUT_TEXT = {
    "glue:text": _glued,
    **dict.fromkeys(("cite", "cite:p", "cite:ps"), _cited),
    **dict.fromkeys(("cite:t", "cite:ts"), _cited_in_sentence),
    **dict.fromkeys(("code", "kbd", "file", "command", "literal"), _as_code),
    "math": lambda links, content: f"${content}$",
    "sub": lambda links, content: f"<sub>{escape(content)}</sub>",
    "sup": lambda links, content: f"<sup>{escape(content)}</sup>",
    "abbr": lambda links, content: content.partition(" (")[0],
    "emphasis": lambda links, content: f"*{content}*",
    "strong": lambda links, content: f"**{content}**",
}
