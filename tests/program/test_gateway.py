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


def test_one_that_stands_still_is_said_to_be_loading(started):
    start, shown = started
    with pytest.raises(AssertionError, match=r"^sluice is still loading after [2-9] s; its log last grew [2-9] s ago,"
                                             r" and ends with: routes: 50%$"):
        start('say("routes: 50%"); time.sleep(600)', patience=2)
    assert shown == ["routes: 50%"]


def test_one_that_says_nothing_is_not_given_the_line_of_another(started):
    with pytest.raises(AssertionError, match=r"and ends with: \(nothing\)$"):
        started[0]("time.sleep(600)", patience=1)


def test_there_is_a_limit_in_any_case(started):
    with pytest.raises(AssertionError, match=r"^sluice is still loading after [3-9] s; .* ends with: kernel: \d+$"):
        started[0]("""
            for done in range(6000):
                say(f"kernel: {done}")
                time.sleep(0.1)
            """, patience=2, limit=3)


def test_one_that_ended_did_not_start(started):
    with pytest.raises(AssertionError, match=r"did not start \(exit status 2\):\n(.*\n)*no such port"):
        started[0]('say("no such port"); sys.exit(2)')
