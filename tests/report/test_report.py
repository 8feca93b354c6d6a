"""Figures, tables and the book: same bytes twice, everything escaped, nothing fetched."""

import base64
import json
import os
import re
from types import SimpleNamespace

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.text import Text

from probelib import files, lm, paths, published, report
from probelib.errors import ProbeError
from probelib.facts import read_fktc
from probelib.report import Artifact, charts, markdown, pages
from tests.facts.test_formats import HAITI, HEADER, write

FRAME = pd.DataFrame({"model": ["a_b", "<script>alert(1)</script>"], "score": [0.123456789, np.nan], "n": [10, 20]})


def step(notebook: str, *makes: str) -> SimpleNamespace:
    return SimpleNamespace(notebook=notebook, title="a <title>", makes=[f"monitor/{name}" for name in makes])


@pytest.fixture
def section(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "FIGURES", tmp_path / "figures")
    monkeypatch.setattr(paths, "RUNS", tmp_path / "runs")
    (tmp_path / "facts").mkdir()
    facts = read_fktc(write(tmp_path / "facts", HEADER, HAITI))
    return report.Section("monitor/sec5_results", "smoke", facts, {"n_facts": 1})


def make(section):
    section.save(Artifact("monitor/table4", FRAME, "A caption & more", best={"score": "min"}, published=FRAME))
    figure, axis = plt.subplots()
    axis.plot([1, 2], [3, 4], **report.model_style("atlas-neox-2.4m"))
    section.save(Artifact("monitor/figure1", FRAME, "A figure", figure=figure, alt="a rising line"))
    plt.close(figure)


def test_same_run_same_bytes(section):
    make(section)
    first = {p: p.read_bytes() for p in section.folder.rglob("*.*")}
    assert {p.suffix for p in first} == {".csv", ".tex", ".html", ".json", ".png", ".pdf"}
    make(section)
    assert {p: p.read_bytes() for p in section.folder.rglob("*.*")} == first


def test_a_table_keeps_its_digits_and_escapes_its_strings(section):
    make(section)
    stem = section.folder / "monitor" / "table4"
    assert pd.read_csv(stem.with_suffix(".csv"))["score"][0] == pytest.approx(0.123456789, abs=1e-10)
    page, tex = stem.with_suffix(".html").read_text(), stem.with_suffix(".tex").read_text()
    assert "<script>" not in page and "&lt;script&gt;" in page and "0.123" in page and "–" in page
    assert r"a\_b" in tex and r"\toprule" in tex and r"\bfseries 0.123" in tex


def test_a_selection_is_shown_everywhere_and_the_csv_keeps_every_column(section):
    shown = pd.DataFrame({"model": FRAME["model"], "score": ["0.12 [0.10, 0.20]", *["–"] * (len(FRAME) - 1)]})
    section.save(Artifact("monitor/table4", FRAME, "A caption", shown=shown, best={"score": "min"}))
    stem = section.folder / "monitor" / "table4"
    assert pd.read_csv(stem.with_suffix(".csv")).columns.tolist() == FRAME.columns.tolist()
    texts = [stem.with_suffix(suffix).read_text() for suffix in (".html", ".tex")]
    texts.append(markdown.artifact_markdown("smoke", "monitor/table4", section.folder / "monitor"))
    assert all("0.12 [0.10, 0.20]" in text and "0.123" not in text for text in texts)
    assert "[all columns](table4.csv)" in texts[2] and r"\bfseries 0.12 [0.10, 0.20]" in texts[1]
    assert "| **0.12 [0.10, 0.20]** |" in texts[2] and texts[2].count("**0.") == 1


def test_the_sidecar_says_where_a_number_comes_from(section):
    make(section)
    record = json.loads((section.folder / "monitor" / "figure1.json").read_text())
    assert record["caption"] == "A figure" and record["facts"]["facts"] == 1 and record["parameters"] == {"n_facts": 1}
    assert record["versions"]["torch"] and "time" not in json.dumps(record)


def test_the_book_is_one_page_that_fetches_nothing(section, tmp_path):
    make(section)
    steps = [step("monitor/sec5_results", "table4", "figure1", "table5")]
    page = pages.book("smoke", steps, {"monitor/sec5_results": "ok"}, {}).read_text()
    assert "<script" not in page and not re.search(r"src='https?:", page) and "a &lt;title&gt;" in page
    assert set(re.findall(r"href='(https?:[^']*)'", page)) <= {published.reference("monitor")["url"]}  # not fetched
    picture = re.search(r"data:image/png;base64,([^']+)'", page).group(1)
    assert base64.b64decode(picture) == (section.folder / "monitor" / "figure1.png").read_bytes()
    assert "A caption &amp; more" in page and "As published" in page and "alt='a rising line'" in page
    assert "Not made yet: Table 5. <code>./run_all.sh --profile smoke --only monitor/sec5_results</code>" in page
    assert "2 of 3 tables and figures of the papers" in page and page.count("Not made yet") == 1
    assert page.count("<table") == page.count("<div class='scroll'><") > 0  # none is wider than a telephone


@pytest.mark.parametrize(("suffix", "content"), [(".png", None), (".json", "{}"), (".json", "{"), (".csv", None)])
def test_a_damaged_product_is_one_line_and_the_rest_is_shown(section, suffix, content):
    make(section)
    damaged = (section.folder / "monitor" / "figure1").with_suffix(suffix)
    damaged.unlink() if content is None else damaged.write_text(content)
    page = pages.book("smoke", [step("monitor/sec5_results", "table4", "figure1")], {}, {}).read_text()
    assert "A caption &amp; more" in page
    assert ("Damaged" in page and "--only monitor/figure1 --force" in page) == (suffix != ".csv")


def test_a_page_is_remade_when_its_notebook_changed(tmp_path, monkeypatch):
    monkeypatch.setattr(pages.paths, "RUNS", tmp_path)
    monkeypatch.setattr(pages.paths, "FIGURES", tmp_path / "figures")
    source = tmp_path / "smoke" / "notebooks" / "a.ipynb"
    source.parent.mkdir(parents=True)
    written = {}
    for text in ("first", "second"):
        nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(text)]), source)
        os.utime(source, (0, 0))  # older than the page
        pages.book("smoke", [step("a")], {"a": "ok"}, written)
        page = tmp_path / "smoke" / "html" / "a.html"
        assert text in page.read_text()
        written = {"html/a.html": files.sha256(page)}


def test_a_model_has_the_same_style_everywhere():
    """A hue per family, darker the larger; dashed: instruction-tuned. No two models look alike."""
    looks = {name: report.model_style(name) for name in lm.organisms()}
    assert len({tuple(look.values()) for look in looks.values()}) == len(looks)
    base = [looks[f"atlas-neox-{size}m"] for size in ("0.15", "0.6", "2.4")]
    assert {look["linestyle"] for look in base} == {"-"}
    light = [sum(to_rgb(look["color"])) for look in base]
    assert light == sorted(light, reverse=True)


def test_sizes_are_read_as_people_write_them():
    """A small panel names the smallest and the largest model only."""
    sizes = [150_080, 2_400_000, 85_000_000, 302_000_000, 1_200_000_000]
    for ends_only, named in ((False, ["0.15M", "2.4M", "85M", "302M", "1.2B"]), (True, ["0.15M", "1.2B"])):
        _, axis = plt.subplots()
        report.size_axis(axis, sizes, ends_only=ends_only)
        assert [label.get_text() for label in axis.get_xticklabels()] == named
    plt.close("all")


def test_a_dollar_is_a_dollar_and_a_power_a_power(section):
    """Names come from data; what matplotlib itself writes as maths, as the numbers of a logarithmic axis, stays maths."""
    figure, (bars, log) = plt.subplots(2)
    bars.barh(["Ke$ha", "A$AP of $x$"], [1, 2])
    bars.set_title(r"100% $\foo$")  # no maths that could be set
    log.set(xscale="log", xlim=(1e2, 1e6))
    section.save(Artifact("monitor/figure2", FRAME, "A figure", figure=figure, alt="words"))
    texts = [text for text in figure.findobj(Text) if "$" in text.get_text()]
    maths = {text.get_text() for text in texts if text.get_parse_math()}
    assert {text.get_text() for text in texts} - maths == {"Ke$ha", "A$AP of $x$", r"100% $\foo$"}
    assert maths and all("10^{" in text for text in maths)
    plt.close(figure)


def test_own_models_get_different_colours_first_and_then_different_styles(monkeypatch):
    monkeypatch.setattr(charts, "_taken", {})
    shipped, own = lm.organisms(), [f"run-7/checkpoint-{step}" for step in range(3 * report.COLOURS)]
    looks = [report.model_style(name) for name in own]
    assert len({look["color"] for look in looks[: report.COLOURS]}) == report.COLOURS
    assert looks == [report.model_style(name) for name in own]
    every = [tuple(report.model_style(name).values()) for name in shipped + own]
    assert len(set(every)) == len(every)


def test_a_section_keeps_the_parameters_that_its_notebook_declares():
    """No other name, no profile, and no place where files lie."""
    values = {"__name__": "__main__", "pd": pd, "profile": "smoke", "papers": None, "data": "atlas"}
    assert report.parameters_of("beyond/audit", values) == {"papers": None}
    given = {"results": "/home/me/scores", "relations": ["P36", "~/x"], "n": 1}
    assert report.parameters_of("beyond/real_gpt2", given) == {"results": "scores", "relations": ["P36", "x"]}
    assert report.parameters_of("my/own", {"n": 1}) == {"n": 1}
    with pytest.raises(ProbeError, match="my/own.ipynb does not exist"):
        report.parameters_of("my/own", values)


def test_an_artifact_has_a_paper_and_a_name(section):
    for wrong in ("table4", "a/b/c", "/x", ""):
        with pytest.raises(ProbeError, match="monitor/table4"):
            section.save(Artifact(wrong, FRAME, ""))
    section.save(Artifact("../x", FRAME, ""))  # a name cannot leave the profile's folder
    assert not (section.folder.parent / "x.csv").exists() and list(section.folder.rglob("x.csv"))


def test_grouped_bars_have_a_dash_for_a_missing_value():
    values = pd.DataFrame({"ZP": [0.5, 0.25], "HGP": [float("nan"), 0.75]}, index=["a", "b"])
    _, axis = plt.subplots()
    report.grouped_bars(axis, values, values - 0.1, values + 0.1)
    heights = [bar.get_height() for bar in axis.patches]
    assert heights[0] == 0.5 and heights[1] == 0.25 and heights[2] != heights[2] and heights[3] == 0.75
    assert len({bar.get_hatch() for bar in axis.patches}) == 2  # not by colour alone
    assert [text.get_text() for text in axis.texts] == ["–"] and axis.texts[0].get_position() == pytest.approx((0.2, 0))
    middles = [bar.get_x() + bar.get_width() / 2 for bar in axis.patches]
    assert middles == pytest.approx([-0.2, 0.8, 0.2, 1.2])
    assert [label.get_text() for label in axis.get_xticklabels()] == ["a", "b"]
    plt.close("all")


def test_labels_cover_no_marker_no_level_and_no_other_label():
    figure, axes = report.column(4, width=report.TWO_COLUMNS)
    axis, x, y = axes[0, 0], [1, 1, 1.05, 2, 2], [0.5, 0.5, 0.52, 0.9, 0.89]
    axis.plot(x, y, "o", linestyle="none")
    axis.axhline(0.53)
    axis.step([0, 1.5, 3], [0.2, 0.915, 0.915], where="post")
    axis.set(xlim=(0, 3), ylim=(0, 1.2))
    report.label_points(axis, x, y, list("abcde"), bold=["b"])
    figure.canvas.draw()
    boxes = {text.get_text(): text.get_window_extent() for text in axis.texts if text.get_text()}
    assert set(boxes) == set("abcde")
    level = axis.transData.transform((0, 0.53))[1]
    assert not any(box.y0 < level < box.y1 for box in boxes.values())
    start, step = axis.transData.transform((1.5, 0.915))
    assert not any(box.y0 < step < box.y1 and box.x1 > start for box in boxes.values())
    points = axis.transData.transform(np.column_stack([x, y]))
    assert not any(box.contains(*at) for box in boxes.values() for at in points)
    assert not any(boxes[a].overlaps(boxes[b]) for a in boxes for b in boxes if a < b)
    plt.close("all")


def test_no_name_is_nearer_to_another_marker_and_no_leader_crosses_one():
    """Three points that nearly touch, and one above them: every name is near its own, or a line leads to it."""
    figure, axes = report.column(4, width=report.TWO_COLUMNS)
    axis, x, y = axes[0, 0], [1, 1.06, 1.06, 1.4], [0.86, 0.9, 0.8, 0.9]
    axis.plot(x, y, "o", linestyle="none")
    axis.set(xlim=(0, 3), ylim=(0, 1.2))
    names = ["Primary anchor", "Log-probability", "Base accuracy", "Probability"]
    report.label_points(axis, x, y, names, bold=names[:2])
    figure.canvas.draw()
    points = dict(zip(names, axis.transData.transform(np.column_stack([x, y])), strict=True))
    gap = lambda box, at: np.hypot(max(box.x0 - at[0], 0, at[0] - box.x1), max(box.y0 - at[1], 0, at[1] - box.y1))
    arrows = [text for text in axis.texts if not text.get_text()]
    ends = {tuple(arrow.xy) for arrow in arrows}
    led = {name for name, *at in zip(names, x, y, strict=True) if tuple(at) in ends}
    for text in axis.texts:
        if (name := text.get_text()) and name not in led:
            near = {other: gap(text.get_window_extent(), at) for other, at in points.items()}
            assert min(near, key=near.get) == name
    for arrow in arrows:
        line = arrow.arrow_patch.get_path().interpolated(50).vertices
        line = arrow.arrow_patch.get_transform().transform(line)
        own = axis.transData.transform(arrow.xy)
        assert all(np.hypot(*(line - at).T).min() > 4 for at in points.values() if np.hypot(*(at - own)) > 1)
    plt.close("all")


def test_bands_have_a_line_and_an_area_each_and_markers_at_the_ticks():
    curve = pd.DataFrame({"mean": [0.9, 0.5, 0.4], "low": [0.8, 0.4, 0.3], "high": [1.0, 0.6, 0.5]}, index=[1, 2, 3])
    figure = report.bands({"all": {"Random": curve, "Sem": curve / 2}, "some": {"Sem": curve}}, "n", "mean")
    (axis, other), (legend,) = figure.axes, figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["Random", "Sem"]
    assert axis.get_xscale() == "log" and axis.get_xticks().tolist() == [1, 2] and axis.get_xlim()[0] < 1
    assert [line.get_ydata().tolist() for line in axis.lines] == [[0.9, 0.5, 0.4], [0.45, 0.25, 0.2]]
    areas = [area.get_paths()[0].get_extents().intervaly.tolist() for area in axis.collections]
    assert areas == [[0.3, 1], [0.15, 0.5]]
    assert axis.lines[1].get_markevery() == [0, 1] and other.lines[0].get_color() == axis.lines[1].get_color()
    plt.close("all")


def test_line_panels_have_common_limits_and_may_be_empty():
    """A tau is undefined where a model does not tell facts apart; of an untaught model all may be."""
    frame = pd.DataFrame({"measure": ["a", "b"], "n": 1, "tau": [0.2, np.nan]})
    for tau, limits in ((frame["tau"], (0.1, 0.5)), (np.nan, None)):
        rows = frame.assign(tau=tau, low=tau - 0.1, high=tau + 0.3)
        figure = report.line_panels(rows, "n", "tau", ["low", "high"], ("n", "tau"), ("a",))
        found = {axis.get_ylim() for axis in figure.axes[1:]}
        assert len(found) == 1 and (limits is None or found.pop() == pytest.approx(limits))
    plt.close("all")


def test_heat_shows_what_it_is_given():
    figure, heat = plt.subplots()
    report.heat(heat, pd.DataFrame([[1, np.nan]], index=["r"], columns=["c", "d"]))
    assert [text.get_text() for text in heat.texts] == ["1.0", "–"]
    report.heat(heat, pd.DataFrame([[10.31, -0.31, 0.31, -0.001]]), low=-20, high=20)
    assert [text.get_text() for text in heat.texts[2:]] == ["10.31", "-.31", ".31", ".00"]
    report.heat(heat, pd.DataFrame([[-1, 0, 1]]), colours="viridis")
    assert [text.get_color() for text in heat.texts[6:]] == ["white", "black", "black"]
    figure.canvas.draw()
    plt.close(figure)
