"""What counts as equal: a bound that holds whatever a processor's rounding is."""

import torch

ROUNDING = {torch.float64: 1e-9, torch.float32: 1e-5}  # of the largest magnitude


def near(got: torch.Tensor, want: torch.Tensor, slack: float = 1) -> None:
    """Assert that tensors of one shape and type are equal up to rounding.

    The largest difference is held against the largest magnitude: a small entry that is a
    sum of large numbers carries the rounding of the large ones.
    """
    largest = want.abs().max().item() if want.numel() else 0.0
    bound = slack * ROUNDING[want.dtype] * largest
    torch.testing.assert_close(got, want, rtol=0, atol=bound)
