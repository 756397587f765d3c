// One message: its queues, its dead letters, and its steps in the journal.
import {badge, h} from "../dom.js";
import {at, path} from "./address.js";
import {count, many, precise, spaced, span, time} from "./format.js";
import {inOrder} from "./order.js";
import {card, chooser, guarded, link, mono, when} from "./parts.js";
import {renewChildren} from "./renew.js";
import {sessionLink} from "./sessions.js";
import {STEPS} from "./steps.js";
import {inTables, moodOf, unknown, whereabouts} from "./whereabouts.js";

// The parts of the journal that the page reads before it asks whether to continue.
const PARTS = 20;

export async function show(app, [id]) {
    const field = {...app.requests.query("/messages/{id}").id, required: true, class: "mono"};
    const form = chooser([field], {id}, (asked) => (location.hash = at("messages", asked.id)));
    const head = [h("h1", {}, "Where is my message?"), form];
    if (id === undefined) {
        return [...head, h("p", {class: "faint"},
            "The id is ", mono("ext.delivery.id"), " of the event; dead letters and queues show it, too.")];
    }
    const trace = await app.api.get(path("messages", id));
    const summary = h("div", {class: "contents"});
    const tell = (steps, isWhole) => renewChildren(summary, [summed(trace, steps, isWhole)]);
    return [...head, summary, h("div", {class: "grid"}, queues(trace), letters(trace)), timeline(app, trace, tell)];
}

function summed(trace, steps, isWhole) {
    return h("p", {class: `card panel state ${moodOf(trace, steps)}`}, whereabouts(trace, steps, isWhole));
}

const queues = ({queues}) => card("In queues", queues.length
    ? h("ul", {class: "plain"}, queues.map((each) => h("li", {},
        sessionLink(each.receiver), " ", badge(spaced(each.state)), " ",
        each.held ? badge("held back", "warn") : "", " ",
        each.gone_since ? h("span", {}, "its client was last seen ", when(each.gone_since)) : "",
        h("span", {class: "faint small"}, ` ${many(each.attempts, "attempt")}`))))
    : h("p", {class: "faint"}, "In no queue."));

const letters = ({letters}) => card("Dead letters", letters.length
    ? h("ul", {class: "plain"}, letters.map((each) => h("li", {},
        link(each.receiver, "dead", "letter", each.id), " ", mono(each.code), " ", when(each.died), " ",
        each.state !== "new" && badge(each.state, "good"))))
    : h("p", {class: "faint"}, "None."));

function timeline(app, first, tell) {
    const list = h("ol", {class: "timeline"});
    const note = h("p", {class: "faint", role: "status"});
    const more = h("button", {type: "button", hidden: true}, "Read more");
    const older = h("button", {type: "button", hidden: true}, "Look in the tables");
    let cursor = first.cursor;
    const read = [];
    const add = (steps) => {
        read.push(...steps);
        const all = inOrder(read);
        const publishes = all.filter(({kind}) => kind === "published");
        const shown = all.filter((each) => each.copies !== 0 || publishes.length === 1);
        list.replaceChildren(...shown.map((each) => h("li", {}, step(each, all[0].at_us))));
        tell(all, cursor === null);
    };
    const readOn = guarded(app, async () => {
        for (let part = 0; part < PARTS && cursor !== null; part += 1) {
            const next = await app.api.get(path("messages", first.id), {cursor});
            cursor = next.cursor;
            add(next.steps);
        }
        more.hidden = cursor === null;
        older.hidden = cursor !== null || !first.lakes.length || !app.isOperator;
        note.textContent = noteText();
    });
    const lookInTables = guarded(app, async () => {
        older.disabled = true;
        try {
            const {items} = await app.api.post(path("messages", first.id, "tables"), {});
            const further = unknown(items, read);
            add(further);
            older.hidden = true;
            note.textContent = `The tables have ${further.length ? many(further.length, "more event") : "no more events"}.`;
        } finally {
            older.disabled = false;
        }
    });
    const noteText = () => {
        if (cursor !== null) {
            return "The journal has more to read.";
        }
        const tables = inTables(first);
        if (list.children.length) {
            return `The journal has no more events.${tables}`;
        }
        return first.journal ? `The journal has no events of this message: it never existed, or they were removed.${tables}`
            : "This server keeps no journal. Set journal = true to see each step here.";
    };
    more.addEventListener("click", readOn);
    older.addEventListener("click", lookInTables);
    add(first.steps);
    readOn();
    return card("What happened", list, note, more, older);
}

function step(each, begin) {
    const details = [
        each.attempt ? `attempt ${count(each.attempt)}` : null,
        each.copies === null ? null : `for ${many(each.copies, "receiver")}`,
        each.sender === null ? null : `from ${each.sender}`,
        each.code,
    ].filter(Boolean).join(", ");
    return [
        h("span", {class: "faint mono", title: time(each.at_us / 1000)}, precise(each.at_us)),
        h("span", {class: "faint mono"}, `+${span(Math.max(0, each.at_us - begin))}`),
        badge(STEPS.get(each.kind)?.words ?? each.kind, STEPS.get(each.kind)?.mood),
        h("span", {}, each.receiver ? [sessionLink(each.receiver), " "] : "", h("span", {class: "faint"}, details),
            each.letter ? [" ", link("the letter", "dead", "letter", each.letter)] : ""),
    ];
}
