"""What a server with several workers cannot do yet, because one of them would have to decide."""

from collections.abc import Iterator

from holdfast.settings import ChannelSettings, Settings


def refused_with_shards(settings: Settings) -> list[str]:
    """Return why these settings need a single worker: a sentence for each setting."""
    return [
        f'channels."{pattern}": {why}'
        for pattern, rule in settings.channels.items()
        for why in _refused_by(rule)
    ]


def _refused_by(rule: ChannelSettings) -> Iterator[str]:
    if rule.work_queue:
        yield "work_queue needs a single worker, which hands the messages out"
