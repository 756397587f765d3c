import assert from "node:assert/strict";
import {test} from "node:test";
import {Requests, typed} from "../../../static/console/requests.js";

const described = new Requests({
    paths: {"/things": {get: {parameters: [
        {name: "name", description: "Beginning.", schema: {type: "string", title: "Begins with", examples: ["joe"], maxLength: 9}},
        {name: "held", schema: {type: "boolean", title: "Delivery", "x-words": {true: "held back"}}},
        {name: "state", schema: {type: "string", enum: ["new", "old"], title: "State"}},
        {name: "until", schema: {type: "integer", format: "ms", title: "Until"}},
    ]}}},
    components: {schemas: {How: {properties: {
        rate: {type: "integer", title: "Rate", default: 5, minimum: 1, maximum: 7},
        share: {type: "number", title: "Share", default: 0.5, exclusiveMinimum: 0, maximum: 1},
        to: {anyOf: [{type: "string", maxLength: 4}, {type: "null"}], default: null, title: "To"},
    }}}},
});

test("a text has the label, the example and the length that the server describes", () => {
    const {label, hint, placeholder, maxlength, value} = described.query("/things").name;
    assert.deepEqual([label, hint, placeholder, maxlength, value], ["Begins with", "Beginning.", "joe", 9, ""]);
});

test("what has few values is chosen, in the words that the server has for them", () => {
    const {held, state} = described.query("/things");
    assert.deepEqual(held.options, [["", "any"], ["true", "held back"], ["false", "false"]]);
    assert.deepEqual(state.options, [["", "any"], ["new", "new"], ["old", "old"]]);
});

test("numbers have their bounds, and those with a default must be there", () => {
    const {rate, share, to} = described.body("How");
    assert.deepEqual([rate.type, rate.value, rate.min, rate.max, rate.step, rate.required], ["number", 5, 1, 7, 1, true]);
    assert.deepEqual([share.min, share.step], [0.01, 0.01]);
    assert.deepEqual([to.value, to.maxlength, to.required], ["", 4, undefined]);
});

test("what an address says has the type that a body must have", () => {
    assert.equal(described.query("/things").until.type, "datetime-local");
    assert.deepEqual(typed(described.query("/things"), {name: "7", until: "1763"}), {name: "7", until: 1763});
});
