"""What servers of several shards need; a server alone imports none of it, or later."""

from importlib import import_module

_MODULES = (
    "holdfast.compose.workers",
    "holdfast.compose.sharding",
    "holdfast.compose.joint_administration",
    "holdfast.web.admin.handlers",
)


def import_for_several() -> None:
    """Import it all, while no client waits for this process."""
    for each in _MODULES:
        import_module(each)
