import assert from "node:assert/strict";
import {test} from "node:test";
import {inTables, moodOf, unknown, whereabouts} from "../../../static/console/whereabouts.js";

const nothing = {id: "here-1763600000000000000", journal: true, queues: [], letters: [], is_cut: false};
const told = (trace, steps = [], isWhole = true) => whereabouts({...nothing, ...trace}, steps, isWhole);

test("an id of which nothing is known is not confirmed", () => {
    for (const journal of [true, false]) {
        const text = told({journal});
        assert.match(text, /^No message with this id is known\. .*it never existed\.$/);
        assert.doesNotMatch(text, /Received|2025/);
    }
    assert.match(told({journal: false}), /keeps no journal/);
});

test("nothing is concluded before all of the journal was read", () => {
    assert.equal(told({}, [], false), "The message is unknown so far. The journal has more to read.");
});

test("what is known is when it came and where it is", () => {
    assert.match(told({queues: [{}, {}], letters: [{}]}), /^Received .*2025.*\. The message is in 2 queues, a dead letter of 1 receiver\.$/);
    assert.match(told({}, [{kind: "acked"}]), /^Received .* The message has left all queues without a dead letter\.$/);
});

test("a letter that was replayed is no trouble, unless its message died again", () => {
    const [dead, replayed] = [{state: "new"}, {state: "replayed"}];
    const mood = (trace, steps = []) => moodOf({...nothing, ...trace}, steps);
    assert.equal(mood({letters: [replayed]}), "good");
    assert.equal(mood({letters: [replayed], queues: [{}]}), "");
    assert.equal(mood({letters: [replayed, dead]}), "bad");
    assert.deepEqual([mood({}), mood({}, [{kind: "acked"}])], ["warn", ""]);
    assert.match(told({letters: [replayed]}), /has left all queues\. 1 dead letter was sent again\.$/);
    assert.match(told({letters: [replayed, dead]}), /is a dead letter of 1 receiver\. 1 dead letter was sent again\.$/);
});

test("that not everything was looked at is said", () => {
    assert.match(told({is_cut: true, letters: [{}]}), /not all of them were searched\.$/);
});

test("tables that keep events for longer are named, if there are any", () => {
    const lakes = ["desk:/data/lake", "shelf:/lake"];
    assert.match(inTables({...nothing, lakes}), /holdfast message here-1763600000000000000 --lake .* desk:\/data\/lake or shelf:\/lake\.$/);
    assert.equal(inTables({...nothing, lakes: []}), "");
});

test("of the tables' steps only those are added that the journal did not have", () => {
    const [published, acked] = [{at_us: 1, kind: "published"}, {at_us: 2, kind: "acked"}];
    assert.deepEqual(unknown([published, {...acked}], [acked]), [published]);
    assert.deepEqual(unknown([published], []), [published]);
});
