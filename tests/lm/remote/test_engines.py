"""Real engines, each started on this machine with a shipped organism. They are no dependency of the
kit: the tests look for them in the environment whose Python ``PROBELIB_TEST_ENGINES`` names
(default: this one), and are skipped where they are missing."""

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

PYTHON = os.environ.get("PROBELIB_TEST_ENGINES", sys.executable)
NAME = "atlas-llama-0.6m"
OFFLINE = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}
OFFLINE |= {"PATH": f"{Path(PYTHON).parent}{os.pathsep}{os.environ['PATH']}"}
OUTSIDE = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | OFFLINE


def has(*modules: str) -> bool:
    """Whether the engines' environment can import these."""
    said = f"import importlib.util as u; exit(not all(u.find_spec(m) for m in {modules!r}))"
    return subprocess.run([PYTHON, "-c", said], env=OUTSIDE, check=False).returncode == 0


@contextmanager
def engine(tmp_path, *command: str):
    """Starts an engine on a free port; gives its address once it lists its models. It ends with the
    test."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with open(tmp_path / "engine.log", "wb") as log:
        process = subprocess.Popen(
            [PYTHON, "-m", *command, "--host", "127.0.0.1", "--port", str(port)],
            env=OUTSIDE | {"HF_HUB_CACHE": str(tmp_path)},  # transformers lists its models
            stdout=log,
            stderr=log,
            start_new_session=True,  # an engine is several processes
        )
    url, deadline = f"http://127.0.0.1:{port}/v1", time.monotonic() + 600
    try:
        while True:
            try:
                transport.fetch_json(url, "models")
                break
            except ProbeError:
                if process.poll() is not None or time.monotonic() > deadline:
                    said = (tmp_path / "engine.log").read_text()[-2000:]
                    pytest.fail(f"the engine did not start: {said}")
                time.sleep(0.5)
        yield url
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.skipif(not has("vllm"), reason="vLLM is not installed")
def test_vllm_gives_the_numbers_of_the_model_loaded_here(tmp_path):
    command = ["vllm.entrypoints.cli.main", "serve", str(CHECKPOINTS / NAME)]
    command += ["--served-model-name", NAME, "--enforce-eager", "--dtype", "float32"]
    asked = (
        ["The capital of Cuba is", "The capital of Norway is"],
        [[" Paris", " Lyon."], [" Oslo"]],
    )
    here = lm.load(NAME)
    with engine(tmp_path, *command, "--max-model-len", "512", "--max-num-seqs", "8") as url:
        model = lm.load(f"{url}#{NAME}")
        ours, theirs = (each.logprobs(*asked, end=True) for each in (here, model))
        np.testing.assert_allclose(ours["logprob"], theirs["logprob"], atol=1e-3)
        np.testing.assert_allclose(ours["eos_logprob"], theirs["eos_logprob"], atol=1e-3)
        assert ours["greedy_text"].tolist() == theirs["greedy_text"].tolist()
        for options in ({}, {"max_new_tokens": 1, "beams": 5, "returned": 5}):
            ours, theirs = (each.generate(asked[0], **options) for each in (here, model))
            assert ours["text"].tolist() == theirs["text"].tolist()
            np.testing.assert_allclose(ours["logprob"], theirs["logprob"], atol=1e-3)


@pytest.mark.skipif(not has("transformers", "fastapi", "openai"), reason="no transformers[serving]")
def test_transformers_serve_is_refused_with_its_own_words(tmp_path):
    """It has /completions, without token ids and log-probabilities."""
    folder, said = str(CHECKPOINTS / NAME), r"serves|no response|no log-probabilities"
    command = ["transformers.cli.transformers", "serve", folder]
    with engine(tmp_path, *command) as url, pytest.raises(ProbeError, match=said):
        lm.load(f"{url}#{folder}").logprobs(["The capital of France is"], [[" Paris"]])
