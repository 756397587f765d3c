import assert from "node:assert/strict";
import {afterEach, beforeEach, mock, test} from "node:test";
import {Freshness} from "../../../static/console/freshness.js";

let timers;
let listeners;
let now;
const done = () => new Promise((resolve) => setImmediate(resolve));

/** What the age of the page is told. */
const ageOf = (told) => ({
    news: (withinMs) => told.push(["news", withinMs]),
    expect: (withinMs) => told.push(["expect", withinMs]),
    failed: ({message}) => told.push(["failed", message]),
});

/** The next round begins. */
async function pass() {
    const [run] = timers.splice(0);
    run?.go();
    await done();
    return run?.ms;
}

beforeEach(() => {
    timers = [];
    listeners = {};
    now = 0;
    mock.method(globalThis, "setTimeout", (go, ms) => timers.push({go, ms}));
    mock.method(globalThis, "clearTimeout", () => timers.splice(0));
    mock.method(performance, "now", () => now);
    globalThis.document = {hidden: false, addEventListener: (name, hear) => (listeners[name] = hear)};
    globalThis.getSelection = () => ({isCollapsed: true});
});

afterEach(() => mock.restoreAll());

test("a page is asked for again and again until it is left", async () => {
    let asked = 0;
    const it = new Freshness(ageOf([]));
    it.add(async () => (asked += 1));
    assert.equal(await pass(), 3000);
    await pass();
    it.clear();
    await pass();
    assert.equal(asked, 2);
});

test("who answers slowly is asked rarely, but once a minute", async () => {
    const it = new Freshness(ageOf([]));
    let takes = 1000;
    it.add(async () => (now += takes));
    await pass();
    assert.equal(await pass(), 20_000);
    takes = 10_000;
    await pass();
    assert.equal(timers[0].ms, 60_000);
});

test("nobody asks for a page that is not seen, and at once when it is seen again", async () => {
    let asked = 0;
    new Freshness(ageOf([])).add(async () => (asked += 1));
    document.hidden = true;
    await pass();
    assert.deepEqual([asked, timers.length], [0, 0]);
    document.hidden = false;
    listeners.visibilitychange();
    assert.equal(await pass(), 0);
    assert.equal(asked, 1);
});

test("while something is selected nothing moves", async () => {
    let asked = 0;
    new Freshness(ageOf([])).add(async () => (asked += 1));
    getSelection = () => ({isCollapsed: false});
    await pass();
    assert.deepEqual([asked, timers.length], [0, 1]);
});

test("the age of a page learns when an answer is due, and how each round ended", async () => {
    const told = [];
    let failure = new Error("away");
    const it = new Freshness(ageOf(told));
    it.add(async () => {
        if (failure) {
            throw failure;
        }
    });
    await pass();
    failure = null;
    await pass();
    assert.deepEqual(told, [
        ["news", 8000], ["expect", 5000], ["failed", "away"], ["expect", 5000], ["news", 8000]]);
});

test("who is asked rarely may let the page grow old for as long", async () => {
    const told = [];
    new Freshness(ageOf(told)).add(async () => (now += 2000));
    await pass();
    assert.deepEqual(told.at(-1), ["news", 45_000]);
});

test("a page that stands still, as something is selected, is not late for that", async () => {
    const told = [];
    new Freshness(ageOf(told)).add(async () => null);
    getSelection = () => ({isCollapsed: false});
    await pass();
    assert.deepEqual(told.at(-1), ["expect", 8000]);
});

test("what a page that was left still learns is told of no other", async () => {
    const told = [];
    let answer;
    const it = new Freshness(ageOf(told));
    it.add(() => new Promise((_, reject) => (answer = reject)));
    await pass();
    it.clear();
    it.add(async () => null);
    told.splice(0);
    answer(new Error("away"));
    await done();
    assert.deepEqual(told, []);
    await pass();
    assert.deepEqual(told.at(-1), ["news", 8000]);
});
