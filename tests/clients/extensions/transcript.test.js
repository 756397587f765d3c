import assert from "node:assert/strict";
import {test} from "node:test";
import {Transcript} from "../../../static/chat/transcript.js";
import {FakeStorage, FullStorage} from "./scripted.js";

test("of what is longer than the page lets people write it keeps the beginning", () => {
    const transcript = new Transcript(new FakeStorage(), "ada");
    transcript.put("lobby", {id: "1", from: "eve", text: "x".repeat(100_000)});
    assert.equal(transcript.lines("lobby")[0].text.length, 4000);
});

test("what is said is heard when there is no room to keep it", () => {
    for (const storage of [new FullStorage(), undefined]) {
        const transcript = new Transcript(storage, "ada");
        assert.ok(transcript.put("lobby", {id: "1", from: "eve", text: "hello"}).isNew);
        assert.equal(transcript.find("1").line.text, "hello");
        transcript.clear();
        assert.deepEqual(transcript.lines("lobby"), []);
    }
});

test("what something else has kept under its name is begun anew", () => {
    for (const text of ["{", "null", "7", '"seven"', '{"lobby": 7}']) {
        const storage = new FakeStorage();
        storage.setItem("holdfast.chat.ada", text);
        const transcript = new Transcript(storage, "ada");
        assert.deepEqual(transcript.lines("lobby"), []);
        assert.ok(transcript.put("lobby", {id: "1", from: "eve", text: "hello"}).isNew);
    }
});

test("what has the id of a line in another room is a line of its own", () => {
    const transcript = new Transcript(new FakeStorage(), "ada");
    transcript.put("lobby", {id: "1", from: "bob", text: "hello"});
    const {isNew, line} = transcript.put("cellar", {id: "1", from: "eve", text: "good night"});
    assert.deepEqual([isNew, line.text], [true, "good night"]);
});

test("rooms and lines have any name that an object of JavaScript knows", () => {
    for (const name of Object.getOwnPropertyNames(Object.prototype)) {
        const storage = new FakeStorage();
        const transcript = new Transcript(storage, "ada");
        assert.deepEqual(transcript.lines(name), []);
        assert.equal(transcript.find(name), undefined);
        assert.ok(transcript.put(name, {id: name, from: name, text: "hello"}).isNew);
        const reloaded = new Transcript(storage, "ada");
        assert.deepEqual(reloaded.lines(name), transcript.lines(name));
        assert.equal(reloaded.find(name).room, name);
        reloaded.forget(name);
        assert.deepEqual(reloaded.lines(name), []);
    }
});
