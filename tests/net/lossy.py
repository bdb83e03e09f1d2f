"""A cable that loses, repeats and reorders frames: python3 lossy.py ONE OTHER   (two interfaces, both ways)"""

import random
import select
import socket
import sys

LOST, REPEATED, LATE = 0.01, 0.005, 0.02  # of all frames
BEHIND = 4  # frames that overtake a late one


class Way:
    def __init__(self, source, sink):
        self.source, self.sink, self.late = source, sink, []

    def pass_on(self):
        frame, address = self.source.recvfrom(65536)
        if address[2] == socket.PACKET_OUTGOING:
            return
        chance = random.random()
        if chance < LOST:
            return
        if chance < LOST + LATE:
            self.late.append([BEHIND, frame])
            return
        self.sink.send(frame)
        if chance > 1 - REPEATED:
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
    ways = {one: Way(one, other), other: Way(other, one)}
    while True:
        ready, _, _ = select.select(list(ways), [], [], 0.01)
        for wire in ready:
            ways[wire].pass_on()
        if not ready:
            for way in ways.values():
                way.flush()


if __name__ == "__main__":
    main()
