"""``python -m lmbook.bench NAME [options]`` runs one benchmark."""

import importlib
import pkgutil
import sys

from lmbook import bench


def main() -> int:
    known = sorted(
        module.name
        for module in pkgutil.iter_modules(bench.__path__)
        if module.name != "__main__"
    )
    if sys.argv[1:] == ["--list"]:
        print(*known)
        return 0
    if len(sys.argv) < 2 or sys.argv[1] not in known:
        print(f"usage: python -m lmbook.bench {{{','.join(known)}}} [options]")
        return 2
    return importlib.import_module(f"lmbook.bench.{sys.argv[1]}").main(sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
