"""Our GPT as a GPT-2 of transformers: logits, weights, text."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import pipeline

from lmcourse.gpt.generation import generate
from lmcourse.gpt.gpt2 import to_tokenizer, to_transformers
from lmcourse.tokenization import CharTokenizer
from test_gpt_model import BATCH, TOKENS, close, gpt, some_ids


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


@pytest.mark.parametrize("sizes", [{}, {"layers": 1, "heads": 3, "d_model": 15}], ids=str)
def test_logits_and_weights_equal_gpt2(sizes):
    model, ids = gpt(**sizes), some_ids()
    exported = to_transformers(model, attn_implementation="eager")
    with torch.no_grad():
        theirs = exported(ids, output_attentions=True)
        close(model(ids), theirs.logits)
    seen = model.attentions(ids)
    assert len(seen) == len(theirs.attentions) == model.config.layers
    for got, want in zip(seen, theirs.attentions, strict=True):
        assert got.shape == (BATCH, model.config.heads, TOKENS, TOKENS)
        close(got, want)
    with torch.no_grad():
        close(to_transformers(model)(ids).logits, theirs.logits)


@pytest.mark.parametrize("options", [{"positions": "rotary"}, {"ngrams": (5,)}], ids=str)
def test_what_gpt2_has_not_is_not_exported(options):
    with pytest.raises(ValueError, match="GPT-2 has learned positions and no tables"):
        to_transformers(gpt(**options))


def test_generate_equals_transformers():
    model, ids = gpt(), some_ids(tokens=2)
    want = to_transformers(model).generate(
        ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=7
    )
    assert torch.equal(generate(model, ids, 7, temperature=0), want)


@pytest.mark.parametrize("temperature", [0, 1.0])
def test_pipeline_writes_what_we_write_character_by_character(temperature):
    text = "O, 'tis  thy\n\n spirit that thou send'st ; so far ,\nfrom home ! "
    characters = CharTokenizer(text)
    sizes = {"vocab_size": characters.vocab_size, "context": 99}
    model, prompt = gpt(**sizes), "' th\n\n so  far ,"
    tokenizer = to_tokenizer(characters)
    assert tokenizer(prompt).input_ids == characters.encode(prompt)
    ids = torch.tensor([characters.encode(prompt)])
    write = pipeline("text-generation", to_transformers(model), tokenizer=tokenizer)
    torch.manual_seed(1)
    sampling = {"do_sample": True, "temperature": 1.0, "top_k": 0}
    how = sampling if temperature else {"do_sample": False}
    answer = write(prompt, max_new_tokens=40, **how)
    torch.manual_seed(1)
    ours = generate(model, ids, 40, temperature)[0]
    assert answer[0]["generated_text"] == characters.decode(ours.tolist())


def test_a_pipeline_without_options_fills_the_context_and_stops():
    text = "Shall I compare thee to a summer's day?"
    characters = CharTokenizer(text)
    model = to_transformers(gpt(vocab_size=characters.vocab_size, context=24))
    tokenizer = to_tokenizer(characters, 24)
    assert tokenizer.model_max_length == 24
    assert len(tokenizer) == characters.vocab_size
    assert tokenizer.all_special_tokens == []
    write = pipeline("text-generation", model=model, tokenizer=tokenizer)
    for prompt in ("Shall I ", text[:23]):
        (answer,) = write(prompt)
        assert answer["generated_text"].startswith(prompt)
        assert len(answer["generated_text"]) == 24
    (answer,) = write("Shall I ", max_new_tokens=3)  # who asks for fewer has fewer
    assert len(answer["generated_text"]) == 11


def test_a_tokenizer_without_a_context_knows_no_limit():
    assert to_tokenizer(CharTokenizer("ab")).model_max_length > 10**9


@settings(deadline=None, max_examples=50)
@given(st.text(st.sampled_from(" \n'.,!?-ab\t”’é"), max_size=12))
def test_exchanged_tokenizer_is_exact(text):
    characters = CharTokenizer(" \n'.,!?-ab\t”’é")
    tokenizer = to_tokenizer(characters)
    ids = characters.encode(text)
    assert tokenizer.encode(text) == ids
    assert tokenizer.decode(ids) == text


def test_exchanged_tokenizer_drops_nothing_silently():
    with pytest.raises(Exception, match="UNK"):
        to_tokenizer(CharTokenizer("ab"))("abc")
