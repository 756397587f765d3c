import assert from "node:assert/strict";
import {test} from "node:test";
import {inOrder} from "../../../static/console/order.js";

const step = (at_us, kind, attempt = null, receiver = "joe/1", node = "holdfast") => ({at_us, kind, attempt, receiver, node});
const far = (at_us, kind, receiver = "ann/1") => step(at_us, kind, 1, receiver, "holdfast/1");
const HOUR_US = 3_600_000_000;
const told = (...steps) => inOrder(steps).map(({kind}) => kind).join(" ");

test("what a receiver refused was handed to it before, whoever looked at the clock first", () => {
    assert.equal(told(step(0, "published", null, null), step(958, "refused", 1), step(1000, "handed", 1), step(959, "dead", 1)),
        "published handed refused dead");
    assert.equal(told(step(958, "acked"), step(1000, "handed", 1)), "handed acked");
});

test("time does not go backwards then", () => {
    assert.deepEqual(inOrder([step(958, "refused", 1), step(1000, "handed", 1)]).map(({at_us}) => at_us), [1000, 1000]);
});

test("each attempt has its own hand-over", () => {
    assert.equal(told(step(10, "handed", 1), step(20, "refused", 1), step(58, "refused", 2), step(60, "redelivered", 2), step(59, "dead", 2)),
        "handed refused redelivered refused dead");
});

test("the order of other copies is that of their times", () => {
    assert.deepEqual(inOrder([step(3, "acked"), step(1, "handed", 1, "ann/1"), step(2, "handed", 1), step(2, "acked", null, "ann/1")]),
        [step(1, "handed", 1, "ann/1"), step(2, "handed", 1), step(2, "acked", null, "ann/1"), step(3, "acked")]);
});

test("what a replay brought is no reason for what was before it", () => {
    assert.equal(told(step(10, "dead", 0), step(20, "replayed"), step(30, "handed", 1), step(40, "acked")),
        "dead replayed handed acked");
    assert.equal(told(step(5, "handed", 1), step(9, "refused", 1), step(10, "dead", 1), step(20, "replayed"),
        step(29, "refused", 1), step(30, "handed", 1), step(29, "dead", 1)),
    "handed refused dead replayed handed refused dead");
});

test("what is far apart is left as it is: a part of the journal may be missing", () => {
    assert.equal(told(step(0, "refused", 1), step(2_000_000, "handed", 1)), "refused handed");
});

test("steps of a worker whose clock is behind follow the publish at another", () => {
    const found = inOrder([step(HOUR_US, "published", null, null), step(HOUR_US + 5, "handed", 1), step(HOUR_US + 9, "acked"),
        far(10, "handed"), far(40, "acked")]);
    assert.deepEqual(found.map(({kind, receiver}) => `${kind} ${receiver}`),
        ["published null", "handed ann/1", "handed joe/1", "acked joe/1", "acked ann/1"]);
    assert.deepEqual(found.map(({at_us}) => at_us - HOUR_US), [0, 0, 5, 9, 30]);
});

test("a copy enters a queue of another worker after it has left the former", () => {
    assert.equal(told(step(1, "published", null, null), step(HOUR_US, "moved", null, "joe/0"), far(2, "entered"), far(7, "handed")),
        "published moved entered handed");
});
