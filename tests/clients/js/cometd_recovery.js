// What goes wrong around cometd.js: networks, reloads, servers that die.
import assert from "node:assert/strict";
import {AckExtension, ReloadExtension} from "cometd";
import {CometClient} from "./cometd_client.js";
import {Page, installSessionStorage} from "./page.js";
import {Inbox, ask, numbers, pause} from "./harness.js";
import {badNetwork} from "./proxy.js";

const acks = () => ({extensions: {ack: new AckExtension()}});

const data = (messages) => messages.map((message) => message.data);

/** A publisher with a good connection and a receiver behind a bad network. */
async function acrossABadNetwork(context, options = {}) {
    const network = await badNetwork(context.url);
    const page = new Page({cookiesOnWebSocket: true});
    const receiver = new CometClient(context, {page, url: network.url, ...options});
    await receiver.connect();
    const sender = await new CometClient(context).connect();
    const finish = async () => {
        await Promise.all([receiver.disconnect(), sender.disconnect()]);
        network.close();
    };
    return {network, receiver, sender, finish};
}

export async function getsAgainWhatALostReplyCarried(context) {
    const {network, receiver, sender, finish} = await acrossABadNetwork(context, acks());
    const id = receiver.id;
    const channel = `${context.root}/acked`;
    const inbox = await receiver.subscribe(channel);
    await sender.publish(channel, "before");
    assert.deepEqual(data(await inbox.take(1)), ["before"]);
    for (const round of numbers(3)) {
        await receiver.settle();
        const lost = network.loseNextReply();
        await sender.publish(channel, `lost ${round}`);
        await lost;
        await sender.publish(channel, `after ${round}`);
        assert.deepEqual(data(await inbox.take(2)), [`lost ${round}`, `after ${round}`]);
    }
    await sender.publish(channel, "end");
    assert.deepEqual(data(await inbox.take(1)), ["end"], "something arrived twice");
    assert.equal(receiver.id, id, "the session did not survive");
    await finish();
}

export async function getsAgainWhatASilentNetworkSwallowed(context) {
    const config = {maxNetworkDelay: 500};
    const {network, receiver, sender, finish} = await acrossABadNetwork(context, {...acks(), config});
    const channel = `${context.root}/swallowed`;
    const inbox = await receiver.subscribe(channel);
    await receiver.settle();
    const swallowed = network.swallowNextReply();
    await sender.publish(channel, "swallowed");
    await swallowed;
    await sender.publish(channel, "after");
    assert.deepEqual(data(await inbox.take(2)), ["swallowed", "after"]);
    await sender.publish(channel, "end");
    assert.deepEqual(data(await inbox.take(1)), ["end"], "something arrived twice");
    await finish();
}

export async function keepsTheSessionThroughAShortOutage(context) {
    const {network, receiver, sender, finish} = await acrossABadNetwork(context, acks());
    const id = receiver.id;
    const channel = `${context.root}/outage`;
    const inbox = await receiver.subscribe(channel);
    network.goDown();
    await receiver.connects.until((reply) => !reply.successful);
    for (const n of numbers(10)) {
        await sender.publish(channel, n);
    }
    network.comeUp();
    assert.deepEqual(data(await inbox.take(10)), numbers(10));
    assert.equal(receiver.id, id, "the session did not survive");
    await finish();
}

export async function handshakesAgainAfterALongOutage(context) {
    const {network, receiver, finish, sender} = await acrossABadNetwork(context);
    const id = receiver.id;
    const again = resubscribing(receiver, `${context.root}/outage`);
    network.goDown();
    await pause(context.maxInterval + 600);
    network.comeUp();
    const inbox = await again.next();
    assert.notEqual(receiver.id, id);
    await sender.publish(`${context.root}/outage`, "welcome back");
    assert.equal((await inbox.next()).data, "welcome back");
    await finish();
}

/** What the manual tells applications to do: subscribe in the handshake listener, every time. */
function resubscribing(client, channel) {
    const subscriptions = new Inbox(`subscriptions to ${channel}`);
    client.cometd.addListener("/meta/handshake", async (reply) => {
        if (reply.successful) {
            subscriptions.put(await client.subscribe(channel));
        }
    });
    return subscriptions;
}

/** The sockets of cometd-nodejs-client know no cookies: such a client must start anew, and can. */
export async function startsAnewWhenASocketBringsNoCookie(context) {
    const page = new Page({cookiesOnWebSocket: false});
    const {network, receiver, sender, finish} = await acrossABadNetwork(context, {page});
    const channel = `${context.root}/anew`;
    const [id, again] = [receiver.id, resubscribing(receiver, channel)];
    network.goDown();
    await receiver.connects.until((reply) => !reply.successful);
    network.comeUp();
    const inbox = await again.next();
    assert.notEqual(receiver.id, id);
    await sender.publish(channel, "hello again");
    assert.equal((await inbox.next()).data, "hello again");
    await finish();
}

export async function resumesWithoutACookieIfTheServerTrustsIds(context) {
    const page = new Page({cookiesOnWebSocket: false});
    const options = {...acks(), page};
    const {network, receiver, sender, finish} = await acrossABadNetwork(context, options);
    const id = receiver.id;
    const inbox = await receiver.subscribe(`${context.root}/trusted`);
    await receiver.settle();
    const lost = network.loseNextReply();
    await sender.publish(`${context.root}/trusted`, "lost");
    await lost;
    assert.deepEqual(data(await inbox.take(1)), ["lost"]);
    assert.equal(receiver.id, id);
    await finish();
}

async function findsItsFeetAgain(context, request) {
    const channel = `${context.root}/restart`;
    const clients = [new CometClient(context, acks()), new CometClient(context)];
    const subscriptions = clients.map((client) => resubscribing(client, channel));
    await Promise.all(clients.map((client) => client.connect()));
    const ids = clients.map((client) => client.id);
    await reachesAll(clients[0], subscriptions, channel, "before");

    await ask(request);
    await reachesAll(clients[1], subscriptions, channel, "after");
    clients.forEach((client, index) => assert.notEqual(client.id, ids[index]));
    for (const client of clients) {
        assert.deepEqual(data(client.received(channel)), ["before", "after"]);
        assert.equal(client.cometd.getTransport().type, context.transport);
    }
    await Promise.all(clients.map((client) => client.disconnect()));
}

async function reachesAll(sender, subscriptions, channel, text) {
    const inboxes = await Promise.all(subscriptions.map((subscription) => subscription.next()));
    await sender.publish(channel, text);
    for (const inbox of inboxes) {
        assert.equal((await inbox.next()).data, text);
    }
}

export const findsItsFeetAfterTheServerWasKilled = (context) =>
    findsItsFeetAgain(context, "kill and start the server");

export const findsItsFeetAfterTheServerWasStopped = (context) =>
    findsItsFeetAgain(context, "stop and start the server");

export async function keepsItsSessionThroughAReload(context) {
    installSessionStorage();
    const channel = `${context.root}/reload`;
    const browser = new Page({cookiesOnWebSocket: true});
    const visit = () => new CometClient(context, {
        page: browser,
        extensions: {ack: new AckExtension(), reload: new ReloadExtension()},
    });
    const sender = await new CometClient(context).connect();

    const before = await visit().connect();
    const inbox = await before.subscribe(channel);
    await sender.publish(channel, "seen by the first page");
    await inbox.next();
    await before.settle();
    const id = before.id;
    before.cometd.reload();
    browser.unload();
    await sender.publish(channel, "sent while nobody looked");

    const after = visit();
    const subscriptions = resubscribing(after, channel);
    await after.connect();
    assert.equal((await after.handshakes.next()).ext.reload, true);
    assert.equal(after.id, id);
    const messages = await subscriptions.next();
    assert.equal((await messages.next()).data, "sent while nobody looked");
    await sender.publish(channel, "and on it goes");
    assert.equal((await messages.next()).data, "and on it goes");
    await Promise.all([after.disconnect(), sender.disconnect()]);
}
