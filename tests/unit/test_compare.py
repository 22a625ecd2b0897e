"""The comparison of outputs lets rounding pass and nothing else."""

import pytest

from compare import VIEW, difference, strip_outputs


def shown(text, **more):
    data = {"text/plain": text, **more}
    return [{"output_type": "display_data", "metadata": {}, "data": data}]


def printed(text):
    return [{"output_type": "stream", "name": "stdout", "text": text}]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("loss 0.1234", "loss 0.1235"),
        ("loss 0.12", "loss 0.13"),
        ("-0.0001  x", "0.0000  x"),
        ("[ 0.301  -1.2 ]", "[0.301 -1.2 ]"),
        ("1.000e-05", "1.004e-05"),
        ("1234.56", "1234.57"),
        ("·the 2.2 %", "·the 2.3 %"),
        ("92 % of 30", "93 % of 30"),
    ],
)
def test_rounding_passes(old, new):
    assert difference(printed(old), printed(new)) == ""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("12 heads", "13 heads"),
        ("2.2 %", "2.4 %"),
        ("92 % of 30", "92 % of 31"),
        ("a bee", "a bea"),
        ("torch.Size([2, 3])", "torch.Size([3, 2])"),
        ("loss 0.1234", "loss 0.1334"),
        ("loss 0.5", "loss 0.6"),
        ("0.5", "nan"),
        ("1.0", "1"),
        ("1e-05", "1e-02"),
        ("0.1 0.2", "0.1"),
        ("layer1 0.5", "layer2 0.5"),
    ],
)
def test_a_change_does_not(old, new):
    assert difference(printed(old), printed(new))
    assert difference(shown(old), shown(new))


def view(**changed):
    data = {"kind": "heads", "values": [[0.123, 1.0]], "n": 2} | changed
    return shown("alt", **{VIEW: data})


def test_view_data():
    assert not difference(view(), view(values=[[0.124, 1.0]]))
    longer = {"values": [[0.123, 1.0, 0.0]]}
    for changed in ({"values": [[0.126, 1.0]]}, longer, {"n": 3}, {"kind": "model"}):
        assert difference(view(), view(**changed))
    assert difference(view(), shown("alt"))


def test_a_share_that_lies_between_two_percents_may_become_either():
    old = view(weights=[[["day", 61]], [[-408, 0]]])
    assert not difference(old, view(weights=[[["day", 62]], [[-409, 1]]]))
    assert difference(old, view(weights=[[["day", 63]], [[-408, 0]]]))
    random = view(untrained=[[[2, 98]]])  # the same head, with random weights
    assert not difference(random, view(untrained=[[[3, 97]]]))
    assert difference(random, view(untrained=[[[4, 96]]]))
    poems = view(untrained={"near": [[5, 7]]})  # which poems: an index is exact
    assert difference(poems, view(untrained={"near": [[5, 8]]}))
    assert difference(view(near=[[3, 4]]), view(near=[[3, 5]]))
    assert difference(printed("weights 61"), printed("weights 62"))


def test_of_many_nearest_others_one_may_be_another():
    """Two may be equally near but for rounding; that many are is another result."""
    old = [[[text, 7, 5] for text in range(200)] for _ in range(2)]  # 1,200 numbers
    one = [[*old[0][:-1], [199, 7, 6]], old[1]]
    two = [[[0, 7, 6], *old[0][1:-1], [199, 7, 6]], old[1]]
    shorter = [old[0], old[1][:-1]]
    assert not difference(view(untrained={"near": old}), view(untrained={"near": one}))
    for other in (two, shorter, [old[0]]):
        assert difference(view(near=old), view(near=other))
    assert difference(view(order=old), view(order=one))


def test_what_is_stripped():
    outputs = [
        {"output_type": "stream", "name": "stderr", "text": "50%|"},
        *printed("a"),
        *printed("b"),
        *shown("<Figure>", **{"image/png": "iVBO", "text/html": "<b>"}),
        {"output_type": "error", "ename": "ValueError", "evalue": "no", "traceback": ["x"]},
    ]
    stripped = strip_outputs(outputs)
    assert stripped[0]["text"] == "ab"
    assert stripped[1]["data"] == {"text/plain": "<Figure>"}
    assert stripped[2]["traceback"] == []
    assert len(stripped) == 3
    assert difference(outputs, outputs[1:]) == ""
    assert difference(printed("a"), [])
