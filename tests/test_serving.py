"""The pages are served on this machine only, and a start that cannot be says what to do."""

from __future__ import annotations

import http.client
import socket
import threading

import pytest
from demo_view import ScriptedView
from visitors import open_app

from torra.dashboard import server
from torra.errors import ConfigError


@pytest.fixture
def taken():
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        yield holder.getsockname()[1]


@pytest.mark.parametrize("start", ["open_server", "serve", "check_port"])
def test_a_taken_port_is_one_line_with_the_remedy(taken, start):
    where = ("127.0.0.1", taken)
    arguments = where if start == "check_port" else (open_app(ScriptedView()), *where)
    with pytest.raises(ConfigError) as caught:
        getattr(server, start)(*arguments)
    line = str(caught.value)
    assert f"port {taken}" in line
    assert f"PORT={taken + 1}" in line
    assert "\n" not in line


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.4", "::", "example.org", ""])
def test_an_address_beyond_this_machine_is_refused(host):
    for start in (server.check_port, lambda *at: server.serve(open_app(ScriptedView()), *at)):
        with pytest.raises(ConfigError, match="this machine only"):
            start(host, 5150)


def test_a_free_port_is_left_free():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server.check_port("127.0.0.1", port)
    server.check_port("localhost", port)


def test_the_server_answers_and_ends():
    running = server.open_server(open_app(ScriptedView()), "127.0.0.1", 0)
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    try:
        connection = http.client.HTTPConnection("127.0.0.1", running.effective_port, timeout=10)
        connection.request("GET", "/healthz")
        answer = connection.getresponse()
        assert answer.status == 200
        assert answer.getheader("Server") is None
        answer.read()
        connection.request("GET", "/", headers={"Host": "evil.test"})
        assert connection.getresponse().status == 400
        connection.close()
    finally:
        running.trigger.pull_trigger(running.close)  # closed by the thread that reads
        thread.join(10)
        running.task_dispatcher.shutdown()
    assert not thread.is_alive()
