"""A gateway whose SAs are a stock charon's, against a real Linux kernel with ESP and a charon of its own, and against its own kind."""

import pytest
from hosts import Lab, wait_until
from ipsec_sites import Sites, Transfer, why_no_sites
from uml_peer import why_not_uml

_reason = why_no_sites()
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))


def sites_of(folder, **options):
    with Lab() as lab:
        one = Sites(lab, folder, **options)
        yield one
        one.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    if why_not_uml():
        pytest.skip(why_not_uml())
    yield from sites_of(tmp_path_factory.mktemp("ipsec-ike"))


@pytest.fixture
def two_sluices(tmp_path):
    yield from sites_of(tmp_path, second_sluice=True)


@pytest.mark.parametrize("esp", ["aes128gcm16", "aes256gcm8", "aes128-sha1", "aes256-sha512", "aes192ctr-sha384", "aes128-sha256-esn", "null-sha256",
                                 "chacha20poly1305"])
def test_traffic_through_a_negotiated_tunnel(site, esp):
    site.configure(esp=esp)
    site.up()
    before = site.gateway.metrics()
    for size in (8, 57, 1200):
        assert site.ping(5, size=size) == 5, (site.gateway.drops(), site.far.run("cat /proc/net/xfrm_stat", check=False), site.near.sas())
    after = site.gateway.metrics()
    for name in ("ipsec_sealed_packets", "ipsec_opened_packets"):
        assert after[name] - before[name] == 15, name


def check_a_transfer(sites):
    """It is whole and secret, and no ping is lost while the SAs are rekeyed."""
    sites.configure()
    sites.up()
    assert sites.ping(3) == 3
    transfer = Transfer(sites)
    sent, got = transfer.digests()
    assert sent == got and transfer.got_by_then < len(transfer.got), "the rekeys were in its midst"
    assert (transfer.answers, transfer.duplicates) == (transfer.pings, 0), (sites.gateway.drops(), sites.near.log()[-2000:])
    assert transfer.with_secret(transfer.outside) == 0 and transfer.with_secret(transfer.inside) > 100
    assert transfer.kinds().keys() <= {"esp", "ike", "link"} and len(transfer.spis()) == 6, (transfer.kinds(), transfer.spis())


def test_a_transfer_is_secret_and_no_packet_is_lost_by_a_rekey(site):
    check_a_transfer(site)


def test_two_sluices_are_two_sites_too(two_sluices):
    check_a_transfer(two_sluices)


def test_what_has_no_sa_yet_asks_for_one(site):
    site.configure(near_child=("start_action = trap",))
    assert wait_until(lambda: site.gateway.metrics()["ipsec_policies"] >= 2)
    assert wait_until(lambda: site.ping(1) == 1, 20), site.gateway.log() + site.near.log()[-3000:]
    assert site.gateway.drops().get("ipsec_no_sa_out", 0) >= 1
