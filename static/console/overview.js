// The overview: what needs attention, the throughput of the past or of now, and where the entries are.
import {badge, h} from "../dom.js";
import {lines} from "./charts.js";
import {brief, count, lasting, many, rate, span} from "./format.js";
import {card, facts, link, when} from "./parts.js";
import {choices, drawn as pastOf, noted, read, SPANS} from "./past.js";
import {renewChildren} from "./renew.js";

// How often the past is read again.
const PAST_MS = 60_000;

export async function show(app, rest, chosen) {
    if (!app.readings.length) {
        app.readings = [await app.api.get("figures"), ...app.readings];
    }
    const name = SPANS.has(chosen.charts) ? chosen.charts : "day";
    const [above, middle, below] = ["above", "moving", "below"].map((kind) => h("div", {class: `contents ${kind}`}));
    const draw = () => {
        renewChildren(above, attention(app));
        renewChildren(below, present(app.readings.at(-1)));
        name === "live" && renewChildren(middle, [
            noted("The figures above the charts are the latest."),
            h("div", {class: "grid charts"}, charts(app.readings)),
        ]);
    };
    const drawPast = await pastIn(app, middle, name, chosen);
    draw();
    app.listen(() => {
        draw();
        drawPast();
    });
    return h("div", {class: "contents"}, above, choices(name), middle, below);
}

/** Draws the past. Returns what reads and draws it again if it is old. */
async function pastIn(app, middle, name, chosen) {
    let due = 0;
    const again = async () => {
        if (name === "live" || Date.now() < due || document.hidden) {
            return;
        }
        due = Date.now() + PAST_MS;
        const shown = await read(app, SPANS.get(name)).then((found) => pastOf(found, chosen), ({message}) =>
            [h("p", {class: "card panel state bad"}, `The past cannot be shown: ${message}`)]);
        renewChildren(middle, shown.filter(Boolean));
    };
    await again();
    return again;
}

function attention({readings, alerts}) {
    const [before, now] = [readings.at(-2), readings.at(-1)];
    return [
        h("h1", {class: "hidden"}, "Overview"),
        h("section", {class: "verdict", "aria-label": "What needs attention"}, verdict(now, before)),
        h("div", {class: "contents"}, alerts.length > 0 && card("Warnings since this page was opened",
            h("ul", {class: "plain"}, alerts.map(({at, text}) => h("li", {}, text, " ", h("span", {class: "faint"}, when(at))))))),
    ];
}

const present = (now) => [accounting(now), h("div", {class: "grid"}, sessions(now), letters(now), node(now))];

function verdict(now, before) {
    const problems = [
        ...(now.unanswered ?? []).map(({shard, reason}) => ["bad", `Shard ${shard} is not in these figures: ${reason}.`, ["now"]]),
        !now.store_available && ["bad", "The store is unavailable: durable messages are refused.", null],
        now.unaccounted !== 0 && ["bad", `${many(now.unaccounted, "entry is", "entries are")} not accounted for.`, null],
        now.alerts > 0 && ["bad", `${many(now.alerts, "alert is", "alerts are")} raised.`, ["now"]],
        now.channels_held_back > 0 &&
            ["bad", `${many(now.channels_held_back, "channel is", "channels are")} held back.`, ["channels"]],
        dying(now, before),
        now.held_back > 0 &&
            ["warn", `${many(now.held_back, "session is", "sessions are")} held back.`, ["sessions", {held: "true"}]],
        now.polling > 0 &&
            ["warn", `${many(now.polling, "session has", "sessions have")} lost contact or ${now.polling === 1 ? "waits" : "wait"} for a retry.`, ["sessions", {state: "POLLING"}]],
    ].filter(Boolean);
    const rows = problems.map(([mood, text, place]) =>
        h("p", {class: `state ${mood}`}, place ? link(text, ...place) : text));
    return rows.length ? rows : h("p", {class: "state good"}, "Nothing needs attention.");
}

/** Whether counts of one reading may be compared with those of the other: no shard is missing in one alone. */
function areLike(before, now) {
    const missing = ({unanswered = []}) => String(unanswered.map(({shard}) => shard));
    return before.started === now.started && missing(before) === missing(now);
}

function dying(now, before) {
    const isNow = before && areLike(before, now) && now.dead > before.dead;
    if (!isNow && !now.letters_lately) {
        return null;
    }
    const lately = now.letters_lately ? `${many(now.letters_lately, "message")} died in the last hour` : "Messages are dying";
    return ["warn", `${lately}${isNow ? ", and more are dying now" : ""}.`, ["dead"]];
}

function charts(readings) {
    const pairs = readings.map((now, n) => ({now, before: readings[n - 1]})).filter(({now, before}) =>
        before && now.time > before.time && areLike(before, now));
    const chart = (title, show, ...series) => lines(title, series.map(([name, kind, point]) =>
        ({name, kind, points: pairs.map(point)})), show);
    // If a count fell, one of several workers has restarted.
    const perSecond = (name) => ({now, before}) =>
        now[name] < before[name] ? null : (now[name] - before[name]) / ((now.time - before.time) / 1000);
    const latency = (name) => ({now}) => now.latency?.[name] ?? null;
    return [
        chart("Messages per second", rate, ["published", "one", perSecond("published")]),
        chart("Deliveries per second", rate, ["acknowledged", "one", perSecond("acked")], ["failed", "two", perSecond("failed")]),
        chart("Latency to hand-over", span, ["p50", "one", latency("p50")], ["p99", "two", latency("p99")]),
        chart("In queues", brief, ["waiting", "one", ({now}) => now.waiting], ["in flight", "two", ({now}) => now.in_flight]),
    ];
}

function oldest({waiting, oldest_ms}) {
    if (oldest_ms !== null) {
        return `The oldest waiting message is ${lasting(oldest_ms)} old.`;
    }
    return waiting ? "All waiting messages are held back or wait for a retry." : "No message is waiting.";
}

function accounting(now) {
    // Each term with the sign behind it.
    const term = (name, value, sign) =>
        h("div", {class: "term reading"}, h("strong", {class: "figure"}, brief(value)),
            h("span", {class: "faint small"}, name), h("span", {class: "sign faint", "aria-hidden": "true"}, sign));
    return card("Accounting",
        h("div", {class: "identity"},
            term("accepted", now.accepted, now.restored > 0 ? "+" : "="),
            now.restored > 0 && term("restored", now.restored, "="),
            term("acknowledged", now.acked, "+"),
            term("waiting", now.waiting, "+"), term("in flight", now.in_flight, "+"),
            term("dead", now.dead, "+"), term("expired", now.expired, "+"),
            term("discarded", now.discarded, now.moved > 0 ? "+" : ""),
            now.moved > 0 && term("moved", now.moved, "")),
        now.unaccounted === 0 ? badge("balanced", "good") : badge(`${count(now.unaccounted)} missing`, "bad"),
        h("p", {class: "faint small"}, "Each message counts once per receiver, since the server started. ",
            now.restored > 0 ? "Restored entries were in the store at that time. " : "",
            now.moved > 0 ? "Moved entries left one queue for others, which accepted them again. " : "",
            oldest(now)));
}

const sessions = (now) => card("Sessions", figures([
    ["living", now.sessions, ["sessions"]],
    ["connected", now.connected, ["sessions", {unconnected: "false"}]],
    ["named, away", now.away],
    ["lost or retrying", now.polling, ["sessions", {state: "POLLING"}]],
    ["held back", now.held_back, ["sessions", {held: "true"}]],
    ["durable", now.durable],
]));

const letters = (now) => card("Dead letters", figures([
    ["kept", now.letters, ["dead"]],
    ["in the last hour", now.letters_lately],
    ["age of the oldest", now.letters_oldest === null ? "–" : lasting(Math.max(0, now.time - now.letters_oldest))],
    ["since the server started", now.dead],
    ["redelivered", now.redelivered],
    ["failed deliveries", now.failed],
]));

const node = (now) => card("Node",
    h("p", {class: `state ${now.store_available ? "good" : "bad"}`}, h("strong", {}, now.node), " ",
        h("span", {class: "faint"}, `version ${now.version}`)),
    figures([
        ["up", lasting(now.time - now.started)],
        ["held connects", now.connects_held],
        ["readers without a session", now.readers],
        ["channels and patterns", now.channels, ["channels"]],
    ]));

const figures = (rows) => facts(rows.map(([name, value, place]) => {
    const text = typeof value === "string" ? value : count(value);
    return [name, place ? link(text, ...place) : text];
}), "figures");
