"""What a start would refuse on this machine: `check` says it, with the same line, and the exit status of `run` says whether to try again."""

import socket

import pytest
from gateway import NULL_PORTS, SLUICE, Gateway, config
from hosts import Lab
from start_needs import NOT_YET, SMALL, both, place


@pytest.fixture(scope="module")
def lab():
    """`router` with two interfaces, lan0 and wan0."""
    with Lab() as lab:
        router, other = lab.host("router"), lab.host("other")
        for interface in ("lan0", "wan0"):
            lab.join(other, interface, router, interface)
        yield lab


@pytest.fixture
def host(lab):
    return lab.hosts[0]


@pytest.fixture(scope="module")
def running(lab, tmp_path_factory):
    """A gateway that has lan0, the twin tw-a and a socket."""
    folder = tmp_path_factory.mktemp("running")
    host = lab.hosts[0]
    ports = [("a", "lan0", "tw-a"), ("b", "net_null1,no-rx=1", "")]
    text = config(ports, last="bridge", **SMALL).replace("[api]\n", f'[api]\nsocket = "{folder}/api.sock"\n')
    gateway = Gateway(host, folder, text).start()
    gateway.socket = folder / "api.sock"
    yield gateway
    gateway.kill()


def other_text(**more):
    return config(more.pop("ports", NULL_PORTS), last="bridge", listen="127.0.0.1:9231", **SMALL, **more)


IN_USE = [
    pytest.param(lambda gateway: other_text(ports=[("c", "lan0", ""), NULL_PORTS[1]]), "interface 'lan0' is in use by another gateway",
                 id="interface"),
    pytest.param(lambda gateway: other_text(ports=[("c", NULL_PORTS[0][1], "tw-a"), NULL_PORTS[1]]),
                 "the TAP interface 'tw-a' is in use by another program", id="twin"),
    pytest.param(lambda gateway: other_text().replace("[api]\n", f'[api]\nsocket = "{gateway.socket}"\n'),
                 "is in use by another gateway", id="socket"),
    pytest.param(lambda gateway: other_text().replace(":9231", ":9230"), "Address already in use", id="address"),
]


@pytest.mark.parametrize(("make", "words"), IN_USE)
def test_what_another_has_is_no_mistake_of_the_file(running, tmp_path, make, words):
    lacks, refusal, status = both(running.host, tmp_path, make(running))
    assert status == 1 and words in refusal, refusal
    assert [place(lack) for lack in lacks] == [place(refusal)], lacks


def test_the_gateway_of_another_file_is_another_with_all_that_it_has(running, tmp_path):
    text = other_text(ports=[("c", "lan0", "tw-a"), NULL_PORTS[1]]).replace(":9231", ":9230")
    lacks = both(running.host, tmp_path, text)[0]
    words = ("Address already in use", "interface 'lan0' is in use by another gateway", "'tw-a' is in use by another program")
    assert len(lacks) == len(words), lacks
    for word in words:
        assert sum(word in lack for lack in lacks) == 1, (word, lacks)


def test_ipv6_that_is_off_is_reported(lab, tmp_path):
    host = lab.host("no-ipv6")
    host.run("sysctl -qw net.ipv6.conf.default.disable_ipv6=1")
    text = config([("a", NULL_PORTS[0][1], "tw-c"), NULL_PORTS[1]], last="bridge", listen="127.0.0.1:0", **SMALL)
    lacks, refusal, status = both(host, tmp_path, text.replace('twin = "tw-c"', 'twin = "tw-c"\naddress = ["fd00::1/64"]'))
    assert status == 2 and "IPv6 is off" in refusal, refusal
    assert len(lacks) == 1 and "IPv6 is off" in lacks[0] and place(lacks[0]) == place(refusal), lacks


def test_ipv6_that_is_off_on_a_twin_that_is_there_is_reported_of_that_one(lab, tmp_path):
    host = lab.host("twin-no-ipv6")
    host.ip("tuntap add tw-d mode tap")
    host.run("sysctl -qw net.ipv6.conf.tw-d.disable_ipv6=1")
    text = config([("a", NULL_PORTS[0][1], "tw-d"), NULL_PORTS[1]], last="bridge", listen="127.0.0.1:0", **SMALL)
    lacks, refusal, status = both(host, tmp_path, text.replace('twin = "tw-d"', 'twin = "tw-d"\naddress = ["fd00::1/64"]'))
    assert status == 2, refusal
    assert len(lacks) == 1 and lacks[0].startswith(refusal), (lacks, refusal)
    assert "sysctl net.ipv6.conf.tw-d.disable_ipv6=0" in refusal


def test_a_port_of_rtsp_that_another_program_has_is_reported(lab, tmp_path):
    host = lab.host("rtsp")
    text = config([("a", NULL_PORTS[0][1], "tw-a"), ("b", NULL_PORTS[1][1], "tw-b")], listen="127.0.0.1:0", size="384M", memory=("frames = 4096",),
                  srtp='[srtp]\n[srtp.rtsp]\nservers = ["192.0.2.0/24"]\n', route=("max_ipv4 = 20000", "max_ipv6 = 5000"))
    with host.inside(lambda: socket.create_server(("", 8554))):
        lacks, refusal, status = both(host, tmp_path, text)
    assert status == 1 and "port 8554" in refusal and "in use by another program of this host" in refusal, refusal
    assert len(lacks) == 1 and "port 8554 is in use by another program" in lacks[0], lacks


def test_check_of_a_gateway_that_runs_lacks_nothing(running, tmp_path):
    assert NOT_YET not in running.host.run([SLUICE, "check", running.config_path])
    link = tmp_path / "linked.toml"
    link.symlink_to(running.config_path)
    assert NOT_YET not in running.host.run([SLUICE, "check", link])


@pytest.mark.parametrize("device, limit, capability, said, setting", [
    pytest.param("wan0", "--nofile=40:40", "sys_resource", "this process may have 40 files open", "LimitNOFILE", id="files"),
    pytest.param("net_af_xdp0,iface=wan0", "--memlock=65536:65536", "ipc_lock", "may lock 64 KB", "LimitMEMLOCK", id="locked-memory"),
])
def test_a_limit_of_the_process_is_reported_for_what_it_is(host, tmp_path, device, limit, capability, said, setting):
    text = config([("a", device, ""), NULL_PORTS[1]], last="bridge", listen="127.0.0.1:9232", **SMALL)
    without = ["prlimit", limit, "setpriv", "--bounding-set", f"-{capability}", "--inh-caps", f"-{capability}"]
    lacks, refusal, status = both(host, tmp_path, text, without)
    assert status == 2 and said in refusal and setting in refusal, refusal
    assert any(said in lack for lack in lacks), lacks
