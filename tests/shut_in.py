"""Whether programs can be shut in here, and the marks of tests that need to know.

Tests that shut programs in are skipped where the system refuses, as Ubuntu 24.04 does until
it is told otherwise. Where the environment variable LMBOOK_NEED_SANDBOX is set, as on
GitHub, a test fails then.
"""

import os

import pytest

from lmbook.grade.sandbox import why_no_sandbox

WHY_NO_SANDBOX = why_no_sandbox()

# Of a test that runs in a sandbox; all others run everywhere.
shut_in = pytest.mark.skipif(
    WHY_NO_SANDBOX != "", reason=f"nothing can be shut in here: {WHY_NO_SANDBOX}"
)

# Of a test that fails where there must be a sandbox, and is none.
needed = pytest.mark.skipif(
    not os.environ.get("LMBOOK_NEED_SANDBOX"), reason="LMBOOK_NEED_SANDBOX is not set"
)
