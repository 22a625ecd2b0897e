"""Random graphs, distances in them, and a graph Transformer."""

import networkx as nx
import pytest
import torch

from lmcourse.graphs import (
    FAR,
    GraphTransformer,
    accuracy,
    distance_classes,
    distances,
    edge_bias,
    sample_graphs,
)
from studies.beyond_text.beyond_text import graph_loss
from studies.beyond_text.look_up_tables import table_accuracies
from studies.beyond_text.one_edge_farther import count_told, told_apart


@pytest.fixture
def drawn():
    return sample_graphs(20, torch.Generator().manual_seed(3))


def test_distances_are_those_of_networkx(drawn):
    joined, marked = drawn
    assert torch.equal(joined, joined.mT)
    assert not joined.diagonal(0, 1, 2).any()
    for graph, mark, ours in zip(joined, marked.tolist(), distances(*drawn), strict=True):
        lengths = nx.single_source_shortest_path_length(
            nx.from_numpy_array(graph.numpy()), mark
        )
        assert [lengths[node] for node in range(12)] == ours.tolist()
    assert distance_classes(*drawn).max() == 4 < distances(*drawn).max()


def test_a_pair_has_the_price_of_its_kind():
    joined = torch.tensor([[[0, 1, 0], [1, 0, 0], [0, 0, 0]]]).bool()
    bias = edge_bias(joined, torch.tensor([[0.1, 0.2, 0.3], [1.0, 2.0, 3.0]]))
    first = torch.tensor([[0.3, 0.2, 0.1], [0.2, 0.3, 0.1], [0.1, 0.1, 0.3]])
    assert bias.shape == (1, 2, 3, 3)
    assert torch.equal(bias[0, 0], first)
    assert torch.equal(bias[0, 1], (10 * first).round())


def test_a_table_that_sees_more_tells_more():
    accuracies = table_accuracies(
        *sample_graphs(300, torch.Generator().manual_seed(5)), learned=3000
    )
    assert [*accuracies] == ["nothing", "counts", "one step", "two steps"]
    assert sorted(accuracies.values()) == [*accuracies.values()]
    shares = (
        distance_classes(*sample_graphs(20_000, torch.Generator().manual_seed(6)))
        .flatten()
        .bincount()
    )
    most = (shares[1:].max() / shares[1:].sum()).item()
    assert accuracies["nothing"] == pytest.approx(most, abs=0.05)


@pytest.mark.parametrize("counted", [False, True])
def test_edges_change_the_answer_and_without_them_nodes_are_alike(counted, drawn):
    torch.manual_seed(0)
    model = GraphTransformer(counted).double()
    joined, marked = drawn
    there, other = model(joined, marked)[0], torch.nn.functional.one_hot(marked, 12) == 0
    assert not torch.allclose(there, model(joined.roll(1, 0), marked)[0])
    model.bonus.data.zero_()
    alike = model(joined, marked)[0][other]
    assert torch.allclose(alike, alike[:1]) == (not counted)


def test_nodes_in_another_order_get_the_same_distance_classes(drawn):
    torch.manual_seed(0)
    model, order = GraphTransformer().double(), torch.randperm(12)
    joined, marked = drawn
    moved = joined[:, order][:, :, order]
    place = order.argsort()[marked]
    wanted = model(joined, marked)[0][:, order]
    torch.testing.assert_close(model(moved, place)[0], wanted)
    one, other = graph_loss(model, moved, place), graph_loss(model, joined, marked)
    assert one.item() == pytest.approx(other.item())
    assert accuracy(model, moved, place) == accuracy(model, joined, marked)

    def knows(*graph):
        return torch.nn.functional.one_hot(distance_classes(*graph), FAR + 1), None

    assert accuracy(knows, *drawn) == 1 > accuracy(knows, *drawn, shown=0 * joined > 0)

    def mistakes_one(*graph):
        logits = knows(*graph)[0]
        logits[0, (marked[0] + 1) % 12] = logits[0, (marked[0] + 1) % 12].roll(1)
        return logits, None

    assert accuracy(mistakes_one, *drawn) == round(1 - 1 / (20 * 11), 4)


def test_distances_are_told_apart_by_all_or_nothing():
    right = [[5, 0, 0, 0], [0, 6, 0, 0], [0, 0, 7, 0], [0, 0, 0, 8]]
    always_one = [[5, 0, 0, 0], [6, 0, 0, 0], [7, 0, 0, 0], [8, 0, 0, 0]]
    assert [told_apart(right, distance) for distance in (1, 2, 3)] == [1, 1, 1]
    assert [told_apart(always_one, distance) for distance in (1, 2, 3)] == [0.5, 0.5, 0.5]
    half = [[5, 0, 0, 0], [0, 3, 3, 0], [0, 0, 7, 0], [0, 0, 0, 8]]
    assert told_apart(half, 2) == 0.75


def test_counts_have_a_row_for_each_true_distance():
    joined, marked = sample_graphs(20, torch.Generator().manual_seed(3))
    classes = distances(joined, marked).clamp(max=FAR)

    def oracle(given, marked):
        return torch.nn.functional.one_hot(classes, FAR + 1).double(), None

    def one_less(given, marked):
        fewer = (classes - 1).clamp(min=0)
        return torch.nn.functional.one_hot(fewer, FAR + 1).double(), None

    counts = [int((classes == each).sum()) for each in range(1, FAR + 1)]
    confusion = torch.tensor(count_told(oracle, joined, joined, marked))
    assert confusion.tolist() == torch.diag(torch.tensor(counts)).tolist()
    confusion = torch.tensor(count_told(one_less, joined, joined, marked))
    assert confusion.diagonal(-1).tolist() == counts[1:]
    assert confusion.sum() == sum(counts[1:])  # an answer of 0 is in no column
