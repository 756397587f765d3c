// Delayed messages: when they are due, and how to cancel them.
import {h} from "../dom.js";
import {bytes, time} from "./format.js";
import {actions, confirmed, messageLink, mono, parts} from "./parts.js";

export async function show(app) {
    const found = await parts(app, "Delayed messages", [
        ["Due", ({due}) => time(due)],
        ["Channel", ({channel}) => mono(channel)],
        ["Message", ({id}) => messageLink(id)],
        ["Sender", ({sender}) => mono(sender || "–")],
        ["Size", (each) => bytes(each.bytes), "number"],
        ["", (each) => actions(app, ["Cancel", () => cancel(app, each), "danger"])],
    ], (cursor, limit) => app.api.get("delayed", {cursor, limit}), "No messages wait until they are due.");
    return [
        h("h1", {}, "Delayed messages"),
        found,
        h("p", {class: "faint small"}, "They were accepted, and are published when they are due."),
    ];
}

const cancel = (app, {id, channel}) => confirmed({
    title: `Cancel the message to ${channel}?`,
    text: `${id} is discarded permanently, without a dead letter.`,
    yes: "Cancel the message",
    no: "Keep it",
}, async () => {
    await app.api.remove("delayed", {id});
    await app.done("Message cancelled.");
});
