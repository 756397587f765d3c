"""What a server does now: it serves, or it is about to end."""

from enum import Enum


class Phase(Enum):
    """The phase of a server. A stop never ends; a leave may be taken back."""

    SERVING = "serving"
    # It holds no connect any more, and finishes what clients have begun.
    LEAVING = "leaving"
    # What it has in memory is written for the next server. Nothing may change it.
    LEFT = "left"
    # It holds no connect any more, and its sessions end with it.
    STOPPING = "stopping"
