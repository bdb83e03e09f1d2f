"""docs/results is made of its rows by scripts/make-results, and the rows are such as scripts/measure writes."""

import csv
import re
import shlex
import shutil
import subprocess

import pytest
from gateway import ROOT, SLUICE

RESULTS = ROOT / "docs" / "results"
PAGES = {"README.md", "router.md", "inspect.md", "srtp.md", "ipsec.md", "method.md", "findings.md", "results.svg", "data"}


def make_results(*words):
    return subprocess.run([ROOT / "scripts" / "make-results", *words], capture_output=True, text=True, timeout=60, check=False)


def rows():
    with (RESULTS / "data" / "rows.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def row_of(workload, side, mpps, **more):
    """A row as scripts/measure writes it."""
    row = dict.fromkeys(rows()[0], "") | {"workload": workload, "side": side, "load": "saturated", "lanes": "14", "packet_bytes": "494",
                                          "commit": "89abcdef", "date": "2026-11-30", "machine": "a GPU; 16 cores", "repetitions": "5"}
    row |= {"mpps": f"{mpps:.3f}", "mpps_low": f"{0.9 * mpps:.3f}", "mpps_high": f"{1.1 * mpps:.3f}", "gbits": f"{4 * mpps:.3f}",
            "command": "sluice bench inspect --only \"heavy-tail HTTP text\"", "p99_us": "500.0", "late_ppm": "7.00", "not_admitted_ppm": "0.00"}
    return row | more


def write(path, new, columns=None):
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns or rows()[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(new)
    return path


@pytest.fixture
def folder(tmp_path):
    """The pages of rows of its own, so that what is published may change."""
    copy = shutil.copytree(RESULTS, tmp_path / "results")
    write(copy / "data" / "rows.csv", [
        row_of("router-ipv4", "testpmd", 90.0, lanes="1", gbits="", packet_bytes=""), row_of("router-ipv4", "GPU", 400.0, packet_bytes="64"),
        row_of("chain-http", "GPU", 5.5, share="0.05", share_of="up", ceiling_gbytes="55.4"), row_of("chain-http", "cores", 5.0, p99_us="300.0"),
        row_of("media", "GPU", 30.0), row_of("media", "GPU", 20.0, load="held", share="0.65", share_of="both ways", p99_us="900.0", late_ppm="21.4"),
        row_of("srtp", "libsrtp", 3.0, lanes="16"), row_of("srtp", "intel-ipsec-mb", 36.0, lanes="16"), row_of("srtp", "GPU", 33.0, lanes="")])
    assert make_results("--folder", copy).returncode == 0
    return copy


@pytest.fixture
def write_rows(tmp_path):
    return lambda *new, columns=None: write(tmp_path / "new.csv", new, columns)


def test_the_pages_are_those_of_the_rows():
    ran = make_results("--check")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_there_is_nothing_else_and_the_index_is_one_screen():
    assert {path.name for path in RESULTS.iterdir()} == PAGES
    assert {path.name for path in (RESULTS / "data").iterdir()} == {"rows.csv"}
    index = (RESULTS / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(index) <= 55 and max(map(len, index)) <= 260


def test_rows_have_the_columns_that_are_measured_and_a_command_that_can_be_run():
    measured = re.search(r"^COLUMNS = \((.*?)\)$", (ROOT / "scripts" / "measure").read_text(encoding="utf-8"), re.M | re.S)[1]
    assert list(rows()[0]) == re.findall(r'"(\w+)"', measured)
    helps = {}
    for row in rows():
        assert re.fullmatch("[0-9a-f]{7,8}", row["commit"]) and re.fullmatch(r"2\d{3}-\d\d-\d\d", row["date"]), row
        assert row["machine"] and float(row["mpps"]) > 0 and int(row["repetitions"]) >= 1
        words = shlex.split(row["command"])
        assert words[:2] == ["sluice", "bench"] and "/" not in row["command"], row["command"]
        if words[2] not in helps:
            helps[words[2]] = subprocess.run([SLUICE, "bench", words[2], "--help"], capture_output=True, text=True, timeout=60, check=True).stdout
        for option in (word for word in words if word.startswith("--")):
            assert re.search(rf"^ +{option}\b", helps[words[2]], re.M), f"{words[2]} has no {option}"


def test_the_index_has_a_gpu_beside_cores_and_peers(folder):
    index = (folder / "README.md").read_text(encoding="utf-8")
    assert "| Router, 64 B, 600,000 IPv4 routes | 14 | 400 (360 to 440) |  |  | testpmd 90.0 (1 core) |  | 500 µs, 7 late | a |" in index
    assert ("| Inspecting router: HTTP, with finds | 14 | 5.5 (5.0 to 6.0) | 5.0 (4.5 to 5.5) | 1.1 |  | 5.0 % of up | "
            "500 µs, 7 late; cores 300 µs, 7 late | a |") in index
    assert "| SRTP in the gateway, 1,370 B, 5 ms | 14 | 30.0 (27.0 to 33.0) |  |  |  |  | 900 µs, 21 late (at 65 %) | a |" in index
    assert "| intel-ipsec-mb 36.0; libsrtp 3.0 |" in index and "| a | 89abcdef | 2026-11-30 | a GPU; 16 cores |\n" in index
    assert "\n    a  sluice bench inspect --only \"heavy-tail HTTP text\"\n" in index
    picture = (folder / "results.svg").read_text(encoding="utf-8")
    assert "46 Gbit/s testpmd, 1 core" in picture, "its frames are of the router's size"
    assert "144 Gbit/s intel-ipsec-mb" in picture and "libsrtp" not in picture


def test_a_new_row_takes_the_place_of_the_old_one_everywhere(folder, write_rows):
    new = write_rows(row_of("chain-http", "cores", 4.3, commit="0123abcd", date="2026-12-01"))
    ran = make_results("--folder", folder, "--add", new, "--check")
    assert ran.returncode == 1 and "README.md: is not of these rows" in ran.stdout
    assert make_results("--folder", folder, "--add", new).returncode == 0
    index, page, picture = ((folder / name).read_text(encoding="utf-8") for name in ("README.md", "inspect.md", "results.svg"))
    assert "| b | 0123abcd | 2026-12-01 |" in index
    line = next(line for line in index.splitlines() if "HTTP, with finds" in line)
    assert "| 5.5 (5.0 to 6.0) | 4.3 (3.9 to 4.7) |  |" in line and line.endswith("| a, b |"), "rows of two commits are not divided"
    assert "| Inspecting router: HTTP, with finds | cores | saturated | 14 | 4.3 (3.9 to 4.7) | 5 | 17 |" in page
    assert ">17 Gbit/s<" not in picture and "router-ipv4" not in page, "nor do their bars stand beside each other"
    assert make_results("--folder", folder, "--check").returncode == 0, "what it writes it takes for what it is"


def test_a_workload_has_no_table_before_it_has_rows(folder, write_rows):
    page, index = ((folder / name).read_text(encoding="utf-8") for name in ("ipsec.md", "README.md"))
    assert "ipsec-in-imix -->\n<!-- end of rows -->\n" in page and "| IPsec" not in index and "[IPsec](ipsec.md)" in index
    new = write_rows(row_of("ipsec-in-imix", "rte_ipsec", 21.0, lanes="16"), row_of("ipsec-in-imix", "GPU", 18.0, share="0.15", share_of="both ways"))
    assert make_results("--folder", folder, "--add", new).returncode == 0
    page, index = ((folder / name).read_text(encoding="utf-8") for name in ("ipsec.md", "README.md"))
    assert "| IPsec in, AES-128-CBC, SHA-1, IMIX | GPU | saturated | 14 | 18.0 (16.2 to 19.8) | 5 | 72 | 15.0 % of both ways | 500 |" in page
    assert "| IPsec in, AES-128-CBC, SHA-1, IMIX | 14 | 18.0 (16.2 to 19.8) |  |  | rte_ipsec 21.0 | 15.0 % of both ways |" in index
    assert "84 Gbit/s rte_ipsec" in (folder / "results.svg").read_text(encoding="utf-8")


def test_bars_of_another_machine_do_not_stand_beside(folder, write_rows):
    assert ">20 Gbit/s<" in (folder / "results.svg").read_text(encoding="utf-8")
    other = write_rows(row_of("chain-http", "cores", 5.0, machine="2 cores", lanes="1"), row_of("srtp", "intel-ipsec-mb", 36.0, machine="2 cores"))
    assert make_results("--folder", folder, "--add", other).returncode == 0
    picture, index = ((folder / name).read_text(encoding="utf-8") for name in ("results.svg", "README.md"))
    assert ">20 Gbit/s<" not in picture and "12 Gbit/s libsrtp" in picture
    assert "| Inspecting router: HTTP, with finds | 14, 1 | 5.5 (5.0 to 6.0) | 5.0 (4.5 to 5.5) |  |" in index


@pytest.mark.parametrize("change, said", [
    ({"workload": "chain-sctp"}, "there is no workload 'chain-sctp'"),
    ({"command": "sluice bench acl --rules /home/someone/acl"}, "the command of chain-udp names a folder of its machine"),
])
def test_rows_that_cannot_be_published_are_refused(folder, write_rows, change, said):
    ran = make_results("--folder", folder, "--add", write_rows(row_of("chain-udp", "GPU", 60.0) | change))
    assert ran.returncode == 1 and said in ran.stderr and ran.stderr.count("\n") == 1


def test_files_of_other_rows_are_refused(folder, write_rows, tmp_path):
    assert "has no rows of scripts/measure" in make_results("--folder", folder, "--add", write_rows({"a": 1}, columns=["a"])).stderr
    assert "No such file or directory" in make_results("--folder", folder, "--add", tmp_path / "none.csv").stderr
    (folder / "router.md").write_text("<!-- rows of routers -->\n<!-- end of rows -->\n", encoding="utf-8")
    assert "there is no workload routers" in make_results("--folder", folder).stderr
