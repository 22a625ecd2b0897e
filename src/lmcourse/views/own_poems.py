"""Texts of the reader's own, read by a BERT in the page: neighbours and labels by level."""

from html import escape

from lmcourse.numbers import percent
from lmcourse.views.markup import table
from lmcourse.views.view import View

MOST_TEXTS = 200  # texts that the page reads: some minutes
MOST_TOKENS = 30_000  # of all texts together
NEAREST = 3


def own_poems(mine, tokenizer, text=0) -> View:
    """Let a reader's texts be read in the page, level by level.

    The reader pastes texts, or chooses a file, as `lmcourse.own_poems.read` takes it. After
    a click the site's BERT comes and reads them: then the page says which texts are near to
    a chosen one at each level, and by counted words, and how often labels are predicted
    right.

    Parameters
    ----------
    mine : lmcourse.own_poems.EncodedTexts
        What stands there to begin with: ``texts``, a DataFrame with ``text``, ``title`` and
        ``label``; ``names`` of the levels; ``levels`` and ``random_levels``, Tensors
        (levels, texts, d_model), of the trained model and of random weights; ``shuffled``,
        the texts with their words in another order, and their levels; ``table``, a
        DataFrame of the shares of labels predicted right, a row for each level, then one
        for counted words and one for shuffled labels: ``right``, its 95 % interval,
        ``from`` and ``to``, ``random weights``, and ``shuffled words``.
    tokenizer : PreTrainedTokenizerFast
        Whose [CLS] and [SEP] begin and end each text.
    text : int
        The row of the text that is shown first.

    Returns
    -------
    View
        Without scripts, the nearest texts of this one by level, and how often the labels of
        ``mine`` are predicted right.

    Raises
    ------
    ValueError
        If the texts have no labels.
    """
    # It brings scikit-learn, which no other view needs.
    from lmcourse.own_poems import word_vectors

    rows = mine.table
    scores = rows[["right", "from", "to"]].astype(float).round(4).to_numpy().tolist()
    levels = len(mine.names)
    words = _nearest(word_vectors(mine.texts.text))
    mixed, mixed_levels = mine.shuffled

    def shares(column):
        """Return the shares of labels predicted right, one for each level.

        ``column`` : whose: "random weights" or "shuffled words".
        """
        return rows[column].astype(float).round(4).tolist()[:levels]

    data = {
        "poems": mine.texts[["text", "title", "label"]].astype(str).to_dict("records"),
        "levels": mine.names,
        "around": [tokenizer.cls_token_id, tokenizer.sep_token_id],
        "most": [MOST_TEXTS, MOST_TOKENS],
        "text": text,
        "words": words,
        "near": [_nearest(level) for level in mine.levels],
        "random": [_nearest(level) for level in mine.random_levels],
        "told": scores[:levels],
        "told_random": shares("random weights"),
        "shuffled": [_nearest(level) for level in mixed_levels],
        "told_shuffled": shares("shuffled words"),
        "shuffled_texts": mixed,
        "told_words": scores[levels],
        "told_dealt": scores[levels + 1],
    }
    titles = mine.texts.title.tolist()
    by_level = [
        [name, *(titles[each] for each in near[text])]
        for name, near in zip(mine.names[::-1], data["near"][::-1], strict=True)
    ]
    by_level.append(["words counted", *(titles[each] for each in words[text])])
    right = [[name, percent(row["right"])] for name, row in rows.iterrows()]
    stored = (
        f"<p>The texts nearest to “{escape(titles[text])}”, level by level:</p>\n"
        f"{table(['level', 'nearest', 'second', 'third'], by_level)}\n"
        f"<p>{escape(_sentence(data))} On the site BERT reads your own texts here.</p>\n"
        f"{table(['guessed by', 'labels guessed correctly'], right)}"
    )
    alt = (
        "A box for texts of your own. A BERT reads them on your device; then the nearest "
        f"texts of each are shown level by level, beside those by counted words. A switch "
        f"puts random weights in the model's place, or each text's words in another order. "
        f"Of the {len(titles)} texts it begins with: {_sentence(data)}"
    )
    stores = ["bert", "bert-pieces"]
    return View("own-poems-view", data, stored, alt=alt, stores=stores)


def _nearest(vectors) -> list:
    """Return each text's three nearest others (`NEAREST`): lists of rows, from 0.

    ``vectors`` : Tensor (texts, d), one a text.
    """
    from lmcourse.pooling import nearest

    return nearest(vectors, NEAREST).tolist()


def _sentence(data) -> str:
    """Say how often the labels of the view's data are guessed correctly, and by what.

    ``data`` : dict: ``told``, a triple for each level, of which the last is used;
    ``told_words``, that of counting words, and ``told_dealt``, that of shuffled labels. A
    triple is the share right, 0 to 1, and the ends of its interval.
    """
    shares = [data["told"][-1], data["told_words"], data["told_dealt"]]
    top, words, dealt = (percent(share[0]) for share in shares)
    return (
        f"At the last level {top} of the labels are guessed correctly. By counting words "
        f"it is {words}. If the labels are shuffled, it is {dealt}."
    )
