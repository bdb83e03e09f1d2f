"""Rules on captures, as a user runs them: what other programs' users reported as missed or as false alerts.

Each case is a few rules, a few frames, and how often each rule is to be reported; Suricata 7.0.10 says the same, but for what
rules of streams alone see (docs/rules.md). The neighbours of each are in unit tests beside the code.
"""

import collections
import json
import subprocess

import pytest
from frames import ACK, PUSH, SYN, Tcp4, udp4, write_pcap
from gateway import ROOT, SLUICE

FIN, RST = 0x01, 0x04
FAST_OPEN = b"\x22\x0acookie12\x01\x01"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
HTTP, UDP = "alert http any any -> any any", "alert udp any any -> any 6000"
UP, DOWN = "flow:to_server,established;", "flow:to_client,established;"


def exchange(request, answer=OK):
    return Tcp4().says(request).answers(answer).frames


def fast_open(request, answer):
    """The request is in the SYN, and the answer comes before the client has acknowledged the SYN-ACK."""
    talk = Tcp4()
    talk.frames.clear()
    talk.next = [1000, 5000]
    talk.send(0, SYN, request, FAST_OPEN)
    talk.send(1, SYN | ACK)
    return talk.answers(answer).frames


def then(talk, side, flags, data=b""):
    talk.send(side, flags, data)
    return talk


CASES = {
    "a flowbit over the parts of a request": (
        [f'{HTTP} ({UP} flowbits:isset,probe; http.method; content:"GET"; sid:1;)',
         f'{HTTP} ({UP} flowbits:isset,probe; http.uri; content:"/index.php"; sid:2;)',
         f'{HTTP} ({UP} http.user_agent; content:"Probe/1.0"; flowbits:set,probe; sid:3;)'],
        exchange(b"GET /index.php?id=7 HTTP/1.1\r\nHost: x\r\nUser-Agent: Probe/1.0\r\n\r\n"), {1: 1, 2: 1, 3: 1}),
    "a flowbit that a body sets": (
        [f'{HTTP} ({UP} flowbits:isset,b; http.uri; content:"/a"; sid:1;)', f'{HTTP} ({UP} http.request_body; content:"evil"; flowbits:set,b; sid:2;)'],
        exchange(b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nevil"), {1: 1, 2: 1}),
    "a chain of flowbits": (
        [f'{UDP} (content:"P4"; flowbits:isset,c; sid:1;)', f'{UDP} (content:"P3"; flowbits:isset,b; flowbits:set,c; sid:2;)',
         f'{UDP} (content:"P2"; flowbits:isset,a; flowbits:set,b; sid:3;)', f'{UDP} (content:"P1"; flowbits:set,a; sid:4;)'],
        [udp4(b"P1 P2 P3 P4", 6000)], {1: 1, 2: 1, 3: 1, 4: 1}),
    "an empty header": (
        [f"{HTTP} ({UP} http.user_agent; bsize:0; sid:1;)", f'{HTTP} ({UP} http.user_agent; content:!"Mozilla"; sid:2;)',
         f"{HTTP} ({UP} http.referer; bsize:0; sid:3;)", f"{HTTP} ({UP} http.user_agent; isdataat:!0; sid:4;)",
         f'{HTTP} ({UP} http.user_agent; pcre:"/^$/"; sid:5;)', f"{HTTP} ({UP} http.accept; bsize:0; sid:6;)"],
        exchange(b"GET /a HTTP/1.1\r\nHost: x\r\nUser-Agent:\r\nReferer: \r\nCookie:\r\n\r\n"), {1: 1, 2: 1, 3: 1, 4: 1, 5: 1}),
    "a body that is absent": (
        [f'{HTTP} ({UP} http.request_body; content:!"abc"; http.method; content:"POST"; sid:1;)',
         f'{HTTP} ({DOWN} http.response_body; content:!"abc"; http.stat_code; content:"204"; sid:2;)',
         f'{HTTP} ({DOWN} file.data; content:!"abc"; http.stat_code; content:"204"; sid:3;)',
         f'{HTTP} ({UP} http.request_body; bsize:<5; http.method; content:"POST"; sid:4;)',
         f'{HTTP} ({UP} http.request_body; isdataat:!0; http.method; content:"POST"; sid:5;)'],
        exchange(b"POST /nobody HTTP/1.1\r\nHost: x\r\n\r\n", b"HTTP/1.1 204 No Content\r\n\r\n"), {}),
    "jumps to before the buffer": (
        [f'{UDP} (content:"|02|TAIL"; byte_jump:0,0,relative,post_offset -100; content:"HEAD"; distance:0; within:4; sid:1;)',
         f'{UDP} (content:"LEN"; byte_jump:1,0,relative,string,dec; isdataat:!1,relative; sid:2;)',
         f'{UDP} (content:"LEN"; byte_jump:1,0,relative,string,dec,post_offset 1; sid:3;)',
         f'{UDP} (byte_jump:1,0,from_beginning,post_offset -200; content:"HEAD"; distance:0; within:4; sid:4;)'],
        [udp4(b"HEADxxxx\x02TAIL", 6000), udp4(b"LEN4abcd", 6000)], {1: 1, 2: 1, 4: 1}),
    "numbers of no bytes": (
        [f'{HTTP} ({UP} content:"Content-Length: "; http_header; byte_test:0,=,167936,0,relative,string; sid:1;)',
         f'{UDP} (content:"len="; byte_test:0,>,100,0,relative,string,dec; sid:2;)'],
        [*Tcp4().says(b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 167936\r\n\r\nabc").frames, udp4(b"len=1234;", 6000)], {1: 1, 2: 1}),
    "an URI's query": (
        [f"""{HTTP} ({UP} http.uri; content:"?x=<script '|22| /"; sid:1;)""", f'{HTTP} ({UP} http.uri; content:"%3C"; sid:2;)',
         f'{HTTP} ({UP} http.uri.raw; content:"%3Cscript"; sid:3;)'],
        exchange(b"GET /a?x=%3Cscript%20%27%22%20%2F HTTP/1.1\r\nHost: x\r\n\r\n"), {1: 1, 3: 1}),
    "an URI's path": (
        [f'{HTTP} ({UP} http.uri; content:"/b/caf|e9|/x"; startswith; endswith; sid:1;)', f'{HTTP} ({UP} http.uri; content:"/a"; sid:2;)'],
        exchange(b"GET http://h/a/..%5c.%2fb%u2215caf%C3%A9/%C0%AE/x/. HTTP/1.1\r\nHost: x\r\n\r\n"), {1: 1}),
    "flowbits that parts set, clear and ask for": (
        [f'{HTTP} ({UP} flowbits:isnotset,x; http.uri; content:"/a"; sid:1;)', f'{HTTP} ({UP} http.request_body; content:"evil"; flowbits:set,x; sid:2;)',
         f'{HTTP} ({UP} http.user_agent; content:"A"; flowbits:set,y; sid:5;)', f'{HTTP} ({UP} http.request_body; content:"evil"; flowbits:unset,y; sid:4;)',
         f'{HTTP} ({UP} flowbits:isset,y; http.method; content:"POST"; sid:6;)',
         f'alert tcp any any -> any any ({UP} flowbits:isset,x; content:"POST /a"; sid:7;)'],
        exchange(b"POST /a HTTP/1.1\r\nHost: x\r\nUser-Agent: A\r\nContent-Length: 4\r\n\r\nevil"), {2: 1, 4: 1, 5: 1, 6: 1, 7: 1}),
    "data in a SYN": (
        [f'{HTTP} ({UP} http.uri; content:"/evil"; flowbits:set,evil; sid:1;)', f'alert tcp any any -> any any ({UP} content:"GET /evil"; sid:2;)',
         f'{HTTP} ({DOWN} flowbits:isset,evil; http.stat_code; content:"200"; sid:3;)',
         'alert tcp any any -> any any (flow:not_established; content:"GET /evil"; sid:4;)'],
        fast_open(b"GET /evil HTTP/1.1\r\nHost: x\r\n\r\n", OK), {1: 1, 2: 1, 3: 1}),
}

STREAM = ['alert tcp-stream any any -> any any (content:"EVIL"; sid:1;)', 'alert tcp any any -> any any (flow:only_stream; content:"EVIL"; sid:2;)',
          'alert tcp-stream any any -> any any (content:"GOOD"; sid:3;)', 'alert tcp-pkt any any -> any any (content:"EVIL"; sid:4;)']
BESIDE = {
    "other bytes again": Tcp4(8080).says_in_one_place(b"GOOD", b"EVIL"),
    "behind a FIN": then(then(Tcp4(8080).says(b"GOOD"), 0, FIN | ACK), 0, PUSH | ACK, b"EVIL"),
    "behind an RST": then(then(Tcp4(8080).says(b"GOOD"), 0, RST | ACK), 0, PUSH | ACK, b"EVIL"),
    "beyond the depth": Tcp4(8080).says(b"GOOD", *[b"x" * 1400] * 750, b"EVIL"),
}
CASES |= {f"beside the stream: {what}": (STREAM, talk.frames, {3: 1, 4: 1}) for what, talk in BESIDE.items()}


@pytest.mark.parametrize("case", CASES)
def test_each_rule_is_reported_as_often_as_it_holds(tmp_path, case):
    rules, frames, expected = CASES[case]
    write_pcap(tmp_path / "in.pcap", frames)
    (tmp_path / "test.rules").write_text("\n".join(rules) + "\n", encoding="utf-8")
    text = (ROOT / "examples" / "ids-capture.toml").read_text(encoding="utf-8")
    text = text.replace("examples/local.rules", str(tmp_path / "test.rules")).replace("examples/attacks.pcap", str(tmp_path / "in.pcap"))
    (tmp_path / "ids.toml").write_text(text.replace('\nfast = "-"', '\neve = "-"'), encoding="utf-8")
    done = subprocess.run([SLUICE, "run", tmp_path / "ids.toml"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    reported = collections.Counter(event["alert"]["signature_id"] for event in events if event["event_type"] == "alert")
    assert reported == expected, done.stdout + done.stderr
