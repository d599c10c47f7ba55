"""What `redact` makes of the texts of `vectors/redaction.json`. The Rust library writes them, and @aaep/agent is
compared with them.

    python redaction.py VECTORS            compares
    python redaction.py VECTORS --write    writes what the Rust library makes of them
"""

import json
import sys
from pathlib import Path

from aaep import redact

path = Path(sys.argv[1])
vectors = json.loads(path.read_text())
found = [{"text": vector["text"], "redacted": redact(vector["text"])} for vector in vectors]
if "--write" in sys.argv:
    path.write_text("[\n" + ",\n".join(f"  {json.dumps(one, ensure_ascii=False)}" for one in found) + "\n]\n")
    vectors = found
wrong = [(wanted, one) for wanted, one in zip(vectors, found) if wanted != one]
for wanted, one in wrong:
    print("wanted", json.dumps(wanted), "\nfound ", json.dumps(one))
print(f"{len(vectors) - len(wrong)} of {len(vectors)} texts")
sys.exit(bool(wrong) or not vectors)
