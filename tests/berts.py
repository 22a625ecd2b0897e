"""BERTs with random weights, made on the spot."""

from pathlib import Path

import torch
from transformers import BertConfig, BertModel

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
    final = out.last_hidden_state[0]
    moved = (without - final).norm(dim=-1) / final.norm(dim=-1)
    states = torch.stack(out.hidden_states)[:, 0]
    return out.attentions[layer][0, head], lengths, moved, states
