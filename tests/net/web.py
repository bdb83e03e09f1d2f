"""A web server on a host, with a log of what reached it, and a browser on another.

/login is answered with 401, /shell with what a root shell says, in two segments, /big with 900 KB; everything else with 200 and a few
bytes.
"""

import http.client
import http.server
import pathlib
import socket
import sys
import time

BIG = b"".join(b"%07d\n" % number for number in range(112_500))
SHELL = (b"uid=0(ro", b"ot) gid=0(root) groups=0(root)")


class Web:
    """On all addresses of `host`."""

    def __init__(self, host, folder, port=80):
        self.log_path = pathlib.Path(folder) / f"web-{port}.log"
        with open(self.log_path, "w", encoding="ascii") as log:
            self.process = host.spawn([sys.executable, "-B", "-u", __file__, str(port)], stdout=log)
        end = time.monotonic() + 10
        while f":{port} " not in host.run("ss -Hltn"):
            if time.monotonic() > end:
                raise AssertionError(f"the web server does not listen:\n{self.log_path.read_text(encoding='ascii')}")
            time.sleep(0.05)

    def requests(self):
        """What was asked for so far, as it arrived."""
        return self.log_path.read_text(encoding="ascii").splitlines()


def ask(connection, path):
    connection.request("GET", path)
    answer = connection.getresponse()
    return answer.status, answer.read()


def browse(host, server, path="/", port=80, timeout=2):
    """(status, body) of one request in a connection of its own, or the error that the client sees, by its class."""
    def fetch():
        connection = http.client.HTTPConnection(server, port, timeout=timeout)
        try:
            return ask(connection, path)
        except (OSError, http.client.HTTPException) as error:
            return type(error)
        finally:
            connection.close()

    return host.inside(fetch)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        print(self.path, flush=True)
        pieces = SHELL if self.path == "/shell" else (BIG,) if self.path.startswith("/big") else (b"hello\n",)
        self.send_response(401 if self.path.startswith("/login") else 200)
        self.send_header("Content-Length", str(sum(map(len, pieces))))
        self.end_headers()
        for piece in pieces:
            self.wfile.write(piece)
            if len(pieces) > 1:
                time.sleep(0.2)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6
    daemon_threads = True

    def server_bind(self):
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.bind(self.server_address)

    def handle_error(self, *_):
        pass  # a client that went away


if __name__ == "__main__":
    Server(("::", int(sys.argv[1])), Handler).serve_forever()
