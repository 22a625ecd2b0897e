"""BERTs with random weights, made on the spot."""

import copy
import json
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load
from transformers import BertConfig, BertModel

from lmbook.play import stores
from lmcourse import bert

# As a reader's model may be: fewer layers than the default one has, and another width.
SMALL = {"num_hidden_layers": 3, "hidden_size": 128, "num_attention_heads": 4}
SMALL |= {"intermediate_size": 512}


def write_bert(folder: Path, tokenizer, **sizes) -> None:
    """Write a BERT, always the same one, and its tokenizer to a folder."""
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(vocab_size=len(tokenizer), **sizes)
    BertModel(config).save_pretrained(folder)


def loud_bert(seed: int, times: float, **sizes) -> BertModel:
    """Return a BERT of odd sizes, in evaluation mode, whose heads do something.

    Random weights as they are drawn make every head's weights even; ``times`` as large
    they do not. Other keywords are fields of `BertConfig`.
    """
    odd = {"vocab_size": 30522, "num_hidden_layers": 3}
    torch.manual_seed(seed)
    model = BertModel(BertConfig(**odd | sizes, attn_implementation="eager"))
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.ndim == 2 and "embeddings" not in name:
                weight.mul_(times)
    return model.eval()


@torch.no_grad()
def of_a_head(model, batch, layer, head):
    """Return what transformers tells of one of its attention heads.

    Returns
    -------
    weights : Tensor of shape (tokens, tokens)
    lengths, moved : Tensor of shape (tokens,)
        Of the value that the head adds; of how far the final vectors are from those
        without the head, as a share of theirs.
    states : Tensor of shape (layers + 1, tokens, d_model)
    """
    part = model.encoder.layer[layer].attention
    size = part.self.attention_head_size
    here = slice(head * size, (head + 1) * size)

    def zeroed(module, inputs):
        heads = inputs[0].clone()
        heads[..., here] = 0
        return (heads, *inputs[1:])

    out = model(**batch, output_attentions=True, output_hidden_states=True)
    hook = part.output.register_forward_pre_hook(zeroed)
    without = model(**batch).last_hidden_state[0]
    hook.remove()
    value = part.self.value(out.hidden_states[layer][0])[:, here]
    lengths = (value @ part.output.dense.weight[:, here].T).norm(dim=-1)
    last_states = out.last_hidden_state[0]
    moved = (without - last_states).norm(dim=-1) / last_states.norm(dim=-1)
    states = torch.stack(out.hidden_states)[:, 0]
    return out.attentions[layer][0, head], lengths, moved, states


def bits_at(seed: int, positions: np.ndarray) -> np.ndarray:
    """Return the random numbers of 32 bits that ``random.js`` has at these positions."""
    positions = (positions + 1).astype(np.uint32)
    state = np.uint32(seed) + positions * np.uint32(0x6D2B79F5)
    mixed = (state ^ (state >> 15)) * (state | 1)
    mixed ^= mixed + (mixed ^ (mixed >> 7)) * (mixed | 61)
    return mixed ^ (mixed >> 14)


def shuffled_numbers(numbers: list, seed: int) -> list:
    """Return a list as ``shuffled`` in ``random.js`` puts it in another order."""
    mixed = [*numbers]
    bits = bits_at(seed, np.arange(len(mixed))).tolist()
    for last in range(len(mixed) - 1, 0, -1):
        other = bits[last] % (last + 1)
        mixed[last], mixed[other] = mixed[other], mixed[last]
    return mixed


@torch.no_grad()
def shuffled_in_the_page(model: BertModel, seed: int, as_int8: bool = True) -> BertModel:
    """Return a BERT as a worker reads it from its store with random weights."""
    file = stores.bert_file(model, as_int8)
    header = json.loads(file[8 : 8 + int.from_bytes(file[:8], "little")])
    names = [name for name in header if name != "__metadata__"]  # in the file's order
    tensors = load(file)
    for place, name in enumerate(names):
        numbers = shuffled_numbers(tensors[name].flatten().tolist(), seed + place)
        tensors[name] = torch.tensor(numbers, dtype=tensors[name].dtype).view(
            tensors[name].shape
        )
    other = copy.deepcopy(model)
    for name, weight in other.named_parameters():
        for old, new in stores.RENAMES.items():
            if bert.rename(name).startswith(old):
                stored = new + bert.rename(name).removeprefix(old)
                scale = tensors.get(f"{stored}.scale", torch.ones(len(weight)))
                whole = tensors[stored].float()
                weight.copy_(whole * scale[:, None] if weight.ndim == 2 else whole)
    return other


def another_order(tokens: list[str]) -> torch.Tensor:
    """Return the order in which the page reads a line whose words change places."""
    words = []
    for place, token in enumerate(tokens[1:-1], start=1):
        words = (
            [*words[:-1], [*words[-1], place]] if token[:2] == "##" else [*words, [place]]
        )
    mixed = [words[i] for i in shuffled_numbers([*range(len(words))], 1)]
    return torch.tensor([0, *(place for word in mixed for place in word), len(tokens) - 1])
