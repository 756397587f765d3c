// One dead letter: its message, every attempt, and its differences from another letter of its group; and its replay with
// other data, as a new message.
import {badge, h, say} from "../dom.js";
import {path} from "./address.js";
import {bytes, count, lasting, time} from "./format.js";
import {actions, asked, card, facts, guarded, json, link, messageLink, mono, order, sheet, when} from "./parts.js";
import {preview, purge, replay, why} from "./letters.js";
import {senderLink, sessionLink} from "./sessions.js";
import {differences} from "./differences.js";
import {parse} from "./json.js";

const MOST_BYTES = 64 * 1024;
const EDITED = "__deadMessageId";

export async function letter(app, id, chosen) {
    const it = await app.api.get(path("dead-letters", id));
    const alike = await app.api.get("dead-letters", {fingerprint: it.fingerprint, limit: 20});
    const others = alike.items.filter((each) => each.id !== it.id);
    const which = {filter: {ids: [it.id]}};
    return [
        h("p", {}, link("Letters with the same cause", "dead", "letters", {fingerprint: it.fingerprint})),
        h("h1", {}, "Dead letter ", badge(it.state, it.state === "new" ? "" : "good")),
        h("p", {}, why(it)),
        actions(app,
            it.state === "new" && ["Replay …", () => replay(app, which), "primary"],
            it.state === "new" && ["Edit and send …", () => edit(app, it)],
            ["Purge …", () => purge(app, which), "danger"]),
        h("div", {class: "grid"},
            card("What", facts([
                ["message", messageLink(it.message)],
                ["channel", mono(it.channel)],
                ["from", senderLink(it.sender)],
                ["to", sessionLink(it.receiver)],
                ["priority", count(it.priority)],
                ["durable", it.durable ? "yes" : "no"],
                ["made of", madeOf(it)],
                ["replayed by", it.replay && link("a replay", "replays", it.replay)],
            ])),
            card("When", facts([
                ["published", time(it.published)],
                ["died", [time(it.died), ` (${lasting(Math.max(0, it.died - it.published))} later)`]],
                ["kept until", when(it.expires)],
                ["attempts", count(it.attempts)],
                ["redelivered", count(it.redelivered)],
                ["replays", `${count(it.replays)} of this letter, ${count(it.generation)} of its message before`],
            ]))),
        history(it.history, order(["dead", "letter", id], chosen)),
        card(`Data (${bytes(it.bytes)})`, json(it.data)),
        it.properties && card("Properties", json(it.properties)),
        it.policy && card("Effective options", json(it.policy)),
        others.length > 0 && comparison(app, it, others),
    ];
}

/** The letter that this message is an edit of. */
function madeOf({properties}) {
    const from = properties?.[EDITED];
    return typeof from === "string" ? link("another letter (edited)", "dead", "letter", from) : null;
}

const history = (attempts, order) => sheet("Attempts", [
    ["Attempt", ({n}) => count(n), "number", "n"],
    ["When", (attempt) => time(attempt.time), "", "time"],
    ["Over", ({transport}) => transport ?? "–", "", "transport"],
    ["Outcome", ({outcome}) => mono(outcome), "", "outcome"],
    ["Answer", ({code, text}) => [text && [text, " "], code && mono(code)], "", "text"],
    ["Took", ({latency_ms}) => (latency_ms === null ? "–" : lasting(latency_ms)), "number", "latency_ms"],
], attempts, "The message was never handed over.", order);

/** The differences from another letter of the same group. */
function comparison(app, it, others) {
    const shown = h("div");
    const state = h("p", {class: "faint small", role: "status"});
    const compare = guarded(app, async (id) => {
        const other = await app.api.get(path("dead-letters", id));
        const lines = differences(
            {data: other.data, properties: other.properties}, {data: it.data, properties: it.properties});
        const changed = lines.filter(([sign]) => sign !== " ").length;
        shown.replaceChildren(lined(lines));
        say(state, changed ? `${count(changed)} lines differ (− other letter, + this letter).` : "The letters are equal.");
    });
    const choice = h("select", {onchange: (event) => compare(event.target.value)},
        others.map((each) => h("option", {value: each.id}, `${each.receiver}, ${time(each.died)}`)));
    compare(others[0].id);
    return card("Difference", h("label", {class: "field"}, "Compare with a letter of the same cause", choice), state, shown);
}

async function edit(app, letter) {
    const {to} = app.requests.body("ReplayOptions");
    await asked({
        title: "Edit and send",
        text: "Holdfast sends a new message and keeps this letter. Each refers to the other.",
        fields: [
            {name: "data", label: "Data (JSON)", rows: 14, class: "mono", required: true,
                value: JSON.stringify(letter.data, null, 2), check: problem},
            {...to, label: `${to.label} (default: the original receiver)`, placeholder: letter.receiver},
        ],
        yes: "Preview",
    }, async ({data: text, ...options}) => {
        const data = parse(text);
        const wanted = {filter: {ids: [letter.id]}, options: {...options, edit: {data}}};
        await preview(app, wanted, () => "Send the edited message?", "Send", difference(letter.data, data));
    });
}

/** The error in the data; empty if they are valid. */
function problem(text) {
    if (new Blob([text]).size > MOST_BYTES) {
        return "The data exceeds 64 KiB.";
    }
    try {
        parse(text);
        return "";
    } catch (error) {
        return `The data is not valid JSON: ${error.message}`;
    }
}

/** The differences between the old and the new data, line by line. */
export const difference = (before, after) => lined(differences(before, after));

const lined = (lines) => h("div", {class: "difference mono", tabindex: 0, role: "region", "aria-label": "Difference"},
    lines.map(([sign, text]) => h("div", {class: {"+": "added tint good", "-": "removed tint bad"}[sign]}, `${sign} ${text}`)));
