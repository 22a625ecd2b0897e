"""The model that talks, in a worker of a page, against PyTorch on the same weights.

What each layer computes is asked twice: of WebAssembly and of plain JavaScript. Lines are
drawn by a seed.
"""

import json
import random
from contextlib import ExitStack

import numpy as np
import pytest
import torch

import visits
from bare import make_page
from lmbook.play import stores
from lmcourse import llama
from lmcourse.ablation import hooked_heads
from lmcourse.data import load_corpus
from lmcourse.gguf import GgufFile
from lmcourse.gpt.inside import lens, outputs, states
from lmcourse.patching import copied_heads
from serving import serve
from test_tokenizers import BY_HAND, hostile

pytestmark = [pytest.mark.browser, pytest.mark.slow]

CLOSE = 2e-3  # of the largest number of a row: whole numbers of 16 bits stand for floats
ASK = """async ([simd, body, given]) => {
  const { openTalker } = lmcourse.play["talker-client"];
  const talker = openTalker("talker", lmcourse);
  if (talker.simd !== simd && talker.worker) talker.end();
  talker.simd = simd;
  await talker.load();
  const run = new Function("talker", "given", `return (async () => { ${body} })()`);
  return run(talker, given);
}"""


@pytest.fixture(scope="module")
def talker():
    """The model as the page has it, and its tokenizer."""
    return llama.load_talker(device="cpu")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A page with the model's file, staged as a build does."""
    place = tmp_path_factory.mktemp("talker")
    make_page(place, [], {"talker": stores.STORES["talker"]}, views_at_once=True)
    return place


@pytest.fixture(scope="module")
def served(browser, folder):
    """The page, served; tests share it."""
    with serve(folder) as origin, visits.visit(browser, f"{origin}/index.html") as visit:
        yield visit
        visit.clean()


@pytest.fixture
def ask(request, served):
    """Run a body of JavaScript with `talker`, a client, and what it is `given`."""
    simd = getattr(request, "param", True)
    return lambda body, *given: served.page.evaluate(ASK, [simd, body, list(given)])


both = pytest.mark.parametrize("ask", [True, False], ids=["simd", "plain"], indirect=True)


def drawn_lines(count, seed):
    """Return lines of both poets that nobody chose."""
    lines = (load_corpus("poems") + load_corpus("sonnets")).splitlines()
    return random.Random(seed).sample([line for line in lines if line.strip()], count)


def drawn_ids(tokenizer, seed, count=24):
    """Return tokens of two lines, and as many of no text at all."""
    ids = tokenizer(" ".join(drawn_lines(2, seed))).input_ids[: count // 2]
    rng = random.Random(seed)
    return ids + [rng.randrange(tokenizer.vocab_size) for _ in range(count - len(ids))]


def near(values, wanted, limit=CLOSE):
    """Compare each row with its largest magnitude."""
    values = torch.tensor(values).view(wanted.shape)
    wanted = wanted.detach()
    off = (values - wanted).abs().amax(-1) / wanted.abs().amax(-1)
    assert off.max() <= limit, f"off by {off.max():.1e} of the largest"


FORWARD = """const { kept, logits } = await talker.when("forward", {
  ids: given[0], options: given[1] });
return [Object.values(kept).map(({ values }) => Array.from(values)), Array.from(logits)];"""


@both
@pytest.mark.parametrize("seed", [1, 2])
def test_every_layer_computes_what_pytorch_does(ask, talker, seed):
    tokenizer, model = talker
    ids = drawn_ids(tokenizer, seed)
    options = {"keep": ["embeddings", "blocks.*"], "logits_of": [len(ids) - 1]}
    layers, logits = ask(FORWARD, ids, options)
    streams = states(model, torch.tensor([ids]))[:, 0]
    for here, wanted in zip(layers, streams, strict=True):
        near(here, wanted)
    with torch.no_grad():
        near(logits, model(torch.tensor([ids]))[0, -1])


def test_attention_and_lens_are_those_of_pytorch(ask, talker):
    tokenizer, model = talker
    ids = drawn_ids(tokenizer, 3)
    place, layer = 17, 12
    answer = ask(
        """const [ids, place, layer] = given;
        const heads = await talker.when("attention", { ids, place, layer });
        return [heads.map((head) => Array.from(head)),
                await talker.when("lens", { ids, place })];""",
        ids,
        place,
        layer,
    )
    weights = model.attentions(torch.tensor([ids]))[layer][0, :, place, : place + 1]
    near(answer[0], weights)
    shares = lens(model, torch.tensor([ids]))[1:, 0, place].softmax(-1)
    for tokens, wanted in zip(answer[1], shares, strict=True):
        best = {each["id"]: each["share"] for each in tokens}
        assert list(best.values()) == sorted(best.values(), reverse=True)
        assert list(best.values()) == pytest.approx(
            wanted.topk(3).values.tolist(), abs=0.01
        )
        assert [wanted[i].item() for i in best] == pytest.approx([*best.values()], abs=0.01)


NEXT = """const [ids, place, off, from] = given;
return talker.when("next", { ids, place, off, from });"""


def same_next(tokens, logits):
    """Compare the ten likeliest tokens, and their shares, with PyTorch's logits."""
    shares = logits.softmax(-1)
    assert [each["share"] for each in tokens] == pytest.approx(
        shares.topk(10).values.tolist(), abs=5e-3
    )
    for each in tokens:
        assert each["share"] == pytest.approx(shares[each["id"]].item(), abs=5e-3)


@torch.no_grad()
def changed_logits(model, ids, layers, change):
    """Return the last logits, what the heads of some layers return being changed."""
    with ExitStack() as hooks:
        for layer in layers:
            hooks.enter_context(hooked_heads(model.blocks[layer].attention, change(layer)))
        return model(torch.tensor([ids]), last=True)[0, -1]


def test_heads_switched_off_are_pytorch_s_with_zeros(ask, talker):
    tokenizer, model = talker
    ids = drawn_ids(tokenizer, 4)
    rng = random.Random(4)
    off = [[rng.randrange(30), rng.randrange(9)] for _ in range(40)]

    def change(layer):
        def silence(heads):
            heads = heads.clone()
            heads[..., [head for at, head in off if at == layer], :] = 0
            return heads

        return silence

    wanted = changed_logits(model, ids, {layer for layer, _ in off}, change)
    tokens = ask(NEXT, ids, len(ids) - 1, off)
    same_next(tokens, wanted)
    with pytest.raises(AssertionError):
        same_next(tokens, changed_logits(model, ids, (), None))


def test_heads_of_another_text_are_put_at_the_last_token(ask, talker):
    tokenizer, model = talker
    ids = tokenizer("When Mary and John went to the store, John gave a drink to").input_ids
    other = tokenizer("When Paul and Anne sat in the park, Paul gave an apple to").input_ids
    rng = random.Random(5)
    heads = [[rng.randrange(30), rng.randrange(9)] for _ in range(40)]
    theirs = outputs(model, torch.tensor([other]))  # (layer, head) → (1, tokens, d_head)
    source = {(layer, head): theirs[layer, head][0, -1] for layer, head in heads}
    with torch.no_grad(), copied_heads(model, [*source], source):
        wanted = model(torch.tensor([ids]), last=True)[0, -1]
    tokens = ask(NEXT, ids, len(ids) - 1, [], {"ids": other, "heads": heads})
    same_next(tokens, wanted)
    with pytest.raises(AssertionError):
        same_next(tokens, changed_logits(model, ids, (), None))


SPEAK = """const [turns, sampling] = given;
const { ids } = await talker.tokens({ turns });
const tokens = [];
const end = await talker.when("speak", { ids, ...sampling }, null,
  (batch) => tokens.push(...batch));
return { ids, end, written: tokens.map(({ id }) => id), text: tokens.at(-1)?.text };"""


@pytest.fixture(scope="module")
def turns(talker):
    """A dialogue whose second question follows the model's own answer."""
    question = f"Who wrote this? {drawn_lines(1, 6)[0]}"
    first = [{"role": "user", "content": question}]
    answer = {"role": "assistant", "content": llama.chat(*talker, first, tokens=12)}
    return [*first, answer, {"role": "user", "content": "How do you know?"}]


def test_a_dialogue_goes_on_as_in_python(ask, talker, turns):
    """Its second turn is read behind what the first left in the cache."""
    tokenizer, _ = talker
    for given in (turns[:1], turns):
        text = tokenizer.apply_chat_template(
            given, tokenize=False, add_generation_prompt=True
        )
        answer = ask(SPEAK, given, {"count": 12, "temperature": 0})
        assert answer["ids"] == tokenizer(text, add_special_tokens=False).input_ids
        wanted = llama.chat(*talker, given, tokens=12)
        assert answer["text"].strip() == wanted


def test_an_answer_ends_where_the_model_ends_it(ask, talker):
    given = [{"role": "user", "content": "What is the capital of France?"}]
    answer = ask(SPEAK, given, {"count": 60, "temperature": 0})
    assert answer["end"] == "end"
    assert answer["text"] == llama.chat(*talker, given, tokens=60)


def test_a_seed_repeats_an_answer_and_another_gives_another(ask):
    given = [{"role": "user", "content": "Tell me a story."}]
    settings = {"count": 8, "temperature": 1.5, "top_p": 0.95}
    one, two, other = (
        ask(SPEAK, given, settings | {"seed": seed})["written"] for seed in (1, 1, 2)
    )
    assert one == two != other


# --- random weights -------------------------------------------------------------------


def random_bits(seed, count):
    """Return numbers of 32 bits, those of mulberry32."""
    with np.errstate(over="ignore"):
        state = np.uint32(seed) + np.arange(1, count + 1, dtype=np.uint32) * np.uint32(
            0x6D2B79F5
        )
        mixed = (state ^ state >> np.uint32(15)) * (state | np.uint32(1))
        mixed ^= mixed + (mixed ^ mixed >> np.uint32(7)) * (mixed | np.uint32(61))
    return mixed ^ mixed >> np.uint32(14)


HEADS = {"attn_q": 9, "attn_k": 3}


def random_talker(seed):
    """Return the model whose integers are turned by random bits, its norms' gains 1."""
    file = GgufFile(llama.talker_file())
    heads = {"Q4_1": (20, 4), "Q8_0": (34, 2)}
    stored = {n: t for n, t in file.tensors.items() if t.kind in heads}
    counts = []  # of numbers of 32 bits
    for tensor in stored.values():
        size, head = heads[tensor.kind]
        counts.append(tensor.length // size * (size - head) // 4)
    bits = np.split(random_bits(seed, sum(counts)), np.cumsum(counts)[:-1])
    turned = {}
    for (name, tensor), own in zip(stored.items(), bits, strict=True):
        size, head = heads[tensor.kind]
        data, shared = torch.tensor(file.read_bytes(name)), HEADS.get(name.split(".")[-2])
        rows = data.view(tensor.shape[0], -1)  # the page turns them in its own order
        rows = llama.half_layout(rows, shared) if shared else rows
        blocks = rows.reshape(-1, size).numpy().copy()
        blocks[:, head:] ^= own.view(np.uint8).reshape(-1, size - head)
        rows = torch.tensor(blocks).view(rows.shape)
        if shared:
            rows = rows.unflatten(0, (shared, 2, -1)).transpose(1, 2).flatten(0, 2)
        turned[name] = rows.reshape(-1).numpy()
    read = file.read_bytes
    file.read_bytes = lambda name: turned[name] if name in turned else read(name)
    model = llama.read_gguf_model(file)
    with torch.no_grad():
        for norm in (m for m in model.modules() if isinstance(m, llama.RMSNorm)):
            norm.weight.fill_(1)
    return model


def test_random_weights_are_those_of_the_seed_and_the_trained_come_back(ask, talker):
    tokenizer, model = talker
    ids = drawn_ids(tokenizer, 7)
    options = {"logits_of": [len(ids) - 1]}
    body = """const answers = [];
    for (const random of [1, null]) {
      const details = { ids: given[0], options: given[1], random };
      const { logits } = await talker.when("forward", details);
      answers.push(Array.from(logits));
    }
    return answers;"""
    random_logits, trained_logits = ask(body, ids, options)
    with torch.no_grad():
        near(random_logits, random_talker(1)(torch.tensor([ids]))[0, -1], 1e-2)
        near(trained_logits, model(torch.tensor([ids]))[0, -1])


# --- the tokenizer --------------------------------------------------------------------


@pytest.fixture(scope="module")
def lines():
    """Both poets, other scripts, what breaks things, and what stands for no text."""
    known = [c for c in map(chr, range(0xD7FF)) if c.isprintable() or c.isspace()]
    special = ["<|im_start|>user\nHi<|im_end|>", "<|im_start", "a<file_sep><|endoftext|>1"]
    hostiles = hostile(600, known, 8)
    return drawn_lines(400, 8) + BY_HAND + special + hostiles


def test_the_tokenizer_is_the_library_s(served, talker, lines):
    tokenizer, _ = talker
    body = """const ids = [];
    for (const text of given) ids.push((await talker.tokens({ text })).ids);
    return JSON.stringify(ids);"""
    all_ids = json.loads(served.page.evaluate(ASK, [True, body, lines]))
    for line, ids in zip(lines, all_ids, strict=True):
        assert ids == tokenizer(line, add_special_tokens=False).input_ids, line


# --- another model --------------------------------------------------------------------


def test_dialogues_of_another_form_are_refused_and_texts_go_on(browser, tmp_path):
    """The same file, but for the mark with which its template lets an answer begin."""
    file = stores.STORES["talker"]()
    begin = b"add_generation_prompt %}{{ '<|im_start|>"
    assert file.count(begin) == 1
    other = file.replace(begin, begin.replace(b"start", b"begin"))
    make_page(tmp_path, [], {"talker": lambda: other}, views_at_once=True)
    body = """const turns = [{ role: "user", content: "Hi" }];
    const refused = await talker.tokens({ turns }).then(() => "", (error) => error.message);
    return [refused, (await talker.tokens({ text: "Hi" })).ids.length];"""
    with serve(tmp_path) as origin, visits.visit(browser, f"{origin}/index.html") as visit:
        refused, length = visit.page.evaluate(ASK, [True, body, []])
        visit.clean()
    assert "another chat template" in refused
    assert length > 0
