// cometd.js while the server restarts.
import assert from "node:assert/strict";
import {AckExtension} from "cometd";
import {CometClient} from "./cometd_client.js";
import {Inbox, ask, numbers} from "./harness.js";

/** A client that notices when it is back. */
function returning(context, channel, options) {
    const client = new CometClient(context, {
        config: {backoffIncrement: 100, maxBackoff: 400},
        ...options,
    });
    const [inbox, returns] = [new Inbox("messages"), new Inbox("returns")];
    let isAway = true;
    // It subscribes by a connection of its own, so the first connect may be answered before.
    const lacking = new Set(["connect", "subscribe"]);
    const gain = (what) => {
        if (lacking.delete(what) && lacking.size === 0) {
            returns.put(what);
        }
    };
    client.cometd.addListener("/meta/handshake", ({successful}) => {
        if (successful) {
            lacking.add("subscribe");
            const hear = ({data}) => inbox.put(data);
            client.cometd.subscribe(channel, hear, (reply) => reply.successful && gain("subscribe"));
        }
    });
    client.cometd.addListener("/meta/connect", ({successful}) => {
        if (successful) {
            gain("connect");
        } else {
            lacking.add("connect");
        }
    });
    return {client, inbox, returns};
}

export async function comesBack(context) {
    const channel = `${context.root}/restarts`;
    const named = returning(context, channel, {extensions: {ack: new AckExtension()}});
    const plain = returning(context, channel);
    named.client.cometd.handshake({ext: {delivery: {session: "javascript/1"}}});
    plain.client.cometd.handshake();
    await Promise.all([named.returns.next(), plain.returns.next()]);
    let published = 0;
    for (let round = 0; round < context.rounds; round += 1) {
        await ask("restart the server");
        for (const {returns} of [named, plain]) {
            await returns.next();
            await ask("somebody is back");
        }
        // One before the server stopped, one right after its start, one now.
        await ask("publish");
        published += 3;
        await plain.inbox.until((number) => number === published - 1);
    }
    assert.deepEqual(await named.inbox.take(published), numbers(published));
    assert.deepEqual(named.inbox.rest, []);
    await Promise.all([named.client.disconnect(), plain.client.disconnect()]);
}
