"""A stdio server that does as its script says: `python hostile_script.py SCRIPT`.

SCRIPT is a file of JSON: for each method the texts that are written when a message of it comes, as
they are, but for `$ID` (the id of the message, as JSON). Without a script for it,
`initialize` and `ping` are answered, and `server/discover` is refused.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

AGREED: Final[dict[str, Any]] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "hostile", "version": "1"},
}
POLITE: Final[dict[str, list[str]]] = {
    "initialize": ['{"jsonrpc":"2.0","id":$ID,"result":' + json.dumps(AGREED) + "}"],
    "ping": ['{"jsonrpc":"2.0","id":$ID,"result":{}}'],
    "server/discover": ['{"jsonrpc":"2.0","id":$ID,"error":{"code":-32601,"message":"no"}}'],
}


def main() -> None:
    script: dict[str, Any] = {**POLITE, **json.loads(Path(sys.argv[1]).read_text())}
    for line in sys.stdin:
        message = json.loads(line)
        for text in script.get(message.get("method"), []):
            shown = json.dumps(message.get("id"))
            sys.stdout.write(text.replace("$ID", shown) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
