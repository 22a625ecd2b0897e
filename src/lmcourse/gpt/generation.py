"""Writing with a GPT: draw the next token, append it, ask again."""

import torch

from lmcourse.gpt.model import evaluating


@torch.no_grad()
def generate(model, ids, tokens, temperature=1.0, generator=None):
    """Write on.

    Parameters
    ----------
    model : GPT
        It evaluates while it writes, in whatever mode it is.
    ids : int64 Tensor of shape (batch, prompt)
        The model sees its last ``context`` tokens.
    tokens : int
        How many to write.
    temperature : float
        Divides the logits; 0 always takes the likeliest token.
    generator : torch.Generator, optional
        For the same text every time. On the CPU.

    Returns
    -------
    int64 Tensor of shape (batch, prompt + tokens)

    Raises
    ------
    ValueError
        If the prompt is empty or the temperature negative.
    """
    if temperature < 0:
        raise ValueError(f"temperature {temperature} is negative")
    with evaluating(model):
        for _ in range(tokens):
            logits = model(ids[:, -model.config.context :])[:, -1].float().cpu()
            if temperature == 0:
                drawn = logits.argmax(-1, keepdim=True)  # (batch, 1)
            else:
                chances = (logits / temperature).softmax(-1)  # (batch, vocab_size)
                drawn = torch.multinomial(chances, 1, generator=generator)
            ids = torch.cat([ids, drawn.to(ids.device)], dim=1)
    return ids
