// The results of the pipeline: latencies, causes of death, and advice on delays.
import {h} from "../dom.js";
import {at} from "./address.js";
import {count, lasting, span, time} from "./format.js";
import {card, messageLink, mono, section, sheet, when} from "./parts.js";

const HOUR_MS = 3_600_000;
const HOURS = 24;
const CHANNELS = 20;
const UNKNOWN = "not known";
const NONE = "None.";
// The colours of times from a millisecond to ten seconds, by powers of ten.
const WARMTHS = ["good", "good", "mild", "warn", "bad"];

const hours = new Intl.DateTimeFormat(undefined, {hour: "2-digit", hourCycle: "h23"});
const share = (part) => `${count(part * 100)} %`;
const took = (ms) => (ms === null || ms === undefined ? "–" : span(ms * 1000));
const channelOf = ({channel}) => mono(channel ?? UNKNOWN);

export async function show(app) {
    const found = await Promise.all(["latency", "dead", "causes", "poison", "holdback-advice"].map((name) =>
        app.api.get(`pipeline/${name}`).catch((error) => {
            if (error.status !== 404) {
                throw error;
            }
            return null;
        })));
    const [latency, dead, causes, poison, advice] = found;
    const head = h("h1", {}, "Results of the pipeline");
    if (found.every((each) => each === null)) {
        return [head, card(null, h("p", {}, "No results yet. The pipeline reads the journal and stores its results here."),
            h("p", {class: "faint"}, "Run ", mono("holdfast pipeline ingest --once"), "."))];
    }
    return [
        head, h("p", {class: "faint"}, computed(found.find((each) => each !== null))),
        latency && section("Time from receipt to hand-over, by channel and hour",
            latency.rows.length ? heat(latency.rows) : h("p", {class: "faint empty"}, NONE)),
        poison && sheet("Poison messages: refused by most receivers", POISON, poison.rows, NONE),
        advice && sheet("Recommended delay between attempts", ADVICE, advice.rows, NONE),
        causes && sheet("Refusals by code and wording", CAUSES, causes.rows, NONE),
        dead && sheet("Dead letters by cause", DEAD, dead.rows, NONE),
    ];
}

const computed = ({at, since, until}) => [
    "Computed ", when(at), since === null ? "." : `, from events between ${time(since)} and ${time(until)}.`];

/** A row for each channel, the busiest first, with a column for each of the latest hours. */
function heat(rows) {
    const latest = Math.max(...rows.map(({hour}) => hour), 0);
    const columns = Array.from({length: HOURS}, (_, n) => latest - n * HOUR_MS);
    const channels = new Map();
    for (const row of rows.filter(({hour}) => hour > latest - HOURS * HOUR_MS)) {
        const known = channels.get(row.channel) ?? {n: 0, hours: new Map()};
        known.n += row.n;
        known.hours.set(row.hour, row);
        channels.set(row.channel, known);
    }
    const busiest = [...channels].sort(([, a], [, b]) => b.n - a.n).slice(0, CHANNELS);
    const cell = (row) => {
        if (!row) {
            return h("td", {});
        }
        const {n, delivery_p50, delivery_p95, delivery_p99, delivery_max} = row;
        const title = `${count(n)} deliveries: p50 ${took(delivery_p50)}, p95 ${took(delivery_p95)}, ` +
            `p99 ${took(delivery_p99)}, maximum ${took(delivery_max)}`;
        return h("td", {class: `tint ${warmth(delivery_p99)}`, title}, took(delivery_p99));
    };
    return h("table", {class: "heat"},
        h("caption", {class: "faint small"}, "p99 of the deliveries, latest hour first."),
        h("thead", {}, h("tr", {}, h("th", {scope: "col"}, "Channel"),
            columns.map((hour) => h("th", {scope: "col", title: time(hour)}, hours.format(hour))))),
        h("tbody", {}, busiest.map(([channel, known]) => h("tr", {},
            h("th", {scope: "row"}, mono(channel ?? UNKNOWN)), columns.map((hour) => cell(known.hours.get(hour)))))));
}

const warmth = (ms) => WARMTHS[Math.max(0, Math.ceil(Math.log10(Math.max(ms, 0.001))))] ?? WARMTHS.at(-1);

const POISON = [
    ["Message", ({message}) => messageLink(message)],
    ["Channel", channelOf],
    ["Dead", ({dead}) => count(dead), "number"],
    ["Receivers", ({receivers}) => count(receivers), "number"],
    ["Share", (row) => share(row.share), "number"],
    ["Why", ({code}) => mono(code ?? UNKNOWN)],
];

const ADVICE = [
    ["Channel", channelOf],
    ["Retried", ({retried}) => count(retried), "number"],
    ["Succeeded", (row) => `${count(row.succeeded)} (${share(row.share)})`, "number"],
    ["p50 until success", ({success_p50}) => took(success_p50), "number"],
    ["Wait between attempts", ({backoff}) => (backoff === null ? "–" : lasting(backoff)), "number"],
    ["Maximum attempts", ({max_attempts}) => count(max_attempts), "number"],
];

const CAUSES = [
    ["Why", ({code}) => mono(code)],
    ["Wording", ({wording}) => wording ?? "–"],
    ["Refusals", ({refusals}) => count(refusals), "number"],
    ["Dead", ({dead}) => count(dead), "number"],
    ["Receivers", ({receivers}) => count(receivers), "number"],
    ["Channels", ({channels}) => count(channels), "number"],
    ["For example", ({example}) => mono(example ?? UNKNOWN)],
    ["Last", ({last}) => (last === null ? "–" : when(last))],
];

const DEAD = [
    ["Channel", channelOf],
    ["Why", ({code, fingerprint}) => (fingerprint
        ? h("a", {href: at("dead", "letters", {fingerprint}), class: "mono"}, code) : mono(code ?? UNKNOWN))],
    ["Dead", ({dead}) => count(dead), "number"],
    ["Receivers (approx.)", ({receivers}) => count(receivers), "number"],
    ["First", ({first}) => when(first)],
    ["Last", ({last}) => when(last)],
];
