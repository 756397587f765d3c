// cometd.js while a server on an external store, or the store, fails.
import assert from "node:assert/strict";
import {AckExtension} from "cometd";
import {CometClient} from "./cometd_client.js";
import {Inbox, ask, numbers} from "./harness.js";

/** What a failure looks like to a client with a name. */
export async function comesThrough(context) {
    const channel = `${context.root}/failures`;
    const client = new CometClient(context, {
        config: {backoffIncrement: 100, maxBackoff: 400, maxNetworkDelay: 20_000},
        extensions: {ack: new AckExtension()},
    });
    const [inbox, connects] = [new Inbox("messages"), new Inbox("connects")];
    const subscribed = new Inbox("subscribes");
    let handshakes = 0;
    client.cometd.addListener("/meta/handshake", ({successful}) => {
        handshakes += 1;
        if (successful) {
            client.cometd.subscribe(
                channel,
                ({data}) => inbox.put(data),
                (reply) => subscribed.put(reply),
            );
        }
    });
    client.cometd.addListener("/meta/connect", (reply) => connects.put(reply));
    client.cometd.handshake({ext: {delivery: {session: "javascript/1"}}});
    await connects.until(({successful}) => successful);
    await subscribed.until(({successful}) => successful);
    let published = 0;
    for (const failure of context.failures) {
        await ask(failure);
        // One before it began, one right after its end.
        published += 2;
        assert.deepEqual(await inbox.take(2), numbers(published).slice(-2), failure);
    }
    assert.deepEqual(inbox.rest, []);
    assert.equal(handshakes, 1);
    await client.disconnect();
}

/** The same, while the store moves to other servers. */
export async function followsItsStore(context) {
    await comesThrough(context);
}

/** What a client publishes while the store does not answer is late, and not lost. */
export async function publishesLate(context) {
    const channel = `${context.root}/late`;
    const client = new CometClient(context, {config: {maxNetworkDelay: 20_000}});
    await client.connect();
    const inbox = await client.subscribe(channel);
    await ask("freeze the store");
    const replies = numbers(5).map((number) =>
        new Promise((resolve) => client.cometd.publish(channel, number, resolve)),
    );
    await ask("thaw the store");
    assert.deepEqual(
        (await Promise.all(replies)).map(({successful}) => successful),
        [true, true, true, true, true],
    );
    assert.deepEqual((await inbox.take(5)).map(({data}) => data), numbers(5));
    await client.disconnect();
}
