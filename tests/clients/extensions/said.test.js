import assert from "node:assert/strict";
import {test} from "node:test";
import {idOf, nameOf, presenceOf, roomsOf, wordsOf} from "../../../static/chat/said.js";

const DATA = [
    undefined, null, true, 0, 1e308, "", "x".repeat(100_000), [], [[null]], {}, {text: null},
    {id: {}, from: [], text: {toString: 1}}, {toString: 1, valueOf: null}, {rooms: 7, members: {}},
    JSON.parse('{"__proto__": {"text": "inherited"}, "constructor": 1}'),
    {rooms: [null, {toString: 1}], members: [null, 7, {subject: {}, session: 1, state: []}], count: "many"},
];

test("whatever is published is read as texts and counts of a bounded length", () => {
    for (const data of [...DATA, ...DATA.map((each) => ({id: each, text: each, rooms: [each], members: [each]}))]) {
        assert.equal(typeof wordsOf(data), "string");
        assert.ok(wordsOf(data).length <= 4000);
        assert.ok(["string", "undefined"].includes(typeof idOf(data)));
        assert.ok(nameOf(data).length <= 63);
        assert.ok(roomsOf(data).every((room) => typeof room === "string"));
        const {count, ...lists} = presenceOf(data);
        assert.ok(Number.isSafeInteger(count));
        for (const {session, name, state} of Object.values(lists).flat()) {
            assert.deepEqual([typeof session, typeof name, typeof state], ["string", "string", "string"]);
        }
    }
});

test("words are those of the message; where there are none, its data", () => {
    assert.equal(wordsOf({text: "hello"}), "hello");
    assert.equal(wordsOf({pieces: 3}), '{"pieces":3}');
    assert.equal(wordsOf([1, null]), "[1,null]");
});
