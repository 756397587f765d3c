"""The Python client; import its names from `holdfast`."""

from holdfast.client.client import Client
from holdfast.client.errors import (
    ClientError,
    ConnectionLost,
    NotConnected,
    OutboxFull,
    Refuse,
    ReplyError,
    RequestFailed,
    SessionEnded,
    SessionTaken,
    TokenFailed,
)
from holdfast.client.life import ClientState, WrongUse
from holdfast.client.messages import Message, Reply
from holdfast.client.outbox import Outbox
from holdfast.client.publish_reply import PublishReply
from holdfast.client.subscriptions import NewSubscription, Subscription
from holdfast.client.sync_client import SyncClient, SyncSubscription

__all__ = [
    "Client",
    "ClientError",
    "ClientState",
    "ConnectionLost",
    "Message",
    "NewSubscription",
    "NotConnected",
    "Outbox",
    "OutboxFull",
    "PublishReply",
    "Refuse",
    "Reply",
    "ReplyError",
    "RequestFailed",
    "SessionEnded",
    "SessionTaken",
    "Subscription",
    "SyncClient",
    "SyncSubscription",
    "TokenFailed",
    "WrongUse",
]
