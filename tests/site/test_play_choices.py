"""Choices between two lines: the reward is Python's, the training PyTorch's."""

import copy
from functools import cache

import numpy as np
import pytest
import torch

import visits
from bare import both_ways
from lmbook.play import stores
from lmcourse import preferences, views
from lmcourse.gpt.checkpoints import load_gpt
from lmcourse.gpt.model import GPT, GPTConfig
from lmcourse.views.choices import correct_predictions

pytestmark = [pytest.mark.browser, pytest.mark.slow]

STORE = "gpt"


@cache
def view():
    return views.choices(*load_gpt(device="cpu")[:2])


def make():
    return view(), {}


def button(page, name):
    return page.get_by_role("button", name=name, exact=True)


def workers_end(page):
    """Wait until no worker is left; one that stays is a hang, which ends after `LOAD`."""
    waited = 0
    while page.workers:
        assert waited < visits.LOAD, "a worker is still there"
        page.wait_for_timeout(50)
        waited += 50


def use(page):
    for key in ("1", "2", "ArrowLeft", "1"):
        page.locator(".lmv-line").first.press(key)
    button(page, "shorter").click()


def shown(page):
    return page.locator(".lmv-line:visible").all_text_contents()


def taken(page):
    return int(page.get_by_label("pairs chosen").evaluate("bar => bar.value"))


def choices_by(property_, sign=1):
    """Return for each pair whether the first line has more of a property."""
    count = [[sign * preferences.properties(x)[property_] for x in p] for p in pairs()]
    return [a > b for a, b in count]


def pairs():
    return view().data["pairs"]


def rows_of(taken):
    apart = preferences.differences(*zip(*pairs(), strict=True))
    return np.where(np.array(taken)[:, None], apart, -apart)


def test_lines_come_one_pair_after_the_other_and_can_be_taken_back(opened):
    page = opened.page
    assert shown(page) == pairs()[0]
    button(page, pairs()[0][1]).click()
    assert shown(page) == pairs()[1]
    page.keyboard.press("2")  # the button that was pressed has the focus
    page.keyboard.press("ArrowRight")
    assert shown(page) == pairs()[3]
    assert page.get_by_text("4 of 20").is_visible()
    button(page, "Undo").click()
    assert shown(page) == pairs()[2]
    page.locator(".lmv-line").first.press("Backspace")
    assert shown(page) == pairs()[1]
    button(page, "Begin anew").click()
    assert shown(page) == pairs()[0]
    assert button(page, "Undo").is_disabled()
    button(page, pairs()[0][0]).dblclick()
    assert shown(page) == pairs()[1]  # nobody has read it yet


def test_the_reward_is_pythons_and_says_how_often_a_line_was_taken(opened):
    page = opened.page
    taken = choices_by("echoes")
    for i, first in enumerate(taken[:12]):
        if i < 8:
            assert page.locator("tbody tr").count() == 0
            assert button(page, "Let the model learn it").is_disabled()
        page.locator(".lmv-line").first.press("1" if first else "2")
    button(page, "more echoes").click()
    assert shown(page) == []
    apart = preferences.differences(*zip(*pairs(), strict=True))
    weights = preferences.fit_reward(apart, taken)
    cells = page.locator("tbody td:nth-child(2)").all_text_contents()
    got = [float(cell.replace("−", "-")) for cell in cells]
    assert got == pytest.approx(weights.tolist(), abs=0.006)
    summary = page.locator(".lmv-fitted").inner_text()
    assert "You took the line with more echoes in 20 of 20." in summary
    assert "You took the line with more punctuation as often as the other." in summary
    longer = (rows_of(taken)[:, 0] > 0).sum()
    unequal = (rows_of(taken)[:, 0] != 0).sum()
    assert 0 < unequal < 20
    often = max(longer, unequal - longer)
    assert f"line in {often} of {unequal} pairs that differ." in summary
    right = correct_predictions(apart, taken)
    assert page.get_by_text(
        f"predicts that one correctly {right:g} times in 20"
    ).is_visible()
    assert page.get_by_text("the choices follow something").is_visible()


@pytest.mark.parametrize("seed", range(4))
def test_rewards_of_other_choices_are_pythons(lab, seed):
    rng = np.random.default_rng(seed)
    apart = rng.integers(-4, 5, (11 + seed, 3)).astype(float)
    apart[0] = 0  # foretold by nothing: one half
    taken = rng.random(11 + seed) < 0.6
    turned = np.where(taken[:, None], apart, -apart).tolist()
    weights, right = lab.evaluate(
        """async (rows) => {
          const { fitReward, foretold } = await import("/play/preferences.js");
          return [fitReward(rows, 3, 0.7), foretold(rows, 3, 0.7)];
        }""",
        turned,
    )
    assert weights == pytest.approx(preferences.fit_reward(apart, taken, 0.7), abs=1e-8)
    assert right == correct_predictions(apart, taken, 0.7)


def test_properties_are_pythons(lab):
    lines = [line for pair in pairs() for line in pair]
    lines += ["", "O – it's Ünder—the “under”-tow; a-b A?", "X"]
    result = lab.evaluate(
        """async (lines) => {
          const { properties } = await import("/play/preferences.js");
          return lines.map(properties);
        }""",
        lines,
    )
    assert result == [preferences.properties(line) for line in lines]


def test_a_coin_tells_nothing(opened):
    page = opened.page
    button(page, "a coin").click()
    assert page.get_by_text("the choices tell nothing").is_visible()
    button(page, "Begin anew").click()
    button(page, "more echoes").click()
    assert not page.get_by_text("the choices tell nothing").is_visible()
    page.get_by_label("Had it learned nothing?").select_option("a coin’s choices")
    assert page.get_by_text("the choices tell nothing").is_visible()
    assert "predicted correctly instead of" in page.locator(".play-remains").text_content()
    assert "The coin took" in page.locator(".lmv-fitted").inner_text()


def test_the_chance_of_a_coin_is_counted(lab):
    probabilities = lab.evaluate(
        """async () => {
          const { chanceOf } = await import("/play/preferences.js");
          return [chanceOf(0, 20), chanceOf(15, 20), chanceOf(20, 20), chanceOf(3, 3)];
        }"""
    )
    assert probabilities == pytest.approx([1, 21700 / 2**20, 1 / 2**20, 1 / 8])


@torch.no_grad()
def small_gpt():
    torch.manual_seed(0)
    model = GPT(GPTConfig(11, 13, 2, heads=3, d_model=12)).eval()
    for weight in model.parameters():
        weight += 0.3 * torch.randn_like(weight)
    return model


CHOSEN = [[1, 2, 3, 4, 5], [6, 7], [8, 9, 10, 1]]
REJECTED = [[3, 3, 1], [2, 9, 4, 4, 7, 8, 1], [5]]


def test_steps_are_those_of_dpo_in_torch(lab):
    """New lines are 0; each line stands after one, and is ended by one."""
    model, beta, steps = small_gpt(), 0.4, 3
    (lab.folder / "model.safetensors").write_bytes(
        stores.gpt_file(model, "", torch.float32)
    )
    losses, weights = lab.evaluate(
        """async ([chosen, rejected, beta, steps]) => {
          const { Trainer } = await import("/play/train.js");
          const { lineLogProbs, preferenceStep } = await import("/play/preferences.js");
          const settings = { learning_rate: 0.01, steps: 40, weight_decay: 0 };
          const trainer = new Trainer(await open(), settings);
          const pairs = chosen.map((each, i) => {
            const [sums] = lineLogProbs(trainer, [each, rejected[i]], 0);
            return { chosen: each, rejected: rejected[i], reference: sums };
          });
          const losses = [];
          for (let i = 0; i < steps; i++)
            losses.push(preferenceStep(trainer, pairs, 0, beta));
          const weights = Object.entries(trainer.named());
          return [losses, Object.fromEntries(weights.map(([n, w]) => [n, Array.from(w)]))];
        }""",
        [CHOSEN, REJECTED, beta, steps],
    )

    def log_probs(model, lines):
        rows = [torch.tensor([0, *line, 0]) for line in lines]
        ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
        place = torch.arange(ids.shape[1])
        ends = torch.tensor([len(row) for row in rows])[:, None]
        is_answer = (place > 0) & (place < ends)
        return preferences.answer_log_probs(model, ids, is_answer)

    reference = copy.deepcopy(model)
    with torch.no_grad():
        old = [log_probs(reference, lines) for lines in (CHOSEN, REJECTED)]
    adam = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.99), weight_decay=0)
    wanted = []
    for step in range(steps):
        now = [log_probs(model, lines) for lines in (CHOSEN, REJECTED)]
        loss = preferences.dpo_loss(*now, *old, beta)
        adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        cosine = np.cos(np.pi * (step - 2) / 38)
        rate = 0.01 * ((step + 1) / 2 if step < 2 else 0.1 + 0.45 * (1 + cosine))
        adam.param_groups[0]["lr"] = rate
        adam.step()
        wanted.append(loss.item())
    assert losses == pytest.approx(wanted, abs=1e-4)
    assert losses[0] == pytest.approx(np.log(2), abs=1e-6)
    for name, weight in stores.gpt_tensors(model).items():
        if name.endswith("key.bias"):  # a softmax ignores it: its gradient is rounding
            continue
        torch.testing.assert_close(
            torch.tensor(weights[name]), weight.detach().flatten(), atol=1e-4, rtol=0
        )


def wait(page, text):
    page.get_by_text(text).first.wait_for(timeout=visits.LOAD * 4)


@both_ways
def test_the_model_learns_what_was_taken_and_the_worker_ends(opened):
    page = opened.page
    before = page.evaluate("JSON.stringify(localStorage)")
    button(page, "more echoes").click()
    button(page, "Let the model learn it").click()
    wait(page, "It learned for 40 steps.")
    result = page.locator(".lmv-result")
    rows = result.locator("tbody tr").all_inner_texts()
    assert [row.split()[0] for row in rows] == list(preferences.PROPERTIES)
    old, new = (float(x) for x in rows[2].split()[1:3])
    assert new > old + 0.3
    assert "The model moved: it writes" in result.inner_text()
    assert "more echoes" in result.inner_text()
    agreed = result.get_by_text("a higher probability than the other in").inner_text()
    assert int(agreed.split("than the other in ")[1].split(" of the 20 pairs;")[0]) >= 18
    colour = "e => getComputedStyle(e).color"
    note = page.locator(".play-note", has_text="It learned for")
    assert note.evaluate(colour) == page.locator(".lmc-canvas").evaluate(colour)
    workers_end(page)
    assert page.evaluate("JSON.stringify(localStorage)") == before
    button(page, "Begin anew").click()
    assert result.inner_text() == ""


def test_a_training_can_be_stopped_and_is_measured_as_it_stands(opened):
    page = opened.page
    button(page, "shorter").click()
    button(page, "Let the model learn it").click()
    wait(page, "Step 2 of 40")
    button(page, "Stop").click()
    wait(page, "It learned for ")
    steps = int(page.get_by_text("It learned for").inner_text().split()[3])
    assert 2 <= steps < 40
    assert page.locator(".lmv-result tbody tr").count() == 5
    workers_end(page)


def test_a_training_that_is_stopped_at_once_has_no_result(opened):
    page = opened.page
    button(page, "shorter").click()
    button(page, "Let the model learn it").click()
    button(page, "Stop").click()
    assert page.get_by_text("It was stopped before it learned.").is_visible()
    assert button(page, "Let the model learn it").is_visible()
    assert page.locator(".lmv-result").inner_text() == ""


def test_other_choices_end_a_training(opened):
    page = opened.page
    button(page, "shorter").click()
    button(page, "Let the model learn it").click()
    wait(page, "It writes, before it learns")
    button(page, "Undo").click()
    assert button(page, "Let the model learn it").is_visible()
    assert "The training has stopped" in page.locator(".play-note").inner_text()
    workers_end(page)
    button(page, "Undo").click()
    assert page.locator(".play-note").inner_text() == ""


def test_bars_of_progress_have_the_book_s_colour(opened):
    page = opened.page
    page.evaluate("document.body.style.setProperty('--pst-color-primary', 'rgb(1, 2, 3)')")
    bar = page.get_by_label("pairs chosen")
    assert bar.evaluate("e => getComputedStyle(e).accentColor") == "rgb(1, 2, 3)"


def test_a_key_that_is_held_chooses_once(opened):
    page = opened.page
    page.locator(".lmv-line").first.focus()
    for key in ("1", "Enter"):
        before = taken(page)
        for _ in range(4):
            page.keyboard.down(key)
        page.keyboard.up(key)
        assert taken(page) == before + 1
