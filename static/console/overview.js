// The overview: what needs attention, throughput, and where all entries are.
import {badge, h} from "../dom.js";
import {LiveChart} from "./charts.js";
import {brief, count, lasting, many, rate, span} from "./format.js";
import {card, facts, link, when} from "./parts.js";
import {renewChildren} from "./renew.js";

export async function show(app) {
    const page = new Overview(app);
    const past = app.readings.length ? app.readings : [await app.api.get("figures")];
    past.forEach((figures) => page.hear(figures));
    app.listen((figures) => page.hear(figures));
    return page.elements;
}

class Overview {
    #before = null;
    #charts = {
        messages: new LiveChart("Messages per second", [{name: "published", kind: "one"}], rate),
        deliveries: new LiveChart("Deliveries per second",
            [{name: "acknowledged", kind: "one"}, {name: "failed", kind: "two"}], rate),
        latency: new LiveChart("Latency from receipt to hand-over",
            [{name: "p50", kind: "one"}, {name: "p99", kind: "two"}], span),
        queues: new LiveChart("In queues",
            [{name: "waiting", kind: "one"}, {name: "in flight", kind: "two"}], brief),
    };
    #verdict = h("section", {class: "verdict", "aria-label": "What needs attention"});
    #warnings = h("div", {class: "contents"});
    #books = card("Accounting");
    #sessions = card("Sessions");
    #letters = card("Dead letters");
    #nodes = card("Nodes");

    constructor(app) {
        this.app = app;
        const charts = Object.values(this.#charts).map(({element}) => element);
        this.elements = [
            h("h1", {class: "hidden"}, "Overview"),
            this.#verdict, this.#warnings,
            h("div", {class: "grid charts"}, charts),
            this.#books,
            h("div", {class: "grid"}, this.#sessions, this.#letters, this.#nodes),
        ];
    }

    hear(now) {
        const before = this.#before;
        this.#before = now;
        this.#judge(now, before);
        this.#show(now);
        // If counters fell, the server has restarted.
        if (before && now.time > before.time && now.started === before.started) {
            this.#draw(now, before);
        }
    }

    #draw(now, before) {
        const perSecond = (name) => (now[name] - before[name]) / ((now.time - before.time) / 1000);
        this.#charts.messages.add({published: perSecond("published")});
        this.#charts.deliveries.add({acknowledged: perSecond("acked"), failed: perSecond("failed")});
        const {p50 = null, p99 = null} = now.latency ?? {};
        this.#charts.latency.add({p50, p99});
        this.#charts.queues.add({waiting: now.waiting, "in flight": now.handed});
    }

    #judge(now, before) {
        const problems = [
            !now.store_available && ["bad", "The store is unavailable: durable messages are refused.", null],
            now.unaccounted !== 0 && ["bad", `${many(now.unaccounted, "entry is", "entries are")} not accounted for.`, null],
            now.channels_held_back > 0 &&
                ["bad", `${many(now.channels_held_back, "channel is", "channels are")} held back: no receiver accepts messages.`, ["channels"]],
            dying(now, before),
            now.held_back > 0 &&
                ["warn", `${many(now.held_back, "session is", "sessions are")} held back.`, ["sessions", {held: "true"}]],
            now.polling > 0 &&
                ["warn", `${many(now.polling, "session is", "sessions are")} reconnecting.`, ["sessions", {state: "POLLING"}]],
        ].filter(Boolean);
        const rows = problems.map(([mood, text, place]) =>
            h("p", {class: `state ${mood}`}, place ? link(text, ...place) : text));
        renewChildren(this.#verdict,
            rows.length ? rows : [h("p", {class: "state good"}, "Nothing needs attention.")]);
    }

    #show(now) {
        const {alerts} = this.app;
        renewChildren(this.#warnings, alerts.length ? [card("Warnings since this page was opened",
            h("ul", {class: "plain"}, alerts.map(({at: then, text}) => h("li", {}, text, " ", h("span", {class: "faint"}, when(then))))))] : []);
        const term = (name, value, sign) =>
            h("div", {class: "term reading"}, h("span", {class: "sign faint", "aria-hidden": "true"}, sign),
                h("strong", {class: "figure"}, brief(value)), h("span", {class: "faint small"}, name));
        replace(this.#books, [
            h("div", {class: "identity"},
                term("accepted", now.accepted, ""),
                now.restored > 0 && term("restored", now.restored, "+"),
                term("acknowledged", now.acked, "="),
                term("waiting", now.waiting, "+"), term("in flight", now.handed, "+"),
                term("dead", now.dead, "+"), term("expired", now.expired, "+"),
                term("discarded", now.discarded, "+")),
            now.unaccounted === 0 ? badge("balanced", "good") : badge(`${count(now.unaccounted)} missing`, "bad"),
            h("p", {class: "faint small"}, "Messages times receivers, since the server started. ",
                now.restored > 0 ? "Restored entries were in the store at that time. " : "",
                now.oldest_ms === null ? "No message is waiting." : `The oldest waiting message is ${lasting(now.oldest_ms)} old.`),
        ]);
        replace(this.#sessions, [figures([
            ["living", now.sessions, ["sessions"]],
            ["connected", now.connected],
            ["named, away", now.away],
            ["reconnecting", now.polling, ["sessions", {state: "POLLING"}]],
            ["held back", now.held_back, ["sessions", {held: "true"}]],
            ["durable", now.durable],
        ])]);
        replace(this.#letters, [figures([
            ["kept", now.letters, ["dead"]],
            ["in the last hour", now.letters_lately],
            ["age of the oldest", now.letters_oldest === null ? "–" : lasting(Math.max(0, now.time - now.letters_oldest))],
            ["since the server started", now.dead],
            ["redelivered", now.redelivered],
            ["failed deliveries", now.failed],
        ])]);
        replace(this.#nodes, [
            h("p", {class: `state ${now.store_available ? "good" : "bad"}`}, h("strong", {}, now.node), " ",
                h("span", {class: "faint"}, `version ${now.version}`)),
            figures([
                ["up", lasting(now.time - now.started)],
                ["held connects", now.connects_held],
                ["channels and patterns", now.channels, ["channels"]],
            ]),
        ]);
    }
}

function dying(now, before) {
    const isNow = before && now.dead > before.dead;
    if (!isNow && !now.letters_lately) {
        return null;
    }
    const lately = now.letters_lately ? `${many(now.letters_lately, "message")} died in the last hour` : "Messages are dying";
    return ["warn", `${lately}${isNow ? ", and more are dying now" : ""}.`, ["dead"]];
}

const figures = (rows) => facts(rows.map(([name, value, place]) => {
    const text = typeof value === "string" ? value : count(value);
    return [name, place ? link(text, ...place) : text];
}), "figures");

const replace = (panel, children) => renewChildren(panel, [panel.firstElementChild.cloneNode(true), ...children]);
