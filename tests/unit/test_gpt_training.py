"""The training loop against plain loops, tables written out, and its own promises."""

import math
from types import SimpleNamespace

import pytest
import torch

from lmcourse.gpt import training
from lmcourse.gpt.model import GPT, GPTConfig
from lmcourse.gpt.training import Diverged, Trainer, TrainingConfig, schedule, split
from lmcourse.optimizers import Muon
from near import near

VOCAB, CONTEXT, BATCH = 11, 5, 6
TINY = {"vocab_size": VOCAB, "context": CONTEXT, "layers": 2, "heads": 2, "d_model": 8}
SHORT = {"steps": 6, "batch": BATCH, "warmup": 3}
SHORT |= {"evaluate_every": 2, "validation_windows": 7}
OPTIMIZERS = pytest.mark.parametrize("optimizer", ["adamw", "muon"])


def gpt(**options):
    torch.manual_seed(0)
    return GPT(GPTConfig(**TINY | options))


def corpus(tokens=300):
    """Each token is the one before and 3 or 4: two of eleven may follow."""
    generator = torch.Generator().manual_seed(0)
    return torch.randint(3, 5, (tokens,), generator=generator).cumsum(0) % VOCAB


def trainer(model=None, **options):
    parts = split(corpus())
    return Trainer(model or gpt(), *parts, TrainingConfig(**SHORT | options), "cpu")


def snapshot(model):
    return {name: weight.clone() for name, weight in model.state_dict().items()}


# --- batches --------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [(54, 5), (5, 54), (0, 0)])
def test_a_part_too_short_for_a_window(sizes):
    parts = [torch.arange(size) for size in sizes]
    with pytest.raises(ValueError, match=f"{sizes[1]} to validate on: .* context of 5"):
        Trainer(gpt(), *parts, TrainingConfig(**SHORT), "cpu")
    Trainer(gpt(), torch.arange(6), torch.arange(6), TrainingConfig(**SHORT), "cpu")


def test_draws_reach_every_window_and_differ_by_step_and_seed():
    one, other = trainer(batch=500), trainer(batch=500, seed=1)
    last = len(one.training) - CONTEXT
    one.training = torch.arange(len(one.training))  # a token is its place
    other.training = one.training
    inputs, targets = one.sample_batch(3)
    starts = torch.cat([one.sample_batch(step)[0][:, 0] for step in range(8)])
    assert set(starts.tolist()) == set(range(last))
    assert torch.equal(targets, inputs + 1)
    assert torch.equal(one.sample_batch(3)[0], inputs)
    assert not torch.equal(one.sample_batch(4)[0], inputs)
    assert not torch.equal(other.sample_batch(3)[0], inputs)


def draw_as(index, processes, step, **options):
    """Return what one of several processes draws: windows, then numbers for dropout."""
    one, cpu = trainer(**options), torch.device("cpu")
    numbers = {"num_processes": processes, "process_index": index}
    one.accelerator = SimpleNamespace(**numbers, device=cpu)
    return *one.sample_batch(step), torch.rand(4)


def test_processes_share_what_one_would_draw():
    whole, shares = (
        trainer().sample_batch(4),
        [draw_as(index, 3, 4)[:2] for index in range(3)],
    )
    for one, *parts in zip(whole, *shares, strict=True):
        assert torch.equal(torch.cat(parts), one)
        assert {len(part) for part in parts} == {BATCH // 3}


def test_every_step_of_every_process_has_masks_of_its_own():
    """And those of the first are what a single process draws."""
    pairs = [(index, step) for index in range(3) for step in range(6)]
    seen = {tuple(draw_as(i, 3, step, seed=2)[2].tolist()) for i, step in pairs}
    assert len(seen) == len(pairs)
    for step in range(6):
        alone, first_of_three = (draw_as(0, n, step, seed=2)[2] for n in (1, 3))
        assert torch.equal(alone, first_of_three)


def test_a_batch_that_cannot_be_shared(monkeypatch):
    five = SimpleNamespace(num_processes=5)
    monkeypatch.setattr(training, "make_accelerator", lambda device: five)
    with pytest.raises(ValueError, match=r"6 windows cannot be .* evenly by 5 processes"):
        trainer()


# --- steps ----------------------------------------------------------------------------


def plain_steps(model, config, batches):
    """Train without the package's loop, its rates and its choice of what decays."""
    matrices = {n: w for n, w in model.named_parameters() if w.ndim == 2}
    hidden = [w for n, w in matrices.items() if "blocks" in n]
    tables = [w for n, w in matrices.items() if "blocks" not in n]
    optimizers = []
    if config.optimizer == "muon":
        optimizers.append((Muon(hidden), config.muon_learning_rate))
    else:
        tables += hidden
    decayed = {"params": tables, "weight_decay": config.weight_decay}
    others = [w for w in model.parameters() if w.ndim == 1]
    groups = [decayed, {"params": others, "weight_decay": 0.0}]
    adamw = torch.optim.AdamW(groups, betas=(0.9, 0.99), foreach=False)
    optimizers.append((adamw, config.learning_rate))
    share = [1 / 3, 2 / 3, 1, 1, 0.775, 0.325]  # three steps up, three down
    losses, norms = [], []
    for step, (inputs, targets) in enumerate(batches):
        log_probs = model(inputs).log_softmax(-1)
        loss = -log_probs.gather(-1, targets[..., None]).mean()
        model.zero_grad()
        loss.backward()
        norm = sum((w.grad**2).sum() for w in model.parameters()).sqrt()
        for weight in model.parameters():
            weight.grad *= min(1, config.clip / (norm + 1e-6))
        for optimizer, peak in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = peak * share[step]
            optimizer.step()
        losses.append(loss.item())
        norms.append(norm.item())
    return losses, norms


@OPTIMIZERS
@pytest.mark.parametrize("clip", [0.2, 100.0])
def test_steps_equal_a_plain_loop(optimizer, clip):
    config = {"optimizer": optimizer, "clip": clip, "learning_rate": 0.01, "seed": 3}
    ours, model = trainer(gpt().double(), **config), gpt().double()
    got = [ours.step() for _ in range(6)]
    batches = [ours.sample_batch(step) for step in range(6)]
    want, norms = plain_steps(model, ours.config, batches)
    assert got == pytest.approx(want, abs=1e-9)
    for name, weight in ours.gpt.state_dict().items():
        near(weight, model.state_dict()[name], slack=10)
    assert ours.progress.step == 6
    assert all(norm > clip for norm in norms) is (clip == 0.2)  # and so it was clipped


def test_dropout_repeats_with_the_step_and_acts():
    """A step's masks come from its number, not from what was drawn before."""
    losses = []
    for disturbance in (1, 2):
        one = trainer(gpt(dropout=0.5))
        torch.manual_seed(disturbance)
        losses.append([one.step() for _ in range(2)])
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    without_dropout = trainer()
    still = [without_dropout.step() for _ in range(2)]
    assert losses[0] != pytest.approx(still, rel=1e-3)


@pytest.fixture(params=[math.nan, math.inf])
def diverged(request, monkeypatch):
    """A trainer after one step, whose loss is no number from then on; and that loss."""
    one = trainer()
    one.run(quiet=True, target=math.inf)  # an estimate, no step
    one.step()
    value = request.param
    monkeypatch.setattr(
        training, "cross_entropy", lambda logits, targets: logits.sum() * 0 + value
    )
    return one, value


def test_a_training_loss_that_is_no_number_stops_before_the_weights_change(diverged):
    one, value = diverged
    before = snapshot(one.gpt)
    with pytest.raises(Diverged, match=rf"the loss is {value} at step 1$"):
        one.run(quiet=True)
    for name, weight in one.gpt.state_dict().items():
        assert torch.equal(weight, before[name]), name
    assert one.progress.step == len(one.losses) == 1


def test_a_validation_loss_that_is_no_number_is_not_kept_as_an_estimate(diverged):
    one, value = diverged
    with pytest.raises(Diverged, match=rf"validation loss is {value} at step 1$"):
        one.evaluate()
    assert [entry["step"] for entry in one.history] == [0]


# --- optimizers ------------------------------------------------------------------------


def test_the_schedule_written_out():
    config = TrainingConfig(steps=10, warmup=4, min_learning_rate=0.1)
    want = {0: 0.25, 1: 0.5, 2: 0.75, 3: 1.0, 4: 1.0}  # warm-up, then the peak
    want |= {6: 0.775, 7: 0.55, 8: 0.325, 10: 0.1, 99: 0.1}  # cos 60° = 1/2; the end
    assert {step: schedule(step, config) for step in want} == pytest.approx(want)
    assert schedule(5, config) == pytest.approx(0.1 + 0.45 * (1 + math.sqrt(3) / 2))


# --- estimates ------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 4, 7, 24, 250, 400])
def test_estimate_equals_a_slow_loop_however_many_windows(count):
    one = trainer(gpt(dropout=0.5), validation_windows=count)
    one.validation = corpus(270).flip(0)  # another text than that of training
    windows = 270 - CONTEXT
    count = min(count, windows)
    starts = [i * (windows - 1) // max(1, count - 1) for i in range(count)]
    assert len(set(starts)) == count
    total = 0.0
    for start in starts:
        cut = one.validation[start : start + CONTEXT + 1]
        with torch.no_grad():
            logs = one.gpt.eval()(cut[None, :-1])[0].log_softmax(-1)
        total -= sum(logs[j, cut[j + 1]].item() for j in range(CONTEXT)) / CONTEXT
    one.model.train()
    assert one.estimate() == pytest.approx(total / count, rel=1e-5)


def test_history_of_a_run():
    seen = []
    one = trainer(steps=5)
    history = one.run(quiet=True, on_estimate=lambda it: seen.append(it.progress.step))
    assert history is one.history
    assert [entry["step"] for entry in history] == seen == [0, 2, 4, 5]
    other = trainer(steps=5)
    losses = [other.step() for _ in range(5)]
    means = [None, sum(losses[:2]) / 2, sum(losses[2:4]) / 2, losses[4]]
    assert [entry["train_loss"] for entry in history] == pytest.approx(means)
    assert history[-1]["val_loss"] == pytest.approx(other.estimate())
    seconds = [entry["seconds"] for entry in history]
    assert seconds[0] == 0.0
    assert seconds == sorted(seconds)
    assert one.tokens_per_second == pytest.approx(5 * BATCH * CONTEXT / seconds[-1])
    assert one.run(quiet=True) == history  # nothing left to do
    assert len(history) == 4


# --- settings -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *(
            ({name: 0}, f"{name} must be greater than or equal to 1, not 0")
            for name in ("steps", "batch", "evaluate_every", "validation_windows")
        ),
        *(
            ({name: 0}, f"{name} must be greater than or equal to 1e-12, not 0")
            for name in ("learning_rate", "muon_learning_rate", "clip")
        ),
        ({"clip": 10**400}, "clip must be a number"),
        ({"learning_rate": True}, "learning_rate must be a number, not True"),
        ({"warmup": -1}, "warmup must be greater than or equal to 0, not -1"),
        ({"steps": 4, "warmup": 4}, "a warmup of 4 steps must be shorter"),
        (
            {"weight_decay": -0.5},
            "weight_decay must be greater than or equal to 0, not -0.5",
        ),
        (
            {"min_learning_rate": 1.5},
            "min_learning_rate must be less than or equal to 1, not 1.5",
        ),
        ({"seed": 10**12 + 1}, "seed must be less than or equal to 1000000000000, not"),
        ({"optimizer": "sgd"}, "optimizer must be 'adamw' or 'muon', not 'sgd'"),
    ],
    ids=str,
)
def test_settings_that_mean_nothing(options, message):
    with pytest.raises(ValueError, match=message):
        TrainingConfig(**options)
