// The results of the pipeline: latencies, causes of death, and advice on delays.
import {h} from "../dom.js";
import {defined, meanings, took} from "./columns.js";
import {count, time} from "./format.js";
import {card, heads, inOrderOf, mono, order, section, when} from "./parts.js";

const HOUR_MS = 3_600_000;
const HOURS = 24;
const CHANNELS = 20;
const UNKNOWN = "not known";
// The colours of times from a millisecond to ten seconds, by powers of ten.
const WARMTHS = ["good", "good", "mild", "warn", "bad"];

const hours = new Intl.DateTimeFormat(undefined, {hour: "2-digit", hourCycle: "h23"});
// Their order on the page.
const NAMES = ["audit", "funnel", "latency", "trend", "lag", "poison", "holdback-advice", "causes", "dead", "refused-publishes"];

export async function show(app, rest, chosen) {
    const {items} = await app.api.get("pipeline");
    const found = items.toSorted((one, other) => NAMES.indexOf(one.result) - NAMES.indexOf(other.result));
    const head = h("h1", {}, "Results of the pipeline");
    if (!found.length) {
        return [head, card(null, h("p", {}, "No results yet. The pipeline reads the journal and stores its results here."),
            h("p", {class: "faint"}, "Run ", mono("holdfast pipeline ingest --once"), "."))];
    }
    // The reports are computed together.
    const report = found.find(({since}) => since !== null);
    return [head, report && h("p", {class: "faint"}, computed(report)), ...found.map((each) => drawn(each, order(["results"], chosen, each.result)))];
}

/** The table of a result, and what its columns mean: both as the pipeline defines them. */
function drawn(result, order) {
    const {title, columns, rows, since} = result;
    const table = rows.length && result.result === "latency" ? section(title, heat(rows, order)) : defined(title, columns, rows, order);
    return h("div", {}, table, since === null && h("p", {class: "faint small"}, computed(result)),
        rows.length > 0 && meanings(columns));
}

const computed = ({at, since, until}) => [
    "Computed ", when(at), since === null ? "." : `, from events between ${time(since)} and ${time(until)}.`];

/** A row for each channel, the busiest first, with a column for each of the latest hours. */
function heat(rows, order) {
    const latest = Math.max(...rows.map(({hour}) => hour), 0);
    // Each column is the hours before the latest one.
    const columns = Array.from({length: HOURS}, (_, n) => n);
    const channels = new Map();
    for (const row of rows.filter(({hour}) => hour > latest - HOURS * HOUR_MS)) {
        const known = channels.get(row.channel) ?? {channel: row.channel, n: 0, hours: {}};
        known.n += row.n;
        known.hours[(latest - row.hour) / HOUR_MS] = row;
        channels.set(row.channel, known);
    }
    const busiest = [...channels.values()].sort((a, b) => b.n - a.n).slice(0, CHANNELS);
    const hour = (n) => {
        const began = latest - n * HOUR_MS;
        return [hours.format(began), null, "number", `hours.${n}.delivery_p99`, time(began)];
    };
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
        heads([["Channel", null, "", "channel"], ...columns.map(hour)], order),
        h("tbody", {}, inOrderOf(busiest, order).map(({channel, hours: known}) => h("tr", {},
            h("th", {scope: "row"}, h("span", {class: "mono"}, channel ?? UNKNOWN)), columns.map((n) => cell(known[n]))))));
}

const warmth = (ms) => WARMTHS[Math.max(0, Math.ceil(Math.log10(Math.max(ms, 0.001))))] ?? WARMTHS.at(-1);
