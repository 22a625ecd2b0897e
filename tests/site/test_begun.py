"""Chromium begins, also where its driver ends before it is there."""

import psutil
import pytest
from playwright.sync_api import BrowserType, Error

from begun import ATTEMPTS, begun

pytestmark = pytest.mark.browser


def kill_newest_driver():
    """Kill the driver of Playwright that this process has started last."""
    drivers = [p for p in psutil.Process().children() if "run-driver" in p.cmdline()]
    max(drivers, key=psutil.Process.create_time).kill()


@pytest.fixture
def fail(monkeypatch):
    """A function: let the driver end in so many launches of a browser that come next."""
    launch = BrowserType.launch

    def fail(times):
        left = iter(range(times))

        def launch_or_fail(browser_type, **options):
            if next(left, None) is not None:
                kill_newest_driver()
            return launch(browser_type, **options)

        monkeypatch.setattr(BrowserType, "launch", launch_or_fail)

    return fail


def attempts_that_failed(warned):
    """The numbers of the attempts of which was warned."""
    return [int(each.message.args[0].split()[1]) for each in warned]


def test_a_driver_that_ends_at_once_is_started_again(
    fail, browser_type_launch_args, recwarn
):
    fail(times=ATTEMPTS - 1)
    with begun(browser_type_launch_args) as (_, browser):
        assert browser.new_page().evaluate("1 + 1") == 2
    assert attempts_that_failed(recwarn) == [*range(1, ATTEMPTS)]


def test_a_driver_that_always_ends_is_given_up(fail, browser_type_launch_args, recwarn):
    fail(times=ATTEMPTS)
    with pytest.raises(Error, match="closed"), begun(browser_type_launch_args):
        pass
    assert attempts_that_failed(recwarn) == [*range(1, ATTEMPTS)]
