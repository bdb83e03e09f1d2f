"""Conversations that are under way when a gateway that inspects is killed and started again."""

import socket
import threading

from hosts import wait_until
from inspected import Routed


class Bulk:
    """As many bytes as fit, from one host's kernel to the other's."""

    def __init__(self, sender, receiver):
        self.ends, self.received = (sender, receiver), 0
        self.threads = [threading.Thread(target=work, daemon=True) for work in (self.send, self.receive)]
        for thread in self.threads:
            thread.start()

    def send(self):
        try:
            while True:
                self.ends[0].sendall(bytes(1 << 18))
        except OSError:
            pass  # closed

    def receive(self):
        try:
            while piece := self.ends[1].recv(1 << 18):
                self.received += len(piece)
        except OSError:
            pass

    def close(self):
        for end in self.ends:
            end.shutdown(socket.SHUT_RDWR)
            end.close()
        for thread in self.threads:
            thread.join()


def connect(network, address):
    with network.server.inside(socket.create_server, (address, 0)) as listener:
        client = network.client.inside(socket.create_connection, listener.getsockname(), 5)
        client.settimeout(None)
        return client, listener.accept()[0]


def start_again(network, *lines):
    network.gateway.kill()
    network.configuration["inspect"] = [*network.lines(), *lines]
    network.start()


def test_bulk_transfers_outlive_a_gateway_that_is_killed_and_started_again(tmp_path):
    """Both ways. What was under way is acknowledged without having been seen, and nobody has seen the scales of the windows."""
    with Routed(tmp_path) as network:
        up, down = connect(network, network.servers[0]), connect(network, network.servers[0])
        transfers = [Bulk(*up), Bulk(*reversed(down))]
        try:
            def all_go_on(megabytes, timeout):
                before = [transfer.received for transfer in transfers]
                return wait_until(lambda: all(transfer.received - was > megabytes << 20
                                              for transfer, was in zip(transfers, before)), timeout)

            assert all_go_on(16, 10)
            for lines in ((), ("midstream = true",)):
                start_again(network, *lines)
                assert all_go_on(4, 15), (lines, network.gateway.drops(), network.metrics())
                assert "inspect_outside" not in network.gateway.drops(), lines
                assert lines or network.metrics()["inspect_without_session"] > 0
        finally:
            for transfer in transfers:
                transfer.close()
