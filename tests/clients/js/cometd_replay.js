// Clients that go on where they were, with cursors as Salesforce's replay extension knows them.
import assert from "node:assert/strict";
import {CometClient} from "./cometd_client.js";
import {ask} from "./harness.js";

/**
 * What Salesforce's replay extension does: it waits for the server's offer, sends the place in its
 * channel with every subscribe, and takes the next place from the data of events.
 */
class ReplayExtension {
    #channel;
    #isOffered = false;

    constructor(channel, place) {
        this.#channel = channel;
        this.place = place;
    }

    incoming(message) {
        if (message.channel === "/meta/handshake") {
            this.#isOffered ||= message.ext?.replay === true;
        } else if (message.channel === this.#channel && message.data?.event?.replayId) {
            this.place = message.data.event.replayId;
        }
        return message;
    }

    outgoing(message) {
        if (message.channel === "/meta/subscribe" && this.#isOffered) {
            message.ext = {...message.ext, replay: {[this.#channel]: this.place}};
        }
        return message;
    }
}

const visit = (context, replay) => new CometClient(context, {extensions: {replay}}).connect();

const texts = (messages) => messages.map((message) => message.data.text);

async function publish(context, channel, ...words) {
    const sender = await new CometClient(context).connect();
    for (const text of words) {
        assert.equal((await sender.publish(channel, {text})).successful, true);
    }
    await sender.disconnect();
}

/** Sees one message, is away for two, and sees these and the next when it is back. */
async function missesNothing(context, meanwhile = async () => {}) {
    const channel = `${context.root}/news`;
    const replay = new ReplayExtension(channel, -1);
    await publish(context, channel, "before it came");
    const before = await visit(context, replay);
    const inbox = await before.subscribe(channel);
    await publish(context, channel, "seen");
    assert.deepEqual(texts(await inbox.take(1)), ["seen"]);
    assert.ok(Number.isSafeInteger(replay.place));
    await before.disconnect();

    await publish(context, channel, "missed", "missed, too");
    await meanwhile();
    const after = await visit(context, replay);
    const rest = await after.subscribe(channel);
    await publish(context, channel, "live");
    assert.deepEqual(texts(await rest.take(3)), ["missed", "missed, too", "live"]);
    assert.equal(after.received(channel).length, 3, "something came twice");
    await after.disconnect();
}

export const goesOnWhereItWas = (context) => missesNothing(context);

export const goesOnAfterTheServerWasKilled = (context) =>
    missesNothing(context, () => ask("kill and start the server"));

export async function getsAllThatIsKept(context) {
    const channel = `${context.root}/news`;
    await publish(context, channel, ...Array.from({length: 12}, (_, n) => `${n}`));
    const client = await visit(context, new ReplayExtension(channel, -2));
    const inbox = await client.subscribe(channel);
    assert.deepEqual(texts(await inbox.take(10)), Array.from({length: 10}, (_, n) => `${n + 2}`));
    const other = await client.subscribe(`${context.root}/other`);
    await publish(context, `${context.root}/other`, "it sends its place with every subscribe");
    await other.next();
    await client.disconnect();
}

/** Sends the place in the form of this server, without a channel. */
const from = (replay) => ({
    outgoing(message) {
        if (message.channel === "/meta/subscribe") {
            message.ext = {replay};
        }
        return message;
    },
});

export async function knowsTheNewestCursorWithoutAnyMessage(context) {
    const channel = `${context.root}/quiet`;
    const client = await new CometClient(context).connect({ext: {replay: true}});
    const {cursor} = (await client.connects.next()).ext.replay;
    await publish(context, channel, "to others");
    const {ext} = await client.connects.until((reply) => reply.ext.replay.cursor > cursor);
    await publish(context, channel, "later");
    const late = await visit(context, from(ext.replay));
    const inbox = await late.subscribe(channel);
    await publish(context, channel, "live");
    assert.deepEqual(texts(await inbox.take(2)), ["later", "live"]);
    await Promise.all([client.disconnect(), late.disconnect()]);
}
