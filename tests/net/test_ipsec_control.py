"""SAs and policies that come and go while traffic runs: by `sluice ctl ipsec`, and by a reload. The other end is scapy's."""

import json
import pathlib
import re

import pytest
from hosts import stop, wait_until
from ipsec_tunnel import ENDS, IN_SPI, OUT_SPI, Tunnel, key

HERE, THERE = ENDS[4]
INSIDE, FAR = "10.11.0.0/24", "10.20.0.0/24"
PING_BYTES = 84  # of IP
OTHER_KEYS = {"key": key(16, 0x33), "auth_key": key(20, 0xA0)}


class Steered(Tunnel):
    """AES-CBC with SHA-1. `of_file`: whether the file has SAs and policies, or none."""

    def __init__(self, folder, of_file):
        self.of_file = of_file
        super().__init__(folder, "aes128-sha1")

    def ipsec(self):
        whole = super().ipsec()
        head, *self.sections = re.split(r"\n(?=\[\[)", whole)
        return whole if self.of_file else head

    def resolve(self):
        if self.of_file:
            super().resolve()

    def section(self, kind, direction):
        """The first one of the file."""
        return next(text for text in self.sections if text.startswith(f"[[ipsec.{kind}]]") and f'direction = "{direction}"' in text)

    def add(self, verb, text):
        """`ctl ipsec add FILE`, or `add-policy`; what it says."""
        path = pathlib.Path(self.folder) / "section.toml"
        path.write_text(text + "\n", encoding="utf-8")
        return self.ctl(verb, str(path))

    def ctl(self, *words):
        return self.gateway.control("ipsec", *words, check=False)

    def sas(self):
        return {one["direction"]: one for one in json.loads(self.ctl("--json"))["sas"]}

    def policies(self):
        return {one["selector"]: one for one in json.loads(self.ctl("policies", "--json"))["policies"]}

    def dropped(self, reason):
        return self.gateway.drops().get(reason, 0)

    def other_keys(self):
        """The configuration with others in both SAs."""
        text = self.gateway.text()
        for name, digits in OTHER_KEYS.items():
            text = re.sub(rf'\n{name} = "[0-9a-f]+"', f'\n{name} = "{digits}"', text)
        return text


@pytest.fixture(scope="module")
def steered(tmp_path_factory):
    with Steered(tmp_path_factory.mktemp("ipsec-control"), of_file=False) as one:
        one.start()
        assert "no such SA" in one.ctl() and "no such policy" in one.ctl("policies")
        for direction in ("out", "in"):
            assert one.add("add", one.section("sa", direction)).endswith("is in force\n")
            for section in one.sections:
                if section.startswith("[[ipsec.policy]]") and f'direction = "{direction}"' in section:
                    assert one.add("add-policy", section).endswith("is in force\n")
        super(Steered, one).resolve()
        yield one


def test_what_was_added_carries_traffic_and_is_listed(steered):
    before, counted = steered.sas(), steered.policies()
    assert steered.ping(3) == 3, (steered.gateway.drops(), steered.seen()[-3:])
    sas = steered.sas()
    for direction, spi in (("out", OUT_SPI), ("in", IN_SPI)):
        row = sas[direction]
        assert row["spi"] == spi
        assert [row[what] - before[direction][what] for what in ("packets", "bytes", "sequence")] == [3, 3 * PING_BYTES, 3]
        assert (row["state"], row["origin"], row["proposal"], row["reqid"]) == ("valid", "api", "aes128-sha1", 7)
        assert sum(row["drops"].values()) == 0
    table = steered.ctl("--spi", hex(OUT_SPI)).splitlines()
    assert len(table) == 2, table
    assert table[1].split()[:6] == ["out", f"0x{OUT_SPI:08x}", HERE, THERE, "esp", "tunnel"]
    for selector, destination in ((f"{INSIDE} -> {FAR}", THERE), (f"{FAR} -> {INSIDE}", HERE)):
        policy = steered.policies()[selector]
        assert policy["packets"] == counted[selector]["packets"] + 3
        assert policy["templates"][0]["destination"] == destination


def test_keys_are_shown_nowhere(steered):
    shown = steered.ctl() + steered.ctl("--json") + steered.gateway.control("functions") + steered.gateway.control("config") + steered.gateway.log()
    assert key(16) not in shown and key(20, 0x80) not in shown
    said = steered.add("add", steered.section("sa", "out").replace(key(16), key(15)))
    assert "the cipher's key has 15 bytes, not 16" in said and key(15) not in said


def test_what_is_there_is_not_added_again(steered):
    assert f"there is an SA esp 0x{OUT_SPI:08x} to {THERE} already" in steered.add("add", steered.section("sa", "out"))
    assert f"there is a policy {INSIDE} -> {FAR} already" in steered.add("add-policy", steered.section("policy", "out"))
    assert steered.ping(1) == 1


@pytest.mark.parametrize(("direction", "spi", "destination"), [("out", OUT_SPI, THERE), ("in", IN_SPI, HERE)])
def test_without_an_sa_traffic_stops(steered, direction, spi, destination):
    assert steered.ctl("remove", hex(spi), destination) == f"the SA esp 0x{spi:08x} to {destination} is removed\n"
    before = steered.dropped(f"ipsec_no_sa_{direction}")
    assert steered.ping(2) == 0
    assert wait_until(lambda: steered.dropped(f"ipsec_no_sa_{direction}") == before + 2), steered.gateway.drops()
    assert f"there is no SA esp 0x{spi:08x} to {destination}" in steered.ctl("remove", str(spi), destination)
    assert "is in force" in steered.add("add", steered.section("sa", direction))
    assert steered.ping(2) == 2, (steered.gateway.drops(), steered.seen()[-3:])


def test_without_a_policy_nothing_is_sealed(steered):
    assert steered.ctl("remove-policy", "out", INSIDE, FAR) == f"the policy out {INSIDE} -> {FAR} is removed\n"
    sealed = steered.metric("ipsec_sealed_packets")
    steered.ping(1)
    assert steered.metric("ipsec_sealed_packets") == sealed
    assert f"there is no policy out {INSIDE} -> {FAR}" in steered.ctl("remove-policy", "out", INSIDE, FAR)
    assert "is in force" in steered.add("add-policy", steered.section("policy", "out"))
    assert steered.ping(1) == 1
    assert steered.metric("ipsec_sealed_packets") == sealed + 1


def test_a_reload_leaves_what_the_api_has_brought(steered):
    before = steered.sas()["in"]["packets"]
    assert "SAs of the file: as before; policies of the file: as before" in steered.gateway.reload(steered.gateway.text())
    assert steered.ping(1) == 1
    assert steered.sas()["in"]["packets"] == before + 1


def test_a_reload_notes_what_the_start_would(steered):
    before = steered.gateway.text()
    other = steered.section("sa", "out").replace(f"{OUT_SPI}", "0x7007").replace(hex(OUT_SPI), "0x7007")
    with_group = other.replace('"aes128-sha1"', '"aes128-sha1-modp2048"')
    assert with_group != other and "0x7007" in other
    try:
        assert "SAs of the file: 1 added" in steered.gateway.reload(f"{before}\n{with_group}\n")
        notes = re.findall(r"warning reload: .*sluice\.toml:\d+: \[ipsec\] .*", steered.gateway.log())
        assert sum("(modp2048): this is no part of an SA, and is ignored" in note for note in notes) == 1, steered.gateway.log()
        assert sum("is used by no policy of the file" in note for note in notes) == 1, notes
    finally:
        assert "SAs of the file: 1 removed" in steered.gateway.reload(before)
    assert len(re.findall(r"warning reload: .*\[ipsec\] ", steered.gateway.log())) == len(notes), "of a file without SAs there is nothing to say"


def test_a_reload_changes_a_key(tmp_path):
    with Steered(tmp_path, of_file=True) as one:
        one.start()
        assert one.ping(3) == 3, (one.gateway.drops(), one.seen()[-3:])
        before, counted = one.gateway.text(), one.sas()
        more = f'{before}\n[[ipsec.policy]]\ndirection = "out"\nsource = "{INSIDE}"\ndestination = "10.99.0.0/24"\naction = "discard"\n'
        assert "SAs of the file: as before; policies of the file: 1 added" in one.gateway.reload(more)
        assert one.sas()["out"]["packets"] == counted["out"]["packets"], "what stays keeps its counters"
        assert one.sas()["in"]["sequence"] == counted["in"]["sequence"], "and its window"
        assert one.ping(1) == 1

        # The other end has the old keys, and takes nothing.
        changed = one.other_keys()
        assert "SAs of the file: 2 changed; policies of the file: as before" in one.gateway.reload(changed)
        assert one.sas()["out"]["packets"] == 0, "another key, other numbers"
        assert one.ping(2) == 0
        assert [(packet["seq"], packet.get("ok", False)) for packet in one.seen()[-2:]] == [(1, False), (2, False)]
        stop(one.peer)
        one.peer_more = OTHER_KEYS
        one.start_peer()
        one.resolve()
        assert one.ping(3) == 3, (one.gateway.drops(), one.seen()[-3:])

        # Numbers do not begin anew under a key that stays.
        assert f"the SA esp 0x{OUT_SPI:08x} to {THERE} keeps its key" in one.gateway.reload(changed.replace("reqid = 7", "reqid = 8"))
        assert one.ping(1) == 1
        assert f"{OTHER_KEYS['key']}" not in one.gateway.log()

        # What the file has no more goes.
        assert "SAs of the file: 2 removed; policies of the file: 5 removed" in one.gateway.reload(before.split("\n[[ipsec.sa]]")[0])
        assert one.sas() == {}


def test_what_ctl_has_removed_of_the_file_comes_back_with_a_reload(tmp_path):
    with Steered(tmp_path, of_file=True) as one:
        one.start()
        assert one.sas()["in"]["origin"] == "configuration"
        assert "is removed" in one.ctl("remove", hex(IN_SPI), HERE)
        assert "is removed" in one.ctl("remove-policy", "in", FAR, INSIDE)
        assert "SAs of the file: 1 added; policies of the file: 1 added" in one.gateway.reload(one.gateway.text())
        assert one.ping(2) == 2, (one.gateway.drops(), one.seen()[-3:])
