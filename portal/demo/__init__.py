"""Data to try the portal with: `flask --app app demo load`. For a machine of one's own only."""

from typing import Any

from portal.config import Config


def load(config: Config | None = None) -> dict[str, Any]:
    """Write what is not there yet, and tell the logins and links. See `stage.load`."""
    from portal.demo import stage  # whoever only asks for the houses' doors needs no database

    return stage.load(config)
