"""What a start refuses, and `check` says of it: mistakes of the file, and what this machine lacks, where no interface is needed.

tests/net/test_start_needs.py and test_lifecycle.py have what does need one.
"""

import os
import pathlib
import socket
import subprocess
import tempfile

import pytest
from gateway import NULL_PORTS, ROOT, SLUICE, SMALL_TABLES, config
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


def test_a_link_to_a_folder_that_is_gone_is_reported(here, tmp_path):
    (tmp_path / "x.log").symlink_to(tmp_path / "gone" / "x.log")
    lacks, refusal, status = both(here, tmp_path, null(extra=f'[log]\nfile = "{tmp_path}/x.log"\n'))
    assert status == 2 and "No such file" in refusal, refusal
    assert len(lacks) == 1 and f"there is no folder {tmp_path}/gone" in lacks[0], lacks


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who becomes an ordinary user")
def test_an_ordinary_user_is_shown_files_and_groups(here):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        path = pathlib.Path(folder) / "sluice.toml"
        text = null(extra=f'[log]\nfile = "{folder}/x.log"\n').replace("[api]\n", '[api]\ngroup = "0"\n')
        path.write_text(text, encoding="utf-8")
        said = here.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", SLUICE, "check", path])
    assert "[log] file" in said and "Permission denied" in said, said
    assert "[api] group" in said and "CAP_CHOWN" in said, said


# What is written in place of a line of null(), the setting that the refusal names, and its words.
MISTAKES = [
    pytest.param("deadline = ", "dedline = ", "dedline", ["dedline", "did you mean \"deadline\""], id="misspelt"),
    pytest.param("net_null0,no-rx=1", "fffe:3b:00.0", "fffe:3b:00.0", ["[[port]] 'a'", "there is no PCI device fffe:3b:00.0: see lspci -D"], id="pci"),
    pytest.param('device = "auto"', 'device = "cuda:15"', "cuda:15",
                 ['[engine] device = "cuda:15": no GPU', 'device = "auto" takes the CPU', '"cpu"'], id="gpu"),
    pytest.param('poll = "adaptive"', 'poll = "adaptive"\ncores = [777]', "cores", ["core 777 does not exist"], id="core"),
    pytest.param('poll = "adaptive"', 'poll = "adaptive"\nworker_core = 777', "worker_core", ["core 777 does not exist"], id="worker"),
    pytest.param('poll = "adaptive"', 'poll = "adaptive"\ncycle = "40ms"', "cycle", ["exceeds its deadline of 50ms"], id="deadline"),
    pytest.param('hugepages = "off"\nsize = "128M"', 'hugepages = "require"\nsize = "900G"', "hugepages", ["vm.nr_hugepages"], id="hugepages"),
]


@pytest.mark.parametrize(("before", "after", "setting", "words"), MISTAKES)
def test_a_refusal_names_the_line_of_its_setting(here, tmp_path, before, after, setting, words):
    text = null()
    assert before in text
    refused(here, tmp_path, text.replace(before, after), setting, words)


def refused(here, folder, text, setting, words):
    """One line of the place of the first line with `setting`, and these words; nothing besides."""
    path = folder / "bad.toml"
    path.write_text(text + '\n[log]\nlevel = "error"\n', encoding="utf-8")
    line = 1 + [setting in line for line in text.splitlines()].index(True)
    for command in ("check", "run"):
        process = here.spawn([SLUICE, command, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        output, errors = process.communicate(timeout=20)
        if command == "check" and process.returncode == 0:  # this machine lacks it
            assert f"bad.toml:{line}: " in output + errors and NOT_YET in output + errors, output + errors
            continue
        assert process.returncode == 2, output + errors
        assert errors.startswith(f"{path}:{line}: ") and errors.count("\n") == 1, errors
        assert all(word in errors for word in words), errors


def test_tables_that_do_not_fit_are_named_with_their_line(here, tmp_path):
    route = ("kernel = false", "max_ipv4 = 3_000_000")
    refused(here, tmp_path, config(NULL_PORTS, route=route, listen="127.0.0.1:0"), "max_ipv4", ["lower max_ipv4"])


@pytest.mark.parametrize("command", ["check", "run"])
def test_all_mistakes_are_found_in_one_pass_and_said_by_line(here, tmp_path, command):
    path = tmp_path / "wrong.toml"
    path.write_text('[route]\nmax_ipv4 = 0\nmax_ipv7 = 1\n[memory]\nsize = "1M"\n[[port]]\nname = "lan"\n'
                    'device = "net_null0"\n[engine]\nbatch = 1\n', encoding="utf-8")
    lines = here.run([SLUICE, command, path], check=False).splitlines()
    assert [line.removeprefix(f"{path}:").split(":")[0] for line in lines] == ["2", "3", "5", "10"], lines


def test_an_address_that_another_program_keeps_is_no_mistake_of_the_file(here, tmp_path):
    """Exit status 1, after two seconds: a service manager tries again."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        text = null().replace("127.0.0.1:0", f"127.0.0.1:{taken.getsockname()[1]}")
        lacks, refusal, status = both(here, tmp_path, text)
    assert status == 1 and 'Address already in use (is another sluice running?)' in refusal, refusal
    assert [place(lack) for lack in lacks] == [place(refusal)], lacks


def test_a_route_table_is_read_before_anything_starts(here, tmp_path):
    table, path = tmp_path / "routes.txt", tmp_path / "bad.toml"
    table.write_text("192.0.2.0/24 10.2.0.2\n192.0.2.1/24 10.2.0.2\n", encoding="utf-8")
    path.write_text(config(NULL_PORTS, route=("kernel = false", f'table = "{table}"', *SMALL_TABLES)), encoding="utf-8")
    for command in ("check", "run"):
        answer = here.run([SLUICE, command, path], check=False)
        assert answer == f"{table}:2: '192.0.2.1/24' has host bits set; did you mean 192.0.2.0/24?\n"


@pytest.mark.parametrize("chain", ['["ipsec", "vxlan", "route"]', '["vxlan", "ipsec", "route"]'])
def test_two_functions_that_open_tunnels_are_not_in_one_chain(tmp_path, chain):
    path = tmp_path / "sluice.toml"
    path.write_text(f"[engine]\nchain = {chain}\n", encoding="utf-8")
    ran = subprocess.run([SLUICE, "check", path], capture_output=True, text=True, timeout=10, check=False)
    assert ran.returncode == 2 and "are not in one chain" in ran.stderr and "stands first in" not in ran.stderr, ran.stderr
