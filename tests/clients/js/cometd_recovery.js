// What goes wrong around cometd.js: networks, reloads, servers that die.
import assert from "node:assert/strict";
import {AckExtension, ReloadExtension} from "cometd";
import {CometClient} from "./cometd_client.js";
import {Page, installSessionStorage} from "./page.js";
import {Inbox, ask, figure, numbers, pause, within} from "./harness.js";
import {badNetwork} from "./proxy.js";

const acks = () => ({extensions: {ack: new AckExtension()}});

/** Gives up after half a second from now on: what is to get through has got through. */
const loseThePatience = (client) => client.cometd.configure({maxNetworkDelay: 500});

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
    const {network, receiver, sender, finish} = await acrossABadNetwork(context, acks());
    const channel = `${context.root}/swallowed`;
    const inbox = await receiver.subscribe(channel);
    loseThePatience(receiver);
    await sender.publish(channel, "before");
    assert.deepEqual(data(await inbox.take(1)), ["before"]);
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

const EXPIRED = 'holdfast_sessions_ended_total{reason="expire"}';

async function expires(context, before) {
    while ((await figure(context, EXPIRED)) === before) {
        await pause(20);
    }
}

export async function handshakesAgainAfterALongOutage(context) {
    const {network, receiver, finish, sender} = await acrossABadNetwork(context);
    const id = receiver.id;
    const again = resubscribing(receiver, `${context.root}/outage`);
    const before = await figure(context, EXPIRED);
    network.goDown();
    await within(expires(context, before), "the end of the session");
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

/** The sockets of cometd-nodejs-client as they come: none of them ever brings a cookie. */
const withoutCookies = () => ({...acks(), page: new Page({cookiesOnWebSocket: false})});

const ROUND = 20;

/** Publishes a round of messages, while in the middle of it something happens. */
async function publishRound(sender, channel, from, event) {
    for (const n of numbers(ROUND, from)) {
        if (n === from + ROUND / 2) {
            event();
        }
        assert.equal((await sender.publish(channel, n)).successful, true);
    }
}

/** Takes messages until `last` came, some perhaps twice. */
const collect = (inbox, arrived, last) =>
    inbox.until((message) => {
        arrived.add(message.data);
        return message.data === last;
    });

async function losesNothingWhile(context, event, {rounds, isImpatient, ...options}) {
    const {network, receiver, sender, finish} = await acrossABadNetwork(context, options);
    const [id, channel] = [receiver.id, `${context.root}/traffic`];
    const [inbox, arrived] = [await receiver.subscribe(channel), new Set()];
    if (isImpatient) {
        loseThePatience(receiver);
    }
    for (const round of numbers(rounds)) {
        await receiver.settle();
        await publishRound(sender, channel, round * ROUND, () => event(network));
        await collect(inbox, arrived, (round + 1) * ROUND - 1);
    }
    assert.deepEqual([...arrived], numbers(rounds * ROUND), "lost, or out of order");
    assert.equal(receiver.id, id, "the session did not survive");
    assert.ok(network.accepted > rounds, "not every socket was lost");
    await finish();
}

export const losesNothingOverTenCutsWithoutACookie = (context) =>
    losesNothingWhile(context, (network) => network.cut(), {rounds: 10, ...withoutCookies()});

export const losesNothingOverFrozenSocketsWithoutACookie = (context) =>
    losesNothingWhile(context, (network) => network.freeze(), {
        rounds: 4,
        isImpatient: true,
        ...withoutCookies(),
    });

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
    const visit = () => visitor(context, browser);
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

const visitor = (context, page) =>
    new CometClient(context, {
        page,
        extensions: {ack: new AckExtension(), reload: new ReloadExtension()},
    });

export async function losesNothingOverAReloadWithoutACookie(context) {
    installSessionStorage();
    const [{page}, channel] = [withoutCookies(), `${context.root}/traffic`];
    const sender = await new CometClient(context).connect();
    const before = await visitor(context, page).connect();
    const [inbox, id] = [await before.subscribe(channel), before.id];
    await before.settle();
    await publishRound(sender, channel, 0, () => before.cometd.reload());

    const arrived = new Set(data(inbox.rest));
    const after = visitor(context, page);
    const subscriptions = resubscribing(after, channel);
    await after.connect();
    assert.equal(after.id, id);
    await sender.publish(channel, ROUND);
    await collect(await subscriptions.next(), arrived, ROUND);
    assert.deepEqual([...arrived], numbers(ROUND + 1), "lost, or out of order");
    await Promise.all([after.disconnect(), sender.disconnect()]);
}
