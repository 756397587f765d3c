// The same with Faye's client, which follows the Bayeux text more than CometD's habits.
import assert from "node:assert/strict";
import {FayeClient} from "./faye_client.js";
import {CometClient} from "./cometd_client.js";
import {ask, numbers, pause} from "./harness.js";
import {badNetwork} from "./proxy.js";

const data = (messages) => messages.map((message) => message.data);

export async function hearsItselfUntilItCancels(context) {
    const client = new FayeClient(context);
    const [here, fence] = [`${context.root}/here`, `${context.root}/fence`];
    const [inbox, afterwards] = [await client.subscribe(here), await client.subscribe(fence)];
    await client.speaks(context.transport);
    await client.publish(here, {text: "hello"});
    assert.deepEqual(await inbox.next(), {channel: here, data: {text: "hello"}});
    inbox.subscription.cancel();
    await client.publish(here, "nobody listens");
    await client.publish(fence, "last");
    await afterwards.next();
    assert.deepEqual(inbox.rest, []);
    assert.equal(client.received(here).length, 1);
    await client.disconnect();
}

export async function talksWithOthers(context) {
    const [alice, bob] = [new FayeClient(context), new FayeClient(context)];
    const carol = await new CometClient(context).connect();
    const channel = `${context.root}/chat`;
    const inboxes = [];
    for (const client of [alice, bob, carol]) {
        inboxes.push(await client.subscribe(channel));
    }
    for (const [speaker, text] of [[alice, "a"], [bob, "b"], [carol, "c"], [alice, "d"]]) {
        await speaker.publish(channel, {text});
        for (const inbox of inboxes) {
            const message = await inbox.next();
            assert.deepEqual([message.channel, message.data], [channel, {text}]);
        }
    }
    await Promise.all([alice, bob, carol].map((client) => client.disconnect()));
}

export async function sharesOutWildcards(context) {
    const [sender, receiver] = [new FayeClient(context), new FayeClient(context)];
    const {root} = context;
    const exact = await receiver.subscribe(`${root}/a/b`);
    const children = await receiver.subscribe(`${root}/a/*`);
    const descendants = await receiver.subscribe(`${root}/**`);
    for (const channel of [`${root}/a/b`, `${root}/a/b/c`, `${root}/a/c`, `${root}/d`]) {
        await sender.publish(channel, channel);
    }
    const short = (messages) => messages.map((message) => message.channel.slice(root.length));
    assert.deepEqual(short(await descendants.take(4)), ["/a/b", "/a/b/c", "/a/c", "/d"]);
    assert.deepEqual(short(await exact.take(1)), ["/a/b"]);
    assert.deepEqual(short(await children.take(2)), ["/a/b", "/a/c"]);
    assert.equal(receiver.received(`${root}/a/b`).length, 1);
    await Promise.all([sender.disconnect(), receiver.disconnect()]);
}

export async function learnsOfRefusals(context) {
    const client = new FayeClient(context);
    await client.subscribe(`${context.root}/fine`);
    await assert.rejects(client.subscribe("/meta/connect"), {code: 403});
    await assert.rejects(client.publish("/meta/nonsense", "x"), {code: 400});
    await client.publish(`${context.root}/fine`, "still working");
    await client.disconnect();
}

export async function keepsTheOrderOfAThousandMessages(context) {
    const [sender, receiver] = [new FayeClient(context), new FayeClient(context)];
    const inbox = await receiver.subscribe(`${context.root}/burst`);
    // What is published before the handshake is over, Faye sends in an order of its own.
    await sender.publish(`${context.root}/hello`, "let us shake hands");
    await Promise.all(numbers(1000).map((n) => sender.publish(`${context.root}/burst`, {n})));
    assert.deepEqual(data(await inbox.take(1000)), numbers(1000).map((n) => ({n})));
    assert.deepEqual(inbox.rest, []);
    await Promise.all([sender.disconnect(), receiver.disconnect()]);
}

export async function carriesFalsyAndOddData(context) {
    const [sender, receiver] = [new FayeClient(context), new FayeClient(context)];
    const inbox = await receiver.subscribe(`${context.root}/odd`);
    const odd = [0, "", false, null, [], {}, "\u0000\u2028", "שלום 😀", {"schlüssel 🔑": [null]}, "x".repeat(200000)];
    for (const value of odd) {
        await sender.publish(`${context.root}/odd`, value);
    }
    assert.deepEqual(data(await inbox.take(odd.length)), odd);
    await Promise.all([sender.disconnect(), receiver.disconnect()]);
}

export async function getsPastAValueThatCannotBePassedOn(context) {
    const client = new FayeClient(context);
    const channel = `${context.root}/values`;
    const inbox = await client.subscribe(channel);
    const cut = client.publish(channel, {text: "smile 😀".slice(0, 7)});
    await assert.rejects(cut, {code: 400, message: "text_invalid"});
    await client.publish(channel, 1e20);
    await client.publish(channel, "next");
    assert.deepEqual(data(await inbox.take(2)), [1e20, "next"]);
    assert.equal(client.handshakes.rest.length, 1, "it lost its session");
    assert.deepEqual(client.downs.rest, [], "it lost its connection");
    await client.disconnect();
}

export async function keepsTheSessionThroughAShortOutage(context) {
    const network = await badNetwork(context.url);
    const [sender, receiver] = [new FayeClient(context), new FayeClient(context, {url: network.url})];
    const channel = `${context.root}/outage`;
    const inbox = await receiver.subscribe(channel);
    const id = receiver.id;
    network.goDown();
    await receiver.downs.next();
    await sender.publish(channel, "while it was away");
    network.comeUp();
    assert.equal((await inbox.next()).data, "while it was away");
    assert.equal(receiver.id, id);
    await Promise.all([sender.disconnect(), receiver.disconnect()]);
    network.close();
}

/** Faye opens its socket while its handshake, over HTTP, is still under way. */
export async function worksFromFarAway(context) {
    const network = await badNetwork(context.url, {delayMs: 20});
    const [near, far] = [new FayeClient(context), new FayeClient(context, {url: network.url})];
    const channel = `${context.root}/far`;
    const inbox = await far.subscribe(channel);
    await far.speaks(context.transport);
    await near.publish(channel, "far away");
    assert.equal((await inbox.next()).data, "far away");
    await far.publish(channel, "from far away");
    assert.equal((await inbox.next()).data, "from far away");
    assert.equal(far.handshakes.rest.length, 1, "it had to handshake more than once");
    await Promise.all([near.disconnect(), far.disconnect()]);
    network.close();
}

/** Until its socket is open Faye talks over HTTP, and either of its two cookies may be the last. */
export async function changesToItsSocketWhenever(context) {
    await Promise.all([0, 2, 5, 9, 14, 20, 40, 80].map((late) => changesToItsSocket(context, late)));
}

async function changesToItsSocket(context, socketDelayMs) {
    const network = await badNetwork(context.url, {socketDelayMs});
    const client = new FayeClient(context, {url: network.url});
    const channel = `${context.root}/${socketDelayMs}`;
    const inbox = await client.subscribe(channel);
    let count = 0;
    while (client.transport !== "websocket" || count < 5) {
        await client.publish(channel, count++);
        await pause(3);
    }
    assert.deepEqual(data(await inbox.take(count)), numbers(count));
    assert.equal(client.handshakes.rest.length, 1, "it had to handshake more than once");
    await client.disconnect();
    network.close();
}

export async function findsItsFeetAfterTheServerWasKilled(context) {
    const [sender, receiver] = [new FayeClient(context), new FayeClient(context)];
    const channel = `${context.root}/restart`;
    const inbox = await receiver.subscribe(channel);
    await sender.publish(channel, "before");
    assert.equal((await inbox.next()).data, "before");
    const ids = [sender.id, receiver.id];
    await Promise.all([sender.handshakes.next(), receiver.handshakes.next()]);
    await receiver.subscriptions.next();

    await ask("kill and start the server");
    // Each finds out by itself; what it publishes before is refused.
    for (const client of [sender, receiver]) {
        await client.handshakes.until((reply) => reply.successful);
    }
    // Faye subscribes again by itself.
    await receiver.subscriptions.until((reply) => reply.successful);
    await sender.publish(channel, "after");
    assert.equal((await inbox.next()).data, "after");
    [sender, receiver].forEach((client, index) => assert.notEqual(client.id, ids[index]));
    await Promise.all([sender.disconnect(), receiver.disconnect()]);
}
