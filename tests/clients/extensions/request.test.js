import assert from "node:assert/strict";
import {test} from "node:test";
import {RequestError, RequestExtension} from "../../../static/js/request.js";
import {Client, turn} from "./scripted.js";

const RET = "/ret/AAAAAAAAAAAAAAAAAAAAAA";

async function requester(ext = {ack: true, ret: RET}) {
    const client = new Client();
    client.cometd.registerExtension("request", new RequestExtension());
    await client.arrive(ext);
    return client;
}

const failed = (asked) => asked.then(() => assert.fail("no error"), (error) => error);

/** What comes with the next connect. */
async function hear(client, ...events) {
    await client.batch(2, events);
    await turn();
}

test("a request has a private channel with a serial, and resolves with the data of its reply", async () => {
    const client = await requester();
    const asked = client.cometd.ask("/power", {of: "motor"}, {timeout: 5000});
    const {data, ext} = client.sent("/power");
    assert.deepEqual(data, {of: "motor"});
    assert.match(ext.replyTo, /^\/ret\/A{22}\/4\d{6}$/);
    assert.deepEqual([ext.timeout, ext.request], [5000, "first"]);
    await client.answer("/power");
    await hear(client, {channel: ext.replyTo, data: 230});
    assert.equal(await asked, 230);
});

test("what a client replies to itself is the event, not the reply to its publish", async () => {
    const client = await requester();
    client.cometd.subscribe("/power", (request) => client.cometd.reply(request, 230));
    const asked = client.cometd.ask("/power", 1);
    const {replyTo} = client.sent("/power").ext;
    await hear(client, {channel: "/power", data: 1, ext: {replyTo, timeout: 9}});
    await client.answer(replyTo);
    await client.batch(3, [{channel: replyTo, data: 230}]);
    assert.equal(await asked, 230);
});

test("two requests have two channels, and each gets its own reply", async () => {
    const client = await requester();
    const one = client.cometd.ask("/power", 1);
    const first = client.sent("/power").ext.replyTo;
    const other = client.cometd.ask("/power", 2);
    const second = client.sent("/power").ext.replyTo;
    assert.notEqual(first, second);
    await hear(client, {channel: second, data: "b"}, {channel: first, data: "a"});
    assert.deepEqual([await one, await other], ["a", "b"]);
});

test("behind the last serial comes the first one", async (context) => {
    context.mock.method(Math, "random", () => 0.9999999);
    const client = await requester();
    for (const serial of ["4999999", "4000000", "4000001"]) {
        client.cometd.ask("/power", 1);
        assert.equal(client.sent("/power").ext.replyTo, `${RET}/${serial}`);
        await client.answer("/power");
        await hear(client, {channel: `${RET}/${serial}`, data: 1});
    }
});

test("an error of the server or of the responder rejects, with the number and the data", async () => {
    const client = await requester();
    const nobody = failed(client.cometd.ask("/power", 1));
    const error = "404:/power:no_responders";
    const channel = client.sent("/power").ext.replyTo;
    await hear(client, {channel, error, data: {error}, ext: {status: "ERROR"}});
    const thrown = await nobody;
    assert.ok(thrown instanceof RequestError);
    assert.deepEqual([thrown.code, thrown.message, thrown.data], [404, error, {error}]);
    const broken = failed(client.cometd.ask("/power", 2));
    const again = client.sent("/power").ext.replyTo;
    await hear(client, {channel: again, data: "fuse", ext: {status: "ERROR"}});
    assert.deepEqual([(await broken).code, (await broken).data], [500, "fuse"]);
});

test("a request that the server refuses rejects at once", async () => {
    const client = await requester();
    const asked = failed(client.cometd.ask("/power", 1));
    await client.answer("/power", {successful: false, error: "503:256:requests_exceeded"});
    assert.equal((await asked).message, "503:256:requests_exceeded");
});

test("a request in the mode all resolves with all replies", async () => {
    const client = await requester();
    const asked = client.cometd.ask("/power", 1, {mode: "all"});
    const channel = client.sent("/power").ext.replyTo;
    const end = {channel, data: {replies: 2, missing: 0}, ext: {status: "END"}};
    await hear(client, {channel, data: 1}, {channel, data: 2}, end);
    assert.deepEqual(await asked, [1, 2]);
});

test("a client without a server gives up by itself", async () => {
    const client = await requester();
    client.cometd.configure({url: "http://server/cometd", maxNetworkDelay: 5});
    assert.equal((await failed(client.cometd.ask("/power", 1, {timeout: 5}))).code, 408);
});

test("another session fails what is outstanding, and is asked for the channel of the old one", async () => {
    const client = await requester();
    const asked = failed(client.cometd.ask("/power", 1));
    await client.answer("/meta/connect", {
        successful: false,
        error: "402::session_unknown",
        advice: {reconnect: "handshake", interval: 0},
    });
    await turn();
    assert.equal(client.sent("/meta/handshake").ext.request, RET);
    await client.handshake({ack: true, ret: "/ret/BBBBBBBBBBBBBBBBBBBBBB"});
    assert.equal((await asked).message, "402::session_lost");
});

async function replied(...own) {
    const client = await requester();
    client.cometd.subscribe("/power", (request) => client.cometd.reply(request, ...own));
    const ext = {replyTo: `${RET}/3000001`, timeout: 9, mime: "text/csv"};
    await hear(client, {channel: "/power", data: "1,2", ext});
    const reply = client.sent(ext.replyTo);
    return [reply.data, reply.ext?.mime];
}

test("a listener replies to the channel that the request names, with data of any type", async () => {
    assert.deepEqual(await replied("<1/>", {ext: {mime: "text/xml"}}), ["<1/>", "text/xml"]);
});

test("without a type the data of a reply are JSON", async () => {
    assert.deepEqual(await replied(null), [null, undefined]);
});

test("without data a reply has those of the request, and their type", async () => {
    assert.deepEqual(await replied(), ["1,2", "text/csv"]);
});

test("who asks says the type of its data, and sees that of the reply", async () => {
    const client = await requester();
    const asked = client.cometd.ask("/power", "1,2", {mime: "text/csv", whole: true});
    const {ext} = client.sent("/power");
    assert.equal(ext.mime, "text/csv");
    const reply = {channel: ext.replyTo, data: "<1/>", ext: {mime: "text/xml"}};
    await hear(client, reply);
    assert.deepEqual(await asked, reply);
});
