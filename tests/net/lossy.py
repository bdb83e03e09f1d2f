"""A cable that loses, repeats and reorders frames: python3 lossy.py ONE OTHER [LOST REPEATED LATE]   (two interfaces, both ways;
parts of all frames). For kernels without netem, whose work it is elsewhere."""

import random
import select
import socket
import sys

USUAL = 0.01, 0.005, 0.02
BEHIND = 4  # frames that overtake a late one


class Way:
    def __init__(self, source, sink, lost, repeated, late):
        self.source, self.sink, self.late = source, sink, []
        self.of_lost, self.of_repeated, self.of_late = lost, repeated, late

    def pass_on(self):
        frame, address = self.source.recvfrom(65536)
        if address[2] == socket.PACKET_OUTGOING:
            return
        chance = random.random()
        if chance < self.of_lost:
            return
        if chance < self.of_lost + self.of_late:
            self.late.append([BEHIND, frame])
            return
        self.sink.send(frame)
        if chance > 1 - self.of_repeated:
            self.sink.send(frame)
        for waiting in self.late:
            waiting[0] -= 1
        while self.late and self.late[0][0] <= 0:
            self.sink.send(self.late.pop(0)[1])

    def flush(self):
        for _, frame in self.late:
            self.sink.send(frame)
        self.late.clear()


def open_interface(name):
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(3))
    wire.bind((name, 3))
    return wire


def main():
    random.seed(1)
    one, other = map(open_interface, sys.argv[1:3])
    parts = tuple(map(float, sys.argv[3:6])) or USUAL
    ways = {one: Way(one, other, *parts), other: Way(other, one, *parts)}
    while True:
        ready, _, _ = select.select(list(ways), [], [], 0.01)
        for wire in ready:
            ways[wire].pass_on()
        if not ready:
            for way in ways.values():
                way.flush()


if __name__ == "__main__":
    main()
