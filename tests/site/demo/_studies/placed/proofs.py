"""The proofs of the demonstration's page *placed*."""

from studies.findings import finding, proof


@proof("The mean of `numbers` is the sum over the count")
def mean_is_sum_over_count(page):
    """By hand."""
    assert page.mean(page.numbers) == sum(page.numbers) / len(page.numbers)
    return {"mean": page.mean(page.numbers), "numbers": len(page.numbers)}


def no_numbers(page):
    """Three times nothing."""
    return page.replaced(numbers=[0, 0, 0])


@finding(
    "Most of the numbers are <b>large</b>.",
    rival="a number drawn at random",
    null=no_numbers,
    n="{numbers} numbers",
    interval="{between:.0%}",
)
def most_are_large(page):
    """A number is large if it is more than one."""
    share = sum(number > 1 for number in page.numbers) / len(page.numbers)
    assert share > 0.5
    return {"share": share, "numbers": len(page.numbers), "between": (0.5, share)}


@finding(
    "No other model was chosen here",
    rival="a name that nobody would choose",
    n="one name",
    no_null="a name is there or is not",
)
def none_was_chosen(page):
    """The tests build this page with another model."""
    assert not page.name, "a model was chosen"
    return {"letters": len(page.name)}
