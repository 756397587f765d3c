// Faye's client with the extension of Holdfast: acks, verdicts, a named session and requests.
import assert from "node:assert/strict";
import {FayeExtension, Refuse} from "../../../static/js/faye.js";
import {Outbox} from "../../../static/js/outbox.js";
import {FakeStorage} from "../extensions/scripted.js";
import {FayeClient} from "./faye_client.js";
import {Inbox, figure, numbers, pause, within} from "./harness.js";
import {badNetwork} from "./proxy.js";

const EXPIRED = 'holdfast_sessions_ended_total{reason="expire"}';
const LETTERS = "holdfast_dead_letters";

const visit = (context, options, more) =>
    new FayeClient(context, {...more, extension: new FayeExtension(options)});

/** Subscribes with a listener of Faye that the inbox hears of, with the messages. */
async function listen(client, channel, listener = () => {}) {
    const inbox = new Inbox(`messages on ${channel}`);
    await client.client.subscribe(channel, (data, message) => {
        inbox.put(message);
        return listener(data, message);
    });
    return inbox;
}

const data = (messages) => messages.map((message) => message.data);

/** A publisher with a good connection and a receiver behind a bad network. */
async function acrossABadNetwork(context, listener) {
    const network = await badNetwork(context.url);
    const receiver = visit(context, {}, {url: network.url});
    const channel = `${context.root}/news`;
    const inbox = await listen(receiver, channel, listener);
    await receiver.speaks(context.transport);
    const sender = visit(context);
    const publish = (value) => sender.publish(channel, value);
    const finish = async () => {
        await Promise.all([receiver.disconnect(), sender.disconnect()]);
        network.close();
    };
    return {network, receiver, inbox, publish, finish};
}

export async function getsAgainWhatALostReplyCarried(context) {
    const {network, receiver, inbox, publish, finish} = await acrossABadNetwork(context);
    const {id} = receiver;
    for (const round of numbers(3)) {
        await publish(`before ${round}`);
        assert.deepEqual(data(await inbox.take(1)), [`before ${round}`]);
        await receiver.asks();
        const lost = network.loseNextReply();
        await publish(`lost ${round}`);
        await lost;
        await publish(`after ${round}`);
        assert.deepEqual(data(await inbox.take(2)), [`lost ${round}`, `after ${round}`]);
    }
    assert.deepEqual(inbox.rest, []);
    assert.equal(receiver.id, id, "the session did not survive");
    await finish();
}

export async function getsAgainWhatASilentNetworkSwallowed(context) {
    const {network, receiver, inbox, publish, finish} = await acrossABadNetwork(context);
    await publish("before");
    assert.deepEqual(data(await inbox.take(1)), ["before"]);
    await receiver.asks();
    const swallowed = network.swallowNextReply();
    await publish("swallowed");
    await swallowed;
    await publish("after");
    assert.deepEqual(data(await inbox.take(2)), ["swallowed", "after"]);
    await publish("end");
    assert.deepEqual(data(await inbox.take(1)), ["end"], "something arrived twice");
    await finish();
}

/** What is still being processed is not settled by the acks that follow, and comes once. */
export async function takesItsTimeOverCuts(context) {
    const open = [];
    const slowly = () => new Promise((resolve) => open.push(resolve));
    const {network, receiver, inbox, publish, finish} = await acrossABadNetwork(context, slowly);
    for (const number of numbers(5)) {
        await publish(number);
        assert.deepEqual(data(await inbox.take(1)), [number]);
        network.cut();
    }
    await receiver.asks();
    assert.equal(receiver.extension.delivery.pending, 5);
    open.forEach((resolve) => resolve());
    await publish("end");
    assert.deepEqual(data(await inbox.take(1)), ["end"], "something arrived twice");
    await finish();
}

export async function refusesMessages(context) {
    const channel = `${context.root}/orders`;
    const [receiver, sender] = [visit(context, {retries: -1}), visit(context)];
    let isBusy = true;
    const inbox = await listen(receiver, channel, async ({pieces}) => {
        if (pieces === "many") {
            throw new Refuse("user.update.illegalArgument", "how many?");
        } else if (pieces === 2 && isBusy) {
            isBusy = false;
            throw new Refuse("communication.busy", "later", {delay: 50});
        }
    });
    const before = await figure(context, LETTERS);
    for (const pieces of [1, "many", 2]) {
        await sender.publish(channel, {pieces});
    }
    const heard = (await inbox.take(4)).map(({data, ext}) => [data.pieces, ext.delivery.redelivered ?? 0]);
    assert.deepEqual(heard, [[1, 0], ["many", 0], [2, 0], [2, 1]]);
    assert.equal((await figure(context, LETTERS)) - before, 1);
    await Promise.all([receiver.disconnect(), sender.disconnect()]);
}

/** A listener that fails refuses its message, and keeps Faye from nothing. */
export async function outlivesItsListeners(context) {
    const channel = `${context.root}/orders`;
    const [receiver, sender] = [visit(context), visit(context)];
    const faults = new Inbox("faults");
    receiver.extension.onListenerException = (error) => faults.put(error.message);
    const inbox = await listen(receiver, channel, (number) => {
        if (number === 1) {
            throw new Error("broken at once");
        }
        return number === 2 ? Promise.reject(new Error("broken later")) : undefined;
    });
    const before = await figure(context, LETTERS);
    await Promise.all(numbers(4).map((number) => sender.publish(channel, number)));
    assert.deepEqual(data(await inbox.take(4)).toSorted(), numbers(4));
    assert.deepEqual((await faults.take(2)).toSorted(), ["broken at once", "broken later"]);
    await sender.publish(channel, "end");
    await inbox.take(1);
    await receiver.asks();
    assert.equal((await figure(context, LETTERS)) - before, 2);
    await Promise.all([receiver.disconnect(), sender.disconnect()]);
}

/** Listeners of each kind get the message as their last argument, and their own `this`. */
export async function showsMessagesToListeners(context) {
    const channel = `${context.root}/seen`;
    const client = visit(context);
    const seen = new Inbox("calls");
    const self = {};
    const note = function (...given) {
        const message = given.pop();
        seen.put([this === self, ...given, message.channel, typeof message.ext.delivery.id]);
    };
    await Promise.all([
        client.client.subscribe(channel, note, self),
        client.client.subscribe(`${context.root}/*`).withChannel(note, self),
        ...client.client.subscribe([`${context.root}/**`, `${context.root}/other`], note, self),
    ]);
    await client.publish(channel, 7);
    const calls = (await seen.take(3)).toSorted((one, other) => one.length - other.length);
    const said = [channel, "string"];
    assert.deepEqual(calls, [[true, 7, ...said], [true, 7, ...said], [true, channel, 7, ...said]]);
    await client.disconnect();
    assert.deepEqual(seen.rest, []);
}

/** Faye repeats a publish by itself if its reply is lost. */
export async function publishesOnceHoweverOftenItSends(context) {
    const network = await badNetwork(context.url);
    const [sender, receiver] = [visit(context, {session: "sender/1"}, {url: network.url}), visit(context)];
    const channel = `${context.root}/once`;
    const inbox = await listen(receiver, channel);
    await sender.publish(channel, "before");
    await sender.speaks(context.transport);
    for (const round of numbers(3)) {
        await sender.asks();
        network.loseNextReply();
        await sender.publish(channel, round);
    }
    assert.deepEqual(data(await inbox.take(4)), ["before", ...numbers(3)]);
    await sender.publish(channel, "end");
    assert.deepEqual(data(await inbox.take(1)), ["end"], "something arrived twice");
    await Promise.all([receiver.disconnect(), sender.disconnect()]);
    network.close();
}

/** Many requests at a time get their own replies, and errors come as such. */
export async function asksAnother(context) {
    const [ann, bob] = [visit(context), visit(context)];
    const channel = `${context.root}/power`;
    await bob.client.subscribe(channel, ({volt}, message) => bob.extension.reply(message, volt * 2));
    // The first ones are asked before there is a session.
    const ask = (volt) => ann.extension.ask(channel, {volt});
    assert.deepEqual(await Promise.all(numbers(20).map(ask)), numbers(20).map((volt) => volt * 2));
    assert.deepEqual(await ann.extension.ask(channel, {volt: 1}, {mode: "all"}), [2]);
    await bob.disconnect();
    await assert.rejects(ask(1), {code: 404});
    await ann.disconnect();
    await assert.rejects(ask(1), {message: "503::disconnected"});
}

/** What waits when a page disconnects is for the next one. */
export async function takesItsSessionUpAgain(context) {
    const channel = `${context.root}/mail`;
    const sender = visit(context);
    const name = `reader-${context.transport}/1`;
    const first = visit(context, {session: name});
    const inbox = await listen(first, channel);
    await sender.publish(channel, "before");
    assert.deepEqual(data(await inbox.take(1)), ["before"]);
    await first.asks();
    await first.disconnect();
    for (const number of numbers(3)) {
        await sender.publish(channel, number);
    }
    const second = visit(context, {session: name});
    assert.deepEqual(data(await (await listen(second, channel)).take(3)), numbers(3));
    const {session, isResumed, waiting} = second.extension.delivery;
    assert.deepEqual([session, isResumed, waiting], [`client/${name}`, true, 3]);
    // The third takes it over from the second, which does not take it back.
    const third = visit(context, {session: name});
    const last = await listen(third, channel);
    await within(second.isOver(), "the end of the second");
    await sender.publish(channel, "after");
    assert.deepEqual(data(await last.take(1)), ["after"]);
    second.hangUp();
    await Promise.all([third.disconnect(), sender.disconnect()]);
}

/** After an outage that ends its session, Faye has one other session, and one connect in it. */
export async function beginsOnceMoreAfterALongOutage(context) {
    const {network, receiver, inbox, publish, finish} = await acrossABadNetwork(context);
    const {id} = receiver;
    const before = await figure(context, EXPIRED);
    network.goDown();
    // They are refused when the network is back, one after the other.
    const lost = Promise.allSettled(
        numbers(5).map((number) => receiver.publish(`${context.root}/lost`, number)),
    );
    while ((await figure(context, EXPIRED)) === before) {
        await pause(20);
    }
    network.comeUp();
    await receiver.handshakes.take(2);
    await lost;
    await receiver.subscriptions.take(2);
    assert.notEqual(receiver.id, id);
    const connects = receiver.connects.rest.length;
    await pause(20 * context.timeout / 10);
    assert.ok(receiver.connects.rest.length - connects <= 4, "it has more than one connect");
    await publish("welcome back");
    assert.deepEqual(data(await inbox.take(1)), ["welcome back"]);
    assert.deepEqual(receiver.handshakes.rest, [], "it began more than one session");
    await finish();
}

/** What its page puts into the outbox arrives once and in order, over cuts, refusals and a new page. */
export async function emptiesItsOutbox(context) {
    const network = await badNetwork(context.url);
    const [storage, channel] = [new FakeStorage(), `${context.root}/outbox`];
    const receiver = visit(context);
    const inbox = await listen(receiver, channel);
    const open = async () => {
        const client = visit(context, {session: "publisher/1"}, {url: network.url});
        const outbox = new Outbox(client.extension, {storage, name: context.transport});
        const refused = new Inbox("refused");
        outbox.addEventListener("refused", ({detail}) => refused.put(detail.reply.error));
        await within(new Promise((resolve) => client.client.connect(resolve)), "a session");
        return {client, outbox, refused};
    };
    const sent = ({outbox}, number) => within(outbox.publish(channel, number), `the reply to ${number}`);
    const first = await open();
    await sent(first, 0);
    const nonsense = within(first.outbox.publish("/meta/nonsense", 0), "a refusal");
    await assert.rejects(nonsense, {name: "PublishRefused"});
    assert.match(await first.refused.next(), /^400:/);
    network.loseNextReply();
    await Promise.all([1, 2].map((number) => sent(first, number)));
    network.goDown();
    [3, 4].forEach((number) => first.outbox.publish(channel, number));
    assert.equal(first.outbox.entries.length, 2);
    // The page is closed with them.
    first.outbox.close();
    const opened = open();
    network.comeUp();
    const {client, outbox} = await opened;
    await sent({outbox}, 5);
    assert.deepEqual(outbox.entries, []);
    assert.deepEqual(data(await inbox.take(6)), numbers(6));
    assert.throws(() => outbox.publish(channel, "x".repeat(1e6)), RangeError);
    await within(first.client.isOver(), "the end of the first page");
    first.client.hangUp();
    await client.publish(channel, "end");
    assert.deepEqual(data(await inbox.take(1)), ["end"], "something arrived twice");
    await Promise.all([client.disconnect(), receiver.disconnect()]);
    network.close();
}
