import assert from "node:assert/strict";
import {test} from "node:test";
import {whereabouts} from "../../../static/console/whereabouts.js";

const nothing = {id: "here-1763600000000000000", journal: true, queues: [], letters: [], is_cut: false};
const told = (trace, happenings = [], isWhole = true) => whereabouts({...nothing, ...trace}, happenings, isWhole);

test("an id of which nothing is known is not confirmed", () => {
    for (const journal of [true, false]) {
        const text = told({journal});
        assert.match(text, /^Nothing is known of a message with this id\. .*it never existed\.$/);
        assert.doesNotMatch(text, /Received|2025/);
    }
    assert.match(told({journal: false}), /keeps no journal/);
});

test("nothing is concluded before all of the journal was read", () => {
    assert.equal(told({}, [], false), "Nothing is known of it so far; there is more of the journal to read.");
});

test("what is known is when it came and where it is", () => {
    assert.match(told({queues: [{}, {}], letters: [{}]}), /^Received .*2025.*\. It is in 2 queues, dead for 1\.$/);
    assert.match(told({}, [{kind: "acked"}]), /^Received .* It is in no queue any more, and left no dead letter\.$/);
});

test("that not everything was looked at is said", () => {
    assert.match(told({is_cut: true, letters: [{}]}), /there are more than were looked at\.$/);
});
