// Rooms, people, ids and receivers may be named as what every object of JavaScript inherits.
import assert from "node:assert/strict";
import {test} from "node:test";
import {presenceOf, roomsOf} from "../../../static/chat/said.js";
import {Transcript} from "../../../static/chat/transcript.js";
import {Typing} from "../../../static/chat/typing.js";
import {inOrder} from "../../../static/console/order.js";
import {Ledger} from "../../../static/js/ledger.js";
import {FakeStorage} from "./scripted.js";

const NAMES = [...Object.getOwnPropertyNames(Object.prototype), "prototype", "ann"];

/** The same numbers in each run (mulberry32). */
function numbers(seed) {
    let state = seed;
    return (most) => {
        state = (state + 0x6d2b79f5) | 0;
        let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
        mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
        return ((mixed ^ (mixed >>> 14)) >>> 0) % most;
    };
}

test("a ledger takes each message once, whatever its id", () => {
    for (let seed = 0; seed < 50; seed += 1) {
        const [next, storage] = [numbers(seed), new FakeStorage()];
        const known = new Set();
        let ledger = new Ledger({storage});
        for (let step = 0; step < 60; step += 1) {
            const id = NAMES[next(NAMES.length)];
            assert.equal(ledger.take({id, seq: step}), !known.has(id), `${seed}: ${id}`);
            known.add(id);
            if (next(5) === 0) {
                ledger.settle();
                // A page that was loaded anew knows what was finished.
                ledger = new Ledger({storage});
            }
        }
    }
});

test("a transcript has the lines that were put into it, whatever the rooms are called", () => {
    for (let seed = 0; seed < 50; seed += 1) {
        const [next, storage] = [numbers(seed), new FakeStorage()];
        const model = new Map();
        let transcript = new Transcript(storage, "ada");
        for (let step = 0; step < 40; step += 1) {
            const [room, id] = [NAMES[next(NAMES.length)], String(step)];
            if (next(6) === 0) {
                transcript.forget(room);
                model.delete(room);
            } else {
                transcript.put(room, {id, from: NAMES[next(NAMES.length)], text: id});
                model.set(room, [...(model.get(room) ?? []), id]);
            }
            if (next(8) === 0) {
                transcript = new Transcript(storage, "ada");
            }
        }
        for (const room of NAMES) {
            assert.deepEqual(transcript.lines(room).map(({id}) => id), model.get(room) ?? []);
        }
    }
});

test("who types is known in the room alone, whatever both are called", () => {
    const typing = new Typing(() => null);
    for (const name of NAMES) {
        assert.deepEqual(typing.names(name), []);
        typing.add(name, name);
        assert.deepEqual(typing.names(name), [name]);
        typing.end(name);
        assert.deepEqual(typing.names(name), []);
    }
});

test("members and rooms keep their names", () => {
    const members = NAMES.map((subject) => ({subject, session: subject, state: subject}));
    assert.deepEqual(presenceOf({members}).members.map(({name}) => name), NAMES);
    assert.deepEqual(roomsOf({rooms: NAMES}), NAMES);
});

test("the steps of each receiver are in order, whatever it is called", () => {
    const steps = NAMES.flatMap((receiver, at) => [
        {receiver, kind: "acked", at_us: at * 10, attempt: 1},
        {receiver, kind: "handed", at_us: at * 10 + 1, attempt: 1},
    ]);
    for (const receiver of NAMES) {
        const own = inOrder(steps).filter((step) => step.receiver === receiver);
        assert.deepEqual(own.map(({kind}) => kind), ["handed", "acked"]);
    }
    // A kind of step that is called so has no stage.
    assert.equal(inOrder(NAMES.map((kind, at) => ({kind, receiver: "ann", at_us: at}))).length, NAMES.length);
});
