"""probelib: four measures of what language models know as fact, on one small library.

    errors, files, paths  <-  facts  <-  prompts
                              lm     <-  store
    stats, published                        ^
       monitor, zplke, distractors, grapheval     a package per paper
              beyond, explore                     all measures on the same facts
    report  <-  runner                            pages; the command line

Arrows never point back (``tests/test_architecture.py``): ``lm`` knows neither facts nor papers,
papers do not know each other, and the runner knows papers only through ``notebooks/plan.yaml``.

==================  ==============================================================================
``facts``           what a fact is; the atlas; readers of published formats; knowledge graphs
``prompts``         templates and contexts -> prompts
``lm``              the core, the only part that touches a model
``store``           scores on disk: keyed, in finished parts, resumable
``stats``           correlation, calibration, scaling fits, intervals, tests
a paper's package   ``scores`` (what is scored), ``measures`` (formulas), ``artifacts``
``report``          ``Artifact``, ``Section``, chart style, the HTML report, the Markdown pages
``runner``          plan, up-to-date checks, notebooks in processes, Dask workers
``organisms``       how the shipped models were made
==================  ==============================================================================
"""

from importlib.metadata import PackageNotFoundError, version

from probelib.errors import ProbeError

try:
    __version__ = version("probelib")
except PackageNotFoundError:  # imported from a checkout that was never installed
    __version__ = "0+unknown"
