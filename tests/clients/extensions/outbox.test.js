import assert from "node:assert/strict";
import {test} from "node:test";
import {Outbox, PublishRefused} from "../../../static/js/outbox.js";
import {Client, FakeStorage, turn} from "./scripted.js";

async function publisher({storage = new FakeStorage(), name} = {}) {
    const client = new Client();
    const outbox = new Outbox(client.cometd, {storage, name});
    await client.arrive();
    return {client, outbox, storage};
}

test("a publish has a key and leaves when it is answered", async () => {
    const {client, outbox, storage} = await publisher();
    const answered = outbox.publish("/orders", {text: "one"}, {ext: {trace: 1}});
    const {ext, data} = client.sent("/orders");
    assert.deepEqual(data, {text: "one"});
    assert.equal(ext.trace, 1);
    assert.match(ext.delivery.key, /^[0-9a-f-]{36}$/);
    assert.equal(outbox.entries.length, 1);
    await client.answer("/orders");
    assert.equal((await answered).successful, true);
    assert.equal(storage.length, 0);
});

test("the next waits for the answer of the one before", async () => {
    const {client, outbox} = await publisher();
    outbox.publish("/orders", 1);
    outbox.publish("/orders", 2);
    await turn();
    assert.equal(client.sent("/orders").data, 1);
    await client.answer("/orders");
    assert.equal(client.sent("/orders").data, 2);
});

test("what was not answered is sent again under its key, by another page too", async () => {
    const {client, outbox, storage} = await publisher();
    outbox.publish("/orders", 1);
    const first = client.sent("/orders").ext.delivery.key;
    outbox.close();
    const {client: next} = await publisher({storage});
    assert.equal(next.sent("/orders").ext.delivery.key, first);
    await next.answer("/orders");
    assert.equal(storage.length, 0);
});

test("what cannot be read stands in nobody's way", async () => {
    const {client, outbox, storage} = await publisher();
    for (const text of ["{", "null", "7", "{}"]) {
        storage.setItem(`holdfast.outbox.default.${text}`, text);
    }
    outbox.publish("/orders", 1);
    assert.equal(outbox.entries.length, 1);
    assert.equal(client.sent("/orders").data, 1);
    await client.answer("/orders");
    assert.equal(storage.length, 0);
});

test("what is published while the connection is broken leaves when it is back", async () => {
    const {client, outbox} = await publisher();
    outbox.publish("/orders", 1);
    await client.fail("/orders");
    assert.equal(outbox.entries.length, 1);
    await client.fail("/meta/connect");
    assert.equal(client.count("/orders"), 1);
    await client.batch(2);
    assert.equal(client.count("/orders"), 2);
});

test("what is published before the handshake waits for it", async () => {
    const client = new Client();
    const outbox = new Outbox(client.cometd, {storage: new FakeStorage()});
    outbox.publish("/orders", 1);
    assert.equal(client.count("/orders"), 0);
    await client.arrive();
    assert.equal(client.count("/orders"), 1);
});

test("what the server refuses for good leaves with an error", async () => {
    const {client, outbox} = await publisher();
    const refused = [];
    outbox.addEventListener("refused", ({detail}) => refused.push(detail));
    const answered = outbox.publish("/orders", 1);
    await client.answer("/orders", {successful: false, error: "403:denied:publish_denied"});
    await assert.rejects(answered, PublishRefused);
    assert.deepEqual([refused[0].data, refused[0].reply.error], [1, "403:denied:publish_denied"]);
    assert.equal(outbox.entries.length, 0);
});

test("what can never be sent does not stand in the way of the rest", async () => {
    const {client, outbox} = await publisher();
    assert.throws(() => outbox.publish("/orders", "x".repeat(9000)), RangeError);
    await assert.rejects(outbox.publish("orders", 1), PublishRefused);
    const tooMuch = outbox.publish("/orders", 1);
    const {envelope} = client.sent("/orders");
    envelope.onFailure({}, envelope.messages, {httpCode: 413});
    await assert.rejects(tooMuch, PublishRefused);
    outbox.publish("/orders", 2);
    assert.equal(client.sent("/orders").data, 2);
});

test("what it cannot take now stays", async () => {
    for (const error of ["503:communication.noConnection:store_unavailable", "402::session_unknown"]) {
        const {client, outbox} = await publisher();
        outbox.publish("/orders", 1);
        await client.answer("/orders", {successful: false, error});
        assert.equal(outbox.entries.length, 1);
        outbox.close();
    }
});

test("outboxes of other names are left alone", async () => {
    const storage = new FakeStorage();
    const joe = await publisher({storage, name: "joe"});
    joe.outbox.publish("/orders", "joe's");
    const {client, outbox} = await publisher({storage, name: "ada"});
    assert.equal(outbox.entries.length, 0);
    assert.equal(client.count("/orders"), 0);
});

test("questions to services have no key", async () => {
    const {client, outbox} = await publisher();
    outbox.publish("/service/greeting", {id: "mine"});
    assert.equal(client.sent("/service/greeting").ext.delivery, undefined);
});

test("changes can be watched", async () => {
    const {client, outbox} = await publisher();
    const sizes = [];
    outbox.addEventListener("change", () => sizes.push(outbox.entries.length));
    outbox.publish("/orders", 1);
    await client.answer("/orders");
    assert.deepEqual(sizes, [1, 0]);
});
