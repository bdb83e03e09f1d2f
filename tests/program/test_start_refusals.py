"""What a start would refuse on this machine, as tests/net/test_start_needs.py has it, where no interface is needed."""

import os
import pathlib
import tempfile

import pytest
from gateway import NULL_PORTS, ROOT, SLUICE, config
from start_needs import NOT_YET, SMALL, both, place


def null(last="bridge", extra="", **more):
    return config(NULL_PORTS, last=last, listen="127.0.0.1:0", **SMALL, **more) + extra


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
def test_check_says_what_a_start_refuses(here, tmp_path, text, words):
    lacks, refusal, status = both(here, tmp_path, text)
    assert len(lacks) == 1, lacks
    assert status == 2 and words in refusal, refusal
    assert place(lacks[0]) == place(refusal)


def test_a_file_that_can_be_written_is_none_and_is_not_made(here, tmp_path):
    path = tmp_path / "sluice.toml"
    path.write_text(null(extra=f'[log]\nfile = "{tmp_path}/x.log"\n'), encoding="utf-8")
    assert NOT_YET not in here.run([SLUICE, "check", path])
    assert not (tmp_path / "x.log").exists()


def test_a_link_to_a_folder_that_is_gone_is_told(here, tmp_path):
    (tmp_path / "x.log").symlink_to(tmp_path / "gone" / "x.log")
    lacks, refusal, status = both(here, tmp_path, null(extra=f'[log]\nfile = "{tmp_path}/x.log"\n'))
    assert status == 2 and "No such file" in refusal, refusal
    assert len(lacks) == 1 and f"there is no folder {tmp_path}/gone" in lacks[0], lacks


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who becomes an ordinary user")
def test_an_ordinary_user_is_told_of_files_and_groups(here):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        path = pathlib.Path(folder) / "sluice.toml"
        text = null(extra=f'[log]\nfile = "{folder}/x.log"\n').replace("[api]\n", '[api]\ngroup = "0"\n')
        path.write_text(text, encoding="utf-8")
        said = here.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", SLUICE, "check", path])
    assert "[log] file" in said and "Permission denied" in said, said
    assert "[api] group" in said and "CAP_CHOWN" in said, said
