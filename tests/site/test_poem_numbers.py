"""What the page computes of texts' vectors: it is what Python computes."""

import numpy as np
import pytest
import torch
from sklearn.feature_extraction.text import TfidfVectorizer

from lmcourse.pooling import nearest
from lmcourse.probe import predict, score
from test_engine import near

pytestmark = pytest.mark.browser

TEXTS = [
    "Hope hope is the thing",
    "Über 3 x_1 the don't",
    "a thing, a THING",
    "日本語 the é",
]
COMPUTE = """async ([vectors, labels]) => {
  const play = await import("/play/poem-numbers.js");
  const rests = play.remainders(vectors);
  const hits = play.hits(rests, labels);
  return { near: play.nearest(vectors), hits, score: play.score(hits, labels),
    accuracy: play.labelAccuracy(rests, labels),
    shuffled: play.shuffledLabelAccuracy(rests, labels) };
}"""


@pytest.mark.parametrize("strength", [0, 0.7, 3])
def test_neighbours_and_labels_are_pythons(lab, strength):
    rng = np.random.default_rng(3)
    labels = np.array([*"abc"])[rng.permutation([0] * 6 + [1] * 9 + [2] * 14)]
    vectors = rng.normal(size=(29, 17)) + 5
    vectors[:, 2] += strength * (labels == "a")
    vectors[:, 5] -= strength * (labels == "c")
    result = lab.evaluate(COMPUTE, [vectors.tolist(), labels.tolist()])
    x = torch.tensor(vectors)
    assert result["near"] == nearest(x, 3).tolist()
    hits = predict(x, labels).hits
    assert result["hits"] == hits.astype(bool).tolist()
    assert result["score"] == pytest.approx(score(hits, labels), abs=1e-12)
    right, low, high = result["accuracy"]
    assert low < right < high
    assert right == result["score"]
    mean, low, high = result["shuffled"]
    assert low < mean < high
    assert abs(mean - 1 / 3) < 0.12  # chance


def test_words_are_counted_as_scikit_learn_counts_them(lab):
    products = lab.evaluate(
        """async (texts) => {
          const { wordVectors } = await import("/play/poem-numbers.js");
          const vectors = wordVectors(texts).map((vector) => Array.from(vector));
          return vectors.map((a) => vectors.map((b) =>
            a.reduce((sum, value, i) => sum + value * b[i], 0)));
        }""",
        TEXTS,
    )
    counted = TfidfVectorizer(token_pattern=r"\w+", sublinear_tf=True).fit_transform(TEXTS)
    near(torch.tensor(products), torch.tensor((counted @ counted.T).toarray()))
