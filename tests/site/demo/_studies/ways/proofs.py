"""The proof of the demonstration's page *ways*."""

from studies.findings import proof


@proof("One and one are two here, too")
def one_and_one_are_two_here(page):
    """By adding."""
    assert page.sum_of_two == 2
