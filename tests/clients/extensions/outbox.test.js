import assert from "node:assert/strict";
import {test} from "node:test";
import {Outbox, PublishRefused} from "../../../static/js/outbox.js";
import {Client, FakeStorage, FullStorage, turn} from "./scripted.js";

async function publisher(options = {storage: new FakeStorage()}) {
    const client = new Client();
    const outbox = new Outbox(client.cometd, options);
    await client.arrive();
    return {client, outbox, storage: options.storage};
}

test("a publish has a key and leaves when it is answered", async () => {
    const {client, outbox, storage} = await publisher();
    const answered = outbox.publish("/orders", {text: "one"}, {ext: {trace: 1}});
    const {ext, data} = client.sent("/orders");
    assert.deepEqual(data, {text: "one"});
    assert.equal(ext.trace, 1);
    assert.match(ext.delivery.key, /^[0-9a-z-]{15,}$/);
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

/** The server has forgotten the session; cometd.js handshakes again. */
async function beForgotten(client) {
    const unknown = {successful: false, error: "402::session_unknown", advice: {reconnect: "handshake"}};
    await client.answer("/meta/connect", unknown);
    await client.handshake();
    await client.batch(1);
}

test("what nobody answered leaves again in the next session, once at a time", async () => {
    const {client, outbox} = await publisher();
    const answered = outbox.publish("/orders", 1);
    outbox.publish("/orders", 2);
    const first = client.sent("/orders");
    await beForgotten(client);
    assert.equal(client.count("/orders"), 2);
    assert.equal(client.sent("/orders").ext.delivery.key, first.ext.delivery.key);
    first.envelope.onFailure({}, first.envelope.messages, {reason: "broken"});
    await client.batch(2);
    assert.equal(client.count("/orders"), 2, "the earlier request frees nothing");
    await client.answer("/orders");
    assert.equal((await answered).successful, true);
    assert.equal(client.sent("/orders").data, 2);
    outbox.close();
});

test("a late reply of the session before counts", async () => {
    const {client, outbox} = await publisher();
    const answered = outbox.publish("/orders", 1);
    const {id, envelope} = client.sent("/orders");
    await beForgotten(client);
    envelope.onSuccess([{channel: "/orders", id, successful: true}]);
    assert.equal((await answered).successful, true);
    assert.equal(outbox.entries.length, 0);
    await client.answer("/orders");
    outbox.publish("/orders", 2);
    assert.equal(client.sent("/orders").data, 2);
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

test("what a socket was closed for is not sent again", async () => {
    for (const [websocketCode, reason] of [
        [1007, "400::request_malformed"],
        [1009, "413::request_too_large"],
    ]) {
        const {client, outbox} = await publisher();
        const refused = [];
        outbox.addEventListener("refused", ({detail}) => refused.push(detail));
        const answered = outbox.publish("/orders", 1);
        const {envelope} = client.sent("/orders");
        envelope.onFailure({}, envelope.messages, {websocketCode, reason});
        await assert.rejects(answered, {name: "PublishRefused", message: reason});
        assert.equal(refused[0].reply.failure.websocketCode, websocketCode);
        outbox.publish("/orders", 2);
        assert.equal(client.sent("/orders").data, 2);
        outbox.close();
    }
});

test("what a socket took along that was closed for other reasons stays", async () => {
    for (const websocketCode of [1000, 1001, 1002, 1006, 1011]) {
        const {client, outbox} = await publisher();
        outbox.publish("/orders", 1);
        const {envelope} = client.sent("/orders");
        envelope.onFailure({}, envelope.messages, {websocketCode, reason: ""});
        assert.equal(outbox.entries.length, 1);
        outbox.close();
    }
});

test("what the server's own code fails at lets the others through", async () => {
    const {client, outbox} = await publisher();
    const answered = outbox.publish("/orders", 1);
    await client.answer("/orders", {successful: false, error: "500::server_fault"});
    await assert.rejects(answered, {name: "PublishRefused"});
    outbox.publish("/orders", 2);
    assert.equal(client.sent("/orders").data, 2);
    outbox.close();
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

test("two publishes have two keys", async () => {
    const {outbox} = await publisher();
    outbox.publish("/orders", 1);
    outbox.publish("/orders", 2);
    assert.equal(new Set(outbox.entries.map(({key}) => key)).size, 2);
});

/** Two pages of one browser; the first has lost its connection. */
async function tabs() {
    const here = await publisher();
    const there = await publisher({storage: new FakeStorage(here.storage)});
    const heard = [];
    for (const [name, {outbox}] of Object.entries({here, there})) {
        outbox.addEventListener("change", () => heard.push(`${name} ${outbox.entries.length}`));
        outbox.addEventListener("refused", ({detail}) => heard.push(`${name} ${detail.data}`));
    }
    await here.client.fail("/meta/connect");
    return {here, there, heard};
}

/** What was published here is sent there, and answered. */
async function sendThere({here, there}, reply) {
    const answered = here.outbox.publish("/orders", "mine");
    await here.client.fail("/orders");
    await there.client.batch(2);
    await there.client.answer("/orders", reply);
    return answered;
}

test("what another page sends is answered here, too", async () => {
    const both = await tabs();
    const reply = await sendThere(both);
    assert.equal(reply.successful, true);
    assert.deepEqual(both.heard, ["here 1", "there 1", "there 0", "here 0", "here 0"]);
    await both.here.client.batch(3);
    assert.equal(both.here.client.count("/orders"), 1, "it is not sent again");
});

test("what another page is refused is refused where it was published, once", async () => {
    const both = await tabs();
    const refusal = {successful: false, error: "403::publish_denied"};
    await assert.rejects(sendThere(both, refusal), PublishRefused);
    assert.deepEqual(both.heard.filter((each) => each.endsWith("mine")), ["there mine", "here mine"]);
});

test("of two pages that send the same one tells it", async () => {
    const {here, there, heard} = await tabs();
    const answered = here.outbox.publish("/orders", "mine");
    await turn();
    there.outbox.publish("/orders", "theirs");
    assert.equal(there.client.sent("/orders").data, "mine");
    await here.client.answer("/orders", {successful: false, error: "403::publish_denied"});
    await there.client.answer("/orders", {successful: false, error: "403::publish_denied"});
    await assert.rejects(answered, PublishRefused);
    assert.deepEqual(heard.filter((each) => each.endsWith("mine")), ["here mine"]);
    assert.equal(there.client.sent("/orders").data, "theirs");
});

test("what the storage loses is sent by the page that waits for it", async () => {
    const {here, there} = await tabs();
    const answered = here.outbox.publish("/orders", "mine");
    await here.client.fail("/orders");
    there.storage.clear();
    await here.client.batch(2);
    await here.client.answer("/orders");
    assert.equal((await answered).successful, true);
});

test("without room, or without storage, it is sent all the same, and says so", async () => {
    for (const storage of [new FullStorage(), undefined]) {
        // Node has no localStorage: that is as if it were forbidden.
        const {client, outbox} = await publisher({storage});
        assert.equal(outbox.isKept, storage !== undefined);
        const answered = outbox.publish("/orders", 1);
        assert.deepEqual([outbox.isKept, outbox.entries.length], [false, 1]);
        await client.answer("/orders");
        await answered;
        assert.deepEqual([outbox.isKept, outbox.entries.length], [storage !== undefined, 0]);
    }
});

test("a browser that forbids storage is heard out", async () => {
    Object.defineProperty(globalThis, "localStorage", {
        configurable: true,
        get() {
            throw new Error("SecurityError");
        },
    });
    try {
        const outbox = new Outbox(new Client().cometd);
        assert.equal(outbox.isKept, false);
        outbox.publish("/orders", 1);
        assert.equal(outbox.entries.length, 1);
    } finally {
        delete globalThis.localStorage;
    }
});

const loginOf = (subject) => ({authentication: {subject, method: "token"}});

async function signedIn(subject, storage, options = {}) {
    const client = new Client();
    const outbox = new Outbox(client.cometd, {storage, ...options});
    await client.arrive(loginOf(subject));
    return {client, outbox};
}

test("what one subject published is not sent as another's, and waits", async () => {
    const storage = new FakeStorage();
    const ada = await signedIn("ada", storage);
    ada.outbox.publish("/orders", "ada's");
    await ada.client.fail("/orders");
    ada.outbox.close();

    const bob = await signedIn("bob", storage);
    assert.equal(bob.client.count("/orders"), 0);
    bob.outbox.publish("/orders", "bob's");
    assert.equal(bob.client.sent("/orders").data, "bob's");
    await bob.client.answer("/orders");
    assert.equal(bob.client.count("/orders"), 1);
    bob.outbox.close();
    const nobody = await publisher({storage});
    assert.equal(nobody.client.count("/orders"), 0);
    nobody.outbox.close();

    const again = await signedIn("ada", storage);
    assert.equal(again.client.sent("/orders").data, "ada's");
    await again.client.answer("/orders");
    assert.equal(storage.length, 0);
});

test("who signs in as somebody else in the same page sends nothing of the one before", async () => {
    const storage = new FakeStorage();
    const {client, outbox} = await signedIn("ada", storage);
    outbox.publish("/orders", "ada's");
    await client.answer("/orders", {successful: false, error: "402::session_unknown"});
    await client.answer("/meta/connect", {
        successful: false,
        error: "402::session_unknown",
        advice: {reconnect: "handshake", interval: 0},
    });
    // Whose the next session is, is not known yet.
    outbox.publish("/orders", "also ada's");
    const sent = client.count("/orders");
    await client.handshake(loginOf("bob"));
    await client.batch(1);
    assert.equal(client.count("/orders"), sent);
    assert.equal(outbox.entries.length, 2);
});

test("what a page publishes before it is signed in is its subject's", async () => {
    const storage = new FakeStorage();
    const client = new Client();
    const outbox = new Outbox(client.cometd, {storage});
    outbox.publish("/orders", 1);
    await client.arrive(loginOf("ada"));
    await client.fail("/orders");
    outbox.close();

    const bob = await signedIn("bob", storage);
    assert.equal(bob.client.count("/orders"), 0);
    bob.outbox.close();
    const ada = await signedIn("ada", storage);
    assert.equal(ada.client.count("/orders"), 1);
});

test("a page that knows its subject says so, and nobody else sends what it left", async () => {
    const storage = new FakeStorage();
    const outbox = new Outbox(new Client().cometd, {storage, subject: "ada"});
    outbox.publish("/orders", 1);
    outbox.close();

    assert.equal((await signedIn("bob", storage)).client.count("/orders"), 0);
    assert.equal((await signedIn("ada", storage)).client.count("/orders"), 1);
});
