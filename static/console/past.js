// The figures of the last day or month: charts with marks, the same as a table, and who publishes and gets most.
import {h} from "../dom.js";
import {at} from "./address.js";
import {timeline} from "./charts.js";
import {brief, count, many, minute, rate, span, sum, time} from "./format.js";
import {card, mono, order, sheet} from "./parts.js";

const MINUTE_MS = 60_000;
const DAY_MS = 1440 * MINUTE_MS;
// What is asked for, in steps of which a narrow screen can show each.
export const SPANS = new Map([
    ["day", {title: "Day", lastsMs: DAY_MS - 10 * MINUTE_MS, step: 10 * MINUTE_MS}],
    ["month", {title: "Month", lastsMs: 29 * DAY_MS, step: 240 * MINUTE_MS}],
    ["live", {title: "Two minutes"}],
]);
const RANKINGS = [["senders", "Senders"], ["channels", "Channels"], ["receivers", "Receivers"]];
const RANKED = 5;
// What began within a step, which charts mark.
const MARKS = [["starts", "start", "start of a server"], ["holds", "hold", "hold"], ["replays", "replay", "replay"]];
const MOST_MARKS = 8;
const HAND_OVERS = ["hand_over_plain", "hand_over_acking", "hand_over_durable"];
const US_PER_S = 1_000_000;

/** The choice between the times that charts can show. */
export const choices = (chosen) => h("nav", {class: "spans", "aria-label": "What charts show"},
    [...SPANS].map(([name, {title}]) =>
        h("a", {href: at("", {charts: name}), "aria-current": name === chosen && "true"}, title)));

/** What the figures of charts are, and whose: this page is a client, too. */
export const noted = (text) => h("p", {class: "faint small"}, text, " This console is a session, which counts, too.");

/** Reads the past, with who publishes and gets most. */
export async function read(app, {lastsMs, step}) {
    const since = Date.now() - lastsMs;
    const [past, ...tops] = await Promise.all([
        app.api.get("figures/past", {since, step}),
        ...RANKINGS.map(([by]) => app.api.get("figures/top", {by, since, limit: RANKED})),
    ]);
    return {past, tops};
}

export function drawn({past, tops}, chosen) {
    const steps = stepsOf(past);
    const marks = MARKS.flatMap(([name, kind, text]) => steps.flatMap(({row}, place) =>
        (row?.[name] ? [{place, kind, text, at: row.time}] : []))).toSorted((one, other) => one.place - other.place);
    const chart = (title, show, ...series) => timeline(title, series.map(([name, kind, point]) =>
        ({name, kind, points: steps.map(({row}) => (row ? point(row) : null))})), show, marks, ends(past));
    return [
        noted(`The figures above the charts are those of the last ${step(past.step_ms)}; each step is as long.`),
        h("div", {class: "grid charts"},
            chart("Messages per second", rate, ["published", "one", perSecond("published")]),
            chart("Deliveries per second", rate, ["acknowledged", "one", perSecond("acked")], ["failed", "two", perSecond("failed")]),
            chart("Latency to hand-over, at most", span, ["half", "one", within(past, 0.5)], ["99 %", "two", within(past, 0.99)]),
            chart("In queues", brief, ["waiting", "one", ({waiting}) => waiting], ["in flight", "two", (row) => row.in_flight]),
            chart("Errors and dead letters", brief, ["errors", "one", ({errors}) => errors], ["died", "two", ({dead}) => dead]),
            chart("Sessions", brief, ["sessions", "one", ({sessions}) => sessions])),
        marks.length > 0 && list(marks),
        h("details", {class: "past", open: "past" in chosen}, h("summary", {}, "The charts as a table"), table(past, chosen)),
        h("div", {class: "grid"}, RANKINGS.map(([, title], place) => ranking(title, tops[place]))),
    ];
}

/** All steps, also those in which no server ran, which have no row. */
function stepsOf({since, until, step_ms, rows}) {
    const known = new Map(rows.map((row) => [row.time, row]));
    const number = Math.max(1, Math.ceil((until - since) / step_ms));
    return Array.from({length: number}, (_, n) => ({row: known.get(since + n * step_ms)}));
}

const step = (ms) => (ms < 60 * MINUTE_MS ? many(ms / MINUTE_MS, "minute") : many(ms / (60 * MINUTE_MS), "hour"));
const ends = ({since}) => [minute(since), "now"];
const perSecond = (name) => (row) => (row[name] * 1000) / Math.max(row.served_ms, 1);

/** The bound, in microseconds, that this part of the times of all hand-overs does not exceed. */
const within = ({bounds}, part) => (row) => {
    const buckets = row[HAND_OVERS[0]].map((_, n) => sum(HAND_OVERS.map((name) => row[name][n])));
    const needed = part * sum(buckets);
    let seen = 0;
    const place = buckets.findIndex((each) => (seen += each) >= needed && each > 0);
    const limits = bounds[HAND_OVERS[0]];
    return place < 0 ? null : (limits[place] ?? limits.at(-1)) * US_PER_S;
};

const list = (marks) => h("ul", {class: "marks", "aria-label": "Marks in the charts"},
    marks.slice(-MOST_MARKS).toReversed().map(({kind, text, at: ms}) =>
        h("li", {class: `mark ${kind}`}, text, " ", h("time", {class: "faint"}, minute(ms)))),
    marks.length > MOST_MARKS && h("li", {class: "faint"}, `and ${count(marks.length - MOST_MARKS)} before`));

function table(past, chosen) {
    const [half, most] = [0.5, 0.99].map((part) => within(past, part));
    const rows = past.rows.toReversed().map((row) => ({
        ...row,
        publish_rate: perSecond("published")(row),
        ack_rate: perSecond("acked")(row),
        half: half(row),
        most: most(row),
        began: MARKS.filter(([name]) => row[name]).map(([, , text]) => text).join(", "),
    }));
    const number = (name, show, field) => [name, (row) => show(row[field]), "number", field];
    return sheet("The past by step", [
        ["From", (row) => h("time", {}, time(row.time)), "", "time"],
        number("Messages per second", rate, "publish_rate"),
        number("Acknowledged per second", rate, "ack_rate"),
        number("Failed", count, "failed"),
        number("Half within", span, "half"),
        number("99 % within", span, "most"),
        number("Waiting", count, "waiting"),
        number("In flight", count, "in_flight"),
        number("Errors", count, "errors"),
        number("Died", count, "dead"),
        number("Sessions", count, "sessions"),
        ["Began", ({began}) => began, "", "began"],
    ], rows, "No server ran in this time: choose a later one.", order([""], chosen, "past"));
}

/** Who came most often. A count may be too low by what is said behind it. */
const ranking = (title, {items, since}) => card(`${title} since ${minute(since)}`,
    items.length ? h("ol", {class: "ranking"}, items.map(({name, count: least, at_most: most}) => h("li", {},
        mono(name), h("span", {class: "number"}, count(least), most > least && h("span", {class: "faint"}, ` to ${count(most)}`)))))
        : h("p", {class: "faint"}, "None: nothing was published in this time."));
