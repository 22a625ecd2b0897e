"""LoRA's ranks: how many numbers they have, and where the figure draws them."""

import pandas as pd
import torch
from matplotlib import pyplot as plt

from lmcourse.figures import fine_tuning as figures
from lmcourse.gpt.model import GPT, GPTConfig
from studies.fine_tuning import lora_ranks


def test_a_rank_has_so_many_times_the_numbers_of_rank_one():
    """Two numbers for each row and column of each matrix, a rank."""
    torch.manual_seed(0)
    model = GPT(GPTConfig(7, context=5, layers=2, heads=2, d_model=40))
    numbers = {
        rank: lora_ranks.adapters.trainable(
            lora_ranks.teaching.adapted(model, "LoRA", rank, seed=1)
        )
        for rank in lora_ranks.RATES
    }
    one = sum(
        sum(weight.shape)
        for name, weight in model.named_parameters()
        if name.startswith("blocks.") and weight.ndim == 2
    )
    assert numbers == {rank: rank * one for rank in lora_ranks.RATES}


def test_the_figure_draws_lora_at_the_ranks_at_which_it_was_trained(monkeypatch):
    monkeypatch.setattr(plt, "show", lambda: None)
    kinds = {"strongest": 3.0, "random": 4.0, "shuffled": 5.0}
    rows = [
        {"kind": kind, "rank": rank, "losses": [loss, loss]}
        for kind, loss in kinds.items()
        for rank in (1, 4)
    ]
    thin = pd.DataFrame({"rank": [2, 16, 16], "Dickinson test": [[1, 3], [0, 1], [1, 2]]})
    figures.directions([{"before": [6.0, 8.0], "rows": rows}], thin)
    drawn = {line.get_label(): line for line in plt.gca().lines}
    curve = drawn["LoRA"]
    assert curve.get_xdata().tolist() == [2, 16]
    assert curve.get_ydata().tolist() == [2.0, 1.0]
    assert drawn["strongest"].get_ydata().tolist() == [3.0, 3.0]
    plt.close("all")
