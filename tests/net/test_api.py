"""APIs of gateways in several hosts, on one file system."""

import pytest
from gateway import DEFAULT_API, SLUICE, socket_of, started, up_at_once
from hosts import Lab


@pytest.fixture
def lab():
    with Lab() as lab:
        yield lab


def test_gateways_side_by_side_have_sockets_of_their_own(lab, tmp_path):
    """In two namespaces with one address, and two in one namespace, all with the default socket; ctl finds the right one."""
    left, right = lab.host("left"), lab.host("right")
    gateways = [started(left, tmp_path / "a", up_at_once(DEFAULT_API)), started(right, tmp_path / "b", up_at_once(DEFAULT_API)),
                started(right, tmp_path / "c", up_at_once("127.0.0.1:9231"))]
    sockets = [socket_of(gateway) for gateway in gateways]
    assert len(set(sockets)) == 3 and all(socket.is_socket() for socket in sockets)
    right.run([SLUICE, "ctl", "stop", "--api", "127.0.0.1:9231"])
    assert gateways[2].process.wait(10) == 0
    left.run([SLUICE, "ctl", "stop", "--socket", sockets[1]])  # the file system is one
    assert gateways[1].process.wait(10) == 0
    assert gateways[0].process.poll() is None
    gateways[0].interrupt()


def test_the_socket_of_a_killed_gateway_elsewhere_is_removed_by_the_next_start(lab, tmp_path):
    killed, alive, next_one = (lab.host(name) for name in ("killed", "alive", "next"))
    dead = started(killed, tmp_path / "a", up_at_once(DEFAULT_API))
    stays = started(alive, tmp_path / "b", up_at_once(DEFAULT_API))
    left, kept = socket_of(dead), socket_of(stays)
    dead.kill()
    assert left.is_socket() and left != kept
    started(next_one, tmp_path / "c", up_at_once(DEFAULT_API))
    assert not left.exists() and not left.with_name(left.name + ".lock").exists()
    assert kept.is_socket() and "counters add up" in stays.control("stats")
