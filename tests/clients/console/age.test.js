import assert from "node:assert/strict";
import {afterEach, beforeEach, mock, test} from "node:test";
import {Age} from "../../../static/console/age.js";

const START = Date.UTC(2026, 0, 2, 3, 4, 5);
let now;
let told;

/** The line above the page after so many ms more. */
function after(ms, age) {
    now += ms;
    age.check();
    return told;
}

beforeEach(() => {
    now = START;
    mock.method(Date, "now", () => now);
});

afterEach(() => mock.restoreAll());

const ageOf = () => new Age((text) => (told = text));

test("a page is of now until something newer should have come", () => {
    const age = ageOf();
    age.news(8000);
    assert.equal(after(8000, age), "");
    assert.match(after(1, age), /^The server has sent nothing new\. The page shows the state of .*:05/);
    age.news(8000);
    assert.equal(told, "");
});

test("an answer that is awaited for long is said to be late before anything has failed", () => {
    const age = ageOf();
    age.news(8000);
    now += 3000;
    age.expect(5000);
    assert.equal(after(5000, age), "");
    assert.match(after(1, age), /of .*:05/);
});

test("a failure is said at once, and until something came", () => {
    const age = ageOf();
    age.news(8000);
    now += 2000;
    age.failed(new Error("The server cannot be reached."));
    assert.match(told, /^The server cannot be reached\. The page shows the state of .*:05/);
    age.expect(5000);
    assert.notEqual(after(1, age), "");
    age.news(8000);
    assert.equal(told, "");
});

test("what is shown may have been old from the beginning", () => {
    const age = ageOf();
    age.news(5000, START - 60_000);
    assert.match(told, /of .*:05/);
});

test("a page that does not come is missed, and one that nobody renews does not grow old", () => {
    const age = ageOf();
    assert.notEqual(after(5001, age), "");
    age.begin();
    age.made();
    assert.equal(after(3_600_000, age), "");
});

test("that a page is there changes nothing of when its first news are due", () => {
    const age = ageOf();
    age.news(8000);
    age.made();
    assert.notEqual(after(8001, age), "");
});
