"""Posts bodies to the URL of one webhook."""

import time
from contextlib import AsyncExitStack

from holdfast.settings.webhooks import WebhookSettings
from holdfast.web.http.trace_context import TRACEPARENT, is_traceparent
from holdfast.web.outgoing.allowed_addresses import AllowedAddresses
from holdfast.web.outgoing.signed_posts import SignedPosts, Unanswered
from holdfast.web.webhooks.judging import Answer, seconds_until
from holdfast.web.webhooks.posted_bodies import Body

# How much of an answer is read, in bytes: a letter shows the beginning.
_MOST_READ = 4096
_MOST_SHOWN = 200


class Posting:
    """Makes the calls of one webhook."""

    def __init__(self, settings: WebhookSettings, addresses: AllowedAddresses) -> None:
        self._posts = SignedPosts(
            settings,
            addresses,
            at_once=settings.in_flight,
            timeout_s=settings.timeout / 1000,
            most_read=_MOST_READ,
            reads_all=False,
        )

    async def open(self, stack: AsyncExitStack) -> None:
        """Open what keeps connections; `stack` closes it."""
        await self._posts.open(stack)

    async def post(self, body: Body) -> Answer:
        """Post the body. Returns the answer, or why there is none."""
        now_s = time.time()
        headers = {}
        if is_traceparent(body.traceparent):
            # Nothing else that a publisher invents becomes a header.
            headers[TRACEPARENT] = str(body.traceparent)
        try:
            answer = await self._posts.post(body.id, body.text, headers)
        except Unanswered as unanswered:
            return Answer(0, str(unanswered))
        text = " ".join(answer.body.decode(errors="replace").split())[:_MOST_SHOWN]
        line = f"{answer.status} {answer.reason}".strip()[:_MOST_SHOWN]
        retry_after_s = seconds_until(answer.headers.get("Retry-After"), now_s)
        return Answer(answer.status, f"{line}: {text}" if text else line, retry_after_s)
