"""A model that answers, opened in the page: what it says, and what goes on inside."""

import html
import os
from pathlib import Path

import torch

from lmcourse.gguf import GgufFile
from lmcourse.gpt.inside import lens
from lmcourse.llama import VARIABLE, sample_tokens, talker_file
from lmcourse.numbers import percent
from lmcourse.views.markup import table
from lmcourse.views.tokenizer import shown
from lmcourse.views.view import View

ROOM = 1024  # tokens of a dialogue in the page
TOP, FIRST = 10, 3  # next tokens; choices of the lens
KINDS = {"Q4_1", "Q8_0"}  # of matrices that the page can multiply from
# Fields of its file that the page has a program for: they must be those of the default.
TOKENIZER = ("tokenizer.ggml.model", "tokenizer.ggml.pre")
TEMPLATE = "tokenizer.chat_template"


def talker(
    text, tokenizer, model, *, dialogue=True, other="", layer=None, head=None, count=40
) -> View:
    """Show what a model that talks answers to a line, and what happens inside it.

    On the site the reader loads the model, talks to it, and sees the next tokens'
    probabilities, what each layer would say (the logit lens) and what each head attends to;
    switches heads off, or takes them from another text; and asks the same of random
    weights. The site carries SmolLM2-135M-Instruct as it comes, in four bits, or the GGUF
    file that ``LMCOURSE_TALKER`` names; pass the same: ::

        tokenizer, model = load_talker()
        views.talker("What is the capital of France?", tokenizer, model)

    Parameters
    ----------
    text : str
        A question, or with ``dialogue=False`` a text that the model goes on with.
    tokenizer, model
        Of a Llama that answers, such as those that `lmcourse.llama.load_talker` loads.
    dialogue : bool, optional
        Whether the text is put into the model's chat template.
    other : str, optional
        Another text, to take heads from.
    layer, head : int, optional
        Whose attention is shown at first, both from 0, or neither; by default the head that
        gives most attention from the last token to one other than the first and the last.
    count : int, optional
        How many tokens to write.

    Returns
    -------
    View
        Its alternative text tells the answer and the likeliest first tokens. If the chosen
        model does not run in the page, it has no data, and says why.

    Raises
    ------
    ValueError
        If the text is empty or, with what is to be written, longer than 1,024 tokens
        (`ROOM`); if there is no such head, or only one of ``layer`` and ``head`` is given.
    """
    prompt = _prompt(text, tokenizer) if dialogue else text
    ids = tokenizer(prompt, add_special_tokens=False).input_ids
    if not 1 <= len(ids) <= ROOM - count:
        raise ValueError(f"a text of 1 to {ROOM - count} tokens, please, not {len(ids)}")
    config = model.config
    layer, head, looks = _looks(model, ids, layer, head)
    written = list(_write(model, tokenizer, ids, count))
    names = [token_name(tokenizer, i) for i in [*ids, *written]]
    answer = tokenizer.decode(written, skip_special_tokens=True)
    by_layer = _logit_lens(tokenizer, model, ids)
    alt = _summary(text, answer, by_layer, dialogue)
    stored = _stored(text, answer, by_layer, dialogue)
    if why := why_not_in_page():
        stored = f"<p><small>{html.escape(why)}</small></p>{stored}"
        return View("talker-view", None, stored, alt=alt, plain=f"[{why}] {alt}")
    data = {"text": text, "other": other, "dialogue": dialogue, "answer": answer}
    data |= {"layers": config.layers, "heads": config.heads, "room": ROOM}
    data |= {"ids": [*ids, *written], "pieces": names, "read": len(ids)}
    data |= {"layer": layer, "head": head, "place": len(ids) - 1, "attention": looks}
    data |= {
        "next": by_layer[-1],
        "lens": [row[:FIRST] for row in by_layer],
        "store": "talker",
    }
    return View("talker-view", data, stored, alt=alt, stores=["talker"])


def page_file() -> Path:
    """Return the path of the GGUF file that the site carries.

    It is the one that ``LMCOURSE_TALKER`` names, if the page can run it; else the built-in
    model's.
    """
    wanted = os.environ.get(VARIABLE, "")
    return Path(wanted).expanduser() if wanted and not why_not_in_page() else talker_file()


def why_not_in_page() -> str:
    """Say why the model that was chosen does not run in the page, a str; "" if it does.

    It is chosen by ``LMCOURSE_TALKER``. If that is set, it must name a GGUF file with
    matrices in Q4_1 or Q8_0, vectors in F32, no output matrix of its own, and the
    tokenizer and chat template of the built-in model.
    """
    wanted = os.environ.get(VARIABLE, "")
    if not wanted:
        return ""
    why = "This model does not run in the page, which shows what was computed before: "
    if not wanted.endswith(".gguf"):
        return why + "it is no GGUF file."
    file = GgufFile(wanted)
    tensors = file.tensors.values()
    kinds = {tensor.kind for tensor in tensors if len(tensor.shape) > 1} - KINDS
    kinds |= {tensor.kind for tensor in tensors if len(tensor.shape) == 1} - {"F32"}
    if kinds:
        return why + f"its weights are stored as {', '.join(sorted(kinds))}."
    if "output.weight" in file.tensors:
        return why + "it reads out with a matrix of its own."
    known = GgufFile(talker_file()).fields
    if any(file.fields.get(name) != known[name] for name in TOKENIZER):
        return why + "it cuts texts with another tokenizer."
    if file.fields.get(TEMPLATE) != known[TEMPLATE]:
        return why + "it writes dialogues in another form (another chat template)."
    return ""


def _prompt(text: str, tokenizer) -> str:
    """Return a question as the text that the model reads, up to where it is to answer.

    ``text`` is the question; ``tokenizer`` has the chat template.
    """
    turns = [{"role": "user", "content": text}]
    return tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)


def _write(model, tokenizer, ids: list[int], count: int):
    """Return an iterator of the likeliest next tokens (int) after ``ids``.

    It stops when the model ends its answer (the special token that says so is not among
    them), at the latest after ``count`` tokens. ``model`` and ``tokenizer`` are a Llama's,
    as `lmcourse.llama.load_talker` loads them.
    """
    prompt = torch.tensor([ids], device=model.tokens.weight.device)
    return sample_tokens(model, prompt, count, {tokenizer.eos_token_id})


def token_name(tokenizer, token: int) -> str:
    """Return a token so that it can be seen, such as "·the".

    A special token, which stands for no text, is returned as it is.

    ``tokenizer`` : the talker's, of `transformers`; ``token`` : its id.
    """
    piece = tokenizer.convert_ids_to_tokens(token)
    return piece if token in tokenizer.all_special_ids else shown("gpt2", piece)


def _logit_lens(tokenizer, model, ids: list[int]) -> list[list[dict]]:
    """Return what each layer would say after the last token (the logit lens).

    Parameters
    ----------
    model, tokenizer
        Of a Llama that answers.
    ids : list of int
        The text.

    Returns
    -------
    list of list of dict
        For each layer ten tokens (`TOP`), the likeliest first: ``id``, ``piece`` (how it is
        shown) and ``share``, its probability if the model ended after this layer.
    """
    prompt = torch.tensor([ids], device=model.tokens.weight.device)
    with torch.no_grad():
        shares = lens(model, prompt)[1:, 0, -1].float().softmax(-1).cpu()
    best, tokens = shares.topk(TOP)
    return [
        [
            {"id": token, "piece": token_name(tokenizer, token), "share": round(share, 4)}
            for token, share in zip(row, those, strict=True)
        ]
        for row, those in zip(tokens.tolist(), best.tolist(), strict=True)
    ]


def _looks(model, ids: list[int], layer, head) -> tuple[int, int, list]:
    """Return a layer, a head, and the layer's attention weights at the last token.

    Where ``layer`` and ``head`` are None, the head is taken that gives one token the most,
    the first and the last token aside.

    Parameters
    ----------
    model : Llama
    ids : list of int
        The text.
    layer, head : int or None
        Both from 0, or both None.

    Returns
    -------
    layer, head : int
        Those given, or, of None, the head that gives one token the most.
    weights : list of list of float
        The last token's attention weights on each token, by head of the layer.

    Raises
    ------
    ValueError
        If only one of them is given, or there is no such head.
    """
    if (layer is None) != (head is None):
        raise ValueError("give both layer and head, or neither")
    prompt = torch.tensor([ids], device=model.tokens.weight.device)
    weights = torch.stack([x[0, :, -1] for x in model.attentions(prompt)]).float().cpu()
    if layer is None:
        between = weights[..., 1:-1] if len(ids) > 2 else weights
        layer, head = divmod(int(between.amax(-1).argmax()), model.config.heads)
    if not (0 <= layer < model.config.layers and 0 <= head < model.config.heads):
        raise ValueError(f"there is no head {head} of layer {layer}")
    return layer, head, [[round(x, 3) for x in row] for row in weights[layer].tolist()]


def _summary(text: str, answer: str, by_layer: list, dialogue: bool) -> str:
    """Say in two sentences what the model does.

    ``text`` is what it was given, ``answer`` what it wrote; ``by_layer`` has for each layer
    the likeliest first tokens, dicts with ``piece`` and ``share``, 0 to 1; ``dialogue``
    says whether the text is a question to it.
    """
    likeliest = ", ".join(
        f"{each['piece']} {percent(each['share'])}" for each in by_layer[-1][:3]
    )
    does = "answers" if dialogue else "goes on"
    first = f"Its likeliest first tokens: {likeliest}."
    return f"To “{text}” the model {does}: “{answer}”. {first}"


def _stored(text: str, answer: str, by_layer: list, dialogue: bool) -> str:
    """Return what stands there without scripts, as HTML.

    ``text`` is what the model was given, ``answer`` what it wrote; ``by_layer`` has for
    each layer the likeliest tokens, a list of dict with ``id``, ``piece`` and ``share``, 0
    to 1; ``dialogue`` says whether the text is a question to it.
    """
    bars = [(each["piece"], percent(each["share"], 1)) for each in by_layer[-1]]
    layers = [
        [f"layer {i}", *(f"{x['piece']} {percent(x['share'])}" for x in row[:FIRST])]
        for i, row in enumerate(by_layer)
    ]
    reply = f"<b>{html.escape(answer)}</b>"
    if dialogue:
        line = f"<p>You: {html.escape(text)}</p><p>The model: {reply}</p>"
    else:
        line = f'<p style="white-space: pre-wrap">{html.escape(text)}{reply}</p>'
    return (
        f"{line}\n<p>The likeliest first tokens:</p>{table([], bars)}\n"
        "<details><summary>If the model ended after a layer</summary>"
        f"{table([], layers)}</details>"
    )
