"""Training in the page: gradients and steps are PyTorch's."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from lmbook.play import stores
from lmcourse.gpt.model import GPT, GPTConfig
from test_engine import near, small_gpt

pytestmark = pytest.mark.browser

BATCH, TOKENS = 3, 9
TRAINER = """const { Trainer } = await import("/play/train.js");
  const trainer = new Trainer(await open(), settings);
  const give = of => Object.fromEntries(
    Object.entries(trainer.named()).map(([name, w]) => [name, Array.from(of(w))]));
"""


def batch(seed):
    ids = torch.randint(
        11, (BATCH, TOKENS + 1), generator=torch.Generator().manual_seed(seed)
    )
    return ids[:, :-1], ids[:, 1:]


def given(lab, model, settings, body, *batches):
    """Run a body of JavaScript with `trainer`, on batches as flat lists."""
    (lab.folder / "model.safetensors").write_bytes(
        stores.gpt_file(model, "", torch.float32)
    )
    flat = [[part.flatten().tolist() for part in pair] for pair in batches]
    body = f"async ([settings, batches, tokens]) => {{ {TRAINER} {body} }}"
    return lab.evaluate(body, [settings, flat, TOKENS])


def compare(weights, model, of, limit):
    """Compare what PyTorch has of each weight, by the names of the page."""
    state = {name: of(weight) for name, weight in model.named_parameters()}
    model.state_dict = lambda: state
    wanted = stores.gpt_tensors(model)
    assert weights.keys() == wanted.keys()
    for name, values in weights.items():
        if name.endswith("key.bias"):  # a softmax ignores it: its gradient is rounding
            continue
        near(torch.tensor(values), wanted[name], limit)


def test_gradients_are_those_of_pytorch(lab):
    model, (inputs, targets) = small_gpt("learned"), batch(0)
    loss, gradients = given(
        lab,
        model,
        {"steps": 1},
        """const [loss, back] = trainer.loss(...batches[0], tokens);
        back();
        return [loss, give(weight => trainer.gradients.get(weight))];""",
        (inputs, targets),
    )
    wanted = cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
    wanted.backward()
    near(torch.tensor(loss), wanted)
    compare(gradients, model, lambda weight: weight.grad, 1e-3)


def test_no_model_is_trained_of_which_a_step_has_no_way_back(lab):
    with pytest.raises(Exception, match="only a GPT with learned positions"):
        given(lab, small_gpt("rotary"), {"steps": 1}, "return 0;")


def test_the_way_back_leads_back_once(lab):
    body = """const [, back] = trainer.loss(...batches[0], tokens);
        back();
        back();"""
    with pytest.raises(Exception, match="a recording leads back once"):
        given(lab, small_gpt("learned"), {"steps": 1}, body, batch(0))


def test_steps_are_those_of_adamw(lab):
    model, steps = GPT(GPTConfig(11, 13, 2, heads=3, d_model=12)), 4
    batches = [batch(seed) for seed in range(steps)]
    losses, weights = given(
        lab,
        model,
        {"learning_rate": 0.01, "steps": 40},
        """const losses = batches.map(pair => trainer.learn(...pair, tokens));
        return [losses, give(weight => weight)];""",
        *batches,
    )
    groups = [
        {"params": [w for w in model.parameters() if w.ndim == 2], "weight_decay": 0.1},
        {"params": [w for w in model.parameters() if w.ndim < 2], "weight_decay": 0.0},
    ]
    adam, wanted = torch.optim.AdamW(groups, betas=(0.9, 0.99)), []
    for step, (inputs, targets) in enumerate(batches):
        loss = cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        cosine = torch.cos(torch.tensor(torch.pi * (step - 2) / 38))
        for group in adam.param_groups:
            group["lr"] = 0.01 * ((step + 1) / 2 if step < 2 else 0.1 + 0.45 * (1 + cosine))
        adam.step()
        wanted.append(loss.item())
    near(torch.tensor(losses), torch.tensor(wanted))
    compare(weights, model, torch.Tensor.detach, 1e-3)


@pytest.mark.parametrize("steps", [1, 2, 19, 20, 30, 110])
def test_the_rate_is_never_above_the_highest(lab, steps):
    """However few steps there are, and whether or not 20 divides them."""
    body = """const { steps } = trainer.settings;
        return Array.from({ length: steps }, (_, i) => {
          trainer.step = i;
          return trainer.schedule();
        });"""
    shares = given(lab, small_gpt("learned"), {"steps": steps}, body)
    assert max(shares) == pytest.approx(1)
    assert min(shares) > 0.1
    top = shares.index(max(shares))
    assert shares[: top + 1] == sorted(shares[: top + 1])
    assert shares[top:] == sorted(shares[top:], reverse=True)
