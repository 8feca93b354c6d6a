"""What a person sees: the tour in a real JupyterLab and the report, in headless Chromium."""

import json
import os
import re
import shutil
import socket
import subprocess
import time
import urllib.request

import pytest

from probelib import lm
from probelib.course import classroom
from probelib.paths import NOTEBOOKS, ROOT

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
WHY = "needs chromium and chromedriver (Debian: chromium chromium-driver)"
pytestmark = [pytest.mark.browser, pytest.mark.skipif(not (CHROMIUM and DRIVER), reason=WHY)]
FLAGS = "headless=new no-sandbox disable-gpu disable-dev-shm-usage no-first-run disable-sync "
FLAGS += "disable-background-networking disable-component-update window-size=1400,1600"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in [*FLAGS.split(), f"user-data-dir={tmp_path_factory.mktemp('profile')}"]:
        options.add_argument(f"--{flag}")
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """``./run_all.sh lab`` on a free port; gives its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    out = tmp_path_factory.mktemp("lab")
    # what is run here must not be saved into the checkout, however long it takes
    kept = out / "s" / "@jupyterlab" / "docmanager-extension" / "plugin.jupyterlab-settings"
    kept.parent.mkdir(parents=True)
    kept.write_text('{"autosave": false}')
    own = {"PROBELIB_OUT": str(out), "JUPYTER_CONFIG_DIR": str(out)}
    own |= {"JUPYTERLAB_SETTINGS_DIR": str(out / "s"), "JUPYTERLAB_WORKSPACES_DIR": str(out / "w")}
    command = ["bash", str(ROOT / "run_all.sh"), "lab", "--no-browser", "--allow-root"]
    command += [f"--port={port}", "--IdentityProvider.token="]
    command += ["--LabApp.expose_app_in_browser=True"]
    quiet = dict.fromkeys(("stdout", "stderr"), subprocess.DEVNULL)
    server = subprocess.Popen(command, env=os.environ | own, **quiet)
    address = f"http://127.0.0.1:{port}"
    try:
        wait(lambda: server.poll() is not None or answers(address), 120)
        assert server.poll() is None, "JupyterLab did not start"
        yield address
    finally:
        server.terminate()
        server.wait(20)


def answers(address: str) -> bool:
    try:
        return urllib.request.urlopen(f"{address}/api", timeout=2).status == 200
    except OSError:
        return False


def wait(condition, seconds: float):
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            pytest.fail("waited in vain")
        time.sleep(0.2)
    return value


# the notebook last opened (without a window in front of a person JupyterLab has no "current" one)
NOTEBOOK = "[...window.jupyterapp.shell.widgets('main')].filter(w => w.context).at(-1)"
CELLS = f"""
const model = {NOTEBOOK}?.content.model;
return model?.cells.length ? JSON.stringify(model.toJSON().cells) : null;
"""
OPEN = """
const [path, done] = arguments, app = window.jupyterapp;
app.restored.then(() => app.commands.execute("docmanager:open", {path})).then(
    widget => {
        app.shell.activateById(widget.id);
        done();
    });
"""
KERNEL = f"return {NOTEBOOK}.sessionContext.session?.kernel?.status ?? ''"


def open_notebook(browser, lab: str, name: str) -> None:
    """Open a notebook as a double click does, wait for its kernel, and see no warning: no dialog,
    no notification, nothing to be trusted or upgraded, and the cells are those of the file.

    JupyterLab itself notes the kernel's Python version in the metadata, so the notebook counts as
    changed. A lab that has just started answers the address of a file with the folder it lies in.
    """
    browser.get(f"{lab}/lab?reset")
    wait(lambda: browser.execute_script("return !!window.jupyterapp"), 90)
    browser.set_script_timeout(90)
    browser.execute_async_script(OPEN, f"notebooks/{name}.ipynb")
    wait(lambda: browser.execute_script(CELLS), 90)
    wait(lambda: browser.execute_script(KERNEL) == "idle", 90)
    seen = "document.querySelectorAll('.jp-Dialog, .Toastify__toast, .jp-toast')"
    assert browser.execute_script(f"return [...{seen}].map(e => e.innerText)") == []
    sources = lambda cells: ["".join(cell["source"]) for cell in cells]
    file = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8"))
    assert sources(json.loads(browser.execute_script(CELLS))) == sources(file["cells"])


def run_cells(browser, seconds: float = 240) -> list[dict]:
    """Run the notebook last opened to its end; its code cells, without the empty ones."""
    browser.execute_script("window.jupyterapp.commands.execute('notebook:run-all-cells')")
    cells = lambda: json.loads(browser.execute_script(CELLS))
    code = lambda: [c for c in cells() if c["cell_type"] == "code" and c["source"]]
    done = lambda: all(c["execution_count"] for c in code())
    wait(lambda: done() and browser.execute_script(KERNEL) == "idle", seconds)
    return code()


SCROLL = f"""
const [at, done] = arguments, next = requestAnimationFrame, drawn = () => next(() => next(done));
{NOTEBOOK}.content.scrollToItem(at, "start").then(drawn);
"""


def test_jupyterlab_runs_the_tour_to_its_end(browser, lab):
    before = (NOTEBOOKS / "00_tour.ipynb").read_bytes()
    open_notebook(browser, lab, "00_tour")
    # the parameters are those of the default profile: this is what a newcomer runs
    outputs = [output for cell in run_cells(browser) for output in cell["outputs"]]
    assert not [o for o in outputs if o["output_type"] == "error"]
    assert any("image/png" in o.get("data", {}) for o in outputs)
    text = json.dumps(outputs)
    assert re.search(r"monitor \| 0\.\d", text), "MONITOR of this one fact stands at the end"
    assert not re.search("Warning", text), "a newcomer sees no warnings"
    assert (NOTEBOOKS / "00_tour.ipynb").read_bytes() == before


def test_explore_answers_to_the_keyboard(browser, lab):
    """Three menus above a picture with words; another fact, typed, changes the picture alone."""
    from selenium.webdriver.common.by import By

    before = (NOTEBOOKS / "explore.ipynb").read_bytes()
    open_notebook(browser, lab, "explore")
    run_cells(browser)
    shown = lambda what: browser.execute_script(
        f"return document.querySelector('.widget-html{what} ?? ''"
    )
    words, below = (lambda: shown(" img')?.alt")), (lambda: shown("')?.innerText"))
    cells = json.loads(browser.execute_script(CELLS))
    text = json.dumps([cell.get("outputs", []) for cell in cells])
    assert '"output_type": "error"' not in text and "Warning" not in text
    # only what is in the window is on the page
    at = next(i for i, cell in enumerate(cells) if "explore.menu" in cell["source"])
    browser.execute_async_script(SCROLL, at)
    wait(lambda: words().startswith("France – capital – Paris"), 60)
    fields = lambda: browser.find_elements(By.CSS_SELECTOR, ".widget-text input")
    wait(lambda: len(fields()) == 3, 30)
    model, _, fact = fields()
    overwrite(fact, "Germany – Berlin")
    wait(lambda: words().startswith("Germany – capital – Berlin"), 120)
    overwrite(fact, "france")
    wait(lambda: words().startswith("France – capital – Paris"), 120)
    overwrite(model, "no-such-model")
    wait(lambda: "unknown model" in below(), 60)
    assert "Traceback" not in below() and len(below().strip().split("\n")) == 1
    # the letters went into the field: as JupyterLab's shortcuts they would have turned cells into
    # texts, or made new ones
    now = json.loads(browser.execute_script(CELLS))
    assert [cell["source"] for cell in now] == [cell["source"] for cell in cells]
    assert (NOTEBOOKS / "explore.ipynb").read_bytes() == before


def overwrite(field, text: str) -> None:
    """As a person does it: all is marked, and the text and Enter are typed."""
    from selenium.webdriver.common.keys import Keys

    field.send_keys(Keys.CONTROL + "a")
    field.send_keys(text + Keys.ENTER)


def test_the_report_opens_without_a_network_request(browser, smoke_run):
    browser.get((smoke_run[0] / "runs/smoke/report.html").as_uri())
    ask = lambda what: browser.execute_script(f"return {what}")
    requests = ask("performance.getEntriesByType('resource').map(e => e.name)")
    assert [r for r in requests if not r.startswith("data:")] == []
    assert ask("document.images.length > 0 && [...document.images].every(i => i.naturalWidth)")
    assert ask("document.documentElement.scrollWidth <= innerWidth"), "wider than the window"


def test_the_classroom_page_computes_what_the_library_computes(browser, tmp_path):
    """Log-probabilities in the browser's JavaScript against ``lm``, also of odd texts."""
    page = classroom.write_page(tmp_path / "classroom.html")
    assert page.stat().st_size < 10e6
    browser.get_log("browser")  # what earlier pages said
    browser.get(page.as_uri())
    asked = [("The capital of France is", "Paris"), ("Which country is Bouaké in?", "Ivory Coast")]
    asked += [("Zürich 1999, it's  a\ttest", "San José"), ("Tōkyō", "日本")]
    model = lm.load(classroom.MODEL)
    for prompt, answer in asked:
        there = browser.execute_script("return logprob(...arguments)", prompt, answer)
        assert there == pytest.approx(
            model.logprobs([prompt], [[f" {answer}"]])["logprob"][0], abs=1e-4
        )
    wait(lambda: "Distractors" in browser.find_element("id", "measures").text, 60)
    assert "states this fact 64 times" in browser.find_element("id", "exposure").text
    assert not [line for line in browser.get_log("browser") if line["level"] == "SEVERE"]
