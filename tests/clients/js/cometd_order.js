// A receiver whose listener refuses a message for now, with the extension for verdicts.
import assert from "node:assert/strict";
import {AckExtension} from "cometd";
import {DeliveryExtension, Refuse} from "../../../static/js/delivery.js";
import {CometClient} from "./cometd_client.js";
import {Inbox, numbers} from "./harness.js";

const NUMBER = 6;

/** Returns what the listener heard: it refuses message 3 once, at once or later. */
async function heard(context, options, refuse) {
    const channel = `${context.root}/order/${options.maxEntries ?? "all"}/${refuse.name}`;
    const delivery = new DeliveryExtension({retries: 5, delay: 20, ...options});
    const ann = new CometClient(context, {extensions: {ack: new AckExtension(), delivery}});
    await ann.connect();
    const inbox = new Inbox("messages");
    let isRefused = false;
    inbox.put = ((put) => (message) => {
        put.call(inbox, message);
        if (message.data === 3 && !isRefused) {
            isRefused = true;
            return refuse();
        }
    })(inbox.put);
    inbox.subscription = await new Promise((resolve) => {
        ann.cometd.subscribe(channel, (message) => inbox.put(message), resolve);
    });
    const bob = await new CometClient(context).connect();
    bob.cometd.batch(() => numbers(NUMBER).forEach((each) => bob.cometd.publish(channel, each)));
    const messages = await inbox.take(NUMBER + 1);
    await Promise.all([ann.disconnect(), bob.disconnect()]);
    return messages.map(({data}) => data);
}

const busy = () => new Refuse("communication.busy", "later", {delay: 20});

function atOnce() {
    throw busy();
}

async function later() {
    await null;
    throw busy();
}

/** With one message at a time, what comes again precedes what is behind it. */
export async function keepsTheOrderOneByOne(context) {
    for (const refuse of [atOnce, later]) {
        assert.deepEqual(await heard(context, {maxEntries: 1}, refuse), [0, 1, 2, 3, 3, 4, 5]);
    }
}

/** Listeners run for the rest of a batch before the server knows of the refusal. */
export async function processesTheRestOfTheBatch(context) {
    assert.deepEqual(await heard(context, {}, atOnce), [0, 1, 2, 3, 4, 5, 3]);
}
