// One dead letter: what it was, all that was tried, and how it differs from one that failed alike.
import {at, h, say} from "./dom.js";
import {bytes, count, lasting, time} from "./format.js";
import {actions, badge, card, facts, guarded, json, mono, table, when} from "./parts.js";
import {purge, replay} from "./letters.js";
import {sessionLink} from "./sessions.js";
import {differences} from "./differences.js";
import {edit, lined} from "./editing.js";

const EDITED = "__deadMessageId";
const path = (id) => `dead-letters/${encodeURIComponent(id)}`;

export async function letter(app, id) {
    const it = await app.api.get(path(id));
    const alike = await app.api.get("dead-letters", {fingerprint: it.fingerprint, limit: 20});
    const others = alike.items.filter((each) => each.id !== it.id);
    const which = {filter: {ids: [it.id]}};
    return [
        h("p", {}, h("a", {href: at("dead", "letters", {fingerprint: it.fingerprint})}, "Letters that failed alike")),
        h("h1", {}, "Dead letter ", badge(it.state, it.state === "new" ? "" : "good")),
        h("p", {}, mono(it.code), h("br"), it.reason),
        actions(app,
            it.state === "new" && ["Replay it …", () => replay(app, which), "primary"],
            it.state === "new" && ["Edit and send …", () => edit(app, it)],
            ["Purge it …", () => purge(app, which), "danger"]),
        h("div", {class: "grid"},
            card("What", facts([
                ["message", h("a", {href: at("messages", it.message), class: "mono"}, it.message)],
                ["channel", mono(it.channel)],
                ["from", it.sender || "the server"],
                ["to", sessionLink(it.receiver)],
                ["priority", count(it.priority)],
                ["durable", it.durable ? "yes" : "no"],
                ["made of", madeOf(it)],
                ["taken by", it.replay && h("a", {href: at("replays", it.replay)}, "a replay")],
            ])),
            card("When", facts([
                ["published", time(it.published)],
                ["died", [time(it.died), ` (${lasting(Math.max(0, it.died - it.published))} later)`]],
                ["is kept until", when(it.expires)],
                ["attempts", count(it.attempts)],
                ["sent again", count(it.redelivered)],
                ["replays", `${count(it.replays)} of this letter, ${count(it.generation)} of its message before`],
            ]))),
        history(it.history),
        card(`Data (${bytes(it.bytes)})`, json(it.data)),
        it.properties && card("Properties", json(it.properties)),
        it.policy && card("Options in force", json(it.policy)),
        others.length > 0 && difference(app, it, others),
    ].filter(Boolean);
}

/** The letter of which its message was made, with other data. */
function madeOf({properties}) {
    const from = properties?.[EDITED];
    return typeof from === "string" ? h("a", {href: at("dead", "letter", from)}, "another letter, edited") : null;
}

function history(attempts) {
    const {element, show} = table("Attempts", [
        ["Attempt", ({n}) => count(n), "number"],
        ["When", (attempt) => time(attempt.time)],
        ["Over", ({transport}) => transport ?? "–"],
        ["Outcome", ({outcome}) => mono(outcome)],
        ["It said", ({code, text}) => [code && code !== "" ? mono(code) : "", text ? [" ", text] : ""]],
        ["Took", ({latency_ms}) => (latency_ms === null ? "–" : lasting(latency_ms)), "number"],
    ]);
    show(attempts);
    return h("section", {}, h("h2", {}, "What was tried"),
        h("div", {class: "card sheet"}, attempts.length ? element
            : h("p", {class: "faint empty"}, "It was never handed over.")));
}

/** What another letter of the same kind has in another way. */
function difference(app, it, others) {
    const shown = h("div");
    const state = h("p", {class: "faint small", role: "status"});
    const compare = guarded(app, async (id) => {
        const other = await app.api.get(path(id));
        const lines = differences(
            {data: other.data, properties: other.properties}, {data: it.data, properties: it.properties});
        const changed = lines.filter(([sign]) => sign !== " ").length;
        shown.replaceChildren(lined(lines));
        say(state, changed ? `${count(changed)} lines differ: − the other, + this one.` : "They are the same.");
    });
    const choice = h("select", {onchange: (event) => compare(event.target.value)},
        others.map((each) => h("option", {value: each.id}, `${each.receiver}, ${time(each.died)}`)));
    compare(others[0].id);
    return card("Difference", h("label", {class: "field"}, "From a letter that failed alike", choice), state, shown);
}
