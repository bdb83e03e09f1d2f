"""What a start would refuse on this machine: `check` says it, with the same line, and the exit status of `run` tells whether to try again."""

import os
import pathlib
import re
import socket
import subprocess
import tempfile

import pytest
from gateway import ROOT, SLUICE, Gateway, config
from hosts import Lab

PORTS = [("a", "net_null0,no-rx=1", ""), ("b", "net_null1,no-rx=1", "")]
SMALL = {"size": "128M", "memory": ("frames = 4096",)}
NOT_YET = "until then 'sluice run' refuses to start on this machine"


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


def both(host, folder, text, before=()):
    """What `check` says of a start, and of `run` its words and its exit status."""
    path = folder / "sluice.toml"
    path.write_text(text, encoding="utf-8")
    checked = host.spawn([*before, SLUICE, "check", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = checked.communicate(timeout=30)[0]
    assert checked.returncode == 0, said
    run = host.spawn([*before, SLUICE, "run", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    refusal = run.communicate(timeout=30)[0]
    lacks = [line for line in said.splitlines() if line.endswith(NOT_YET)]
    return lacks, refusal.splitlines()[-1], run.returncode


def place(line):
    return re.match(r".*?sluice\.toml(?::\d+)?: ", line)[0]


def null(last="bridge", extra="", **more):
    return config(PORTS, last=last, listen="127.0.0.1:0", **SMALL, **more) + extra


LONG = "/tmp/" + "x" * 300
LACKS = [
    pytest.param(null().replace("[api]\n", '[api]\ngroup = "nosuch"\n'), "no such group", id="group"),
    pytest.param(null().replace("127.0.0.1:0", "192.0.2.1:9230").replace("[api]\n", "[api]\nallow_remote = true\n"),
                 "Cannot assign requested address", id="address"),
    pytest.param(null().replace("[api]\n", '[api]\nsocket = "/proc/x.sock"\n'), "/proc/x.sock", id="socket"),
    pytest.param(null(extra=f'[log]\nfile = "{LONG}.log"\n'), "too long", id="log"),
    pytest.param(null(inspect=(f'rules = ["{ROOT}/examples/local.rules"]', f'eve = "{LONG}.json"')), "too long", id="eve"),
    pytest.param(null(inspect=(f'rules = ["{ROOT}/examples/local.rules"]', f'fast = "{LONG}.fast"')), "too long", id="fast"),
    pytest.param(null(acl=f'eve = "{LONG}.json"\n[[acl.rule]]\naction = "deny"\nlog = true\n'), "too long", id="acl-eve"),
    pytest.param(null().replace("net_null0,no-rx=1", f"net_pcap0,rx_pcap={ROOT}/examples/attacks.pcap,tx_pcap=/nosuch/x.pcap"),
                 "/nosuch/x.pcap", id="capture"),
    pytest.param(null().replace("net_null0,no-rx=1", "net_pcap0,tx_iface=nosuch0"), "nosuch0", id="capture-interface"),
    pytest.param(null().replace("net_null0,no-rx=1", "net_memif0,role=server,id=0,socket=/nosuch/m.sock,socket-abstract=no"),
                 "directory", id="memif"),
    pytest.param(null(engine=('device = "cuda:15"',)), "GPU", id="gpu"),
]


@pytest.mark.parametrize(("text", "words"), LACKS)
def test_check_says_what_a_start_refuses(host, tmp_path, text, words):
    lacks, refusal, status = both(host, tmp_path, text)
    assert len(lacks) == 1, lacks
    assert status == 2 and words in refusal, refusal
    assert place(lacks[0]) == place(refusal)


def test_a_file_that_can_be_written_is_none_and_is_not_made(host, tmp_path):
    path = tmp_path / "sluice.toml"
    path.write_text(null(extra=f'[log]\nfile = "{tmp_path}/x.log"\n'), encoding="utf-8")
    assert NOT_YET not in host.run([SLUICE, "check", path])
    assert not (tmp_path / "x.log").exists()


def test_a_link_to_a_folder_that_is_gone_is_told(host, tmp_path):
    (tmp_path / "x.log").symlink_to(tmp_path / "gone" / "x.log")
    lacks, refusal, status = both(host, tmp_path, null(extra=f'[log]\nfile = "{tmp_path}/x.log"\n'))
    assert status == 2 and "No such file" in refusal, refusal
    assert len(lacks) == 1 and f"there is no folder {tmp_path}/gone" in lacks[0], lacks


def test_an_ordinary_user_is_told_of_files_and_groups(host):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        path = pathlib.Path(folder) / "sluice.toml"
        text = null(extra=f'[log]\nfile = "{folder}/x.log"\n').replace("[api]\n", '[api]\ngroup = "0"\n')
        path.write_text(text, encoding="utf-8")
        said = host.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", SLUICE, "check", path])
    assert "[log] file" in said and "Permission denied" in said, said
    assert "[api] group" in said and "CAP_CHOWN" in said, said


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
    return config(more.pop("ports", PORTS), last="bridge", listen="127.0.0.1:9231", **SMALL, **more)


IN_USE = [
    pytest.param(lambda gateway: other_text(ports=[("c", "lan0", ""), PORTS[1]]), "interface 'lan0' is in use by another gateway",
                 id="interface"),
    pytest.param(lambda gateway: other_text(ports=[("c", PORTS[0][1], "tw-a"), PORTS[1]]),
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
    text = other_text(ports=[("c", "lan0", "tw-a"), PORTS[1]]).replace(":9231", ":9230")
    lacks = both(running.host, tmp_path, text)[0]
    words = ("Address already in use", "interface 'lan0' is in use by another gateway", "'tw-a' is in use by another program")
    assert len(lacks) == len(words), lacks
    for word in words:
        assert sum(word in lack for lack in lacks) == 1, (word, lacks)


def test_ipv6_that_is_off_is_told(lab, tmp_path):
    host = lab.host("no-ipv6")
    host.run("sysctl -qw net.ipv6.conf.default.disable_ipv6=1")
    text = config([("a", PORTS[0][1], "tw-c"), PORTS[1]], last="bridge", listen="127.0.0.1:0", **SMALL)
    lacks, refusal, status = both(host, tmp_path, text.replace('twin = "tw-c"', 'twin = "tw-c"\naddress = ["fd00::1/64"]'))
    assert status == 2 and "IPv6 is off" in refusal, refusal
    assert len(lacks) == 1 and "IPv6 is off" in lacks[0] and place(lacks[0]) == place(refusal), lacks


def test_ipv6_that_is_off_on_a_twin_that_is_there_is_told_of_that_one(lab, tmp_path):
    host = lab.host("twin-no-ipv6")
    host.ip("tuntap add tw-d mode tap")
    host.run("sysctl -qw net.ipv6.conf.tw-d.disable_ipv6=1")
    text = config([("a", PORTS[0][1], "tw-d"), PORTS[1]], last="bridge", listen="127.0.0.1:0", **SMALL)
    lacks, refusal, status = both(host, tmp_path, text.replace('twin = "tw-d"', 'twin = "tw-d"\naddress = ["fd00::1/64"]'))
    assert status == 2, refusal
    assert len(lacks) == 1 and lacks[0].startswith(refusal), (lacks, refusal)
    assert "sysctl net.ipv6.conf.tw-d.disable_ipv6=0" in refusal


def test_a_port_of_rtsp_that_another_program_has_is_told(lab, tmp_path):
    host = lab.host("rtsp")
    text = config([("a", PORTS[0][1], "tw-a"), ("b", PORTS[1][1], "tw-b")], listen="127.0.0.1:0", size="384M", memory=("frames = 4096",),
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


def limited(limit, capability):
    return ["prlimit", limit, "setpriv", "--bounding-set", f"-{capability}", "--inh-caps", f"-{capability}"]


def test_too_few_open_files_are_told_for_what_they_are(host, tmp_path):
    text = config([("a", "wan0", ""), PORTS[1]], last="bridge", listen="127.0.0.1:9232", **SMALL)
    lacks, refusal, status = both(host, tmp_path, text, limited("--nofile=40:40", "sys_resource"))
    assert status == 2 and "this process may have 40 files open" in refusal and "LimitNOFILE" in refusal, refusal
    assert any("this process may have 40 files open" in lack for lack in lacks), lacks


def test_too_little_locked_memory_is_told_for_what_it_is(host, tmp_path):
    text = config([("a", "net_af_xdp0,iface=wan0", ""), PORTS[1]], last="bridge", listen="127.0.0.1:9232", **SMALL)
    lacks, refusal, status = both(host, tmp_path, text, limited("--memlock=65536:65536", "ipc_lock"))
    assert status == 2 and "may lock 64 KB" in refusal and "LimitMEMLOCK" in refusal, refusal
    assert any("may lock 64 KB" in lack for lack in lacks), lacks
