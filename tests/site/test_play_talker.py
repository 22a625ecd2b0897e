"""The view *talker* in a browser: loading, talking, looking inside, forgetting."""

from functools import cache

import pytest

import visits
from bare import served
from lmcourse import llama, views

pytestmark = [pytest.mark.browser, pytest.mark.slow]

STORE = "talker"
LINE = "What is the capital of France?"


@cache
def talker():
    return llama.load_talker(device="cpu")


@cache
def view():
    return views.talker(LINE, *talker(), other="What is the capital of Italy?", count=12)


def make():
    return view(), {}


def press(page, name):
    page.get_by_role("button", name=name, exact=True).click()


def load(page):
    page.get_by_role("button", name="Load the model").click()
    page.get_by_text("The model is here").wait_for(timeout=visits.LOAD)


def say(page, line):
    page.get_by_label("Your line").fill(line)
    press(page, "Ask")
    idle(page)


def idle(page):
    page.wait_for_function(
        """() => Array.from(document.querySelectorAll("button"))
          .find((button) => button.textContent === "Stop").disabled""",
        timeout=visits.LOAD,
    )


def use(page):
    load(page)
    say(page, "Naïve 🦋 " + "x" * 200)
