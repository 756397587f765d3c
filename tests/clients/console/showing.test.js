import assert from "node:assert/strict";
import {test} from "node:test";
import {differences} from "../../../static/console/differences.js";
import {parse} from "../../../static/console/json.js";
import {bytes, lasting, many, precise, span} from "../../../static/console/format.js";

test("what differs is told line by line, and what does not stays between", () => {
    assert.deepEqual(differences({a: 1, b: 2}, {a: 1, b: 3}), [
        [" ", "{"], [" ", '  "a": 1,'], ["-", '  "b": 2'], ["+", '  "b": 3'], [" ", "}"],
    ]);
});

test("alike is all alike", () => {
    assert.ok(differences([1, {x: null}], [1, {x: null}]).every(([sign]) => sign === " "));
    assert.deepEqual(differences("one", "other"), [["-", '"one"'], ["+", '"other"']]);
});

test("times have the unit that fits", () => {
    assert.deepEqual([0, 999, 1500, 25_400, 2_000_000, 90_000_000].map(span),
        ["0 µs", "999 µs", "1.5 ms", "25 ms", "2 s", "1 min 30 s"]);
    assert.equal(span(null), "–");
});

test("long times have two units, and no more", () => {
    assert.deepEqual([0, 999, 1000, 61_000, 3_600_000, 90_061_000].map(lasting),
        ["0 ms", "999 ms", "1 s", "1 min 1 s", "1 h 0 min", "1 d 1 h"]);
});

test("sizes, numbers of things, and moments are read as people say them", () => {
    assert.deepEqual([0, 1023, 1024, 16 * 1024 ** 2].map(bytes), ["0 B", "1,023 B", "1 KiB", "16 MiB"]);
    assert.deepEqual([many(1, "session"), many(2, "session"), many(0, "entry", "entries")],
        ["1 session", "2 sessions", "0 entries"]);
    assert.match(precise(1_763_600_000_000_042), /^\d\d:\d\d:\d\d\.000042$/);
});

test("numbers that no double has stay as they are written", () => {
    const text = '{"id":12345678901234567890,"small":1.5,"list":[-9007199254740993]}';
    assert.equal(JSON.stringify(parse(text)), JSON.rawJSON ? text : JSON.stringify(JSON.parse(text)));
});
