"""PyTorch is imported only where it is used."""

import subprocess
import sys


def test_text_and_numpy_need_no_pytorch():
    names = ["data", "tokenization", "wordpiece", "numpy_nn.decoder"]
    imports = "\n".join(f"import lmcourse.{name}" for name in names)
    code = f"{imports}\nimport sys; print({{'torch', 'transformers'}} & {{*sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("set()\n", 0), done.stderr
