// Channels: subscribers, message rates, and channel holds.
import {at, h, known} from "./dom.js";
import {ago, count, many, rate} from "./format.js";
import {actions, badge, card, filter, live, mono, parts, when} from "./parts.js";

export async function show(app, _, chosen) {
    const look = () => app.api.get("held-channels");
    const [held, found] = await Promise.all([live(app, look, ({items}) => items.length > 0 && heldBack(app, items)), list(app, chosen)]);
    return [
        h("h1", {}, "Channels"),
        held,
        filter(app, "/channels", ["channels"], chosen),
        found,
        h("p", {class: "faint small"}, "Rates are measured while a console is open. ",
            "A pattern, such as /orders/**, counts the sessions that subscribed to exactly that pattern."),
    ];
}

const list = (app, chosen) => parts(app, "Channels", [
    ["Channel", ({name, held}) => [mono(name), held ? [" ", badge("held back", "bad")] : ""]],
    ["Subscribers", ({name, subscribers}) => (subscribers
        ? h("a", {href: at("sessions", {channel: name})}, count(subscribers)) : "0"), "number"],
    ["Messages per second", (channel) => (channel.rate === null ? "–" : rate(channel.rate)), "number"],
    ["Dead letters", ({name}) => h("a", {href: at("dead", "letters", {channel: name})}, "show")],
], (cursor, limit) => app.api.get("channels", known({...chosen, cursor, limit})), "No matching channels.");

/** Past and next probes of a held channel. */
function tried({attempts, next_attempt: next}) {
    const before = attempts ? `Probed ${many(attempts, "time")} without success; ` : "";
    const then = next === null ? "a probe is running." : `the next probe is ${ago(next)}.`;
    return before ? before + then : then[0].toUpperCase() + then.slice(1);
}

const heldBack = (app, channels) => card("Held back: no receiver accepts messages", channels.map((each) =>
    h("div", {class: "held", "data-key": each.channel},
        h("p", {}, mono(each.channel), " ", when(each.since), h("br"),
            h("span", {class: "faint small"}, each.reason), h("br"),
            h("span", {class: "small"}, tried(each))),
        actions(app, ["Release", async () => {
            await app.api.remove("held-channels", {channel: each.channel});
            await app.done(`${each.channel} was released.`);
        }, "primary"]))));
