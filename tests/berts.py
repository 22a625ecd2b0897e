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
