"""How long a test or the demo waits for a gateway to start: as long as its log grows; and what it says when it gave up."""

import socket
import sys
import textwrap

import gateway
import pytest
from hosts import Here


@pytest.fixture
def started(tmp_path, monkeypatch):
    """Starts a program that loads as `body` does, in the place of sluice: (the gateway, what it showed)."""
    here, shown = Here(), []
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def start(body, **waits):
        program = tmp_path / "sluice"
        program.write_text(f"#!{sys.executable}\nimport sys, time\nport = {port}\nsay = lambda text: print(text, flush=True)\n" +
                           textwrap.dedent(body), encoding="utf-8")
        program.chmod(0o755)
        monkeypatch.setattr(gateway, "SLUICE", program)
        one = gateway.Gateway(here, tmp_path, gateway.config([], listen=f"127.0.0.1:{port}"))
        one.log_path.write_text("routes: 99%, of a start before\n", encoding="utf-8")
        return one.start(show=shown.append, **waits)

    yield start, shown
    here.close()


def test_a_start_may_last_while_its_log_grows(started):
    start, shown = started
    start("""
        import http.server
        for done in range(12):
            say(f"routes: {done}%")
            time.sleep(0.25)
        class Healthy(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.end_headers()
        http.server.HTTPServer(("127.0.0.1", port), Healthy).serve_forever()
        """, patience=2)
    assert [line for line in shown if line.startswith("routes: ")] == [f"routes: {done}%" for done in range(12)]


LOADING = r"^sluice is still loading after [1-9] s; its log last grew [0-9] s ago, and ends with: "
REPORTS_FOR_EVER = """
    for done in range(6000):
        say(f"kernel: {done}")
        time.sleep(0.1)
    """


@pytest.mark.parametrize("body, waits, last, reported", [
    pytest.param('say("routes: 50%"); time.sleep(600)', {"patience": 2}, "routes: 50%$", ["routes: 50%"], id="stands still"),
    pytest.param("time.sleep(600)", {"patience": 1}, r"\(nothing\)$", [], id="says nothing, another one before it did"),
    pytest.param(REPORTS_FOR_EVER, {"patience": 2, "limit": 3}, r"kernel: \d+$", None, id="there is a limit in any case"),
])
def test_a_wait_ends_and_says_what_for_it_was(started, body, waits, last, reported):
    start, shown = started
    with pytest.raises(AssertionError, match=LOADING + last):
        start(body, **waits)
    assert reported is None or shown == reported


def test_one_that_ended_did_not_start(started):
    with pytest.raises(AssertionError, match=r"did not start \(exit status 2\):\n(.*\n)*no such port"):
        started[0]('say("no such port"); sys.exit(2)')
