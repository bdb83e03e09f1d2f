"""Stock strongSwan's charon over XFRM's messages (docs/ipsec-ike.md): what it negotiates with another one, whose SAs are in a real
Linux kernel (user-mode Linux), is in the gateway's Database, byte for byte.
"""

import re
import time
from types import SimpleNamespace

import pytest
from charon import PRELOAD, HostCharon, UmlCharon, connection, why_not_charon
from hosts import Lab, cpu_seconds, wait_until
from uml_peer import UmlPeer, why_not_uml
from xfrm_server import XfrmServer, why_not_server

_reason = why_not_uml() or why_not_charon() or why_not_server() or (None if PRELOAD.exists() else f"needs {PRELOAD}: build it")
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))

NEAR, FAR, MOVED = "10.9.0.1", "10.9.0.2", "10.9.0.11"
NEAR6, FAR6 = "2001:db8:9::1", "2001:db8:9::2"
NEAR_NET, FAR_NET = "10.20.1.0/24", "10.20.2.0/24"


class Site:
    """near: charon over the preload library and the server; far: charon in user-mode Linux."""

    def __init__(self, lab, folder):
        self.host = lab.host("near")
        cable = lab.host("far")
        lab.join(self.host, "eth0", cable, "eth0", offloads=False)
        self.host.sysctl(net__ipv4__conf__all__promote_secondaries=1)  # one address may go alone
        self.host.ip(f"addr add {NEAR}/24 dev eth0")
        self.host.ip(f"addr add {NEAR6}/64 dev eth0 nodad")
        self.server = self.peer = None
        try:
            self.server = XfrmServer(folder, NEAR, NEAR6, MOVED)
            self.peer = UmlPeer(cable, folder / "far").start()
            self.peer.run("echo 1 > /proc/sys/net/ipv4/conf/all/promote_secondaries")
            self.peer.run(f"ip addr add {FAR}/24 dev vec0; ip addr add {FAR6}/64 dev vec0 nodad")
            self.near = HostCharon(self.host, folder / "near", self.server.socket).start(self.text(near=True))
            self.far = UmlCharon(self.peer).start(self.text(near=False))
        except BaseException:
            self.close()
            raise

    @staticmethod
    def text(near, esp="aes128-sha256", child=(), more=(), ends=(NEAR, FAR), nets=(NEAR_NET, FAR_NET)):
        side = slice(None) if near else slice(None, None, -1)
        return connection("site", *ends[side], *nets[side], esp, child, more)

    def configure(self, near_child=(), near_more=(), far_more=(), more=(), child=(), **settings):
        """Both anew; nothing of before is left."""
        self.down()
        for daemon, its_more, its_child in ((self.near, near_more, near_child), (self.far, far_more, ())):
            daemon.configure(self.text(daemon is self.near, child=(*child, *its_child), more=(*more, *its_more), **settings))
            daemon.load()

    def up(self, **settings):
        """The tunnel: (the server's, the kernel's) SAs by SPI."""
        self.configure(**settings)
        said = self.near.initiate("site", check=False)
        assert "established" in said, said + self.near.said() + self.far.log()
        assert self.server.has(2), self.server.state()
        return self.server.sas(), self.far.kernel_sas()

    def down(self):
        self.near.swanctl("--terminate", "--ike", "site", "--timeout", "5", check=False)
        gone = wait_until(lambda: not self.far.kernel_sas() and not self.server.sas(), 10)
        assert gone, self.near.sas() + str(self.server.state()) + self.far.sas()

    def forget(self):
        """Ends the tunnel on both sides without a word between them."""
        for daemon in (self.near, self.far):
            daemon.swanctl("--terminate", "--ike", "site", "--force", "--timeout", "-1", check=False)

    def close(self):
        for one in (self.peer, self.server):
            if one:
                one.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with Lab() as lab:
        site = Site(lab, tmp_path_factory.mktemp("ike"))
        yield site
        site.close()


def becomes(site, direction, fact, value, timeout=20):
    """Whether the SA of this direction has this within a time, and both are there all the while."""
    return wait_until(lambda: of(site.server.sas(), direction)[fact] == value, timeout, every=0.002)


@pytest.fixture
def fresh_site(tmp_path):
    """The same for one test alone."""
    with Lab() as lab:
        site = Site(lab, tmp_path)
        yield site
        site.close()


def of(sas, direction):
    """The one SA of this direction."""
    (one,) = (sa for sa in sas.values() if sa["direction"] == direction)
    return one


def keys(sas):
    """Of each, as hexadecimal digits."""
    return {spi: (sa.get("key", ""), sa.get("auth_key", "")) for spi, sa in sas.items()}


# proposal, cipher, bytes of its key, hash, bytes of its key, bytes of the ICV
ALGORITHMS = [
    ("aes128-sha1", "aes_cbc", 16, "hmac_sha1", 20, 12),
    ("aes192-sha256", "aes_cbc", 24, "hmac_sha256", 32, 16),
    ("aes256-sha512", "aes_cbc", 32, "hmac_sha512", 64, 32),
    ("aes128ctr-sha1", "aes_ctr", 16, "hmac_sha1", 20, 12),
    ("aes256ctr-sha384", "aes_ctr", 32, "hmac_sha384", 48, 24),
    ("aes128gcm8", "aes_gcm", 16, "none", 0, 8),
    ("aes192gcm12", "aes_gcm", 24, "none", 0, 12),
    ("aes256gcm16", "aes_gcm", 32, "none", 0, 16),
    ("chacha20poly1305", "chacha20_poly1305", 32, "none", 0, 16),
    ("null-sha256", "null", 0, "hmac_sha256", 32, 16),
]


@pytest.mark.parametrize("esp, cipher, key, digest, auth_key, icv", ALGORITHMS, ids=[one[0] for one in ALGORITHMS])
def test_keys_are_those_of_the_peers_kernel(site, esp, cipher, key, digest, auth_key, icv):
    ours, theirs = site.up(esp=esp)
    assert set(ours) == set(theirs)
    for spi, sa in ours.items():
        other = theirs[spi]
        assert (sa["source"], sa["destination"]) == (other["source"], other["destination"])
        assert (sa["cipher"], sa["hash"], sa["icv"]) == (cipher, digest, icv)
        assert (len(sa["key"]), len(sa["auth_key"])) == (2 * key, 2 * auth_key)
        assert sa["key"] + sa["salt"] == other.get("key", "")
        assert sa["auth_key"] == other.get("auth_key", "")
    assert of(ours, "in")["destination"] == NEAR and of(ours, "out")["destination"] == FAR


def test_policies_are_of_both_directions_and_know_the_sa(site):
    ours, _ = site.up()
    policies = site.server.policies()
    assert set(policies) == {("out", NEAR_NET, FAR_NET), ("in", FAR_NET, NEAR_NET)}
    out, back = policies["out", NEAR_NET, FAR_NET], policies["in", FAR_NET, NEAR_NET]
    wanted = {"protocol": "esp", "mode": "tunnel", "source": NEAR, "destination": FAR, "reqid": of(ours, "out")["reqid"],
              "spi": of(ours, "out")["spi"]}
    assert out["templates"] == [wanted]
    assert back["templates"] == [{**wanted, "source": FAR, "destination": NEAR, "spi": 0}]


def test_nothing_else_is_let_through(site):
    """charon's policies for the ports of IKE (port_bypass) would let everybody's UDP of these ports pass in clear."""
    assert [one for one in site.server.state()["policies"] if one["action"] == "bypass"] == []


def test_extended_sequence_numbers_and_a_large_window(site):
    ours, theirs = site.up(esp="aes128gcm16-esn", child=("replay_window = 1024",))
    assert all(sa["esn"] for sa in ours.values())
    assert of(ours, "in")["window"] == 1024
    assert all("esn" in sa["text"] for sa in theirs.values())


def test_transport_mode(site):
    ours, _ = site.up(child=("mode = transport",), nets=(f"{NEAR}/32", f"{FAR}/32"))
    assert all(sa["mode"] == "transport" for sa in ours.values())
    assert of(ours, "in")["selector"]["source"] == f"{FAR}/32"
    templates = [one["templates"][0] for one in site.server.policies().values()]
    assert [(one["mode"], one["source"]) for one in templates] == [("transport", "none")] * 2


def test_ipv6_outside_and_both_inside(site):
    nets = (f"{NEAR_NET},2001:db8:a::/48", f"{FAR_NET},2001:db8:b::/48")
    ours, theirs = site.up(ends=(NEAR6, FAR6), nets=nets)
    assert of(ours, "in")["destination"] == NEAR6
    assert keys(ours) == keys(theirs)
    assert ("out", "2001:db8:a::/48", "2001:db8:b::/48") in site.server.policies()
    assert ("out", NEAR_NET, FAR_NET) in site.server.policies()


def test_udp_encapsulation(site):
    ours, theirs = site.up(near_more=("encap = yes",))
    assert all(sa["udp"] == [4500, 4500] for sa in ours.values())
    assert all("espinudp sport 4500 dport 4500" in sa["text"] for sa in theirs.values())


def test_an_algorithm_that_is_not_known_is_named(site):
    """The tunnel does not come up, and nothing is left of it."""
    site.configure(esp="camellia128-sha256")
    assert "failed" in site.near.initiate("site", check=False)
    assert any("cbc(camellia)" in line for line in site.server.state()["log"])
    site.down()
    assert not site.server.policies()


def rekeyed(site, before):
    """Both SAs are others, and the kernel's; the outbound policy names the new one."""
    def done():
        sas = site.server.sas()
        return len(sas) == 2 and not set(sas) & set(before)

    assert wait_until(done, 15), site.server.state()
    ours = site.server.sas()
    assert wait_until(lambda: set(site.far.kernel_sas()) == set(ours), 10)
    theirs = site.far.kernel_sas()
    assert keys(ours) == keys(theirs)
    assert site.server.policies()["out", NEAR_NET, FAR_NET]["templates"][0]["spi"] == of(ours, "out")["spi"]


@pytest.mark.parametrize("who", ["near", "far"])
def test_rekey_makes_before_it_breaks(site, who):
    before, _ = site.up()
    getattr(site, who).swanctl("--rekey", "--child", "site")
    seen = []

    def both():
        seen.append(sorted(sa["direction"] for sa in site.server.sas().values()))
        return len(seen[-1]) > 2

    assert wait_until(both, 5, every=0.005)
    rekeyed(site, before)
    assert all({"in", "out"} <= set(one) for one in seen)


def test_soft_limit_rekeys(site):
    before, _ = site.up()
    site.server.ask("expire", of(before, "out")["spi"], "soft")
    assert site.near.logs(r"creating rekey job for CHILD_SA ESP")
    rekeyed(site, before)


def test_hard_limit_ends_the_sas_and_charon_makes_others(site):
    before, _ = site.up()
    site.server.ask("expire", of(before, "in")["spi"], "hard")
    assert site.near.logs(r"creating delete job for CHILD_SA ESP")
    rekeyed(site, before)


def test_counts_are_shown_and_tell_that_the_peer_lives(site):
    """DPD: with traffic inbound charon asks nothing; without it does."""
    ours, _ = site.up(near_more=("dpd_delay = 2s",))
    spi = of(ours, "in")["spi"]
    site.server.ask("count", spi, 7, 700, 7)
    assert re.search(r"in  [0-9a-f]{8},\s+700 bytes,\s+7 packets,\s+\ds ago", site.near.sas()), site.near.sas()
    asked = len(re.findall(r"sending DPD request", site.near.log()))
    for packets in range(8, 40):
        site.server.ask("count", spi, packets, 100 * packets, packets)
        time.sleep(0.1)
    assert len(re.findall(r"sending DPD request", site.near.log())) == asked
    assert wait_until(lambda: len(re.findall(r"sending DPD request", site.near.log())) > asked, 10)


def test_a_dead_peers_sas_go(site):
    site.up(near_more=("dpd_delay = 1s",), near_child=("dpd_action = clear",))
    site.peer.run("kill -STOP $(cat /run/pid)")
    try:
        assert site.server.has(0, 30), site.server.state()
        assert not site.server.policies()
    finally:
        site.peer.run("kill -CONT $(cat /run/pid)")
        site.forget()


def test_mobike_moves_sas(site):
    """Their numbers and keys stay, also of an SA that has sent."""
    site.host.ip(f"addr add {MOVED}/24 dev eth0")
    try:
        before, _ = site.up()
        sent, received = of(before, "out")["spi"], of(before, "in")["spi"]
        site.server.ask("count", sent, 500, 50000, 500)
        site.server.ask("count", received, 400, 40000, 400)
        site.host.batch([f"addr del {NEAR6}/64 dev eth0", f"addr del {NEAR}/24 dev eth0"])
        assert becomes(site, "in", "destination", MOVED), site.near.said()
        assert becomes(site, "out", "source", MOVED), site.near.said()
        after = site.server.sas()
        for spi, sequence in ((sent, 500), (received, 400)):
            for fact in ("key", "auth_key", "direction", "reqid", "window", "mode"):
                assert after[spi][fact] == before[spi][fact]
            assert after[spi]["sequence"] == sequence
        assert site.server.policies()["out", NEAR_NET, FAR_NET]["templates"][0]["source"] == MOVED
        assert re.search(r"out [0-9a-f]{8},\s+50000 bytes,\s+500 packets", site.near.sas()), site.near.sas()
    finally:
        site.host.batch([f"addr replace {NEAR}/24 dev eth0", f"addr replace {NEAR6}/64 dev eth0 nodad", f"addr del {MOVED}/24 dev eth0"])
        site.forget()


@pytest.mark.parametrize("to", ["10.9.0.12", FAR6])
def test_peer_moves(site, to):
    """The outbound SA is another one then, with the same key: no number of the old one is used again."""
    before, _ = site.up()
    site.server.ask("count", of(before, "out")["spi"], 500, 50000, 500)
    changes = [f"ip addr del {FAR6}/64 dev vec0", f"ip addr add {to}/24 dev vec0"] if to != FAR6 else []
    try:
        site.peer.run("; ".join([*changes, f"ip addr del {FAR}/24 dev vec0"]))
        assert becomes(site, "out", "destination", to), site.near.said()
        assert becomes(site, "in", "source", to), site.near.said()
        after = site.server.sas()
        assert set(after) == set(before)
        assert of(after, "out")["sequence"] > 500 + 1_000_000
        assert keys(after) == keys(before)
    finally:
        site.peer.run(f"ip addr flush dev vec0; ip addr add {FAR}/24 dev vec0; ip addr add {FAR6}/64 dev vec0 nodad")
        site.forget()


def test_a_packet_brings_the_tunnel_up(site):
    site.configure(near_child=("start_action = trap",))
    assert wait_until(lambda: ("out", NEAR_NET, FAR_NET) in site.server.policies(), 5), site.near.said()
    trap = site.server.policies()["out", NEAR_NET, FAR_NET]["templates"][0]
    assert trap["spi"] == 0 and trap["reqid"] != 0
    try:
        assert site.server.ask("acquire", "10.20.1.5", "10.20.2.5", trap["reqid"]) == {}
        assert site.server.has(2), site.near.said()
        assert set(site.far.kernel_sas()) == set(site.server.sas())
    finally:
        site.configure()


def test_a_nat_that_forgets_is_followed(site):
    """Of a peer behind a NAT without MOBIKE: authentic packets come from elsewhere."""
    ours, _ = site.up(more=("mobike = no",), far_more=("encap = yes",))
    spi = of(ours, "in")["spi"]
    site.server.ask("moved", spi, FAR, 40000)
    assert becomes(site, "out", "udp", [4500, 40000]), site.near.said()
    assert becomes(site, "in", "udp", [40000, 4500]), site.near.said()
    after = site.server.sas()
    assert keys(after) == keys(ours)
    site.forget()


KEYS = {"k20": "0x000102030405060708090a0b0c0d0e0f00000001", "k32": "0x" + "ab" * 32, "k36": "0x" + "cd" * 36, "a20": "0x" + "11" * 20}

# Words of `ip xfrm`, in turn.
COMMANDS = [
    "state add src {near} dst {far} proto esp spi 0x1001 reqid 1 mode tunnel enc rfc3686(ctr(aes)) {k20} auth-trunc hmac(sha1) {a20} 96",
    "state add src {far} dst {near} proto esp spi 0x1002 reqid 1 mode tunnel aead rfc4106(gcm(aes)) {k20} 128 replay-window 128 flag esn",
    "state add src {far} dst {near} proto esp spi 0x1003 mode transport enc cbc(aes) {k32} auth sha256 {k32} replay-window 32"
    " sel src {far}/32 dst {near}/32 proto udp dport 53",
    "state add src {near} dst {far} proto esp spi 0x1004 reqid 3 mode tunnel aead rfc7539esp(chacha20,poly1305) {k36} 128"
    " flag noecn nopmtudisc limit byte-hard 100000 limit packet-soft 50 limit time-hard 3600 extra-flag dont-encap-dscp",
    "state add src {near} dst {far} proto esp spi 0x1005 mode tunnel enc ecb(cipher_null)  auth sha1 {a20} encap espinudp 4500 4501 0.0.0.0",
    "state add src {near6} dst {far6} proto ah spi 0x1006 mode transport auth-trunc hmac(sha256) {k32} 128",
    "state add src {near} dst {far} proto esp spi 0x1001 mode tunnel enc cbc(aes) {k32} auth sha1 {a20}",  # it is there
    "state add src {near} dst {far} proto esp spi 0x2001 mode tunnel enc cbc(no-such-cipher) {k32} auth sha1 {a20}",
    "state add src {near} dst {far} proto esp spi 0x2002 mode tunnel enc cbc(aes) {a20} auth sha1 {a20}",  # a key of 20 bytes
    "state add src {near} dst {far} proto esp spi 0x2003 mode tunnel aead rfc4106(gcm(aes)) {k20} 40",
    "state update src {near} dst {far} proto esp spi 0x2004 mode tunnel enc cbc(aes) {k32} auth sha1 {a20}",  # it is not
    "state delete src {near} dst {far} proto esp spi 0x1001",
    "state delete src {near} dst {far} proto esp spi 0x1001",
    "state get src {far} dst {near} proto esp spi 0x1002",
    "state get dst {near} proto esp spi 0x7777",
    "policy add src 10.1.0.0/16 dst 10.2.0.0/16 dir out priority 5 tmpl src {near} dst {far} proto esp reqid 1 mode tunnel",
    "policy add src 10.2.0.0/16 dst 10.1.0.0/16 dir in tmpl src {far} dst {near} proto esp reqid 1 mode tunnel level use",
    "policy add src 10.2.0.0/16 dst 10.1.0.0/16 dir fwd tmpl src {far} dst {near} proto esp reqid 1 mode tunnel",
    "policy add src 10.1.0.0/16 dst 10.2.0.0/16 dir out",  # it is there
    "policy add src 10.1.0.0/16 dst 10.3.0.0/16 proto tcp sport 22 dir out action block",
    "policy add src 2001:db8::/32 dst ::/0 dir out tmpl proto esp mode transport tmpl proto ah mode transport",
    "policy update src 10.1.0.0/16 dst 10.2.0.0/16 dir out priority 7",
    "policy delete src 10.9.0.0/16 dst 10.2.0.0/16 dir out",
    "policy delete src 10.2.0.0/16 dst 10.1.0.0/16 dir in",
    "policy get src 10.2.0.0/16 dst 10.1.0.0/16 dir fwd",
]


def test_answers_are_linuxs(site):
    """iproute2 asks the server and a real kernel the same: it ends alike, and shows the same, field by field."""
    site.down()
    ends = {"near": NEAR, "far": FAR, "near6": NEAR6, "far6": FAR6}
    kernel = site.peer.run
    preloaded = f"LD_PRELOAD={PRELOAD} SLUICE_XFRM={site.server.socket}"

    def server(command, check=True):
        return site.host.run(["sh", "-c", f"{preloaded} {command}"], check)

    def plain(text):
        """Without numbers of policies, times, and that a tunnel is for both families, as all of Sluice's are."""
        return re.sub(r" index \d+| \d{4}-\d\d-\d\d \d\d:\d\d:\d\d|(?<=flag) af-unspec| af-unspec| \(0x[01]{8}\)| flag *$", "", text, flags=re.M)

    def outcome(run, words):
        """Its exit status, and what it shows where it does; errors are in words of each side's own."""
        said = run(f"ip xfrm {words}; echo status $?", check=False)
        return plain(said) if "status 0" in said else said.splitlines()[-1]

    def shown(run, what):
        """All, but for what lets IKE through."""
        texts = re.split(r"^(?=src )", plain(run(f"ip -s xfrm {what}")), flags=re.M)
        return sorted(one for one in texts if not re.search(r"port 4?500 |\tsocket ", one))

    try:
        for command in COMMANDS:
            words = " ".join(f"'{word}'" for word in command.format(**ends, **KEYS).split(" "))
            assert outcome(server, words) == outcome(kernel, words), command
        for what in ("state", "policy"):
            assert "".join(shown(server, what)).splitlines() == "".join(shown(kernel, what)).splitlines()
    finally:
        for run in (server, kernel):
            run("ip xfrm state flush; " + (f"{preloaded} " if run is server else "") + "ip xfrm policy flush")


@pytest.fixture
def alone(tmp_path):
    """A host with nothing on it."""
    with Lab() as lab:
        host = lab.host("alone")
        yield SimpleNamespace(host=host, folder=tmp_path)


def test_a_daemon_that_was_killed_begins_anew(fresh_site):
    """Policies of the same selectors are taken over; its old SAs are there until their lifetimes end, and nothing is sent by them."""
    site = fresh_site
    before, _ = site.up()
    site.near.process.kill()
    site.near.process.wait()
    assert set(site.server.sas()) == set(before)
    site.near.vici.unlink()
    site.near.start(site.text(near=True))
    assert "established" in site.near.initiate("site"), site.near.said()
    ours = {spi: sa for spi, sa in site.server.sas().items() if spi not in before}
    assert wait_until(lambda: set(ours) <= set(site.far.kernel_sas()), 5)
    assert site.server.policies()["out", NEAR_NET, FAR_NET]["templates"][0]["spi"] == of(ours, "out")["spi"]
    site.server.ask("expire", of(before, "in")["spi"], "hard")
    site.near.process.terminate()
    assert site.near.process.wait(10) == 0
    assert wait_until(lambda: not set(site.server.sas()) & set(ours), 5)
    assert not site.server.policies()
    # Nobody is there now who would delete one.
    site.server.ask("expire", of(before, "out")["spi"], "hard")
    assert wait_until(lambda: of(before, "out")["spi"] not in site.server.sas(), 5)


def test_without_sluice_charon_says_what_is_missing(alone):
    charon = HostCharon(alone.host, alone.folder / "charon", alone.folder / "nobody.sock")
    with pytest.raises(AssertionError):
        charon.start(connection("site", NEAR, FAR, NEAR_NET, FAR_NET))
    lines = [line for line in charon.said().splitlines() if line.startswith("sluice-xfrm: ")]
    assert len(lines) == 1 and "nobody.sock: No such file or directory: is Sluice running" in lines[0]


def test_the_end_of_sluice_is_said_and_charon_ends_when_told(alone):
    server = XfrmServer(alone.folder)
    try:
        charon = HostCharon(alone.host, alone.folder / "charon", server.socket).start(connection("site", NEAR, FAR, NEAR_NET, FAR_NET))
    finally:
        server.close()
    assert wait_until(lambda: "sluice-xfrm: Sluice has ended" in charon.said(), 5), charon.said()
    before = cpu_seconds(charon.process.pid)
    time.sleep(1)
    assert cpu_seconds(charon.process.pid) - before < 0.2
    charon.process.terminate()
    assert charon.process.wait(10) == 0
    assert charon.said().count("sluice-xfrm: ") == 1
