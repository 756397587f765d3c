import assert from "node:assert/strict";
import {test} from "node:test";
import {DeliveryExtension, Refuse} from "../../../static/js/delivery.js";
import {Client, event, FakeStorage, FullStorage, turn} from "./scripted.js";

async function receiver(listener, {options = {session: "joe/1"}, memory, ...more} = {}) {
    const delivery = new DeliveryExtension(options, memory);
    const client = new Client({delivery, ...more});
    const heard = [];
    client.cometd.addListener("/meta/handshake", () => {
        client.cometd.subscribe("/orders", (message) => {
            heard.push(message.data.seq);
            return listener?.(message);
        });
    });
    await client.arrive(more.withAcks === false ? {delivery: {}} : undefined);
    return {client, delivery, heard};
}

const refusing = (error) => () => {
    throw error;
};

test("the handshake asks for verdicts with the options", async () => {
    const {client} = await receiver();
    assert.deepEqual(client.sent("/meta/handshake").ext, {ack: true, delivery: {session: "joe/1"}});
});

test("a batch whose listeners are done is acknowledged, and nothing is said besides", async () => {
    const {client, heard} = await receiver();
    await client.batch(2, [event(1), event(2)]);
    assert.deepEqual(heard, [1, 2]);
    assert.deepEqual(client.sent("/meta/connect").ext, {ack: 2});
});

test("an exception refuses its message alone", async () => {
    const {client} = await receiver(({data}) => data.seq === 1 && refusing(new Error("no order"))());
    await client.batch(2, [event(1), event(2)]);
    const verdict = {seq: 1, errorCode: "user.update.internalError", message: "no order"};
    assert.deepEqual(client.said, {verdicts: [verdict]});
});

test("whatever is thrown refuses the message", async () => {
    const data = [null, undefined, 7, {}, {toString: 1, valueOf: null}, Object.create(null)];
    for (const thrown of data) {
        const {client} = await receiver(refusing(thrown));
        await client.batch(2, [event(1)]);
        assert.equal(client.said.verdicts?.length, 1);
        assert.equal(typeof client.said.verdicts[0].errorCode, "string");
    }
});

test("an exception is still told to cometd.js, a refusal is none", async () => {
    for (const [error, told] of [[new Error("oops"), 1], [new Refuse(), 0]]) {
        const {client} = await receiver(refusing(error));
        let count = 0;
        client.cometd.onListenerException = () => (count += 1);
        await client.batch(2, [event(1)]);
        assert.equal(count, told);
    }
});

test("a refusal has its code, its reason and its delay", async () => {
    const refusal = new Refuse("communication.busy", "later", {delay: 50});
    const {client} = await receiver(refusing(refusal));
    await client.batch(2, [event(1)]);
    const verdict = {seq: 1, errorCode: "communication.busy", message: "later", delay: 50};
    assert.deepEqual(client.said, {verdicts: [verdict]});
});

test("what stands behind a holdback is said to be done, as the ack would take it back", async () => {
    const hold = new Refuse("user.update.holdback.disk");
    const {client, delivery} = await receiver(({data}) => data.seq === 2 && refusing(hold)());
    await client.batch(2, [event(1), event(2), event(3)]);
    assert.deepEqual(client.said.verdicts.map(({seq, state}) => [seq, state]), [
        [2, undefined],
        [3, "OK"],
    ]);
    assert.equal(delivery.isHeldBack, true);
    await client.batch(3, [event(4, {id: "node-2"})]);
    assert.equal(delivery.isHeldBack, false, "somebody has resumed it");
});

test("a verdict is repeated until a connect with it was answered", async () => {
    const {client} = await receiver(({data}) => data.seq === 1 && refusing(new Refuse())());
    await client.batch(2, [event(1)]);
    await client.fail("/meta/connect");
    assert.equal(client.said.verdicts.length, 1);
    await client.batch(3);
    assert.deepEqual(client.said, {});
});

test("what a listener still works on is pending, and is said to be done at once", async () => {
    let finish;
    const {client, delivery} = await receiver(() => new Promise((resolve) => (finish = resolve)));
    await client.batch(2, [event(1)]);
    assert.deepEqual(client.said, {pending: [1]});
    assert.equal(delivery.pending, 1);
    finish();
    await turn();
    assert.deepEqual(client.sent("/service/delivery").data, [{seq: 1, state: "OK"}]);
    await client.answer("/service/delivery");
    await client.batch(3);
    assert.deepEqual(client.said, {});
});

test("a reason that was cut within a character is told as far as it goes", async () => {
    const {client} = await receiver(() => refusing(new Refuse("user.update.error", "no 😀".slice(0, 4)))());
    await client.batch(2, [event(1)]);
    assert.deepEqual(client.said.verdicts[0].message, "no \ufffd");
});

test("a promise that is rejected refuses", async () => {
    const {client} = await receiver(async () => refusing(new Refuse("user.update.error", "bad"))());
    await client.batch(2, [event(1)]);
    const [verdict] = client.said.verdicts ?? client.sent("/service/delivery").data;
    assert.deepEqual(verdict, {seq: 1, errorCode: "user.update.error", message: "bad"});
});

test("verdicts that did not arrive by themselves travel with the next connect", async () => {
    let finish;
    const {client} = await receiver(() => new Promise((resolve) => (finish = resolve)));
    await client.batch(2, [event(1)]);
    finish();
    await turn();
    await client.fail("/service/delivery");
    await client.batch(3);
    assert.deepEqual(client.said, {verdicts: [{seq: 1, state: "OK"}]});
});

test("what is handed over again is not listened to again", async () => {
    const {client, heard} = await receiver();
    await client.batch(2, [event(1)]);
    await client.batch(3, [event(2, {id: "node-1", redelivered: 1}), event(3)]);
    assert.deepEqual(heard, [1, 3]);
    assert.deepEqual(client.sent("/meta/connect").ext, {ack: 3});
});

test("neither is it while the first listener is at work; its verdict has the latest number", async () => {
    let finish;
    const {client, heard} = await receiver(() => new Promise((resolve) => (finish = resolve)));
    await client.batch(2, [event(1)]);
    await client.batch(3, [event(2, {id: "node-1"})]);
    assert.deepEqual(heard, [1]);
    finish();
    await turn();
    assert.deepEqual(client.sent("/service/delivery").data, [{seq: 2, state: "OK"}]);
});

test("what was refused, or is replayed, is listened to again", async () => {
    const {client, heard} = await receiver(({data}) => data.seq === 1 && refusing(new Refuse())());
    await client.batch(2, [event(1), event(2)]);
    await client.batch(3, [event(3, {id: "node-1"}), event(4, {id: "node-2", generation: 1})]);
    assert.deepEqual(heard, [1, 2, 3, 4]);
});

test("what is finished is remembered over a reload", async () => {
    const memory = {storage: new FakeStorage()};
    const before = await receiver(undefined, {memory});
    await before.client.batch(2, [event(1)]);
    const after = await receiver(undefined, {memory});
    await after.client.batch(2, [event(7, {id: "node-1"}), event(8)]);
    assert.deepEqual(after.heard, [8]);
});

test("however long a batch is, what comes again of it is not listened to again", async () => {
    const {client, heard} = await receiver();
    const seqs = Array.from({length: 1500}, (_, n) => n + 1);
    await client.batch(2, seqs.map((seq) => event(seq)));
    await client.batch(2, seqs.map((seq) => event(seq + 1500, {id: `node-${seq}`})));
    assert.equal(heard.length, 1500);
});

test("a storage in which something else stands is begun anew", async () => {
    for (const text of ["{", "null", "{}"]) {
        const storage = new FakeStorage();
        storage.setItem("holdfast.finished", text);
        await receiver(undefined, {memory: {storage}});
    }
});

test("a storage that is full stands in nobody's way", async () => {
    const memory = {storage: new FullStorage()};
    const {client, delivery, heard} = await receiver(undefined, {memory});
    let changes = 0;
    delivery.addEventListener("change", () => (changes += 1));
    await client.batch(2, [event(1)]);
    await client.batch(3, [event(2, {id: "node-1"})]);
    assert.deepEqual(heard, [1]);
    assert.equal(changes, 2);
});

test("without acks every message has a verdict, repeats too", async () => {
    const {client} = await receiver(undefined, {withAcks: false});
    await client.batch(2, [event(1)]);
    assert.deepEqual(client.said, {verdicts: [{seq: 1, state: "OK"}]});
    await client.batch(3, [event(2, {id: "node-1"})]);
    assert.deepEqual(client.said, {verdicts: [{seq: 2, state: "OK"}]});
});

test("numbers of another client id are forgotten", async () => {
    let finish;
    const {client} = await receiver(() => new Promise((resolve) => (finish = resolve)));
    await client.batch(2, [event(1)]);
    await client.answer("/meta/connect", {
        successful: false,
        error: "402::session_unknown",
        advice: {reconnect: "handshake", interval: 0},
    });
    await client.handshake();
    finish();
    await turn();
    assert.equal(client.said.verdicts, undefined);
    assert.equal(client.count("/service/delivery"), 0);
});

test("the state of the session can be watched", async () => {
    const {client, delivery} = await receiver();
    let changes = 0;
    delivery.addEventListener("change", () => (changes += 1));
    delivery.nextActive = false;
    client.cometd.disconnect();
    await client.answer("/meta/disconnect");
    client.cometd.handshake();
    assert.equal(client.sent("/meta/handshake").ext.delivery.dispatcherActive, false);
    const session = {name: "client/joe/1"};
    await client.handshake({
        ack: true,
        delivery: {
            session,
            resumed: true,
            waiting: 3,
            lostSubscriptions: ["/a"],
            dispatcherActive: false,
        },
    });
    assert.ok(changes > 0);
    const {isHeldBack, isResumed, waiting, nextActive} = delivery;
    assert.deepEqual([delivery.session, isHeldBack, isResumed, waiting, nextActive], [
        "client/joe/1",
        true,
        true,
        3,
        undefined,
    ]);
    assert.deepEqual(delivery.lostSubscriptions, ["/a"]);
});

test("a server that knows no verdicts is not told any", async () => {
    const delivery = new DeliveryExtension();
    const client = new Client({delivery});
    client.cometd.addListener("/meta/handshake", () => {
        client.cometd.subscribe("/orders", refusing(new Refuse()));
    });
    await client.arrive({ack: true});
    await client.batch(2, [{channel: "/orders", data: {}}]);
    assert.deepEqual(client.sent("/meta/connect").ext, {ack: 2});
});

test("listeners may have a scope, and names; what is unregistered watches no more", async () => {
    const {client, delivery} = await receiver();
    const scope = {
        name: "scope",
        listen() {
            throw new Refuse("user.update.error", this.name);
        },
    };
    client.cometd.subscribe("/orders", scope, "listen");
    await client.batch(2, [event(1)]);
    assert.equal(client.said.verdicts[0].message, "scope");
    const watched = client.cometd.subscribe;
    client.cometd.unregisterExtension("delivery");
    assert.notEqual(client.cometd.subscribe, watched);
    assert.equal(delivery.pending, 0);
});

test("what a listener throws is told so that the server can read it", async () => {
    const odd = [
        [new Refuse(42, {why: 1}, {delay: "soon"}), "42", "[object Object]"],
        [new Refuse("user.clientCode", ["no"], {delay: -1}), "user.clientCode", "no"],
        [new Refuse(null, null, {delay: NaN}), "null", "null"],
        [Object.assign(new Error("x"), {message: {no: "text"}}), "user.update.internalError", "[object Object]"],
        [undefined, "user.update.internalError", "undefined"],
        [new Refuse(), "user.update.error", ""],
        [new Refuse("user.paper.empty", "tray 2"), "user.paper.empty", "tray 2"],
    ];
    for (const [error, errorCode, message] of odd) {
        const {client} = await receiver(refusing(error));
        client.cometd.onListenerException = () => undefined;
        await client.batch(2, [event(1)]);
        assert.deepEqual(client.said, {verdicts: [{seq: 1, errorCode, message}]});
    }
});

test("a text where a code belongs is told to the developer, and a code is not", async (context) => {
    const {mock} = context.mock.method(console, "warn", () => undefined);
    const told = {"no code": 1, "User.order": 1, "user.": 1, "user.order.quantity": 0, "communication": 0};
    for (const [code, times] of Object.entries(told)) {
        mock.resetCalls();
        const {client} = await receiver(refusing(new Refuse(code)));
        await client.batch(2, [event(1)]);
        assert.equal(mock.callCount(), times, code);
        assert.ok(times === 0 || mock.calls[0].arguments[0].startsWith(`${code} is no error code such as user.`));
    }
});

const unreadable = (place) => ({
    successful: false,
    error: `400:user.illegalArgument,verdicts[${place}].delay:delivery_invalid`,
});

test("a verdict that the server cannot read is told otherwise, and the others as they were", async () => {
    const {client} = await receiver(({data}) => data.seq < 3 && refusing(new Refuse())());
    await client.batch(2, [event(1), event(2), event(3)]);
    const before = client.sent("/meta/connect").ext;
    await client.answer("/meta/connect", unreadable(1));
    const [first, second, ...none] = client.said.verdicts;
    assert.deepEqual(first, before.delivery.verdicts[0]);
    assert.deepEqual([second.seq, second.errorCode], [2, "user.update.internalError"]);
    assert.match(second.message, /verdicts\[1\]\.delay/);
    assert.deepEqual(none, []);
    assert.equal(client.sent("/meta/connect").ext.ack, 2, "nothing of the refused connect counts");
    await client.batch(3);
    assert.deepEqual(client.said, {});
});

test("the same if it went by itself", async () => {
    let fail;
    const {client} = await receiver(() => new Promise((_, reject) => (fail = reject)));
    await client.batch(2, [event(1)]);
    fail(new Refuse());
    await turn();
    await client.answer("/service/delivery", unreadable(0));
    await client.batch(3);
    assert.deepEqual(client.said.verdicts.map(({seq, errorCode}) => [seq, errorCode]), [
        [1, "user.update.internalError"],
    ]);
});

test("a connect that is refused for something else is repeated as it was", async () => {
    const {client} = await receiver(refusing(new Refuse()));
    await client.batch(2, [event(1)]);
    const {ext} = client.sent("/meta/connect");
    for (const error of ["400:user.illegalArgument,ack:ext_invalid", "503::store_unavailable", undefined]) {
        await client.answer("/meta/connect", {successful: false, error});
        assert.deepEqual(client.sent("/meta/connect").ext, ext);
    }
});

test("who leaves says what has not been heard yet", async () => {
    const {client} = await receiver(({data}) => data.seq === 1 && refusing(new Refuse())());
    await client.batch(2, [event(1)]);
    await client.fail("/meta/connect");
    client.cometd.disconnect({ext: {delivery: {end: true}}});
    const {verdicts, ...more} = client.sent("/meta/disconnect").ext.delivery;
    assert.deepEqual(more, {end: true});
    assert.deepEqual(verdicts.map(({seq}) => seq), [1]);
});
