"""Inspection of a port that others mirror to: nothing is forwarded."""

from gateway import ROOT, Gateway, config
from hosts import Lab
from web import browse

LOCAL_RULES = ROOT / "examples" / "local.rules"


def test_a_mirrored_port_answers_what_is_rejected(tmp_path):
    """Nothing is forwarded, and a rule of reject ends a connection by an answer out of the port that the mirror is on."""
    with Lab() as lab:
        client, router = lab.host("client"), lab.host("router")
        lab.join(client, "eth0", router, "lan0")
        client.ip("addr add 10.1.0.2/24 dev eth0")
        client.ip("neigh add 10.1.0.3 lladdr 02:00:00:00:00:03 dev eth0")
        gateway = Gateway(router, tmp_path, config([("mirror", "lan0", "")], size="256M", last="passive",
                                                   inspect=[f'rules = ["{LOCAL_RULES}"]', "flows = 4096"])).start()
        assert browse(client, "10.1.0.3", timeout=0.5) is TimeoutError
        assert browse(client, "10.1.0.3", port=23, timeout=5) is ConnectionRefusedError
        assert gateway.drops().get("passive", 0) > 0
        stats = gateway.stats()
        answered = {row["reason"]: row["frames"] for row in stats["icmp_errors"] if row["frames"]}
        assert stats["ports"][0]["tx_errors"] == 0 and answered == {"inspect_rejected": 1}
        gateway.interrupt()
