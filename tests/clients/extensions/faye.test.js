import assert from "node:assert/strict";
import {createServer} from "node:http";
import {json} from "node:stream/consumers";
import {test} from "node:test";
import faye from "faye";
import {FayeExtension, Refuse} from "../../../static/js/faye.js";
import {event, FakeStorage} from "./scripted.js";

const LOST = {
    successful: false,
    error: "402::session_unknown",
    advice: {reconnect: "handshake", interval: 0},
};
const TAKEN = {...LOST, error: "402::session_taken", advice: {reconnect: "none", interval: 0}};

const TURN_MS = 40 * (Number(process.env.TIMES_SLOWER) || 1);
const LATE_MS = 10;
const LONGEST_MS = 10_000;

/** A time in which all messages get through their sockets: on a busy machine, one without a pause. */
const turn = async () => {
    for (let isLate = true; isLate; ) {
        const due = performance.now() + TURN_MS;
        await new Promise((resolve) => setTimeout(resolve, TURN_MS));
        isLate = performance.now() > due + LATE_MS;
    }
};

const until = async (isSo) => {
    for (const ends = performance.now() + LONGEST_MS; !isSo(); ) {
        assert.ok(performance.now() < ends, "it never was");
        await turn();
    }
};

/** Faye as it comes from npm, over long-polling, with a server that says what the test says. */
class Script {
    sent = [];
    #sessions = 0;
    #isClosing = false;
    #server = createServer(async (request, response) => {
        const messages = await json(request);
        const exchange = {messages, response, replies: []};
        this.sent.push(...messages.map((message) => ({...message, exchange})));
        if (this.#isClosing) {
            this.#refuse(exchange);
        }
    });

    async open(context, options, memory) {
        await new Promise((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
        this.client = new faye.Client(`http://127.0.0.1:${this.#server.address().port}/`, {retry: 0.01});
        this.client.disable("websocket");
        this.extension = new FayeExtension(options, memory);
        this.client.addExtension(this.extension);
        context.after(() => this.#close());
        return this;
    }

    /** Faye repeats what gets no answer, for ever. */
    async #close() {
        this.#isClosing = true;
        this.client.disconnect();
        this.sent.forEach(({exchange}) => this.#refuse(exchange));
        await turn();
        this.#server.closeAllConnections();
        this.#server.close();
    }

    #refuse({messages, response}) {
        if (!response.writableEnded) {
            response.end(JSON.stringify(messages.map(({id, channel}) => ({id, channel, ...TAKEN}))));
        }
    }

    on(channel) {
        return this.sent.filter((message) => message.channel === channel);
    }

    /** Answers a message when all that came with it are answered; events travel along. */
    async answer({id, channel, exchange}, reply = {}, events = []) {
        const {messages, replies, response} = exchange;
        replies.push(...events, {id, channel, successful: true, ...reply});
        if (messages.every((each) => replies.some((told) => told.id === each.id))) {
            response.setHeader("Content-Type", "application/json");
            response.end(JSON.stringify(replies));
        }
        await turn();
    }

    async welcome() {
        await turn();
        await until(() => this.on("/meta/handshake").length > this.#sessions);
        this.#sessions += 1;
        await this.answer(this.on("/meta/handshake").at(-1), {
            clientId: `client${this.#sessions}`,
            version: "1.0",
            supportedConnectionTypes: ["long-polling"],
            advice: {reconnect: "retry", interval: 0, timeout: 30000},
            ext: {ack: true, delivery: {}},
        });
    }

    /** Answers the connect with which the session began, and all that came with it. */
    async arrive() {
        const before = this.on("/meta/connect").length;
        await this.welcome();
        await until(() => this.on("/meta/connect").length > before);
        const [{exchange}] = this.on("/meta/connect").slice(-1);
        for (const {id, channel} of exchange.messages) {
            const ext = channel === "/meta/connect" ? {ack: 1} : undefined;
            await this.answer({id, channel, exchange}, {ext, subscription: "/orders"});
        }
    }

    /** Answers the connect that is held. */
    batch(number, events) {
        return this.answer(this.on("/meta/connect").at(-1), {ext: {ack: number}}, events);
    }
}

/** One who hears orders in a session, with its connect on the way. */
async function receiver(context, {listener, memory, options} = {}) {
    const script = await new Script().open(context, options, memory);
    const heard = [];
    script.client.subscribe("/orders", (data) => {
        heard.push(data.seq);
        return listener?.(data);
    });
    await script.arrive();
    return {script, heard};
}

test("the handshake asks for acks, verdicts and a channel for replies", async (context) => {
    const {script} = await receiver(context, {options: {session: "joe/1"}});
    const ext = {ack: true, delivery: {session: "joe/1"}, request: true};
    assert.deepEqual(script.on("/meta/handshake")[0].ext, ext);
    assert.deepEqual(script.on("/meta/connect").map(({ext}) => ext), [{ack: 0}, {ack: 1}]);
});

test("verdicts go with the connect that acknowledges their batch", async (context) => {
    const listener = ({seq}) => {
        if (seq === 1) {
            throw new Refuse("user.update.error", "no stock");
        }
    };
    const {script, heard} = await receiver(context, {listener});
    await script.batch(2, [event(1), event(2)]);
    assert.deepEqual(heard, [1, 2]);
    const verdicts = [{seq: 1, errorCode: "user.update.error", message: "no stock"}];
    assert.deepEqual(script.on("/meta/connect").at(-1).ext, {ack: 2, delivery: {verdicts}});
});

test("a connect that Faye repeats acknowledges what it did before, and repeats are not heard", async (context) => {
    const {script, heard} = await receiver(context);
    await script.batch(2, [event(1)]);
    script.on("/meta/connect").at(-1).exchange.response.destroy();
    await turn();
    await turn();
    const [one, other] = script.on("/meta/connect").slice(-2);
    assert.deepEqual([one.id, one.ext], [other.id, {ack: 2}]);
    assert.deepEqual(other.ext, one.ext);
    await script.batch(3, [event(1), event(2)]);
    assert.deepEqual(heard, [1, 2]);
});

test("a publish that Faye repeats has the key that it had", async (context) => {
    const {script} = await receiver(context);
    const accepted = script.client.publish("/news", 1).then(() => "accepted");
    await turn();
    script.on("/news")[0].exchange.response.destroy();
    await turn();
    await turn();
    const [one, other] = script.on("/news");
    assert.equal(one.ext.delivery.key, other.ext.delivery.key);
    await script.answer(other);
    assert.equal(await accepted, "accepted");
    script.client.publish("/service/clock", 1);
    await turn();
    assert.equal(script.on("/service/clock")[0].ext, undefined);
});

test("a late answer of a session that was taken over does not end the present one", async (context) => {
    const {script} = await receiver(context);
    const refused = script.client.publish("/news", 1).then(undefined, ({code}) => code);
    await turn();
    await script.answer(script.on("/meta/connect").at(-1), LOST);
    await script.arrive();
    await script.answer(script.on("/news")[0], TAKEN);
    assert.equal(await refused, 402);
    const before = script.on("/meta/connect").length;
    await script.batch(2, [event(1)]);
    assert.equal(script.on("/meta/connect").length, before + 1);
    assert.equal(script.on("/meta/handshake").length, 2);
});

test("a late answer to the connect of a former session causes no second connect", async (context) => {
    const {script} = await receiver(context);
    const former = script.on("/meta/connect").at(-1);
    script.client.publish("/news", 1).then(undefined, () => {});
    await turn();
    await script.answer(script.on("/news")[0], LOST);
    await script.arrive();
    const before = script.on("/meta/connect").length;
    await script.answer(former, LOST);
    await turn();
    assert.equal(script.on("/meta/handshake").length, 2);
    assert.equal(script.on("/meta/connect").length, before);
});

test("who subscribes before a handshake that is refused is subscribed by the next one", async (context) => {
    const script = await new Script().open(context);
    script.client.subscribe("/orders", () => {});
    await turn();
    await script.answer(script.on("/meta/handshake")[0], {...LOST, error: "503::server_busy"});
    await script.welcome();
    assert.deepEqual(script.on("/meta/subscribe").map(({subscription}) => subscription), ["/orders"]);
});

test("what comes after Faye has disconnected is not heard, and comes again to the next page", async (context) => {
    const memory = {storage: new FakeStorage()};
    const {script, heard} = await receiver(context, {memory});
    const held = script.on("/meta/connect").at(-1);
    script.client.disconnect();
    await script.answer(held, {ext: {ack: 2}}, [event(1)]);
    assert.deepEqual(heard, []);
    const next = await receiver(context, {memory});
    await next.script.batch(2, [event(1)]);
    assert.deepEqual(next.heard, [1]);
});

test("without its extension, Faye is as it was", async (context) => {
    const {script} = await receiver(context);
    script.client.removeExtension(script.extension);
    assert.equal(script.client.subscribe, faye.Client.prototype.subscribe);
    assert.equal(script.extension.ask, undefined);
});

test("with a server of Faye it works as without the extension", async (context) => {
    const server = createServer();
    new faye.NodeAdapter({mount: "/faye", timeout: 1}).attach(server);
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    const client = new faye.Client(`http://127.0.0.1:${server.address().port}/faye`);
    const extension = new FayeExtension({session: "joe/1"});
    client.addExtension(extension);
    const heard = [];
    await client.subscribe("/orders", (data) => heard.push(data));
    for (const number of [1, 2, 3]) {
        await client.publish("/orders", number);
    }
    await turn();
    assert.deepEqual(heard, [1, 2, 3]);
    assert.deepEqual([extension.delivery.session, extension.delivery.pending], [undefined, 0]);
    await client.disconnect();
    server.closeAllConnections();
    server.close();
});
