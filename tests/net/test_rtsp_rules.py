"""[srtp.rtsp] and rules of the router's kernel: where they are gone, or another's come first, the proxy's flows stop; none goes in clear."""


import pytest

from capture import Capture
from film import check_secret_and_whole, ffmpeg, film, play, settings
from gateway import SLUICE, config
from hosts import wait_until
from rtsp_peers import FILM, why_not
from topology import SERVER4

_reason = why_not()
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))

PAST = "srtp_rtsp_past_proxy"


def why(network):
    return network.gateway.why_degraded()


def clear_over_tcp(network, seconds=4):
    """Whether a client that wants media over RTSP's own connection gets a description in clear; and what was dropped for it."""
    before = network.gateway.drops().get(PAST, 0)
    with Capture(network.client, "eth0") as outside:
        network.client.run(["timeout", str(seconds), "ffmpeg", "-nostdin", "-loglevel", "error", "-rtsp_transport", "tcp",
                            "-i", FILM.format(SERVER4), "-t", "2", "-f", "null", "-"], check=False)
    return outside.has(b" RTP/AVP "), network.gateway.drops().get(PAST, 0) - before


def overrule(network):
    for number, way in enumerate(("to", "from"), 100):
        network.router.ip(f"rule add pref {number} {way} 10.2.0.0/24 lookup main")


def test_rules_that_come_first(tmp_path):
    """Ordinary policy routing, from before the start: the kernel would forward what it is handed for the proxy."""
    with film(tmp_path) as network:
        overrule(network)
        network.start()
        network.serve()
        assert "the rule '100: from all to 10.2.0.0/24 lookup main' of this host" in why(network)
        assert "comes before the proxy's, of priority 1554" in network.gateway.log()
        clear, dropped = clear_over_tcp(network)
        assert not clear and dropped > 0
        # Others' frames of the same host pass.
        assert network.reaches(SERVER4)
        for number in (100, 101):
            network.router.ip(f"rule del pref {number}")
        assert wait_until(lambda: why(network) == "", 5)
        check_secret_and_whole(*play(network, ffmpeg(SERVER4, 3))[:2], least=30)
        # While it runs, too.
        overrule(network)
        assert wait_until(lambda: "comes before" in why(network), 5) or "before the proxy's" in why(network)
        clear, dropped = clear_over_tcp(network)
        assert not clear and dropped > 0


def test_a_priority_before_them(tmp_path):
    with film(tmp_path, "priority = 99") as network:
        overrule(network)
        network.start()
        network.serve()
        assert wait_until(lambda: why(network) == "", 5), why(network)
        check_secret_and_whole(*play(network, ffmpeg(SERVER4, 3))[:2], least=30)


def test_rules_that_are_taken_away_come_back(tmp_path):
    with film(tmp_path) as network:
        network.start()
        network.serve()
        for lost in ("rule del pref 1554", "-6 rule del pref 1554"):
            while network.router.run(f"ip {lost}", check=False) == "" and "1554" in network.router.ip(f"{lost.split('rule')[0]}rule"):
                pass
        network.router.ip("route flush table 1554")
        clear, _ = clear_over_tcp(network)
        assert not clear
        assert wait_until(lambda: "lookup 1554" in network.router.ip("rule") and "lookup 1554" in network.router.ip("-6 rule"), 5)
        assert "local default dev lo" in network.router.ip("route show table 1554")
        assert network.metric("rtsp_rules_restored") >= 2 * 2 * 2
        assert "were gone and are there again" in network.gateway.log()
        assert "were gone a moment ago" in why(network)
        check_secret_and_whole(*play(network, ffmpeg(SERVER4, 3))[:2], least=30)
        assert wait_until(lambda: why(network) == "", 15)
        network.gateway.interrupt()
        assert "1554" not in network.router.ip("rule") + network.router.ip("-6 rule")
        network.start()


def test_a_second_gateway_of_the_namespace(tmp_path):
    """It would take the first one's rules away: it does not start, and says who has the table. With one of its own it does."""
    with film(tmp_path) as network:
        gateway = network.start()
        network.serve()
        network.router.ip("link add lan7 type veth peer name wan7")
        for name in ("lan7", "wan7"):
            network.router.ip(f"link set {name} up")
        path = tmp_path / "second.toml"
        ports = [("lan", "lan7", "sl-lan7"), ("wan", "wan7", "sl-wan7")]

        def second(*more):
            text = config(ports, srtp=settings(*more), engine=('device = "cpu"',), listen="")
            path.write_text(text, encoding="utf-8")
            return network.router.run(["timeout", "-s", "INT", "8", SLUICE, "run", path], check=False)

        rules = network.router.ip("rule")
        answer = second()
        assert f"routing table 1554 is in use by another gateway (process {gateway.process.pid})" in answer, answer
        assert network.router.ip("rule") == rules
        answer = second("table = 1555")
        assert "running" in answer and "in use" not in answer, answer
        assert network.router.ip("rule") == rules
        check_secret_and_whole(*play(network, ffmpeg(SERVER4, 3))[:2], least=30)
        # What one that was killed has left is taken away.
        gateway.kill()
        assert "lookup 1554" in network.router.ip("rule")
        network.start()
        assert sorted(network.router.ip("rule").splitlines()) == sorted(rules.splitlines())
