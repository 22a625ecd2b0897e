"""MyST turned into plain Markdown, for notebooks that Colab and JupyterLab show bare.

Sphinx understands directives and roles; a notebook's reader sees their source. Each one
that the chapters use is rewritten here; one that is not known is an error, so that none
reaches a reader. What only the built book knows, ``links`` tells: `lmbook.publish.links`.
"""

import re
from html import escape

from markdown_it import MarkdownIt
from mdit_py_plugins.colon_fence import colon_fence_plugin

from lmbook.pages.choices import LETTERS
from lmbook.pages.tasks import FOLDED, asked

_BLOCKS = MarkdownIt("commonmark").use(colon_fence_plugin).disable("inline")
_DIRECTIVE = re.compile(r"\{([\w:-]+)\}(.*)")
_OPTION = re.compile(r"^:([\w-]+):(.*)\n", re.MULTILINE)
_ROLE = re.compile(r"(?<![\w\\`])\{([\w:-]+)\}(`+)(.+?)\2", re.DOTALL)
_LABEL = re.compile(r"^\(([\w:-]+)\)=\s*$", re.MULTILINE)
_EQUATION = re.compile(r"\$\$(.+?)\$\$[ \t]*(?:\(([\w:-]+)\))?", re.DOTALL)
_LINK = re.compile(r"(?<!!)\[([^\[\]]+)\]\((#[\w:-]+|[\w./-]+\.md(?:#[\w:-]+)?)\)")
_CODE = re.compile(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
_SOLUTION = re.compile(
    r"^(?P<fence>`{3,}|:{3,})\{solution-(?P<edge>start|end)\}.*?^(?P=fence) *$", re.M | re.S
)

LETTER = re.compile(r'`exercises\.check\("([\w.-]+)", "a"\)`')  # of `{choices}`, below


def to_markdown(text: str, links) -> str:
    """Turn MyST into Markdown without directives, roles or labels.

    Raises
    ------
    ValueError
        At a directive or a role that is not known here, naming it.
    """
    lines, out, last = text.split("\n"), [], 0
    for token in _BLOCKS.parse(text):
        if token.type in ("fence", "colon_fence"):
            begin, end = token.map
            out.append(_inline("\n".join(lines[last:begin]), links))
            named = _DIRECTIVE.match(token.info.strip())
            if named:
                out.append(_directive(*named.groups(), token.content, links))
            else:
                out += lines[begin:end]
            last = end
    out.append(_inline("\n".join(lines[last:]), links))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).strip("\n")


def solutions(text: str, inside: bool) -> list[tuple[bool, str]]:
    """Cut MyST where a solution begins or ends.

    Parameters
    ----------
    text : str
    inside : bool
        Whether the text begins in a solution.

    Returns
    -------
    list of (bool, str)
        Whether a piece is in a solution, and the piece. The line that begins a solution
        is outside it, since it is not folded.
    """
    pieces, last = [], 0
    for edge in _SOLUTION.finditer(text):
        begins = edge["edge"] == "start"
        pieces.append((inside, text[last : edge.end() if begins else edge.start()]))
        last, inside = edge.end(), begins
    pieces.append((inside, text[last:]))
    return pieces


def unannounced(text: str) -> str:
    """Return MyST without the lines that begin a solution."""
    return _SOLUTION.sub("", text)


def folded(outputs: list) -> str:
    """Return what a cell shows in words as HTML that opens; a check has said it."""
    said = []
    for output in outputs:
        data = output.get("data", {})
        text = f"<pre>{escape(output.get('text') or data.get('text/plain', ''))}</pre>"
        said.append(data.get("text/html", text))
    return f"<details><summary>{FOLDED}</summary>{''.join(said)}</details>"


# --- directives -----------------------------------------------------------------------


def _directive(name: str, argument: str, content: str, links) -> str:
    """Return a directive as Markdown."""
    argument, options = argument.strip(), {}
    while option := _OPTION.match(content):
        options[option[1]] = option[2].strip()
        content = content[option.end() :]
    label = options.get("label", "")
    place = f'<a id="{label}"></a>\n\n' if label else ""
    match name:
        case "exercise-end" | "solution-end" | "workshop-start" | "workshop-end" | "proof":
            return ""
        case "exercise-start":
            heading = [*asked(options.get("class", "").split()), links.exercise(label)]
            return f"{place}**{' · '.join(heading)}**\n"
        case "solution-start":
            return f"{place}**Solution to** {links.reference(argument, None)}, folded.\n"
        case "deeper-start":
            return f"\n***\n\n**Going deeper: {_inline(argument, links)}**\n"
        case "deeper-end":
            return "\n***\n"
        case "math":
            return _display(content, label, links)
        case "code-block":
            return f"```{argument}\n{content}```"
    return _with_body(name, argument, options, to_markdown(content, links), links)


def _with_body(name: str, argument: str, options: dict, body: str, links) -> str:
    """Return a directive that holds more MyST, given that as Markdown."""
    match name:
        case "drawing":
            label = options["name"]
            caption = f'<a id="{label}"></a>{links.number(label)}. {body}'
            return f"{links.drawing(argument)}\n\n{caption}\n"
        case "choices":
            task = links.check(argument)
            check = f'\n\nCheck a letter: `exercises.check("{task}", "a")`.'
            return _lettered(body) + (check if task else "")
        case "dropdown":
            summary = _inline(argument, links)
            return f"\n<details>\n<summary>{summary}</summary>\n\n{body}\n\n</details>\n"
    raise ValueError(f"no plain Markdown is known for the directive {{{name}}}")


def _lettered(text: str) -> str:
    """Turn a list of choices into paragraphs with letters, without what a click tells."""
    options = re.split(r"^- +", text.strip(), flags=re.MULTILINE)[1:]
    asked = [re.split(r"\n\n|\s—\s", option)[0] for option in options]
    pairs = zip(LETTERS, asked, strict=False)
    return "\n\n".join(f"**{letter}.** {words.strip()}" for letter, words in pairs)


def _display(formula: str, label: str, links) -> str:
    tag = f" \\tag{{{links.equation(label)}}}" if label else ""
    return f"$$\n{formula.strip()}{tag}\n$$"


# --- roles and links ------------------------------------------------------------------


def _inline(text: str, links) -> str:
    """Rewrite labels, equations, roles and links, wherever no code is.

    Roles are code to a Markdown parser, so they go first, into placeholders that what
    follows does not touch.
    """
    kept: list[str] = []

    def keep(rewritten: str) -> str:
        kept.append(rewritten)
        return f"\x00{len(kept) - 1}\x00"

    text = _ROLE.sub(lambda role: keep(_role(role[1], role[3], links)), text)
    text = _CODE.sub(lambda code: keep(code[0]), text)
    text = _EQUATION.sub(lambda m: keep(_display(m[1], m[2] or "", links)), text)
    text = _LABEL.sub(lambda label: f'<a id="{label[1]}"></a>', text)
    text = _LINK.sub(lambda link: links.page(link[2], link[1]), text)
    while "\x00" in text:
        text = re.sub(r"\x00(\d+)\x00", lambda m: kept[int(m[1])], text)
    return text


def _role(name: str, content: str, links) -> str:
    titled = re.fullmatch(r"(.+?)\s*<(.+)>", content, re.DOTALL)
    text, target = titled.groups() if titled else (None, content)
    match name:
        case "ref":
            return links.reference(target, text)
        case "numref":
            return links.number(target)
        case "term":
            return f"*{text or target}*"
        case "cite" | "cite:t":
            return links.cite(content, in_sentence=name == "cite:t")
        case "glue:text":
            return links.glue(*content.partition(":")[::2])
    raise ValueError(f"no plain Markdown is known for the role {{{name}}}")
