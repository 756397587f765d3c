// The client of Durable Streams reads the history of a channel, in each of its ways.
import assert from "node:assert/strict";
import {stream} from "@durable-streams/client";
import {Inbox, ask, numbers} from "./harness.js";

const PATIENCE = {initialDelay: 50, maxDelay: 200, multiplier: 1.5};

/**
 * Follows a channel from its begin on, with an inbox for its messages.
 *
 * The client gives up a stream of events whose server is killed: who uses it goes on at its offset.
 */
async function follow(url, live) {
    const inbox = new Inbox("messages");
    let response = await open("-1");
    let isOver = false;

    async function open(offset) {
        const opened = await stream({url, live, offset, backoffOptions: PATIENCE});
        // The loop hears of it, too.
        opened.closed.catch(() => {});
        return opened;
    }

    async function read() {
        while (!isOver) {
            try {
                for await (const item of response.jsonStream()) {
                    inbox.put(item);
                }
            } catch {
                // It is over, or goes on with the next response.
            }
            if (!isOver) {
                response = await open(response.offset);
            }
        }
    }

    const reading = read();
    const end = () => {
        isOver = true;
        response.cancel();
        return reading;
    };
    return {inbox, end};
}

/** Each message comes once and in order, although servers stop and are killed meanwhile. */
export async function follows(context) {
    const url = context.url.replace("/cometd", `/streams${context.root}`);
    await ask("publish");
    const reader = await follow(url, context.transport);
    let published = 1;
    assert.deepEqual(await reader.inbox.take(1), [0]);
    for (const end of ["stop and start the server", "kill and start the server"]) {
        await ask("publish");
        await ask(end);
        await ask("publish");
        published += 2;
        assert.deepEqual(await reader.inbox.take(2), numbers(2, published - 2));
    }
    assert.deepEqual(reader.inbox.rest, []);
    await reader.end();
    const all = await stream({url, live: false, offset: "-1"});
    assert.deepEqual(await all.json(), numbers(published));
}
