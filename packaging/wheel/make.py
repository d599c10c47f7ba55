"""Makes a wheel with nothing but the command `aaep` in it: make.py COMMAND DIRECTORY VERSION.

The same command gives the same bytes.
"""

import base64
import hashlib
import os
import platform
import sys
import time
import zipfile
from pathlib import Path

NAME = "aaep_cli"

METADATA = """\
Metadata-Version: 2.4
Name: aaep-cli
Version: {version}
Summary: The command aaep: hear AI agents, answer them, and make them ask first.
License-Expression: MIT OR Apache-2.0
License-File: LICENSE-MIT
License-File: LICENSE-APACHE
Keywords: accessibility,agents,aaep,assistive-technology,screen-reader
Requires-Python: >=3.8
Description-Content-Type: text/markdown

# aaep-cli

The command `aaep`: hear AI agents, answer them, and make them ask before what matters.

    uvx --from aaep-cli aaep demo

starts a hub on your machine with an agent to talk to, and says how. For agents in Python there is the
package `aaep`.
"""


def tag() -> str:
    """The platform of this machine, as pip names it."""
    machine = platform.machine()
    if sys.platform == "linux":
        name, version = platform.libc_ver()
        if name != "glibc":
            raise SystemExit("wheels are made where the C library is glibc")
        major, minor = version.split(".")[:2]
        return f"py3-none-manylinux_{major}_{minor}_{machine}"
    if sys.platform == "darwin":
        return f"py3-none-macosx_11_0_{machine}"
    return "py3-none-win_amd64"


def main() -> None:
    command, directory, version = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    root = Path(__file__).resolve().parents[2]
    info = f"{NAME}-{version}.dist-info"
    wheel = f"Wheel-Version: 1.0\nGenerator: aaep\nRoot-Is-Purelib: false\nTag: {tag()}\n"
    files = {
        f"{NAME}-{version}.data/scripts/{command.name}": (command.read_bytes(), 0o755),
        f"{info}/METADATA": (METADATA.format(version=version).encode(), 0o644),
        f"{info}/WHEEL": (wheel.encode(), 0o644),
    }
    for licence in ("LICENSE-MIT", "LICENSE-APACHE"):
        files[f"{info}/licenses/{licence}"] = ((root / licence).read_bytes(), 0o644)
    record = "".join(
        f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"
        for name, (data, _) in files.items()
    )
    files[f"{info}/RECORD"] = (f"{record}{info}/RECORD,,\n".encode(), 0o644)
    # Archives of this kind know no time before 1980.
    moment = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), 315532800))[:6]
    path = directory / f"{NAME}-{version}-{tag()}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, (data, mode) in files.items():
            entry = zipfile.ZipInfo(name, moment)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100000 | mode) << 16
            archive.writestr(entry, data)
    print(f"Wrote {path.name}, {path.stat().st_size / 1e6:.1f} MB.")


main()
