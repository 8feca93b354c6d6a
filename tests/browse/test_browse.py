"""The page with every answer: what it holds is what the library says, and nothing in it can run."""

import html
import json
import re
import urllib.parse
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from probelib import beyond, facts, lm, paths
from probelib.browse import collect, gather_answers, render
from probelib.browse import page as module
from probelib.browse.__main__ import main, named_in_tables
from probelib.errors import ProbeError
from probelib.organisms import taught
from probelib.report import Artifact, pages
from probelib.report.links import link_facts, linked_facts
from probelib.report.section import Section
from probelib.report.shown import styled
from probelib.runner import plan
from tests.kit.test_browser import CHROMIUM, DRIVER, browser  # noqa: F401  a fixture

MODEL = "atlas-neox-0.15m"
MEASURES = ["Base accuracy", "MONITOR", "ZP choice"]


@pytest.fixture(scope="session")
def about(tmp_path_factory) -> dict:
    """One model, three facts, three measures."""
    questions = beyond.load_questions(relations=["P36"], n_facts=3, n_examples=4)
    questions = replace(questions, choices=questions.facts)  # 6 options
    return gather_answers([MODEL], [questions], tmp_path_factory.mktemp("store"), measures=MEASURES)


def test_the_numbers_are_those_of_logprobs(about):
    """The first prompt of the first fact, scored by hand."""
    context, text = about["prompts"][0][0]
    subject, obj = about["facts"][0][2:4]
    assert context == "none" and subject in text and len(about["prompts"][0]) == 13
    row = lm.load(MODEL).logprobs([text], [[f" {obj}"]], end=True).iloc[0]
    probability, right, answer = about["models"][MODEL]["answers"][0][0]
    assert probability == pytest.approx(np.exp(row["logprob"]), rel=0.01) and answer == row["greedy_text"]
    values = dict(zip([name for name, *_ in about["measures"]], about["models"][MODEL]["values"][0], strict=True))
    assert set(values) == set(MEASURES) and values["Base accuracy"] in (0, 0.5, 1)
    options = about["models"][MODEL]["top"][0]
    assert sum(gold for _, _, gold, _ in options) == 1 and [rank for *_, rank in options] == [1, 2, 3, 4, 5, 6]
    assert sum(share for _, share, *_ in options) == pytest.approx(1, abs=0.02)
    stated, _, _ = about["models"][MODEL]["exposures"][0]
    manifest = taught.manifest().set_index("fact")
    assert stated == manifest.at[about["facts"][0][0], "exposures"]


def test_hostile_labels_stay_text_and_the_page_stays_small(about, monkeypatch):
    bad = json.loads(json.dumps(about))
    bad["facts"][0][2] = "</script><script>alert(1)</script>"
    text = render(bad, "<b>mine</b>")
    assert text.count("<script") == 2 and "&lt;b&gt;mine" in text
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1]
    assert json.loads(data)["facts"][0][2] == bad["facts"][0][2]
    assert "http" not in text.replace("http-equiv", "")
    monkeypatch.setattr(module, "LARGEST", 1000)
    with pytest.raises(ProbeError, match="MB.*--n-facts"):
        render(about, "mine")


@pytest.mark.browser
@pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="needs chromium and chromedriver (Debian: chromium chromium-driver)"
)
def test_the_page_in_a_browser(about, browser, tmp_path):  # noqa: F811
    """By address, by keyboard, by search; on a phone nothing is wider than the window."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    file = tmp_path / "browse.html"
    file.write_text(render(about, "mine"), encoding="utf-8")
    names = [f"{s} – {about['relations'][r]} – {o}" for _, r, s, o, *_ in about["facts"]]
    title = lambda: browser.find_element(By.TAG_NAME, "h2").text
    browser.get(f"{file.as_uri()}#fact={urllib.parse.quote(names[1])}")
    assert title() == names[1] and len(browser.find_elements(By.CSS_SELECTOR, "table")) == 4
    browser.find_element(By.TAG_NAME, "body").send_keys("n")
    assert title() == names[2] and about["facts"][2][0] in urllib.parse.unquote_plus(browser.current_url)
    browser.find_element(By.TAG_NAME, "body").send_keys("p")
    browser.find_element(By.ID, "search").send_keys(about["facts"][0][2], Keys.TAB, Keys.HOME)
    assert title() == names[0]
    assert browser.find_element(By.CSS_SELECTOR, "[role=status]").get_attribute("textContent").endswith(names[0])
    for region in browser.find_elements(By.CSS_SELECTOR, "[role=region]"):
        assert region.get_attribute("aria-label") and region.get_attribute("tabindex") == "0"
    assert all(head.text for head in browser.find_elements(By.TAG_NAME, "th"))
    for label in ("model", "relation", "search", "fact"):
        assert browser.find_element(By.ID, label).accessible_name.lower() == label
    phone = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    assert browser.execute_script("return [innerWidth, document.documentElement.scrollWidth]") == [360, 360]
    small = "return [...document.querySelectorAll('select, input, button')].filter(e => e.offsetHeight < 24).length"
    assert browser.execute_script(small) == 0  # large enough for a finger
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    loaded = browser.execute_script("return performance.getEntriesByType('resource').length")
    problems = [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    assert loaded == 0 and problems == []


def test_cells_that_name_a_fact_are_links():
    """By its three words, or by three columns; the row's model is part of the address."""
    frame = pd.DataFrame({"said": ["France – capital – Paris", "a – b"], "model": ["atlas-neox-5m", "x"]})
    (address,) = re.findall(r"href='browse.html#([^']*)'>France – capital – Paris</a>", table := linked(frame))
    fact = {"model": ["atlas-neox-5m"], "fact": ["France – capital – Paris"]}
    assert urllib.parse.parse_qs(html.unescape(address)) == fact
    assert table.count("href") == 1
    frame = pd.DataFrame({"Relation": ["capital"], "Subject": ["R&D <b>"], "Object": ["Paris"], "options": ["Rome"]})
    (address,) = re.findall(r"href='browse.html#([^']*)'>R&amp;D &lt;b&gt;</a></td>", linked(frame))
    assert urllib.parse.parse_qs(html.unescape(address)) == {"fact": ["R&D <b> – capital – Paris"]}
    assert "href" not in linked(frame.drop(columns="Object"))
    assert "href" not in linked(frame, {"France – capital – Paris"})
    assert "<i>" not in linked(pd.DataFrame({"said": ["<i> – x – y"]}))


def linked(frame: pd.DataFrame, known: set[str] | None = None) -> str:
    """The frame as the report shows it."""
    return link_facts(styled(frame, 3, {}).to_html(), known)


@pytest.fixture
def profile(tmp_path, monkeypatch) -> plan.Plan:
    """A profile "mine" with one table, of a fact of the page of ``about`` and another one."""
    monkeypatch.setattr(paths, "FIGURES", tmp_path / "figures")
    monkeypatch.setattr(paths, "RUNS", tmp_path / "runs")
    names = [("capital", "Peru", "Lima"), ("capital", "France", "Paris"), ("capital", "Peru", "Paris")]
    frame = pd.DataFrame(names, columns=["Relation", "Subject", "Object"])
    Section("zplke/sec4_2_models", "mine", None, {}).save(Artifact("zplke/table5", frame, "Facts"))
    whole = plan.read()
    return replace(whole, steps=[step for step in whole.steps if step.notebook == "zplke/sec4_2_models"])


def test_every_link_of_the_report_finds_its_fact(about, profile):
    """The page gets the facts that tables name. A name that is no fact is no link; without a page there are no links at all."""
    chosen = facts.load(relations=["P36"], n_facts="all")
    chosen = facts.pick(chosen, ["P36:Peru:Lima"])
    others = named_in_tables("mine", profile, chosen)
    assert others == ["P36:France:Paris"]
    report = lambda: pages.book("mine", profile.steps, {}, {}).read_text(encoding="utf-8")
    assert "browse.html" not in report()
    page = paths.RUNS / "mine" / "browse.html"
    shown = collect.fact_rows(chosen) + collect.fact_rows(facts.pick(facts.atlas(), others))
    page.write_text(render(about | {"facts": shown}, "mine"), encoding="utf-8")
    assert linked_facts(report()) == {"Peru – capital – Lima", "France – capital – Paris"}
    assert "<a href='browse.html'>Browse every answer</a>" in report()
    page.write_text("damaged", encoding="utf-8")
    assert "browse.html" not in report()


def test_two_parts_stand_below_each_other(about, tmp_path):
    """Facts of other lists of examples come after the chosen ones; the numbers of both are as each alone."""
    questions = beyond.load_questions(only=["P36:France:Paris"], n_examples=4)
    alone = gather_answers([MODEL], [replace(questions, choices=questions.facts)], tmp_path, measures=MEASURES)
    first = beyond.load_questions(relations=["P36"], n_facts=3, n_examples=4)
    parts = [replace(each, choices=each.facts) for each in (first, questions)]
    both = gather_answers([MODEL], parts, tmp_path, measures=MEASURES)
    assert both["facts"] == about["facts"] + alone["facts"] and both["relations"] == about["relations"]
    for name, rows in both["models"][MODEL].items():
        assert rows == about["models"][MODEL][name] + alone["models"][MODEL][name], name


def test_an_unknown_profile_is_an_error_with_a_hint(capsys):
    assert main(["--profile", "atlsa"]) == 1
    assert "did you mean atlas" in capsys.readouterr().err
