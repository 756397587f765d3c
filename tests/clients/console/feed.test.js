import assert from "node:assert/strict";
import {afterEach, mock, test} from "node:test";
import {Feed} from "../../../static/console/feed.js";

const token = "t".repeat(43);

/** A server that answers requests one by one; `null` is one that cannot be reached. */
function feed(...answers) {
    const requests = [];
    const heard = [];
    const states = [];
    const {promise, resolve} = withResolvers();
    mock.method(globalThis, "setTimeout", (run) => queueMicrotask(run));
    const timeouts = [];
    mock.method(AbortSignal, "timeout", (ms) => timeouts.push(ms));
    mock.method(globalThis, "fetch", async (_, {body}) => {
        const [message] = JSON.parse(body);
        requests.push(message);
        const answer = answers.shift();
        if (message.channel === "/meta/disconnect") {
            return new Promise(() => {});
        }
        if (answer === undefined) {
            it.leave();
            resolve();
            return new Promise(() => {});
        }
        if (answer === null) {
            throw new TypeError("away");
        }
        const {events = [], ...reply} = answer;
        const {id, channel} = message;
        const told = [...events, {id, channel, successful: true, ...reply}];
        return {ok: true, json: async () => told};
    });
    const it = new Feed("http://here/cometd", `Bearer ${token}`, {
        hear: (figures) => heard.push(figures),
        alert: (alert) => heard.push(alert),
        state: (isLive, why) => states.push(isLive ? "live" : why),
    });
    it.run();
    return {done: promise, requests, heard, states, timeouts, channels: () => requests.map(({channel}) => channel)};
}

function withResolvers() {
    let resolve;
    const promise = new Promise((done) => (resolve = done));
    return {promise, resolve};
}

const hello = {clientId: "c1", advice: {reconnect: "retry", interval: 0}};
const figures = (time) => ({channel: "/sys/figures", data: {time}});

afterEach(() => mock.restoreAll());

test("it shows its token once, and acknowledges each batch with the next connect", async () => {
    const {done, requests, heard, states} = feed(
        hello, {}, {ext: {ack: 1}, events: [figures(1)]}, {ext: {ack: 2}, events: [figures(2), figures(3)]});
    await done;
    const [handshake, subscribe, ...connects] = requests;
    assert.deepEqual(handshake.ext, {ack: true, delivery: true, authentication: {token}});
    assert.deepEqual(subscribe.subscription, ["/sys/figures", "/sys/alert"]);
    assert.deepEqual(connects.filter(({channel}) => channel === "/meta/connect").map(({ext}) => ext.ack), [0, 1, 2]);
    assert.ok(connects.every((each) => !JSON.stringify(each).includes(token)));
    assert.deepEqual(heard.map(({time}) => time), [1, 2, 3]);
    assert.equal(states.at(-1), "live");
});

test("a session that is gone is begun anew, and its batches count from one again", async () => {
    const gone = {successful: false, error: "402::session_unknown", advice: {reconnect: "handshake"}};
    const {done, channels, requests, states} = feed(
        hello, {}, {ext: {ack: 7}}, gone, {...hello, clientId: "c2"}, {}, {ext: {ack: 1}});
    await done;
    assert.deepEqual(channels().slice(3, 7), ["/meta/connect", "/meta/handshake", "/meta/subscribe", "/meta/connect"]);
    assert.deepEqual([requests[6].clientId, requests[6].ext.ack], ["c2", 0]);
    assert.ok(states.includes("The server refused /meta/connect: 402::session_unknown."));
});

test("a server that is away is asked again, and says so meanwhile", async () => {
    const {done, channels, states} = feed(null, hello, {}, {ext: {ack: 1}}, null, {ext: {ack: 1}});
    await done;
    assert.deepEqual(channels().slice(0, 2), ["/meta/handshake", "/meta/handshake"]);
    const away = "The server does not answer.";
    assert.deepEqual(states.slice(0, 4), [away, "live", away, "live"]);
});

test("an answer is not awaited for ever, but longer than a connect is held", async () => {
    const {done, timeouts} = feed({...hello, advice: {...hello.advice, timeout: 30_000}}, {}, {ext: {ack: 1}});
    await done;
    assert.deepEqual(timeouts.slice(0, 3), [15_000, 45_000, 45_000]);
});

test("who may not listen does not believe that it does", async () => {
    const denied = {successful: false, error: "403:denied_by_security_policy:subscribe_denied"};
    const {done, channels, states} = feed(hello, denied, hello, {});
    await done;
    assert.deepEqual(channels().slice(0, 4), ["/meta/handshake", "/meta/subscribe", "/meta/disconnect", "/meta/handshake"]);
    assert.ok(!states.slice(0, 1).includes("live"));
});

test("alerts come, too, and what else comes is nobody's", async () => {
    const alert = {channel: "/sys/alert", data: {reason: "most refuse"}};
    const {done, heard} = feed(hello, {}, {ext: {ack: 1}, events: [alert, {channel: "/other", data: 1}]});
    await done;
    assert.deepEqual(heard, [{reason: "most refuse"}]);
});

test("what is given again is heard once", async () => {
    const alert = {channel: "/sys/alert", data: {reason: "most refuse"}, ext: {delivery: {id: "here-1"}}};
    const other = {...alert, ext: {delivery: {id: "here-2"}}};
    const {done, heard} = feed(hello, {}, {ext: {ack: 1}, events: [alert]}, {ext: {ack: 2}, events: [alert, other]});
    await done;
    assert.deepEqual(heard, [{reason: "most refuse"}, {reason: "most refuse"}]);
});
