"""chain = ["udp_prefix", "route"] between two hosts: the plug-in of examples/plugin, built against the installed tree."""

import json
import socket
import subprocess

import pytest
from gateway import ROOT, SLUICE
from hosts import wait_until
from topology import SERVER4, SERVER6, Topology

PORT = 12300
RULE = f'[udp_prefix]\nport = {PORT}\nbytes = "17 00 03 2a"\n'


@pytest.fixture(scope="module")
def plugin(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plugin")
    for words in (["cmake", "--install", SLUICE.parent, "--prefix", folder / "installed", "--component", "element"],
                  ["cmake", "-S", ROOT / "examples" / "plugin", "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={folder}/installed"],
                  ["cmake", "--build", folder / "build", "--target", "udp_prefix"]):
        subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True)
    return folder / "build" / "udp_prefix.so"


@pytest.fixture(scope="module")
def network(plugin, tmp_path_factory):
    more = f'\n[plugins]\nload = ["{plugin}"]\n\n{RULE}'
    with Topology(tmp_path_factory.mktemp("plugins"), chain=["udp_prefix", "route"], more=more) as topology:
        topology.start()
        yield topology


@pytest.fixture(scope="module")
def sink(network):
    def make():
        one = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        one.bind(("", PORT))
        one.settimeout(5)
        return one

    made = network.server.inside(make)
    yield made
    made.close()


def arrives(network, sink, address, *payloads):
    """Which of these arrive, up to the last one, which does."""
    network.client.send_udp(address, PORT, payloads)
    came = [sink.recv(2000)]
    while came[-1] != payloads[-1]:
        came.append(sink.recv(2000))
    return came


def write_rule(network, rule):
    path = network.gateway.config_path
    path.write_text(path.read_text(encoding="utf-8").split("[udp_prefix]\n")[0] + rule, encoding="utf-8")


@pytest.mark.parametrize("address", [SERVER4, SERVER6])
def test_what_matches_is_dropped_and_counted_like_any_other(network, sink, address):
    before = network.gateway.drops().get("udp_prefix_matched", 0)
    assert arrives(network, sink, address, b"\x17\0\x03\x2aattack", b"\x23\0\x03\x2a a question") == [b"\x23\0\x03\x2a a question"]
    assert wait_until(lambda: network.gateway.drops().get("udp_prefix_matched", 0) == before + 1)
    metrics = network.metrics()
    assert metrics["udp_prefix_matches"] == before + 1 and metrics["udp_prefix_looked_at"] > before + 1
    said = network.gateway.control("stats")
    assert "udp_prefix_matched" in said and "udp_prefix" in network.router.run([SLUICE, "top", "--once"])
    metrics = network.gateway.get("/metrics")
    assert f'sluice_drops_total{{reason="udp_prefix_matched"}} {before + 1}\n' in metrics
    assert f"sluice_udp_prefix_matches_total {before + 1}\n" in metrics
    assert network.gateway.why_degraded() == ""


def test_the_api_has_its_origin_and_what_it_shows(network, plugin):
    first, second = json.loads(network.gateway.get("/api/v1/functions"))
    assert (first["name"], first["from"]) == ("udp_prefix", f"{plugin} (udp_prefix 1.0)")
    assert first["view"] == {"port": PORT, "bytes": 4}
    assert (second["name"], second["from"]) == ("route", "built in") and "view" not in second
    assert json.loads(network.gateway.control("functions")) == [first, second]
    assert json.loads(network.gateway.get("/api/v1/udp_prefix")) == first["view"]  # a route of its own
    assert json.loads(network.gateway.get("/api/v1/config"))["plugins"] == {"load": [str(plugin)]}


def test_a_reload_changes_its_rule_while_frames_pass(network, sink):
    write_rule(network, RULE.replace("17 00 03 2a", "23"))
    assert "udp_prefix: 1 bytes at port" in network.gateway.control("reload")
    assert arrives(network, sink, SERVER4, b"\x23 is dropped now", b"\x17\0\x03\x2a passes") == [b"\x17\0\x03\x2a passes"]
    write_rule(network, RULE.replace("17 00 03 2a", "2"))
    assert '[udp_prefix] bytes = "2": 1 to 8 bytes in hexadecimal are needed' in network.gateway.control("reload", check=False)
    assert arrives(network, sink, SERVER4, b"\x23 is dropped still", b"last") == [b"last"]
    write_rule(network, RULE)
    network.gateway.control("reload")


def test_a_running_gateway_loads_no_other_plugin(network, plugin, tmp_path):
    path = network.gateway.config_path
    whole = path.read_text(encoding="utf-8")
    other = tmp_path / "other.so"
    other.write_bytes(plugin.read_bytes())
    path.write_text(whole.replace(f'load = ["{plugin}"]', f'load = ["{plugin}", "{other}"]'), encoding="utf-8")
    said = network.gateway.control("reload", check=False)
    assert f"{other}: a running gateway loads no plug-in: restart it" in said
    path.write_text(whole.replace(f'load = ["{plugin}"]', "load = []"), encoding="utf-8")
    line = whole[:whole.index("load = [")].count("\n") + 1
    assert f":{line}: [plugins] load cannot change while the gateway runs: restart it" in network.gateway.control("reload", check=False)
    path.write_text(whole, encoding="utf-8")
    assert "udp_prefix: 4 bytes" in network.gateway.control("reload")


def test_a_new_file_in_its_place_is_reported_and_not_taken(network, plugin):
    content = plugin.read_bytes()
    plugin.unlink()
    plugin.write_bytes(content)
    said = network.gateway.control("reload")
    for place in (said, network.gateway.log()):
        assert f"plug-in {plugin} is no longer the file that was loaded: " in place
    assert network.reaches(SERVER4)
