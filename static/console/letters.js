// Dead letters that match a filter: list, replay, purge and export them; and import.
import {badge, h} from "../dom.js";
import {at} from "./address.js";
import {bars} from "./charts.js";
import {count, many} from "./format.js";
import {actions, ask, asked, card, confirmed, facts, filter, link, live, mono, order, parts, when} from "./parts.js";
import {remarks} from "./remarks.js";
import {typed} from "./requests.js";
import {sessionLink} from "./sessions.js";

const FILE = "dead-letters.ndjson";

export async function letters(app, chosen) {
    const found = await parts(app, "Dead letters, latest first", [
        ["Died", ({id, died}) => link(when(died), "dead", "letter", id), "", "died"],
        ["Channel", ({channel}) => mono(channel), "", "channel"],
        ["Receiver", ({receiver}) => sessionLink(receiver), "", "receiver"],
        ["Why", why, "", "said"],
        ["Attempts", ({attempts}) => count(attempts), "number", "attempts"],
        ["State", ({state}) => badge(state, state === "new" ? "" : "good"), "", "state"],
    ], (cursor, limit) => app.api.get("dead-letters", {...chosen, cursor, limit}), "No matching dead letters: nothing died, or the conditions exclude it.",
    order(["dead", "letters"], chosen));
    const isKind = "fingerprint" in chosen;
    const {sort, ...given} = chosen;
    const conditions = typed(app.requests.query("/dead-letters"), given);
    const which = {filter: conditions, ...(Object.keys(conditions).length === 0 && {all: true})};
    return [
        h("p", {}, link("Dead letters by cause", "dead")),
        h("h1", {}, isKind ? "Letters with the same cause" : "Dead letters"),
        isKind && await kindOf(app, chosen.fingerprint),
        filter(app, "/dead-letters", ["dead", "letters"], chosen, isKind ? 5 : 4),
        actions(app,
            ["Replay these …", () => replay(app, which), "primary"],
            ["Purge these …", () => purge(app, which), "danger"],
            ["Export these", () => take(app, given), "", true],
            ["Import …", () => bring(app)]),
        found,
    ];
}

/** Why a letter died: what its receiver said, before the code and what that means. */
export function why({code, reason, said}) {
    const meaning = said ? reason.slice(0, reason.length - said.length) : reason;
    return [said && [said, h("br")], h("span", {class: said ? "faint small" : ""}, meaning.replace(/: $/u, ""), " (", explained(code), ")")];
}

/** A code, which leads to the page of all codes if the server has its documentation. */
function explained(code) {
    const docs = document.querySelector("a.manual")?.href;
    return docs ? h("a", {href: `${docs}reference/error-codes/#all-codes`}, mono(code)) : mono(code);
}

/** Why the latest letter of a group died. */
export const latest = (group) => h("p", {}, group.said && h("span", {class: "faint"}, "Latest: "), why(group));

/** The group of letters with this fingerprint and its remark; null if the group is gone. */
function kindOf(app, fingerprint) {
    const look = () => app.api.get("dead-letters/groups", {fingerprint});
    return live(app, look, ({items}) => items.map((kind) => h("div", {class: "grid"}, ofKind(kind), remarks(app, kind))));
}

/** The common cause of these letters, and when they died. */
function ofKind(kind) {
    return [
        card(kind.channel, latest(kind),
            h("p", {}, link("Latest letter", "dead", "letter", kind.sample))),
        card("Time of death", h("div", {class: "twice"},
            [[kind.hours, "24 hours"], [kind.days, "30 days"]].map(([counts, span]) =>
                h("div", {}, bars(counts, span), h("span", {class: "faint small"}, span)))),
        facts([
            ["letters", count(kind.count)],
            ["receivers, at least", count(kind.receivers)],
            ["first", when(kind.first)],
            ["last", when(kind.last)],
        ])),
    ];
}

export async function replay(app, which) {
    const {rate, canary, stop_at: ratio, max_replays: most, to} = app.requests.body("ReplayOptions");
    await asked({
        title: "Replay dead letters",
        text: "The letters return to the queues of their receivers with the same message ids. A preview comes first.",
        fields: [rate, canary, ratio, most, {...to, label: `${to.label} (default: the original receivers)`}],
        yes: "Preview",
    }, async (options) => {
        await preview(app, {...which, options}, (left) => `Replay ${count(left)} letters?`, "Replay");
    });
}

/** Shows a preview of the replay, then asks for confirmation. */
export async function preview(app, wanted, question, yes, more = null) {
    const plan = await app.api.post("replays", {...wanted, dry_run: true});
    const left = plan.total - plan.skipped;
    const text = h("div", {class: "plan"}, planned(app, plan), more);
    if (left === 0) {
        await ask({title: "Nothing can be sent", text, yes: "Close", no: null});
    } else if (await ask({title: question(left), text, yes})) {
        const {id} = await app.api.post("replays", {...wanted, dry_run: false});
        location.hash = at("replays", id);
    }
}

export const skipped = (app, skips) => {
    const words = app.requests.words("Replay", "skips");
    return Object.entries(skips).map(([why, n]) => `${count(n)} ${words[why] ?? why}`).join(", ") || "none";
};

function planned(app, {total, skips, channels, receivers, away}) {
    const all = (counts) => Object.entries(counts).map(([name, n]) => `${name} (${count(n)})`).join(", ") || "–";
    return facts([
        ["matching letters", count(total)],
        ["skipped", skipped(app, skips)],
        ["channels", mono(all(channels))],
        ["receivers", mono(all(receivers))],
        // Their letters wait until they come back.
        ...Object.keys(away).length ? [["away", mono(all(away))]] : [],
    ]);
}

export async function purge(app, which) {
    const {matched} = await app.api.post("dead-letters/purge", {...which, dry_run: true});
    if (!matched) {
        app.tell("There is nothing to purge.");
        return;
    }
    await confirmed({
        title: `Purge ${count(matched)} letters?`,
        text: "Purged letters cannot be read or replayed. Export them first to keep a copy.",
        yes: "Purge",
    }, async () => {
        const {purged} = await app.api.post("dead-letters/purge", {...which, dry_run: false});
        await app.done(`Purged ${count(purged)} letters.`);
    });
}

async function take(app, chosen) {
    const url = URL.createObjectURL(await app.api.blob("dead-letters/export", chosen));
    h("a", {href: url, download: FILE}).click();
    setTimeout(() => URL.revokeObjectURL(url));
    app.tell("The export is in your downloads.");
}

/** Asks for a file, imports it, and shows the result for each line. */
async function bring(app) {
    await asked({
        title: "Import dead letters",
        text: "Use an export of this or another server. Letters that already exist stay unchanged.",
        fields: [{name: "file", label: "File with JSON lines", type: "file", accept: ".ndjson,.jsonl", required: true}],
        yes: "Import",
    }, async (given) => {
        const done = await app.api.postLines("dead-letters/import", given.file);
        await ask({title: `${many(done.imported, "letter")} imported`, text: outcome(done), yes: "Close", no: null});
        await app.show();
    });
}

const outcome = ({imported, repeated, refused, refusals}) => h("div", {class: "plan"},
    facts([
        ["imported", count(imported)],
        ["already present", count(repeated)],
        ["refused", count(refused)],
    ]),
    refusals.length > 0 && h("ul", {class: "plain small", tabindex: 0, "aria-label": "Refused lines"},
        refusals.map(({line, text}) => h("li", {class: "state bad"}, `Line ${count(line)}: ${text}`))),
    refused > refusals.length && h("p", {class: "faint small"}, "Only the first ones are listed."));
