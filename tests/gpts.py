"""GPTs with random weights and small vocabularies, made on the spot."""

import torch
from tokenizers import ByteLevelBPETokenizer
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from lmcourse.gpt.model import GPT, GPTConfig

TEXT = "Shall I compare thee to a summer's day? Thou art more lovely and more temperate."
SMALL = {"n_layer": 3, "n_head": 2, "n_embd": 24, "n_positions": 80}


def byte_level_tokenizer(vocab_size=300):
    """Return a byte-level BPE tokenizer, as GPT-2's is made, of a line of text."""
    trained = ByteLevelBPETokenizer()
    trained.train_from_iterator(
        [TEXT], vocab_size, 1, show_progress=False, special_tokens=["<|endoftext|>"]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=trained._tokenizer,
        clean_up_tokenization_spaces=False,
        bos_token="<|endoftext|>",
        eos_token="<|endoftext|>",
    )


def random_gpt2(seed=0, std=0.3, **sizes):
    """Return a GPT-2 of ``transformers`` whose every weight is a random number."""
    torch.manual_seed(seed)
    config = GPT2Config(**SMALL | sizes, bos_token_id=0, eos_token_id=0)
    model = GPT2LMHeadModel(config)
    with torch.no_grad():
        for weight in model.parameters():
            torch.nn.init.normal_(weight, std=std)
    return model.eval()


def write_gpt2(folder, seed=0, std=0.3, **sizes):
    """Write a GPT-2 and its tokenizer to a folder; return the model."""
    tokenizer = byte_level_tokenizer()
    model = random_gpt2(seed, std, vocab_size=len(tokenizer), **sizes)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model


def small_gpt():
    """Return a GPT of ours, two layers of three heads, whose weights float16 can hold."""
    torch.manual_seed(0)
    model = GPT(GPTConfig(vocab_size=6, context=8, layers=2, heads=3, d_model=12))
    with torch.no_grad():
        for weight in model.parameters():
            weight += 0.5 * torch.randn(weight.shape)
    return model.half().float().eval()
