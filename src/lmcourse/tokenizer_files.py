"""The tokenizer in a checkpoint's folder, and whether it fits the model beside it."""

from pathlib import Path

FILES = ("tokenizer.json", "vocab.txt", "merges.txt")
# Some models have more rows of embeddings than tokens, for speed: up to a multiple of 128.
LARGEST_MULTIPLE = 128


def fits_vocabulary(tokenizer, vocab_size: int) -> bool:
    """Return whether a model's embeddings can be those of a tokenizer's tokens.

    Every ID must have a row, and there may be spare rows: fewer than 128, since a
    vocabulary is at most padded to a multiple of that.

    Parameters
    ----------
    tokenizer : PreTrainedTokenizerFast
    vocab_size : int
        How many rows the matrix of word embeddings has.
    """
    tokens = len(tokenizer)
    ids = 1 + max(tokenizer.get_vocab().values(), default=-1)
    spare = vocab_size - min(tokens, ids)
    return max(tokens, ids) <= vocab_size and spare < LARGEST_MULTIPLE


def read_tokenizer(folder: Path, config, vocab_size: int):
    """Return the tokenizer of a checkpoint's folder.

    Parameters
    ----------
    folder : Path
    config : transformers.PretrainedConfig
        Of the model; without it the library would read all of ``config.json`` by itself.
    vocab_size : int
        Of the model.

    Returns
    -------
    PreTrainedTokenizerBase

    Raises
    ------
    OSError
        If there is no tokenizer.
    ValueError
        If it is damaged, or not of a model with this many IDs (`fits_vocabulary`).
    """
    import transformers

    if not any((folder / file).is_file() for file in FILES):
        raise FileNotFoundError(f"{folder} has no tokenizer: none of {', '.join(FILES)}")
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            folder, config=config, trust_remote_code=False
        )
        # Some faults show only when a text is encoded, or a character is unknown.
        tokenizer.encode("a 🦋")
        fits = fits_vocabulary(tokenizer, vocab_size)
    except Exception as error:  # the tokenizers library raises Exception itself
        raise ValueError(f"the tokenizer in {folder} cannot be read: {error}") from error
    if not fits:
        raise ValueError(
            f"the tokenizer in {folder} has {len(tokenizer)} pieces, but the model's "
            f"vocab_size is {vocab_size}"
        )
    return tokenizer
