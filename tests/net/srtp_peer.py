"""libsrtp as a second opinion: protects and unprotects RTP and RTCP with AES_CM_128_HMAC_SHA1_80."""

import ctypes
import ctypes.util
import struct

ANY_INBOUND, ANY_OUTBOUND = 2, 3
MOST_ADDED = 200


class _Ssrc(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("value", ctypes.c_uint)]


class _CryptoPolicy(ctypes.Structure):
    _fields_ = [("cipher_type", ctypes.c_uint32), ("cipher_key_length", ctypes.c_int), ("auth_type", ctypes.c_uint32),
                ("auth_key_length", ctypes.c_int), ("auth_tag_length", ctypes.c_int), ("services", ctypes.c_int)]


class _Policy(ctypes.Structure):
    _fields_ = [("ssrc", _Ssrc), ("rtp", _CryptoPolicy), ("rtcp", _CryptoPolicy), ("key", ctypes.c_char_p),
                ("keys", ctypes.c_void_p), ("key_count", ctypes.c_ulong), ("ekt", ctypes.c_void_p),
                ("window", ctypes.c_ulong), ("allow_repeat", ctypes.c_int), ("headers", ctypes.c_void_p),
                ("header_count", ctypes.c_int), ("next", ctypes.c_void_p)]


def _library():
    library = ctypes.CDLL(ctypes.util.find_library("srtp2") or "libsrtp2.so.1")
    assert library.srtp_init() == 0
    return library


_srtp = _library()


class Peer:
    """One direction of a session under one master key and salt; a packet that libsrtp refuses is None."""

    def __init__(self, key, inbound):
        policy = _Policy()
        _srtp.srtp_crypto_policy_set_rtp_default(ctypes.byref(policy.rtp))
        _srtp.srtp_crypto_policy_set_rtcp_default(ctypes.byref(policy.rtcp))
        policy.ssrc.type = ANY_INBOUND if inbound else ANY_OUTBOUND
        policy.key = self._key = key
        policy.window = 128
        self._session = ctypes.c_void_p()
        assert _srtp.srtp_create(ctypes.byref(self._session), ctypes.byref(policy)) == 0

    def _do(self, function, packet):
        buffer = ctypes.create_string_buffer(packet, len(packet) + MOST_ADDED)
        length = ctypes.c_int(len(packet))
        if function(self._session, buffer, ctypes.byref(length)) != 0:
            return None
        return buffer.raw[:length.value]

    def protect(self, packet):
        return self._do(_srtp.srtp_protect, packet)

    def unprotect(self, packet):
        return self._do(_srtp.srtp_unprotect, packet)

    def protect_rtcp(self, packet):
        return self._do(_srtp.srtp_protect_rtcp, packet)

    def unprotect_rtcp(self, packet):
        return self._do(_srtp.srtp_unprotect_rtcp, packet)


def rtp(sequence, payload, ssrc=0x11223344):
    return struct.pack("!BBHII", 0x80, 96, sequence & 0xffff, sequence * 90, ssrc) + payload


def receiver_report(ssrc=0x55667788):
    return struct.pack("!BBHI", 0x80, 201, 1, ssrc)
