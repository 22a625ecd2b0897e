"""Damage files at random and load them: a clean error or a correct load, nothing else.

``python tests/machinery/fuzz.py [--count 2000] [--first 0] [KIND ...]``. Each number is
the seed of one damaged file; a failure is repeated with ``--first SEED --count 1 KIND``.
Each is loaded in a fork of bounded memory, so that a segmentation fault, an allocation of
what a file merely claims or a load that hangs is seen, counted and named.
"""

import argparse
import faulthandler
import json
import math
import multiprocessing
import os
import random
import resource
import shutil
import struct
import sys
import tempfile
import traceback
from collections import Counter
from contextlib import suppress
from pathlib import Path

import torch
from safetensors.torch import load_file
from transformers.utils import logging

sys.path.append(str(Path(__file__).parents[1]))  # where pytest looks, too

from berts import write_bert
from letters import letters_tokenizer
from lmcourse import data
from lmcourse.gpt import checkpoints
from lmcourse.gpt.training import Diverged
from lmcourse.models import load_bert
from lmcourse.train import new_run
from patience import PATIENCE

MEMORY = 2 * 2**30  # bytes a fork may take beyond what it was forked with
TEXT = "Wild nights! Wild nights!\nWere I with thee,\nCafé nights — 東京\n" * 9


# --- kinds of files: how to make a whole one, and how to load one and check the load -----


def make_bert(folder: Path) -> None:
    """Write a tiny BERT with its tokenizer."""
    sizes = {"hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 12}
    sizes |= {"num_hidden_layers": 2, "max_position_embeddings": 16}
    write_bert(folder, letters_tokenizer(), **sizes)


def check_bert(folder: Path) -> None:
    """Load a BERT; its weights are those of the file, and it runs."""
    tokenizer, model = load_bert(folder, device="cpu")
    stored = load_file(folder / "model.safetensors")
    for name, weight in model.state_dict().items():
        assert torch.equal(weight, stored[name].float()), name
        assert weight.isfinite().all(), name
    batch = tokenizer(["wild nights", "thee"], padding=True, return_tensors="pt")
    states = model(**batch).last_hidden_state
    assert states.shape == (*batch["input_ids"].shape, model.config.hidden_size)


def new_trainer():
    """Return a trainer of a tiny GPT, always the same one."""
    sizes = {"context": 5, "layers": 1, "heads": 2, "d_model": 8, "ngrams": (13, 17)}
    how = {"steps": 99, "batch": 3, "warmup": 2, "validation_windows": 4}
    return new_run(TEXT, "fast", device="cpu", **sizes, **how)


def make_checkpoint(folder: Path) -> None:
    """Write what a run of three steps leaves."""
    tokenizer, trainer = new_trainer()
    trainer.run(3, quiet=True)
    path = folder / "run.safetensors"
    checkpoints.save(path, trainer, tokenizer.alphabet, data.fingerprint(TEXT))


def same_weights(model: torch.nn.Module, path: Path) -> None:
    """Assert that a model has the weights of a checkpoint."""
    stored = load_file(path)
    for name, weight in model.state_dict().items():
        assert torch.equal(weight, stored[f"model.{name}"].float()), name
        assert weight.isfinite().all(), name


def check_checkpoint(folder: Path) -> None:
    """Resume a run and load its model; a run that is not resumed is as it was."""
    path, refused = folder / "run.safetensors", None
    _, trainer = new_trainer()
    before = {name: x.clone() for name, x in trainer.gpt.state_dict().items()}
    try:
        checkpoints.restore(path, trainer, data.fingerprint(TEXT))
    except (ValueError, OSError) as error:
        refused = error
        for name, weight in trainer.gpt.state_dict().items():
            assert torch.equal(weight, before[name]), name
        assert not any(optimizer.state for optimizer in trainer.optimizers)
        assert trainer.progress.step == 0
    else:
        same_weights(trainer.gpt, path)
        with suppress(Diverged):  # such numbers may stand in the file
            trainer.step()
    tokenizer, model, _ = checkpoints.load_gpt(path, "cpu")
    same_weights(model, path)
    ids = torch.tensor([tokenizer.encode(tokenizer.alphabet[:3])])
    with torch.no_grad():
        assert model(ids).shape == (*ids.shape, tokenizer.vocab_size)
    if refused:
        raise refused


def make_corpus(folder: Path) -> None:
    """Write a reader's own corpus."""
    (folder / "mine.txt").write_text(TEXT, encoding="utf-8")


def check_corpus(folder: Path) -> None:
    """Load the corpus: it is the file's text."""
    text = data.load_corpus(folder / "mine.txt")
    content = (folder / "mine.txt").read_bytes().decode("utf-8-sig")
    assert "\0" not in text
    assert text == "\n".join(content.replace("\r\n", "\n").split("\r"))
    assert text.strip()


KINDS = {
    "bert": (make_bert, check_bert),
    "checkpoint": (make_checkpoint, check_checkpoint),
    "corpus": (make_corpus, check_corpus),
}


# --- damage ------------------------------------------------------------------------------

STRANGE = [None, True, -1, 0, 1, 3, 10**6, 10**9, 10**18, 10**400, 0.5, 1e308, math.nan]
STRANGE += [math.inf, "", "x", "\0", "../..", "F64", "I8", [], [0, 4], {}, {"a": 1}]


def damage_bytes(rng: random.Random, content: bytes) -> bytes:
    """Cut, flip, blank, remove, double or replace a stretch of bytes; or encode anew."""
    at = rng.randrange(len(content) + 1)
    length = int(2 ** rng.uniform(0, 12))
    before = content[:at]
    part = content[at : at + length]
    after = content[at + length :]
    flipped = bytes(byte ^ 1 << rng.randrange(8) for byte in part[:1]) + part[1:]
    random_bytes = rng.randbytes(length)
    damaged = [
        before,
        before + bytes(len(part)) + after,
        before + after,
        before + 2 * part + after,
        before + random_bytes + part + after,
        before + flipped + after,
        content.decode("utf-8", "replace").encode("utf-16"),
    ]
    return rng.choice(damaged)


def damage_value(rng: random.Random, value: object) -> object:
    """Change one value somewhere in what JSON holds; give back the whole."""
    if isinstance(value, dict | list) and value and rng.random() < 0.85:
        keys = list(value) if isinstance(value, dict) else range(len(value))
        key = rng.choice(keys)
        what = rng.random()
        if what < 0.1:
            del value[key]
        elif what < 0.2 and isinstance(value, dict):
            value[key + rng.choice(["", "x", ".bias"])] = value.pop(key)
        elif what < 0.3:
            value[key] = value[rng.choice(keys)]
        else:
            value[key] = damage_value(rng, value[key])
        return value
    if isinstance(value, str) and value[:1] in "{[" and rng.random() < 0.9:
        with suppress(ValueError):  # a record in the metadata
            return json.dumps(damage_value(rng, json.loads(value)))
    if isinstance(value, int) and rng.random() < 0.5:
        return rng.choice([value + 1, value - 1, -value, value * 2, value // 2])
    return rng.choice(STRANGE)


def damage_json(rng: random.Random, text: bytes) -> bytes:
    """Change one value, or nest deeply."""
    if rng.random() < 0.05:
        return b'{"a":' * 10 ** rng.randrange(2, 6)
    return json.dumps(damage_value(rng, json.loads(text))).encode()


def damage_safetensors(rng: random.Random, content: bytes) -> bytes:
    """Change the header, the header's length, or numbers."""
    (size,) = struct.unpack("<Q", content[:8])
    what = rng.random()
    if what < 0.7:
        header = damage_json(rng, content[8 : 8 + size])
        return struct.pack("<Q", len(header)) + header + content[8 + size :]
    if what < 0.8:
        size = rng.choice([0, 1, size - 1, size + 1, len(content), 2**32, 2**63])
        return struct.pack("<Q", size) + content[8:]
    at = rng.randrange(8 + size, len(content), 4)
    number = struct.pack("<f", rng.choice([math.nan, math.inf, -math.inf, 1e38, 1e-45]))
    return content[:at] + number + content[at + 4 :]


DAMAGE_OF_KIND = {".json": damage_json, ".safetensors": damage_safetensors}


def damage(rng: random.Random, folder: Path) -> None:
    """Damage one file of a folder, once or more; sometimes remove or replace it whole."""
    path = rng.choice(sorted(folder.iterdir()))
    content = path.read_bytes()
    what = rng.random()
    if what < 0.03:
        path.unlink()
        return
    if what < 0.06:
        content = rng.choice([b"", b"{}", b"[]", b"null", bytes(99)])
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        change = damage_bytes
        if rng.random() >= 0.4:
            change = DAMAGE_OF_KIND.get(path.suffix, damage_bytes)
        with suppress(ValueError, struct.error, RecursionError):  # was damaged before
            content = change(rng, content)
    path.write_bytes(content)


# --- one process a file ------------------------------------------------------------------


def attempt(kind: str, whole: Path, seed: int) -> tuple[str, str]:
    """Damage a copy and load it: ("loaded" or "refused" or "WRONG", what happened)."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as work:
        folder = Path(work) / "copy"
        shutil.copytree(whole, folder)
        damage(random.Random(f"{kind} {seed}"), folder)
        try:
            KINDS[kind][1](folder)
        except (ValueError, OSError) as error:
            if str(folder) in str(error):
                return "refused", type(error).__name__
            return "WRONG", f"does not name the file: {traceback.format_exc()}"
        except BaseException:  # pyo3's panics are no Exception
            return "WRONG", traceback.format_exc()
    return "loaded", ""


def _work(pipe, kind: str, whole: Path, seed: int) -> None:
    logging.set_verbosity_error()
    faulthandler.disable()  # the parent tells of a death
    torch.set_num_threads(1)  # threads of the parent are not in a fork: no waiting for them
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    most = taken + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what libraries print of a damaged file
    pipe.send(attempt(kind, whole, seed))


def in_a_fork(kind: str, whole: Path, seed: int) -> tuple[str, str]:
    """Return what came of one damaged file, whatever it does to the process."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(there, kind, whole, seed))
    process.start()
    there.close()
    try:
        return here.recv() if here.poll(PATIENCE) else ("WRONG", "it hangs")
    except EOFError:
        process.join()
        return "WRONG", f"the process died: {process.exitcode}"
    finally:
        process.kill()
        process.join()


def fuzz(kind: str, seeds: range) -> dict[int, tuple[str, str]]:
    """Load one damaged file a seed; return what came of each."""
    with tempfile.TemporaryDirectory(prefix="fuzz-whole-") as work:
        KINDS[kind][0](Path(work))
        KINDS[kind][1](Path(work))  # undamaged it loads
        return {seed: in_a_fork(kind, Path(work), seed) for seed in seeds}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kinds", nargs="*", default=[*KINDS], metavar="KIND")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    failed = 0
    for kind in options.kinds:
        results = fuzz(kind, range(options.first, options.first + options.count))
        print(kind, dict(Counter(verdict for verdict, _ in results.values())), flush=True)
        for seed, (verdict, why) in results.items():
            if verdict == "WRONG":
                failed += 1
                print(f"{kind} --first {seed} --count 1: {why}", flush=True)
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
