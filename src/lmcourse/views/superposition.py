"""Superposition: five features in two dimensions, and their arrows."""

from lmcourse import sparse
from lmcourse.numbers import percent
from lmcourse.views.markup import table
from lmcourse.views.view import View

UNIT = 150  # of the drawing
FEATURES = 5
LONG = 0.8


def superposition(sparsity: float = 0.9) -> View:
    """Show five features that a toy keeps in two numbers, as arrows in the plane.

    The toy multiplies five numbers by a matrix W (2, 5), whose columns are the arrows, and
    what comes back is relu(Wᵀ W x + b). On the site the toy learns in the page:
    a slider says how often a feature is 0, and the arrows move while it trains; a switch
    brings the random weights back.

    Parameters
    ----------
    sparsity : float
        The probability that a feature is 0, at most 0.95.

    Returns
    -------
    View
        Stored is what `lmcourse.sparse.train_toy` trains: a drawing of its arrows, and of
        each feature how long its arrow is and what comes back, for it and for the others,
        if it alone is 1.

    Raises
    ------
    ValueError
        If the sparsity is not from 0 to 0.95.
    """
    if not 0 <= sparsity <= 0.95:
        raise ValueError(f"the sparsity must be from 0 to 0.95, and is {sparsity}")
    weights, bias, loss = sparse.train_toy(sparsity)
    lengths = weights.norm(dim=0)
    back = (weights.T @ weights + bias).relu()  # row i: what comes back of i alone
    others = back.clone().fill_diagonal_(0).amax(1)
    columns = zip(lengths.tolist(), back.diagonal().tolist(), others.tolist(), strict=True)
    rows = [
        (i, *(f"{value:.2f}" for value in each)) for i, each in enumerate(columns, start=1)
    ]
    long = int((lengths > LONG).sum())
    data = {
        "features": FEATURES,
        "examples": sparse.EXAMPLES,
        "steps": sparse.STEPS,
        "rate": sparse.RATE,
        "seeds": [0, 1],
        "sparsity": sparsity,
    }
    alt = (
        f"Five features in the plane, each of them 0 in {percent(sparsity)} of all "
        f"examples. {long} of the five arrows are longer than {LONG}."
    )
    head = ["feature that is 1", "length of its arrow"]
    head += ["comes back for it (1 is right)", "most for another (0 is right)"]
    stored = f"{_drawing(weights.T.tolist())}{table(head, rows)}"
    stored += f"<p>Loss {loss:.4f}.</p>"
    return View("superposition-view", data, stored, alt=alt)


def _drawing(arrows: list[list[float]]) -> str:
    """Return the arrows as SVG, as `superposition-view.js` draws them.

    ``arrows`` : for each its two numbers, across and up, at which it ends.
    """
    marks = []
    for number, (across, up) in enumerate(arrows, start=1):
        x = 240 + UNIT * across
        y = 240 - UNIT * up
        beyond = 1 + 22 / (UNIT * (across**2 + up**2) ** 0.5)
        u = 240 + beyond * UNIT * across
        v = 246 - beyond * UNIT * up
        marks.append(
            f'<line x1="240" y1="240" x2="{x:.1f}" y2="{y:.1f}" stroke="#0067a3" '
            f'stroke-width="4"/><circle cx="{x:.1f}" cy="{y:.1f}" r="7" fill="#0067a3"/>'
            f'<text x="{u:.1f}" y="{v:.1f}" text-anchor="middle" fill="currentColor" '
            f'font-size="20">{number}</text>'
        )
    return (
        '<svg viewBox="0 0 480 480" style="max-width: 420px; width: 100%" '
        f'aria-hidden="true">{"".join(marks)}</svg>'
    )
