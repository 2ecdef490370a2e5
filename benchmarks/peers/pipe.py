"""A peer's end of the pipe: one JSON line in, one out. Only the standard library."""

import json
import sys
from collections.abc import Callable
from typing import Any


def serve(**verbs: Callable[..., Any]) -> None:
    """Answer `{"do": verb, …}` with what the verb returns, until the other end is closed."""
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        said = verbs[asked.pop("do")](**asked)
        print(json.dumps(said), flush=True)
