// What applications do with cometd.js all day. Each scenario gets the transport from the test.
import assert from "node:assert/strict";
import {CometClient} from "./cometd_client.js";
import {Inbox, numbers, pause, within} from "./harness.js";
import {Outbox} from "../../../static/js/outbox.js";
import {AckExtension, BinaryExtension, TimeStampExtension, TimeSyncExtension} from "cometd";

const two = (context, options) =>
    Promise.all([new CometClient(context, options).connect(), new CometClient(context, options).connect()]);

const data = (messages) => messages.map((message) => message.data);

export async function hearsItselfUntilItUnsubscribes(context) {
    const client = await new CometClient(context).connect();
    const [here, fence] = [`${context.root}/here`, `${context.root}/fence`];
    const inbox = await client.subscribe(here);
    const afterwards = await client.subscribe(fence);
    assert.equal(client.cometd.getTransport().type, context.transport);

    const reply = await client.publish(here, {text: "hello"});
    assert.equal(reply.successful, true);
    assert.deepEqual(await inbox.next(), {channel: here, data: {text: "hello"}});

    assert.equal((await client.unsubscribe(inbox)).successful, true);
    await client.publish(here, "nobody listens");
    await client.publish(fence, "last");
    await afterwards.next();
    assert.deepEqual(client.received(here).length, 1);

    assert.equal((await client.disconnect()).successful, true);
    assert.equal(client.cometd.getStatus(), "disconnected");
}

export async function reachesOthersWithoutNamingThePublisher(context) {
    const [alice, bob] = await two(context);
    const channel = `${context.root}/chat`;
    const [toAlice, toBob] = [await alice.subscribe(channel), await bob.subscribe(channel)];
    for (let turn = 0; turn < 5; ++turn) {
        const [speaker, text] = turn % 2 ? [alice, `a${turn}`] : [bob, `b${turn}`];
        await speaker.publish(channel, text);
        for (const inbox of [toAlice, toBob]) {
            assert.deepEqual(await inbox.next(), {channel, data: text});
        }
    }
    await Promise.all([alice.disconnect(), bob.disconnect()]);
}

export async function keepsTheOrderOfABatch(context) {
    const [sender, receiver] = await two(context);
    const [channel, later] = [`${context.root}/batch`, `${context.root}/later`];
    const inbox = await receiver.subscribe(channel);
    const replies = [];
    const own = [];
    sender.cometd.batch(() => {
        replies.push(sender.publish(channel, 0));
        sender.cometd.subscribe(later, (message) => own.push(message.data));
        numbers(20, 1).forEach((n) => replies.push(sender.publish(channel, n)));
        replies.push(sender.publish(later, "subscribed before"));
    });
    for (const reply of await Promise.all(replies)) {
        assert.equal(reply.successful, true);
    }
    assert.deepEqual(data(await inbox.take(21)), numbers(21));
    assert.equal((await sender.publish(later, "again")).successful, true);
    const fence = await sender.subscribe(`${context.root}/fence`);
    await sender.publish(`${context.root}/fence`, "!");
    await fence.next();
    assert.deepEqual(own, ["subscribed before", "again"]);
    await Promise.all([sender.disconnect(), receiver.disconnect()]);
}

export async function sharesOutWildcardsButSendsOneCopy(context) {
    const [sender, receiver] = await two(context);
    const {root} = context;
    const exact = await receiver.subscribe(`${root}/a/b`);
    const children = await receiver.subscribe(`${root}/a/*`);
    const descendants = await receiver.subscribe(`${root}/**`);

    for (const channel of [`${root}/a/b`, `${root}/a/b/c`, `${root}/a/c`, `${root}/d`]) {
        await sender.publish(channel, channel);
    }
    const short = (messages) => messages.map((message) => message.data.slice(root.length));
    assert.deepEqual(short(await descendants.take(4)), ["/a/b", "/a/b/c", "/a/c", "/d"]);
    assert.deepEqual(short(await exact.take(1)), ["/a/b"]);
    assert.deepEqual(short(await children.take(2)), ["/a/b", "/a/c"]);
    assert.equal(receiver.received(`${root}/a/b`).length, 1);

    const refused = await sender.publish(`${root}/a/*`, "to a pattern");
    assert.equal(refused.successful, false);
    assert.match(refused.error, /^405:/);
    await Promise.all([sender.disconnect(), receiver.disconnect()]);
}

export async function keepsServiceChannelsPrivate(context) {
    const [sender, listener] = await two(context);
    const everything = await listener.subscribe("/service/**");
    const own = await sender.subscribe("/service/nobody");
    const fence = await listener.subscribe(`${context.root}/fence`);
    assert.equal((await sender.publish("/service/nobody", "secret")).successful, true);
    await sender.publish(`${context.root}/fence`, "!");
    await fence.next();
    assert.deepEqual([everything.rest, own.rest], [[], []]);
    await Promise.all([sender.disconnect(), listener.disconnect()]);
}

export async function answersRemoteCalls(context) {
    const client = await new CometClient(context).connect();
    const asked = {deep: [1, "two", null]};
    const answer = await client.call("echo", asked);
    assert.equal(answer.successful, true);
    assert.deepEqual(answer.data, asked);

    const failure = await client.call("/fail", {why: "because"});
    assert.equal(failure.successful, false);
    assert.deepEqual(failure.data, {why: "because"});

    const many = await Promise.all(numbers(10).map((n) => client.call("echo", n)));
    assert.deepEqual(data(many), numbers(10));

    const silence = await client.call("nobody", "hello?", 200);
    assert.deepEqual([silence.successful, silence.error], [false, "406::timeout"]);
    await client.disconnect();
}

export async function carriesLargeMessages(context) {
    const config = {maxSendBayeuxMessageSize: 2000000};
    const [sender, receiver] = await two(context, {config});
    const inbox = await receiver.subscribe(`${context.root}/large`);
    // ASCII, because cometd-nodejs-client tears characters at the borders of the chunks it reads.
    const large = "0123456789abcdef".repeat(60000);
    await sender.publish(`${context.root}/large`, large);
    await sender.publish(`${context.root}/large`, "small");
    const [first, second] = await inbox.take(2);
    assert.ok(first.data === large, "the large message came back changed");
    assert.equal(second.data, "small");
    await Promise.all([sender.disconnect(), receiver.disconnect()]);
}

export async function carriesFalsyAndOddData(context) {
    const [sender, receiver] = await two(context);
    const inbox = await receiver.subscribe(`${context.root}/odd`);
    const odd = [
        0, -0.5, 1e300, 9007199254740991, "", false, true, null, [], {}, [null], {"": null}, {a: {b: []}},
        "\u0000\u001f\u2028\u2029\ufeff\u007f", "<script>*/ alert(1) /*</script>", "\\\"/'",
        "שלום, 你好, 😀👩‍👩‍👧‍👦", {"schlüssel 🔑": "wert"}, {__proto__x: 1, constructor: 2},
    ];
    for (const value of odd) {
        await sender.publish(`${context.root}/odd`, value);
    }
    assert.deepEqual(data(await inbox.take(odd.length)), odd);
    await Promise.all([sender.disconnect(), receiver.disconnect()]);
}

export async function getsPastAValueThatCannotBePassedOn(context) {
    const client = await new CometClient(context).connect();
    const channel = `${context.root}/values`;
    const inbox = await client.subscribe(channel);
    const reply = await client.publish(channel, {text: "smile 😀".slice(0, 7)});
    assert.deepEqual([reply.successful, reply.error], [false, "400::text_invalid"]);
    await client.publish(channel, 1e20);
    assert.deepEqual(data(await inbox.take(1)), [1e20]);
    assert.equal(client.handshakes.rest.length, 1, "it lost its session");
    await client.disconnect();
}

/** Larger than the server reads, deeper, and cut: none stands in the way of the next. */
export async function itsOutboxGetsPastWhatTheServerWillNotHave(context) {
    const config = {maxSendBayeuxMessageSize: 1e8};
    const client = await new CometClient(context, {config}).connect();
    const channel = `${context.root}/outbox`;
    const outbox = new Outbox(client.cometd);
    const deep = numbers(3000).reduce((inner) => [inner], null);
    const refused = ["x".repeat(6e6), deep, "😀".slice(1), "x".repeat(3e6)];
    const errors = refused.map((value) =>
        assert.rejects(outbox.publish(channel, value), {name: "PublishRefused"}),
    );
    const good = outbox.publish(channel, "good");
    assert.equal((await within(good, "an answer")).successful, true);
    await Promise.all(errors);
    assert.equal(outbox.entries.length, 0);
    outbox.close();
    await client.disconnect();
}

export async function carriesBinaryData(context) {
    const extensions = {binary: new BinaryExtension()};
    const [sender, receiver] = await two(context, {extensions});
    const inbox = await receiver.subscribe(`${context.root}/binary`);
    const bytes = Uint8Array.from(numbers(256));
    sender.cometd.publishBinary(`${context.root}/binary`, bytes, true, {name: "all of them"});
    const {data: received} = await inbox.next();
    assert.deepEqual(new Uint8Array(received.data), bytes);
    assert.deepEqual([received.last, received.meta], [true, {name: "all of them"}]);
    await Promise.all([sender.disconnect(), receiver.disconnect()]);
}

export async function keepsCustomFieldsButNoForgedOnes(context) {
    const [sender, receiver] = await two(context);
    const channel = `${context.root}/fields`;
    const inbox = await receiver.subscribe(channel);
    const forged = {advice: {reconnect: "none"}, successful: false, error: "500::forged"};
    await sender.publish(channel, "first", {order: 7, ext: {mood: "good"}, ...forged});
    assert.deepEqual(await inbox.next(), {channel, data: "first", order: 7, ext: {mood: "good"}});
    await sender.publish(channel, "second");
    assert.equal((await inbox.next()).data, "second", "the receiver was talked out of listening");
    await Promise.all([sender.disconnect(), receiver.disconnect()]);
}

export async function keepsTheOrderOfAThousandMessages(context) {
    const [sender, receiver] = await two(context);
    const inbox = await receiver.subscribe(`${context.root}/burst`);
    const [channel, replies] = [`${context.root}/burst`, []];
    const send = (count) => {
        const from = replies.length;
        replies.push(...numbers(count, from).map((n) => sender.publish(channel, {n})));
    };
    send(100);
    await Promise.all(replies);
    for (let batch = 0; batch < 9; ++batch) {
        sender.cometd.batch(() => send(100));
        // Callback-polling sends the rest of a long batch after the beginning of the next.
        await Promise.all(replies);
    }
    for (const reply of await Promise.all(replies)) {
        assert.equal(reply.successful, true);
    }
    assert.deepEqual(data(await inbox.take(1000)), numbers(1000).map((n) => ({n})));
    assert.deepEqual(inbox.rest, []);
    await Promise.all([sender.disconnect(), receiver.disconnect()]);
}

export async function getsLazyMessagesTogether(context) {
    const [sender, receiver] = await two(context);
    const [lazy, urgent] = [`${context.root}/lazy`, `${context.root}/urgent`];
    const inbox = await receiver.subscribe(`${context.root}/*`);
    const start = Date.now();
    await sender.publish(lazy, 1);
    await sender.publish(lazy, 2);
    assert.deepEqual(data(await inbox.take(2)), [1, 2]);
    const waited = Date.now() - start;
    assert.ok(waited >= 0.8 * context.lazyTimeout, `lazy messages came after ${waited} ms`);

    await sender.publish(lazy, 3);
    await sender.publish(urgent, 4);
    assert.deepEqual(data(await inbox.take(2)), [3, 4], "urgent messages take lazy ones along");
    await Promise.all([sender.disconnect(), receiver.disconnect()]);
}

async function isGreeted(context, extensions) {
    const client = new CometClient(context, {extensions});
    const greetings = new Inbox("greetings");
    client.cometd.addListener("/greetings", (message) => greetings.put(message.data));
    await client.connect();
    const reply = await client.handshakes.next();
    assert.deepEqual(await greetings.take(3), [0, 1, 2]);
    const fence = await client.subscribe(`${context.root}/fence`);
    await client.publish(`${context.root}/fence`, "!");
    await fence.next();
    assert.deepEqual(greetings.rest, []);
    await client.disconnect();
    return reply;
}

export async function isGreetedWithTheHandshake(context) {
    for (const extensions of [{}, {ack: new AckExtension()}]) {
        const reply = await isGreeted(context, extensions);
        assert.equal(reply["x-messages"], 3);
    }
}

export async function isGreetedAfterTheHandshake(context) {
    for (const extensions of [{}, {ack: new AckExtension()}]) {
        const reply = await isGreeted(context, extensions);
        assert.equal(reply["x-messages"], undefined);
    }
}

export async function isTurnedAwayWithoutATicket(context) {
    const stranger = new CometClient(context);
    stranger.cometd.handshake();
    const {successful, error, advice, ext} = await stranger.handshakes.next();
    assert.deepEqual([successful, error], [false, "403::handshake_denied"]);
    assert.equal(advice.reconnect, "none");
    assert.deepEqual(ext.authentication, {failed: true});
    await pause(100);
    assert.equal(stranger.cometd.getStatus(), "disconnected");
    assert.deepEqual(stranger.handshakes.rest, [], "it knocked again");

    const guest = new CometClient(context);
    await guest.connect({ext: {authentication: {ticket: "valid"}}});
    await assert.rejects(guest.subscribe("/cellar/wine"), /403:no_way_down:subscribe_denied/);
    await guest.disconnect();
}

export async function leavesWhenItIsThrownOut(context) {
    for (const extensions of [{}, {ack: new AckExtension()}]) {
        const client = await new CometClient(context, {extensions}).connect();
        const goodbyes = new Inbox("goodbyes");
        client.cometd.addListener("/meta/disconnect", (message) => goodbyes.put(message));
        await client.settle();
        client.cometd.publish("/service/eject", {});
        assert.equal((await goodbyes.next()).successful, true);
        await pause(100);
        assert.equal(client.cometd.getStatus(), "disconnected");
        assert.equal(client.handshakes.rest.length, 1, "it came back");
    }
}

export async function leavesEvenIfNoConnectIsHeld(context) {
    const client = new CometClient(context);
    const goodbyes = new Inbox("goodbyes");
    client.cometd.addListener("/meta/disconnect", (message) => goodbyes.put(message));
    client.cometd.addListener("/meta/handshake", () => client.cometd.publish("/service/eject", {}));
    client.cometd.handshake();
    assert.equal((await goodbyes.next()).successful, true);
    assert.equal(client.cometd.getStatus(), "disconnected");
}

export async function synchronisesItsClock(context) {
    const timesync = new TimeSyncExtension();
    const began = Date.now();
    const client = await new CometClient(context, {extensions: {timesync}}).connect();
    const took = Date.now() - began;
    const reply = client.wire.find((m) => m.channel === "/meta/handshake");
    for (const field of ["tc", "ts", "p", "a"]) {
        assert.equal(typeof reply.ext.timesync[field], "number", `timesync.${field}`);
    }
    // One clock on both sides: what is left is at most the time that the requests took.
    const most = took + 500;
    assert.ok(Math.abs(timesync.getTimeOffset()) < most, `offset ${timesync.getTimeOffset()}`);
    assert.ok(Math.abs(timesync.getServerTime() - Date.now()) < most);
    await client.disconnect();
}

export async function passesTimestampsOn(context) {
    const extensions = {timestamp: new TimeStampExtension()};
    const sender = await new CometClient(context, {extensions}).connect();
    const receiver = await new CometClient(context).connect();
    const inbox = await receiver.subscribe(`${context.root}/stamped`);
    await sender.publish(`${context.root}/stamped`, "now");
    const {timestamp} = await inbox.next();
    assert.ok(Math.abs(Date.parse(timestamp) - Date.now()) < 60000, `timestamp ${timestamp}`);
    await Promise.all([sender.disconnect(), receiver.disconnect()]);
}

export async function findsStampsOnRepliesIfToldSo(context) {
    const client = await new CometClient(context).connect();
    await client.subscribe(`${context.root}/stamped`);
    const replies = client.wire.filter((message) => message.channel.startsWith("/meta/"));
    assert.ok(replies.length >= 3);
    for (const {channel, timestamp} of replies) {
        assert.ok(Math.abs(Date.parse(timestamp) - Date.now()) < 60000, `${channel}: ${timestamp}`);
    }
    await client.disconnect();
}

export async function keepsPollingWhenNothingHappens(context) {
    const [sender, receiver] = await two(context);
    const inbox = await receiver.subscribe(`${context.root}/quiet`);
    for (const reply of await receiver.connects.take(3)) {
        assert.equal(reply.successful, true);
    }
    await sender.publish(`${context.root}/quiet`, "still there");
    assert.equal((await inbox.next()).data, "still there");
    assert.equal(receiver.cometd.getAdvice().timeout, context.timeout);
    await Promise.all([sender.disconnect(), receiver.disconnect()]);
}

export async function letsTwoTabsShareABrowser(context) {
    const first = await new CometClient(context).connect();
    const second = await new CometClient(context, {page: first.page}).connect();
    const multiple = await second.connects.until((reply) => reply.advice?.["multiple-clients"]);
    assert.equal(multiple.successful, true);
    assert.equal(multiple.advice.interval, context.multiSessionInterval);

    const [toFirst, toSecond] = [
        await first.subscribe(`${context.root}/tabs`),
        await second.subscribe(`${context.root}/tabs`),
    ];
    await first.publish(`${context.root}/tabs`, "to both");
    assert.equal((await toFirst.next()).data, "to both");
    assert.equal((await toSecond.next()).data, "to both");
    await Promise.all([first.disconnect(), second.disconnect()]);
}

async function chooses(expected, context) {
    const client = await new CometClient(context, {transport: null}).connect();
    assert.equal(client.cometd.getTransport().type, expected);
    const inbox = await client.subscribe(`${context.root}/chosen`);
    await client.publish(`${context.root}/chosen`, "arrived");
    assert.equal((await inbox.next()).data, "arrived");
    await client.disconnect();
}

export const choosesItsFavouriteAmongAll = (context) => chooses("websocket", context);

export const fallsBackWithoutWebSocket = (context) => chooses("long-polling", context);
