"""How a program reaches the hub of its own user, and nobody else's. Standard library only.

Any user of a machine can take a port, or put a socket somewhere, and answer in the hub's place. So
before anything is sent, whoever is at the other end is shown to be our own user, or root.
"""

import http.client
import os
import socket
import ssl
import stat
import struct
import sys
import urllib.parse

BASE = "/aaep/v1"


class Stranger(Exception):
    """Another user's program is at the other end, or nobody can tell whose. Nothing was sent."""


def local_hub():
    """AAEP_URL; else a socket of this user on which somebody listens; else the usual address."""
    if os.environ.get("AAEP_URL"):
        return os.environ["AAEP_URL"]
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    folder = f"{runtime}/aaep" if os.path.isabs(runtime) else f"/tmp/aaep-{os.geteuid()}"
    if sys.platform == "darwin":
        folder = os.path.expanduser("~/Library/Application Support/AAEP")
    for name in ("aaep-hub", "aaep-demo"):
        path = f"{folder}/{name}.sock"
        with socket.socket(socket.AF_UNIX) as probe:
            if probe.connect_ex(path) == 0:
                return f"unix:{path}"
    return "http://127.0.0.1:8707"


def connection(url, trust_loopback=False):
    """A connection to the hub at this address, and the path under which its API is."""
    if url.startswith("unix:"):
        return OverSocket(url.removeprefix("unix:")), BASE
    parts = urllib.parse.urlsplit(url)
    base = parts.path.rstrip("/") or BASE
    if parts.scheme == "https":
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(parts.hostname, parts.port, timeout=75, context=context), base
    if parts.scheme != "http":
        raise ValueError(f"{url} is no address of a hub")
    return OverLoopback(parts.hostname, parts.port, trust_loopback), base


class OverSocket(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=75)
        self.path = path

    def connect(self):
        check_socket(self.path)
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)
        if hasattr(socket, "SO_PEERCRED"):
            found = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
            ours(struct.unpack("3i", found)[1], f"the program at {self.path}")


class OverLoopback(http.client.HTTPConnection):
    def __init__(self, host, port, trusted):
        super().__init__(host, port, timeout=75)
        self.trusted = trusted

    def connect(self):
        super().connect()
        try:
            self.check()
        except Stranger:
            self.close()
            raise

    def check(self):
        ip = plain(self.sock.getpeername()[0])
        if not (ip == "::1" or ip.startswith("127.")):
            raise Stranger(f"{self.host} is another machine, and the connection is not protected: use https")
        if not self.trusted:
            check_listener(self.sock)


def ours(uid, what):
    if uid not in (os.geteuid(), 0):
        raise Stranger(f"{what} belongs to another user ({uid}); nothing was sent to it")


def check_socket(path):
    """Nobody but our own user, or root, can have put the socket there."""
    found = os.lstat(path)
    if not stat.S_ISSOCK(found.st_mode):
        raise Stranger(f"{path} is not a socket")
    ours(found.st_uid, path)
    folder = os.stat(os.path.dirname(path) or ".")
    ours(folder.st_uid, f"the directory of {path}")
    if folder.st_mode & 0o022 and not folder.st_mode & stat.S_ISVTX:
        raise Stranger(f"others may write to the directory of {path}")


def plain(ip):
    """An IPv4 address that came through an IPv6 socket is still the same."""
    return ip.removeprefix("::ffff:")


def check_listener(sock):
    """Linux says whose each socket is: every one that may have taken the connection has to be ours."""
    local, peer = (plain(end[0]) + f" {end[1]}" for end in (sock.getsockname(), sock.getpeername()))
    port, listens = peer.split(" ")[1], False
    try:
        with open("/proc/net/tcp") as table:
            lines = table.readlines()[1:]
    except OSError:
        raise Stranger(f"whose program answers at {peer} cannot be shown; use the socket, or https") from None
    if os.path.exists("/proc/net/tcp6"):
        with open("/proc/net/tcp6") as table:
            lines += table.readlines()[1:]
    for words in map(str.split, lines):
        own, other, state, uid, inode = read(words[1]), read(words[2]), words[3], int(words[7]), words[9]
        if state == "0A" and own in (peer, f"0.0.0.0 {port}", f":: {port}"):
            listens = True
            ours(uid, f"the program at {peer}")
        elif inode != "0" and (own, other) == (peer, local):  # accepted
            ours(uid, f"the program at {peer}")
    if not listens:
        raise Stranger(f"nobody of this machine listens at {peer}; use the socket, or https")


def read(text):
    ip, port = text.split(":")
    words = (ip[at : at + 8] for at in range(0, len(ip), 8))
    packed = b"".join(int(word, 16).to_bytes(4, sys.byteorder) for word in words)
    family = socket.AF_INET if len(packed) == 4 else socket.AF_INET6
    return f"{plain(socket.inet_ntop(family, packed))} {int(port, 16)}"
