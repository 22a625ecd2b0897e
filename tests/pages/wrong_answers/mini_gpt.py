"""What goes wrong in the exercises of *mini-gpt*, diagnosis → answer."""

import math

import torch
import torch.nn.functional as F

from lmcourse.positions import rotate


def cut(ids, starts, context):
    rows = [(ids[s : s + context], ids[s + 1 : s + context + 1]) for s in starts]
    return tuple(map(torch.stack, zip(*rows, strict=True)))


def chances(logits, temperature, k):
    kept = torch.zeros_like(logits, dtype=torch.bool)
    kept.scatter_(-1, logits.topk(k).indices, True)
    return (logits / temperature).masked_fill(~kept, -math.inf).softmax(-1)


@torch.no_grad()
def loss_of(model, inputs, targets):
    return F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten()).item()


def kept(model, inputs, targets):
    was_training = model.training
    loss = loss_of(model.eval(), inputs, targets)
    model.train(was_training)
    return loss


def left_training(model, inputs, targets):
    loss = loss_of(model.eval(), inputs, targets)
    model.train()
    return loss


def rms(x, weight):
    return weight * x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt()


def gated(h, weights, first="gate", second="up"):
    return F.silu(F.linear(h, weights[first])) * F.linear(h, weights[second])


def llama(causal=True, path=1, second=1, **other):
    """A Llama block, or one with something else in a step."""
    norm, turn = other.get("norm", rms), other.get("turn", half)
    share = other.get("share", lambda x, times: x.repeat_interleave(times, 1))

    def split(x, heads):
        return x.unflatten(-1, (heads, -1)).transpose(1, 2)

    def block(x, weights, heads, key_heads):
        h = norm(x, weights["norm_1"])
        query = turn(split(F.linear(h, weights["query"]), heads))
        key = turn(split(F.linear(h, weights["key"]), key_heads))
        value = split(F.linear(h, weights["value"]), key_heads)
        key, value = (share(y, heads // key_heads) for y in (key, value))
        seen = F.scaled_dot_product_attention(query, key, value, is_causal=causal)
        x = path * x + F.linear(seen.transpose(1, 2).flatten(-2), weights["output"])
        h = norm(x, weights["norm_2"])
        return second * x + F.linear(other.get("gate", gated)(h, weights), weights["down"])

    return block


def half(x):
    return rotate(x, layout="half")


def unfolded(ids, starts, context):
    rows = ids.unfold(0, context + 1, 1)[starts]  # (batch, context + 1)
    return rows[:, :-1], rows[:, 1:]


WRONG = {
    "windows": {"two tensors": lambda ids, starts, context: ids},
    "estimate": {
        "dropout is still on": lambda m, x, y: loss_of(m, x, y),
        "left in evaluation mode": lambda m, x, y: loss_of(m.eval(), x, y),
        "left in training mode": [left_training],
    },
    "sweep": {
        "a list of pairs": [[1.0, 2.0], [[1000, 2, 3]] * 4],
        "no sweep": [[(20_000, 2.4), (20_500, 2.5)]],
        "a number of parameters": [
            [(2.4, 20_000), (2.5, 20_001), (2.3, 20_002), (2, 20_003)]
        ],
        "times as many": [[(20_000, 2.4), (40_000, 2.3), (80_000, 2.2), (90_000, 2.1)]],
        "out of range": [[(20_000 + i, 0.5 + i) for i in range(4)]],
        "none has learned": [[(20_000 + i, 3.2 + i / 10) for i in range(4)]],
        "equal to the last digit": [[(20_000, 2.5)] * 4],
    },
    "llama": {
        "must be causal": llama(causal=False),
        "wrong key head": llama(share=lambda x, n: x.repeat(1, n, 1, 1)),
        "gate and up are swapped": llama(gate=lambda h, w: gated(h, w, "up", "gate")),
        "positions are missing": llama(turn=lambda x: x),
        "subtract the mean": llama(norm=lambda x, w: F.layer_norm(x, w.shape, w, eps=1e-6)),
        "half a head apart": llama(turn=lambda x: rotate(x, layout="interleaved")),
        "what attention found": llama(path=0),
        "what the feed-forward": llama(second=0),
        "residual path": llama(path=0, second=0),
    },
}

RIGHT = {
    "windows": [unfolded],
    "estimate": [kept],
    "chances": [chances],
    "sweep": [[(20_000, 2.41), (20_100, 2.4), (21_000, 2.45), (22_000, 2.39)]],
    "llama": [llama()],
}

FORBIDDEN = {"windows": {"loop": cut}}
TYPED = {"sweep": [[(20_000, 2.41), (20_100, 2.4), (21_000, 2.45), (22_000, 2.39)]]}
