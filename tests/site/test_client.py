"""Models in a worker, as a page of the site runs them: served, and opened as a file."""

from contextlib import closing

import pytest
import torch

import visits
from bare import make_page
from lmbook.play import stores
from lmcourse.gpt.generation import generate
from serving import serve
from test_engine import gpt, gpt_states, near

pytestmark = pytest.mark.browser

IDS = [3, 1, 4, 1, 5]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A page with a small GPT, staged as a build does, in three parts."""
    content = gpt("learned")[1]
    place = tmp_path_factory.mktemp("client")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stores, "PART", -(-len(content) // 3))
        make_page(place, [], {"gpt": lambda: content}, views_at_once=True)
    return place


@pytest.fixture(scope="module", params=["http", "file"])
def opened(request, browser, folder):
    """The page, served or opened as a file; tests share it."""
    with serve(folder) as origin:
        address = origin if request.param == "http" else folder.as_uri()
        with visits.visit(browser, f"{address}/index.html") as visit:
            yield visit


@pytest.fixture
def served(browser, folder):
    """The page, served, to a browser that has kept nothing yet."""
    with serve(folder) as origin, visits.visit(browser, f"{origin}/index.html") as visit:
        yield visit


def ask(page, body, *given):
    """Run a body of JavaScript with `model`, a client of the GPT."""
    return page.evaluate(
        "async given => { const { openModel } = lmcourse.play.client;"
        "const model = openModel('gpt', lmcourse);" + body + "}",
        list(given),
    )


def test_parts_come_side_by_side(browser, folder):
    """None is answered before all are asked for: one after the other would wait forever."""
    held = []

    def hold(route):
        held.append(route)
        if len(held) == 3:
            for each in held:
                each.continue_()

    with serve(folder) as origin, visits.visit(browser, f"{origin}/index.html") as visit:
        visit.page.route("**/lib/play/gpt/*.js*", hold)
        assert len(ask(visit.page, FORWARD, IDS)) > 0


def test_the_worker_ends_when_it_is_idle_and_another_answers_the_same(browser, folder):
    with serve(folder) as origin, closing(visits.new_page(browser)) as page:
        page.clock.install()
        page.goto(f"{origin}/index.html")
        first = ask(page, FORWARD, IDS)
        page.clock.fast_forward(100_000)
        assert ask(page, FORWARD, IDS) == first  # within two minutes of the last question
        page.clock.fast_forward(40_000)  # so that a minute more may pass by itself
        assert len(page.workers) == 1
        page.clock.fast_forward(120_000)
        page.wait_for_function("!lmcourse.play.client.openModel('gpt', lmcourse).worker")
        assert len(page.workers) == 0
        assert ask(page, FORWARD, IDS) == first


FORWARD = "const { logits } = await model.forward(given[0]); return Array.from(logits);"


def test_the_worker_answers_what_pytorch_does(opened):
    model, _ = gpt("learned")
    near(torch.tensor(ask(opened.page, FORWARD, IDS)), gpt_states(model, IDS)[1])
    opened.clean()


def test_a_text_arrives_in_pieces_and_whole(opened):
    model, _ = gpt("learned")
    answer = ask(
        opened.page,
        """const tokens = [];
        const done = await model.write(given[0], { count: 8, temperature: 0 },
          batch => batch.forEach(token => tokens.push(token)));
        return { done, ids: tokens.map(t => t.id), sizes: tokens.map(t => t.probs.length) };
        """,
        IDS,
    )
    wanted = generate(model, torch.tensor([IDS]), 8, temperature=0)[0, 5:].tolist()
    assert answer == {"done": True, "ids": wanted, "sizes": [11] * 8}


def test_a_newer_request_takes_the_place_of_an_older_one(opened):
    answered = ask(
        opened.page,
        """await model.load();
        const [other, ...mine] = await Promise.all([
          model.forward([1], {}, "other"),
          ...[1, 2, 3].map(id => model.forward([id], {}, "mine")),
        ]);
        return [Boolean(other), ...mine.map(Boolean)];""",
    )
    assert answered == [True, False, False, True]


def test_a_text_that_nobody_waits_for_ends(opened):
    """What is asked for behind an endless text is answered once that is cancelled."""
    ended, late, logits = ask(
        opened.page,
        """await model.load();
        let late = 0, ended = null;
        await new Promise(resolve => {
          const onPieces = () => { late++; resolve(); };
          ended = model.write([1], { count: 1e9 }, onPieces, "mine");
        });
        model.cancel("mine");
        late = 0;
        const { logits } = await model.forward([1], {}, "other");
        return [await ended, late, logits.length];""",
    )
    assert (ended, late, logits) == (None, 0, 11)


def test_an_error_of_the_model_is_one_of_the_view(opened):
    message = ask(
        opened.page, "return model.forward([99]).then(() => '', error => error.message);"
    )
    assert message == "99 is no token of this model"


def test_a_worker_that_dies_says_so_and_another_takes_its_place(opened):
    message, length = ask(
        opened.page,
        """await model.load();
        const answer = model.write([1], { count: 1e9 }, () => {});
        setTimeout(() => model.worker.dispatchEvent(new ErrorEvent("error")));
        const message = await answer.catch(error => error.message);
        return [message, (await model.forward([1])).logits.length];""",
    )
    assert message == "the model stopped: out of memory?"
    assert length == 11


LOAD = """const shares = [], got = await model.load(share => shares.push(share));
return { shares, fromCache: got.fromCache, notKept: got.notKept };"""


def test_the_browser_keeps_the_weights_of_a_served_page(served):
    first = ask(served.page, LOAD)
    assert first == {"shares": [1 / 3, 2 / 3, 1], "fromCache": False, "notKept": None}
    asked = len(served.inside)
    served.page.reload()
    assert ask(served.page, LOAD) == {"shares": [1], "fromCache": True, "notKept": None}
    assert not any("/gpt/" in address for address in served.inside[asked:])


def test_what_the_browser_keeps_is_checked_and_replaced(served):
    ask(served.page, LOAD)
    spoil = """async () => {
      const cache = await caches.open("lmcourse-weights");
      for (const key of await cache.keys()) {
        await cache.put(key, new Response(new Uint8Array(10)));
        await cache.put(key.url + "-older", new Response(new Uint8Array(10)));
      }
    }"""
    served.page.evaluate(spoil)
    served.page.reload()
    assert ask(served.page, LOAD)["fromCache"] is False
    count_stored = (
        "async () => (await (await caches.open('lmcourse-weights')).keys()).length"
    )
    assert served.page.evaluate(count_stored) == 1


def test_a_browser_without_room_says_so_and_the_model_runs(served):
    session = served.page.context.new_cdp_session(served.page)
    quota = {"origin": served.origin, "quotaSize": 100}
    session.send("Storage.overrideQuotaForOrigin", quota)
    assert "has no room for them (QuotaExceededError)" in ask(served.page, LOAD)["notKept"]
    assert len(ask(served.page, FORWARD, [1])) == 11


FAIL = "return model.load().then(() => null, error => error.message);"


def test_other_weights_than_the_page_was_built_with_are_refused(served):
    message = ask(served.page, f"model.about.checksum ^= 1; {FAIL}")
    assert message == "gpt is not what this page was built with: reload the page"
