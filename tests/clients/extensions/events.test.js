import assert from "node:assert/strict";
import {test} from "node:test";
import {matches} from "../../../static/js/event_stream.js";
import {serve} from "../../../static/js/shared_events.js";

const CHANNELS = ["/a", "/rooms/1", "/rooms/2", "/rooms/2/desk"];
const ASKED = [...CHANNELS, "/rooms/*", "/rooms/**", "/**"];
// Two workers of the server keep histories.
const homeOf = (channel) => (channel === "/a" || channel === "/rooms/2" ? 0 : 1);
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Numbers that look random, and are the same for the same seed. */
function dice(seed) {
    let state = seed * 2654435761 + 1;
    return (sides) => {
        state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
        return Math.floor((state / 2 ** 32) * sides);
    };
}

/** What a server does with /events, a few messages at a time. */
class Server {
    messages = [];
    sources = new Set();
    #clock = 1_000_000_000_000_000;

    publish(channel) {
        const place = `e_${++this.#clock}`;
        this.messages.push({channel, data: this.messages.length, place, home: homeOf(channel)});
    }

    reader(address, last) {
        const asked = new URL(address).searchParams;
        const channels = asked.getAll("channel");
        const after = last || asked.get("after");
        const found = CHANNELS.filter((each) => channels.some((one) => matches(one, each)));
        const homes = new Set([...found, ...channels].filter((each) => !each.includes("*")).map(homeOf));
        const places = new Map([...homes].map((home) => [home, "e_0000000000000000"]));
        if (after === "now") {
            homes.forEach((home) => places.set(home, `e_${this.#clock}`));
        } else if (after !== "-1") {
            after.split("~").map((each) => each.split("-")).forEach(([home, place]) => places.set(Number(home), place));
        }
        return {channels, places, homes};
    }

    /** The next messages for a reader, each with its id. */
    next({channels, places, homes}, most) {
        const isNew = ({channel, place, home}) =>
            homes.has(home) && place > places.get(home) && channels.some((each) => matches(each, channel));
        return this.messages.filter(isNew).slice(0, most).map(({channel, data, place, home}) => {
            places.set(home, place);
            return {id: this.id({places, homes}), data: JSON.stringify({channel, data})};
        });
    }

    id = ({places, homes}) => [...homes].map((home) => `${home}-${places.get(home)}`).join("~");

    fetch = async (address, {signal}) => {
        await turn();
        const reader = this.reader(address);
        const text = this.next(reader, 3).map(({id, data}) => `id: ${id}\ndata: ${data}\n\n`).join("");
        const body = new ReadableStream({
            start: (stream) => {
                stream.enqueue(new TextEncoder().encode(`retry: 1\n${text}id: ${this.id(reader)}\n\n`));
                signal.addEventListener("abort", () => stream.error(new Error("aborted")));
            },
        });
        return {status: 200, body};
    };
}

/** The browser's, of which the test says when it hears something and when it connects again. */
function sourcesOf(server) {
    return class EventSource extends EventTarget {
        static CLOSED = 2;
        readyState = 1;

        constructor(address) {
            super();
            this.address = address;
            this.reader = server.reader(address);
            server.sources.add(this);
        }

        connectAgain() {
            this.reader = server.reader(this.address, this.last);
        }

        hear(most) {
            for (const {id, data} of server.next(this.reader, most)) {
                this.last = id;
                this.onmessage({data, lastEventId: id});
            }
        }

        close() {
            this.readyState = 2;
            server.sources.delete(this);
        }
    };
}

async function play(seed) {
    const roll = dice(seed);
    const server = new Server();
    globalThis.fetch = server.fetch;
    globalThis.EventSource = sourcesOf(server);
    const listeners = [];
    const port = {};
    port.postMessage = ({key, name, said, id}) => {
        const listener = listeners[key];
        if (name === "message") {
            listener.heard.push(said);
        } else {
            assert.equal(name, "place");
            listener.since ??= server.messages.length;
        }
        assert.ok(id);
    };
    serve(port);
    const url = `https://push.test/${seed}/events`;
    for (let step = 0; step < 120; step += 1) {
        const what = roll(12);
        if (what < 6) {
            server.publish(CHANNELS[roll(CHANNELS.length)]);
        } else if (what < 7 && listeners.length < 8) {
            const [channel, after] = [ASKED[roll(ASKED.length)], ["-1", "now"][roll(2)]];
            listeners.push({channel, after, heard: [], begun: server.messages.length});
            port.onmessage({data: {key: listeners.length - 1, url, channel, after}});
        } else if (what < 9) {
            server.sources.forEach((each) => each.hear(1 + roll(2)));
        } else if (what < 10) {
            server.sources.forEach((each) => each.connectAgain());
        } else {
            await turn();
        }
        assert.ok(server.sources.size <= 1);
    }
    for (let step = 0; step < 200; step += 1) {
        await turn();
        server.sources.forEach((each) => each.hear(10));
    }
    for (const {channel: asked, after, heard, begun, since} of listeners) {
        for (const channel of CHANNELS) {
            const all = server.messages.filter((each) => each.channel === channel && matches(asked, channel));
            const numbers = heard.filter((each) => each.channel === channel).map(({data}) => data);
            const wanted = all.map(({data}) => data);
            const first = after === "-1" ? 0 : wanted.length - numbers.length;
            assert.deepEqual(numbers, wanted.slice(first), `${asked} from ${after}, seed ${seed}`);
            if (after === "now") {
                assert.ok(numbers.length >= wanted.filter((each) => each >= since).length);
                assert.ok(numbers.every((each) => each >= begun));
            }
        }
    }
}

test("each listener hears its channels once and in order, whenever it comes and others come", async () => {
    for (let seed = 1; seed <= 60; seed += 1) {
        await play(seed);
    }
});

test("patterns match the channels that the server's do", () => {
    const found = ASKED.map((asked) => CHANNELS.filter((each) => matches(asked, each)).length);
    assert.deepEqual(found, [1, 1, 1, 1, 2, 3, 4]);
    assert.deepEqual([matches("/rooms/*", "/rooms"), matches("/rooms/1", "/rooms/11")], [false, false]);
});

test("a channel too many is refused alone", async () => {
    const server = new Server();
    globalThis.fetch = server.fetch;
    globalThis.EventSource = sourcesOf(server);
    const said = [];
    const port = {postMessage: (each) => said.push(each)};
    serve(port);
    for (let key = 0; key <= 100; key += 1) {
        port.onmessage({data: {key, url: "https://push.test/many", channel: `/rooms/${key}`, after: "now"}});
    }
    for (let step = 0; step < 100 && !said.some(({name}) => name === "end"); step += 1) {
        await turn();
    }
    assert.equal(said.filter(({name}) => name === "end").length, 1);
    const [source] = server.sources;
    assert.equal(new URL(source.address).searchParams.getAll("channel").length, 100);
});
