// Channels: who listens where, how much comes, and what the server holds back.
import {at, h, known, say} from "./dom.js";
import {ago, count, many, rate} from "./format.js";
import {actions, badge, card, chooser, parts, when} from "./parts.js";

export async function show(app, _, chosen) {
    const held = h("div", {class: "contents"});
    const look = async () => {
        const {items} = await app.api.get("held-channels");
        const names = JSON.stringify(items.map(({channel}) => channel));
        if (names !== held.dataset.names) {
            held.dataset.names = names;
            held.replaceChildren(...(items.length ? [heldBack(app, items)] : []));
        }
        held.querySelectorAll(".tried").forEach((each, place) => say(each, tried(items[place])));
    };
    const [, found] = await Promise.all([look(), list(app, chosen)]);
    app.keepFresh(look);
    return [
        h("h1", {}, "Channels"),
        held,
        chooser([{name: "prefix", label: "Begins with", placeholder: "/orders"}], chosen,
            (asked) => (location.hash = at("channels", asked))),
        found,
        h("p", {class: "faint small"}, "Rates are measured while a console is open. ",
            "A pattern, such as /orders/**, counts those who subscribed to exactly that."),
    ];
}

const list = (app, chosen) => parts(app, "Channels", [
    ["Channel", ({name, held}) => [h("span", {class: "mono"}, name), held ? [" ", badge("held back", "bad")] : ""]],
    ["Subscribers", ({name, subscribers}) => (subscribers
        ? h("a", {href: at("sessions", {channel: name})}, count(subscribers)) : "0"), "number"],
    ["Messages a second", (channel) => (channel.rate === null ? "–" : rate(channel.rate)), "number"],
    ["Dead letters", ({name}) => h("a", {href: at("dead", "letters", {channel: name})}, "look")],
], (cursor, limit) => app.api.get("channels", known({...chosen, cursor, limit})), "No channel is like that.");

/** How a channel that is held back was tried again, and when it will be. */
function tried({attempts, next_attempt: next}) {
    const before = attempts ? `Tried again ${many(attempts, "time")} in vain; ` : "";
    const then = next === null ? "one message is being tried now." : `one message is tried ${ago(next)}.`;
    return before ? before + then : then[0].toUpperCase() + then.slice(1);
}

const heldBack = (app, channels) => card("Held back, as nobody takes what comes", channels.map((each) =>
    h("div", {class: "held"},
        h("p", {}, h("span", {class: "mono"}, each.channel), " ", when(each.since), h("br"),
            h("span", {class: "faint small"}, each.reason), h("br"),
            h("span", {class: "tried small"}, tried(each))),
        actions(app, ["Let it flow", async () => {
            await app.api.remove("held-channels", {channel: each.channel});
            app.tell(`${each.channel} flows again.`);
            await app.show();
        }, "primary"]))));
