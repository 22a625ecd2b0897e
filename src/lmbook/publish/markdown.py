"""MyST turned into plain Markdown, for notebooks that Colab and JupyterLab show bare.

Sphinx understands directives and roles; a notebook's reader sees their source. Each one
that the chapters use is rewritten here; one that is not known is an error, so that none
reaches a reader.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from lmbook.pages.choices import LETTERS
from lmbook.pages.tasks import WORDS

__all__ = ["Directive", "Links", "parse", "solutions", "to_markdown"]

_OPEN = re.compile(r"^( *)(`{3,}|:{3,}|~{3,})\{([\w:-]+)\}[ \t]*(.*)$")
_FENCE = re.compile(r"^ *(`{3,}|~{3,})")
_OPTION = re.compile(r"^:([\w-]+):[ \t]*(.*)$")
_ROLE = re.compile(r"(?<![\w\\`])\{([\w:-]+)\}(`+)(.+?)\2", re.DOTALL)
_LABEL = re.compile(r"^\(([\w:-]+)\)=\s*$", re.MULTILINE)
_EQUATION = re.compile(r"\$\$(.+?)\$\$[ \t]*(?:\(([\w:-]+)\))?", re.DOTALL)
_LINK = re.compile(r"(?<!!)\[([^\[\]]+)\]\((#[\w:-]+|[\w./-]+\.md(?:#[\w:-]+)?)\)")
_CODE = re.compile(
    r"(^ *(`{3,}|~{3,}).*?^ *\2[ \t]*$|(?<!`)(`+)(?!`).+?(?<!`)\3(?!`))", re.M | re.S
)
_SOLUTION = re.compile(
    r"^(?P<fence>`{3,}|:{3,})\{solution-(?P<edge>start|end)\}.*?^(?P=fence) *$", re.M | re.S
)
_MATH = re.compile(r"(?<![\\$])\$[^$\n]+\$")
# Forms of MyST that a bare notebook would show as they are written, or not at all.
_UNKNOWN = re.compile(
    r"""\{\{.*?\}\}                # a substitution
    | \[\^[\w-]+\]                # a footnote
    | (?<=[\])])\{(?:[.#][\w-]|\w+=).*?\}  # attributes
    | ^:\ +\S                     # a definition
    | </?(?:div|span|iframe|script|style)\b
    | !\[[^\]]*\]\((?!https?:)     # a picture beside the source
    """,
    re.MULTILINE | re.VERBOSE,
)

ADMONITIONS = {
    *("note", "tip", "hint", "important", "warning", "caution", "attention", "danger"),
    *("seealso", "admonition"),
}


@dataclass
class Directive:
    """A directive of MyST: its name, the rest of its first line, options and lines."""

    name: str
    argument: str = ""
    options: dict[str, str] = field(default_factory=dict)
    body: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Links:
    """How to turn names into text: what only the built book knows.

    Attributes
    ----------
    reference : callable (label, text or None) → Markdown link
    number : callable (label) → Markdown link such as "[Figure 3](…)"
    equation : callable (label) → number as text
    exercise : callable (label) → text such as "Exercise 3 (Merge the heads)"
    cite : callable (keys, style) → Markdown, style "t" (in the sentence) or "p"
    glue : callable (name, format) → text
    page : callable (address in the sources, text) → Markdown link
    drawing : callable (name) → HTML image
    check : callable (glue key of choices) → name of the check of their task, or ""
    """

    reference: Callable
    number: Callable
    equation: Callable
    exercise: Callable
    cite: Callable
    glue: Callable
    page: Callable
    drawing: Callable
    check: Callable


def parse(text: str) -> list[str | Directive]:
    """Cut text into lines and directives, a listing being one; bodies stay unparsed."""
    lines, parts, index = text.split("\n"), [], 0
    while index < len(lines):
        opening = _OPEN.match(lines[index])
        fence = _FENCE.match(lines[index])
        if opening:
            directive, index = _directive(lines, index, opening)
            parts.append(directive)
        elif fence:  # a listing: nothing in it is ours
            end = _closing(lines, index, fence[1])
            parts.append(Directive("listing", body=lines[index : end + 1]))
            index = end + 1
        else:
            parts.append(lines[index])
            index += 1
    return parts


def _closing(lines: list[str], start: int, fence: str) -> int:
    """Return the line that closes the fence opened at ``start``.

    Raises
    ------
    ValueError
        If nothing closes it.
    """
    mark = re.compile(rf"^ *{re.escape(fence[0])}{{{len(fence)},}} *$")
    for index in range(start + 1, len(lines)):
        if mark.match(lines[index]):
            return index
    raise ValueError(f"nothing closes the block opened by {lines[start]!r}")


def _directive(lines: list[str], start: int, opening: re.Match) -> tuple[Directive, int]:
    _, fence, name, argument = opening.groups()
    end = _closing(lines, start, fence)
    body, options = lines[start + 1 : end], {}
    while body and (option := _OPTION.match(body[0])):
        options[option[1]] = option[2].strip()
        body = body[1:]
    if body and body[0].strip() == "---":  # options as a block of YAML
        close = body.index("---", 1)
        for line in body[1:close]:
            key, _, value = line.partition(":")
            options[key.strip()] = value.strip()
        body = body[close + 1 :]
    return Directive(name, argument.strip(), options, body), end + 1


def to_markdown(text: str, links: Links) -> str:
    """Turn MyST into Markdown without directives, roles or labels.

    Raises
    ------
    ValueError
        At a directive, a role or another form of MyST that is not known here, naming it.
    """
    out, plain = [], []

    def flush():
        out.append(_inline("\n".join(plain), links))
        plain.clear()

    for part in parse(text):
        if isinstance(part, str):
            plain.append(part)
        else:
            flush()
            out.append(_block(part, links))
    flush()
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


# --- directives -----------------------------------------------------------------------


def _block(directive: Directive, links: Links) -> str:
    if directive.name == "listing":
        return "\n".join(directive.body)
    if directive.name in _BARE:
        return _BARE[directive.name](directive, links)
    body = to_markdown("\n".join(directive.body), links)
    if directive.name in _WITH_BODY:
        return _WITH_BODY[directive.name](directive, body, links)
    name, argument = directive.name, _inline(directive.argument, links)
    if name == "dropdown" or "dropdown" in directive.options.get("class", ""):
        summary = argument or name.capitalize()
        return f"\n<details>\n<summary>{summary}</summary>\n\n{body}\n\n</details>\n"
    if name in ADMONITIONS:
        title = (argument or name.capitalize()).rstrip(".")
        return "\n" + _quoted(f"**{title}.** {body.lstrip()}") + "\n"
    raise ValueError(f"no plain Markdown is known for the directive {{{name}}}")


def _exercise(directive: Directive, links: Links) -> str:
    label = directive.options.get("label", "")
    kind = WORDS.get(directive.options.get("class", ""), "")
    kind = f"{kind} · " if kind else ""
    return f"{_place(label)}**{kind}{links.exercise(label)}**\n"


def _solution(directive: Directive, links: Links) -> str:
    task = links.reference(_inline(directive.argument, links), None)
    return f"{_place(directive.options.get('label', ''))}**Solution to** {task}, folded.\n"


def _place(label: str) -> str:
    return f'<a id="{label}"></a>\n\n' if label else ""


def _deeper(directive: Directive, links: Links) -> str:
    return f"\n***\n\n**Going deeper: {_inline(directive.argument, links)}**\n"


def _formula(directive: Directive, links: Links) -> str:
    return _display("\n".join(directive.body), directive.options.get("label", ""), links)


def _code(directive: Directive, links: Links) -> str:
    return "\n".join([f"```{_inline(directive.argument, links)}", *directive.body, "```"])


def _figure(directive: Directive, body: str, links: Links) -> str:
    file = _inline(directive.argument, links)
    picture = f"!{links.page(file, directive.options.get('alt', ''))}"
    return f"{picture}\n\n*{body.strip()}*\n" if body.strip() else f"{picture}\n"


def _drawing(directive: Directive, body: str, links: Links) -> str:
    label = directive.options["name"]
    drawn = links.drawing(_inline(directive.argument, links))
    return f'{drawn}\n\n<a id="{label}"></a>{links.number(label)}. {body.strip()}\n'


def _choices(directive: Directive, body: str, links: Links) -> str:
    name = links.check(_inline(directive.argument, links))
    asked = f'\n\nCheck a letter: `exercises.check("{name}", "a")`.' if name else ""
    return _lettered(body) + asked


_BARE = {
    **dict.fromkeys(("exercise-end", "solution-end"), lambda directive, links: ""),
    **dict.fromkeys(("code-block", "code"), _code),
    "deeper-start": _deeper,
    "deeper-end": lambda directive, links: "\n***\n",
    "exercise-start": _exercise,
    "solution-start": _solution,
    "math": _formula,
}
_WITH_BODY = {"figure": _figure, "image": _figure, "drawing": _drawing, "choices": _choices}


def _lettered(text: str) -> str:
    """Turn a list of choices into paragraphs with letters, without what each is told."""
    options = re.split(r"^- +", text.strip(), flags=re.MULTILINE)[1:]
    asked = [re.split(r"\n\n|\s—\s", option)[0] for option in options]
    pairs = zip(LETTERS, asked, strict=False)
    return "\n\n".join(f"**{letter}.** {words.strip()}" for letter, words in pairs)


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.strip().split("\n"))


def _display(formula: str, label: str, links: Links) -> str:
    tag = f" \\tag{{{links.equation(label)}}}" if label else ""
    return f"$$\n{formula.strip()}{tag}\n$$"


# --- roles and links ------------------------------------------------------------------


def _inline(text: str, links: Links) -> str:
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
    text = re.sub(r"^%.*\n?", "", text, flags=re.MULTILINE)  # comments
    unknown = _UNKNOWN.search(_MATH.sub("", text))
    if unknown:
        raise ValueError(f"no plain Markdown is known for {unknown[0]!r}")
    text = _LINK.sub(lambda link: links.page(link[2], link[1]), text)
    while "\x00" in text:
        text = re.sub(r"\x00(\d+)\x00", lambda m: kept[int(m[1])], text)
    return text


def _role(name: str, content: str, links: Links) -> str:
    titled = re.fullmatch(r"(.+?)\s*<(.+)>", content, re.DOTALL)
    text, target = titled.groups() if titled else (None, content)
    if name in ("ref", "doc", "any"):
        return links.reference(target, text)
    if name == "numref":
        return links.number(target)
    if name == "eq":
        return f"({links.equation(target)})"
    if name == "term":
        return f"*{text or target}*"
    if name == "math":
        return f"${content}$"
    if name in ("cite", "cite:p"):
        return links.cite(content, "p")
    if name == "cite:t":
        return links.cite(content, "t")
    if name.startswith("glue"):
        key, _, form = content.partition(":")
        return links.glue(key, form)
    raise ValueError(f"no plain Markdown is known for the role {{{name}}}")
