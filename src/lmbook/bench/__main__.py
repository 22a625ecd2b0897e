"""``python -m lmbook.bench NAME`` runs one benchmark, without a name all.

``bpe`` and ``speedrun`` take a text, too: the name of a corpus or the path of a UTF-8 file.
"""

import subprocess
import sys
from importlib import import_module

NAMES = ("bpe", "layers", "numpy", "play", "speedrun", "talker")


def main(argv: list[str]) -> int:
    """Run the benchmark that the arguments name, or all; return the exit status.

    That is what the benchmark returns, of all the largest status; 2 if there is no
    benchmark of that name. ``argv`` : list of str, the name of a benchmark and its own
    arguments; empty for all.
    """
    if not argv:  # each in a process of its own, the later ones whatever the earlier said
        runs = [[sys.executable, "-m", "lmbook.bench", name] for name in NAMES]
        return max(subprocess.run(run, check=False).returncode for run in runs)
    if argv[0] not in NAMES:
        print(f"usage: python -m lmbook.bench [{'|'.join(NAMES)}]")
        return 2
    return import_module(f"lmbook.bench.{argv[0]}").main(*argv[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
