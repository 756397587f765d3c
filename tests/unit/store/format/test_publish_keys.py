"""The publish keys that a process remembers for a store that loses them."""

from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.publish_key import PublishKey
from holdfast.store.format.publish_keys import PublishKeys


def test_only_keys_of_the_last_seconds_are_remembered() -> None:
    now = 100.0
    keys = PublishKeys(lambda: now)
    for number in range(3):
        message = Message(b"{}", id=number, channel="/a", sender="ann")
        PublishKey(f"key {number}").identify(message)
        keys.hear([message], [0, b""])
        now += 6.0
    assert keys.latest() == [("key 2", 2)]
    now += 6.0
    keys.forget_old()
    assert not keys._latest
