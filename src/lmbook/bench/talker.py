"""The course's Llama against that of ``transformers``, and in the page: the same answer.

All read SmolLM2-135M-Instruct from the same file and continue the same prompt, always
with the likeliest token, on one thread. Those in Python run in a process of their own each,
so that each peak of memory is its own; the page is one in Chromium that has nothing but the
model, with WebAssembly and without, and its memory is what the model lies in. Loading is
measured apart from writing: in the page the first time from a server of this machine, the
second from what the browser kept.
"""

import time

import torch

from lmbook.bench import report
from lmbook.bench.measure import isolated
from lmcourse.llama import load_talker, sample_tokens, talker_file

PROMPT = "Emily Dickinson was born in Amherst, Massachusetts, in 1830. She"


def write_with_ours(tokens):
    """Load the course's Llama; return a function that continues `PROMPT` with it.

    It always writes the likeliest token, on one thread of the CPU.

    Parameters
    ----------
    tokens : int
        How many to write.

    Returns
    -------
    callable
        Without arguments: returns the ids that were written, a list of int, and the seconds
        that loading took.
    """
    torch.set_num_threads(1)
    start = time.perf_counter()
    tokenizer, model = load_talker(device="cpu")
    loading = time.perf_counter() - start
    ids = tokenizer(PROMPT, return_tensors="pt").input_ids
    return lambda: (list(sample_tokens(model, ids, tokens)), loading)


def write_with_theirs(tokens):
    """Load the Llama of ``transformers``; return a function that continues `PROMPT`.

    It reads the same file, and always writes the likeliest token, on one thread of the CPU.

    Parameters
    ----------
    tokens : int
        How many it writes.

    Returns
    -------
    callable
        Without arguments: returns the ids that were written, a list of int, and the seconds
        that loading the model took. The prompt is cut by the course's tokenizer.
    """
    import transformers

    torch.set_num_threads(1)
    transformers.utils.logging.disable_progress_bar()
    path = talker_file()
    start = time.perf_counter()
    model = transformers.AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=path.name, dtype=torch.float32
    ).eval()
    loading = time.perf_counter() - start
    tokenizer, _ = load_talker(device="cpu")
    encoded = tokenizer(PROMPT, return_tensors="pt")

    def write():
        """Return the ids that ``transformers`` writes, and the seconds of loading."""
        ids = model.generate(
            input_ids=encoded.input_ids,
            attention_mask=encoded.attention_mask,
            max_new_tokens=tokens,
            min_new_tokens=tokens,
            do_sample=False,
            pad_token_id=tokenizer.pad_token_id,
        )
        return ids[0, encoded.input_ids.shape[1] :].tolist(), loading

    return write


WAYS = {"course": write_with_ours, "transformers": write_with_theirs}


def main(*, tokens: int = 100) -> int:
    """Compare ways to run the Llama that talks; print a table and one line of JSON.

    Ways are the course's Llama and that of ``transformers``, and a page in Chromium in
    which the model is opened three times, each time in another way
    (`lmbook.bench.talker_page.write_in_pages`). Of each the table has
    the seconds of loading, the tokens written a second and the memory in MiB.

    Parameters
    ----------
    tokens : int
        How many each writes.

    Returns
    -------
    int
        The exit status: 1 if the course's Llama and that of ``transformers`` write
        different tokens, else 0.
    """
    from lmbook.bench.talker_page import write_in_pages  # not where memory is measured

    runs = {way: isolated(prepare, tokens) for way, prepare in WAYS.items()}
    pages = write_in_pages(PROMPT, tokens)
    rows = [
        {
            "way": way,
            "loading_s": run["result"][1],
            "tokens_a_second": len(run["result"][0]) / run["seconds"],
            "mib": run["peak_mib"],
        }
        for way, run in runs.items()
    ]
    rows += [
        {
            "way": way,
            "loading_s": run["loading"],
            "tokens_a_second": len(run["written"]) / run["seconds"],
            "mib": run["memory"] / 2**20,
        }
        for way, run in pages.items()
    ]
    ours, theirs, page, *_ = rows
    text = runs["course"]["result"][0]
    same = text == runs["transformers"]["result"][0]
    alike = [a == b for a, b in zip(text, pages["page"]["written"], strict=False)]
    summary = {
        "times_faster": round(ours["tokens_a_second"] / theirs["tokens_a_second"], 2),
        "memory_share": round(ours["mib"] / theirs["mib"], 2),
        "page_over_course": round(page["tokens_a_second"] / ours["tokens_a_second"], 2),
        "page_same_until": [*alike, False].index(False),
        "same_text": same,
    }
    report(rows, {"benchmark": "talker", **summary})
    return int(not same)
