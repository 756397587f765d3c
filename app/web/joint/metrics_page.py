"""The metrics of all shards on one page, each with a label that says whose it is."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from holdfast.web.admin.handlers import Ask
from holdfast.web.joint.asking import METRICS, Shards
from holdfast.web.joint.hearing import has_it
from holdfast.web.prometheus.forms import END, Form, joined

if TYPE_CHECKING:
    from prometheus_client.core import Metric

_HEAD = re.compile(rb"# (HELP|TYPE) (\S+) ")
_SAMPLE = re.compile(rb"([a-zA-Z_:][a-zA-Z0-9_:]*)(\{)?")


class JointMetrics:
    """The metrics of all workers.

    Args:
        own: Returns the page of this worker; None at a door without a shard.
        restarts: Returns how often each shard got another worker, also one that is missing.
    """

    def __init__(
        self,
        shards: Shards,
        own: Callable[[Form], Awaitable[bytes]] | None,
        restarts: Callable[[int], int] = lambda _: 0,
    ) -> None:
        self._shards = shards
        self._own = own
        self._restarts = restarts

    async def text(self, form: Form) -> bytes:
        """Return the page."""
        shards = self._shards
        others = [each for each in shards.numbers if not shards.is_own(each)]
        ask = Ask(METRICS, {"form": form.value}, "reader")
        asked = (shards.ask(each, ask) for each in others)
        here = [(shards.number, self._own)] if self._own is not None else []
        own, found = await asyncio.gather(
            asyncio.gather(*(page(form) for _, page in here)), asyncio.gather(*asked)
        )
        answers = [each for each in found if has_it(each)]
        # A worker that is not restarted yet may know one form only.
        pages = {
            each.shard: each.json["page"].encode()
            for each in answers
            if each.json.get("form", Form.TEXT.value) == form.value
        }
        pages |= {shard: page for (shard, _), page in zip(here, own, strict=True)}
        answered = {shard: shard in pages for shard in shards.numbers}
        restarts = {shard: self._restarts(shard) for shard in shards.numbers}
        of_all = _of_all(answered, restarts, form)
        return joined([_joined(dict(sorted(pages.items()))), of_all], form)


def _of_all(answered: Mapping[int, bool], restarts: Mapping[int, int], form: Form) -> bytes:
    """Return what any worker says of all."""
    # The metrics of this shard have loaded it, in a thread.
    from prometheus_client.registry import Collector

    from holdfast.web.prometheus.exposition import written
    from holdfast.web.prometheus.shard_families import answering, restarted

    class OnPage(Collector):
        def collect(self) -> "Iterator[Metric]":
            yield answering(answered)
            yield restarted(restarts)

    return written(OnPage(), form)


def _joined(pages: Mapping[int, bytes]) -> bytes:
    """Return one page, with all samples of a family together, as its format demands."""
    # By name of a family, the lines that describe it, and its samples.
    families: dict[bytes, tuple[dict[bytes, bytes], list[bytes]]] = {}
    for shard, page in pages.items():
        samples = list[bytes]()
        for line in page.splitlines():
            found = _HEAD.match(line)
            if line == END:
                break
            if found is None:
                samples.append(_labelled(line, shard))
            else:
                heads, samples = families.setdefault(found[2], ({}, []))
                heads.setdefault(found[1], line)
    lines = [line for heads, samples in families.values() for line in (*heads.values(), *samples)]
    return b"".join(line + b"\n" for line in lines)


def _labelled(sample: bytes, shard: int) -> bytes:
    """Return a sample with the label of its shard."""
    found = _SAMPLE.match(sample)
    if found is None:
        return sample
    label = b'{shard="%d"' % shard
    end = b"," if found[2] else b"}"
    return found[1] + label + end + sample[found.end() :]
