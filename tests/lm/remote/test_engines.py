"""Real engines, each started on this machine with a shipped organism. They are no dependency of the kit: the tests look for them
in the environment whose Python ``PROBELIB_TEST_ENGINES`` names (default: this one), and are skipped where they are missing."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from probelib import ProbeError, lm
from probelib.lm.names import CHECKPOINTS
from probelib.lm.remote import transport
from probelib.lm.remote.served import KNOWN, SENTENCES

PYTHON = os.environ.get("PROBELIB_TEST_ENGINES", sys.executable)
NAME, CITIES = "atlas-llama-0.6m", [f" {city}" for city in KNOWN.values()]
OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
}
OFFLINE |= {
    "PATH": f"{Path(PYTHON).parent}{os.pathsep}{os.environ['PATH']}",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
}


def has(*modules: str) -> bool:
    """Whether the engines' environment can import these."""
    said = (
        f"import importlib.util as u, sys; sys.exit(not all(u.find_spec(m) for m in {modules!r}))"
    )
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run([PYTHON, "-c", said], env=environment, check=False).returncode == 0


@contextmanager
def engine(tmp_path, *command: str):
    """Starts an engine on a free port; gives its address once it lists its models. It ends with the test."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | OFFLINE
    # transformers lists its models, and fails where there is no such folder
    environment["HF_HUB_CACHE"] = str(tmp_path)
    with open(tmp_path / "engine.log", "wb") as log:
        process = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", str(port)],
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,  # an engine is several processes
        )
    url, deadline = f"http://127.0.0.1:{port}/v1", time.monotonic() + 600
    try:
        while True:
            try:
                with socket.create_connection(("127.0.0.1", port), 1):
                    pass
                transport.fetch_json(url, "models")
                break
            except (OSError, ProbeError):
                if process.poll() is not None or time.monotonic() > deadline:
                    pytest.fail(
                        f"the engine did not start: {(tmp_path / 'engine.log').read_text()[-2000:]}"
                    )
                time.sleep(0.5)
        yield url
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.skipif(
    not has("vllm"), reason="vLLM is not installed (pip install vllm, or a build of it for CPUs)"
)
def test_vllm_gives_the_numbers_of_the_model_loaded_here_both_ways(tmp_path):
    command = [
        PYTHON,
        "-m",
        "vllm.entrypoints.cli.main",
        "serve",
        str(CHECKPOINTS / NAME),
        "--served-model-name",
        NAME,
    ]
    options = [
        "--enforce-eager",
        "--dtype",
        "float32",
        "--max-model-len",
        "512",
        "--max-num-seqs",
        "8",
    ]
    here = lm.load(NAME)
    with engine(tmp_path, *command, *options) as url:
        model = lm.load(f"{url}#{NAME}")
        found = model.check(here)
        assert found["local_nats"] < 1e-4 and found["nodes_nats"] < 1e-4
        examples = " ".join(SENTENCES[:8])
        asked = (
            [f"{examples} The capital of Cuba is", "The capital of Norway is"],
            [CITIES, [" Oslo"]],
        )
        ours = here.logprobs(*asked, end=True)
        for model.by_nodes in (True, False):
            theirs = model.logprobs(*asked, end=True)
            assert ("sent_tokens" in theirs.attrs["cost"]) == model.by_nodes
            np.testing.assert_allclose(ours["logprob"], theirs["logprob"], atol=1e-3)
            np.testing.assert_allclose(ours["eos_logprob"], theirs["eos_logprob"], atol=1e-3)
            assert ours["greedy_text"].tolist() == theirs["greedy_text"].tolist()
        for options in ({}, {"max_new_tokens": 1, "beams": 5, "returned": 5}):
            ours, theirs = (each.generate(asked[0], **options) for each in (here, model))
            assert ours["text"].tolist() == theirs["text"].tolist()
            np.testing.assert_allclose(ours["logprob"], theirs["logprob"], atol=1e-3)


@pytest.mark.skipif(
    not has("transformers", "fastapi", "uvicorn", "openai"),
    reason="transformers[serving] is not installed",
)
def test_transformers_serve_is_refused_with_its_own_words(tmp_path):
    """It has /completions, without token ids and log-probabilities."""
    folder = str(CHECKPOINTS / NAME)
    command = [PYTHON, "-m", "transformers.cli.transformers", "serve", folder]
    with (
        engine(tmp_path, *command) as url,
        pytest.raises(ProbeError, match=r"serves|no response|no log-probabilities"),
    ):
        lm.load(f"{url}#{folder}").logprobs(["The capital of France is"], [[" Paris"]])
