// Channels: subscribers, message rates, channel holds; one channel with its topic and its history.
import {badge, h} from "../dom.js";
import {at} from "./address.js";
import {ago, count, lasting, many, rate} from "./format.js";
import {actions, asked, card, confirmed, facts, filter, link, live, order, parts, when} from "./parts.js";
import {held, history, receivers} from "./sessions.js";

// The number of messages, and of sessions, that are shown.
const FIRST = 100;

export const show = (app, [channel], chosen) => (channel === undefined ? all(app, chosen) : one(app, channel, chosen));

async function all(app, chosen) {
    const look = () => app.api.get("held-channels");
    const [heldNow, found] = await Promise.all([live(app, look, ({items}) => items.length > 0 && heldBack(app, items)), list(app, chosen)]);
    return [
        h("h1", {}, "Channels"),
        heldNow,
        filter(app, "/channels", ["channels"], chosen),
        found,
        h("p", {class: "faint small"}, "Rates are measured while a console is open. ",
            "A pattern, such as /orders/**, counts the sessions that subscribed to exactly that pattern."),
    ];
}

const list = (app, chosen) => parts(app, "Channels", [
    ["Channel", ({name, held}) => [channelLink(name), held ? [" ", badge("held back", "bad")] : ""], "", "name"],
    ["Subscribers", ({name, subscribers}) => (subscribers
        ? link(count(subscribers), "sessions", {channel: name}) : "0"), "number", "subscribers"],
    ["Messages per second", (channel) => (channel.rate === null ? "–" : rate(channel.rate)), "number", "rate"],
    ["Dead letters", ({name, letters}) => lettersOf(name, letters), "number", "letters"],
], (cursor, limit) => app.api.get("channels", {...chosen, cursor, limit}), "No matching channels: they appear here when a client subscribes.", order(["channels"], chosen));

const lettersOf = (channel, number) => (number === 0 ? "0"
    : link(number === null ? "show" : count(number), "dead", "letters", {channel}));

const channelLink = (name) => h("a", {href: at("channels", name), class: "mono"}, name);

/** The past and the next probes of a channel hold of the server; holds of operators have none. */
function tried({who, attempts, next_attempt: next}) {
    if (who !== "guard") {
        return "";
    }
    const before = attempts ? `Probed ${many(attempts, "time")} without success; ` : "";
    const then = next === null ? "a probe is running." : `the next probe is ${ago(next)}.`;
    return before ? before + then : then[0].toUpperCase() + then.slice(1);
}

const heldBack = (app, channels) => card("Held back", channels.map((each) =>
    h("div", {class: "held", "data-key": each.channel},
        h("p", {}, channelLink(each.channel), h("br"),
            h("span", {class: "faint small"}, held(each)), h("br"),
            h("span", {class: "small"}, tried(each))),
        actions(app, release(app, each.channel)))));

const release = (app, channel) => ["Release", async () => {
    await app.done(`${channel} was released.`, await app.api.remove("held-channels", {channel}));
}, "primary"];

async function holdBack(app, channel) {
    const {reason, until} = app.requests.body("HoldChannelBody");
    await asked({
        title: `Hold back ${channel}`,
        text: "Sessions that acknowledge messages get nothing of this channel until you release it: its messages wait in the queues, " +
            "within their limits. Other sessions still get everything.",
        fields: [reason, until],
        yes: "Hold back",
    }, async (given) => {
        await app.done(`${channel} is held back.`, await app.api.put("held-channels", {channel, ...given}));
    });
}

async function one(app, name, chosen) {
    const orderOf = (list) => order(["channels", name], chosen, list);
    const look = () => Promise.all([
        app.api.get("channels", {prefix: name, limit: 1}),
        app.api.get("topics", {prefix: name, limit: 1}),
        app.api.get("held-channels"),
        app.api.get("topic/history", {channel: name, limit: FIRST}),
        app.api.get("sessions", {channel: name, limit: FIRST}),
        // The list of channels may lack this one. A store that is unavailable does not say whether it has letters.
        app.api.get("dead-letters", {channel: name, limit: 1}).catch(() => null),
    ]);
    const shown = await live(app, look, ([channels, topics, holds, kept, sessions, letters]) => {
        // The channel itself comes first among the names that begin with its name.
        const [known] = channels.items.filter((each) => each.name === name);
        const [topic] = topics.items.filter(({channel}) => channel === name);
        const [hold] = holds.items.filter(({channel}) => channel === name);
        return [
            h("h1", {}, name, topic ? [" ", badge(topic.state, topic.state === "ALIVE" ? "good" : "")] : ""),
            hold && h("p", {class: "card panel state warn"}, held(hold), " ", tried(hold)),
            // A pattern has no messages of its own.
            !name.includes("*") && actions(app, hold ? release(app, name) : ["Hold back the channel", () => holdBack(app, name)], topic && ["Erase the topic", () => erase(app, name), "danger"]),
            facets(name, known, topic, letters?.items.length === 0 ? 0 : known?.letters ?? null),
            history(kept.items, orderOf("history")),
            receivers(app, sessions.items, "No session has subscribed to exactly this channel.", orderOf("sessions")),
        ];
    });
    return [h("p", {}, link("All channels", "channels")), shown];
}

const facets = (name, channel, topic, letters) => h("div", {class: "grid"},
    card("Channel", facts([
        ["subscribers", count(channel?.subscribers ?? 0)],
        ["messages per second", channel && channel.rate !== null ? rate(channel.rate) : "–"],
        ["dead letters", lettersOf(name, letters)],
    ])),
    card("Topic", topic ? facts([
        ["ends", topic.destroy_delay < 0 ? "only when it is erased" : `${lasting(topic.destroy_delay)} after its last use`],
        ["messages", topic.readonly ? "one: it is readonly" : "any number"],
        ["history", `${count(topic.kept)} of ${count(topic.history)}`],
        ["in queues", count(topic.queued)],
        ["in its work queue", topic.work ? link(count(topic.work), "work", topic.channel) : null],
    ]) : h("p", {class: "faint"}, "This channel is not a topic.")));

async function erase(app, channel) {
    const waiting = {name: "force", label: "Messages in queues", options: [["", "are delivered"], ["true", "are discarded"]]};
    await confirmed({
        title: `Erase ${channel}?`,
        text: "The topic, its history and the subscriptions to exactly this channel end.",
        fields: [waiting],
        yes: "Erase",
    }, async (given) => {
        await app.api.remove("topic", {channel, ...given});
        await app.done(`${channel} was erased.`);
    });
}
