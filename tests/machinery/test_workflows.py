"""What runs on GitHub may do little, and not for long."""

import re
from pathlib import Path

import pytest
import yaml

FOLDER = Path(__file__).parents[2] / ".github" / "workflows"
TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.yml")}
WORKFLOWS = {name: yaml.safe_load(text) for name, text in TEXTS.items()}
each = pytest.mark.parametrize("name", sorted(TEXTS))


@each
def test_a_workflow_may_do_little_and_not_for_long(name):
    parsed = WORKFLOWS[name]
    assert parsed["permissions"] == {"contents": "read"}
    assert "pull_request_target" not in TEXTS[name]
    assert parsed["concurrency"]["group"]
    for job in parsed["jobs"].values():
        assert 0 < job["timeout-minutes"] <= 360
        for step in job["steps"]:
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False


@each
def test_actions_are_commits_of_github_itself(name):
    """A tag may be moved to another commit; the release that it was stands beside it."""
    for action in re.findall(r"uses: (.+)", TEXTS[name]):
        assert re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)


def test_rights_to_write_are_where_they_are_needed():
    jobs = {(n, job): how for n, w in WORKFLOWS.items() for job, how in w["jobs"].items()}
    written = {job: how["permissions"] for job, how in jobs.items() if "permissions" in how}
    assert written == {
        ("site", "publish"): {"contents": "write"},
        ("weekly", "report"): {"issues": "write"},
    }
    assert jobs["site", "publish"]["if"] == "github.ref == 'refs/heads/main'"
