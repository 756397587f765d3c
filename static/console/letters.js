// Dead letters that something holds for: to look through, replay, purge, take away.
import {bars} from "./charts.js";
import {at, h, known} from "./dom.js";
import {count} from "./format.js";
import {actions, ask, badge, card, chooser, facts, mono, parts, when} from "./parts.js";
import {bring, take} from "./carrying.js";
import {remarks} from "./remarks.js";
import {renewChildren} from "./renew.js";
import {sessionLink} from "./sessions.js";

const STATES = [["", "any"], ["new", "new"], ["replayed", "replayed"]];

export async function letters(app, chosen) {
    const found = await parts(app, "Dead letters, the latest first", [
        ["Died", ({id, died}) => h("a", {href: at("dead", "letter", id)}, when(died))],
        ["Channel", ({channel}) => mono(channel)],
        ["Receiver", ({receiver}) => sessionLink(receiver)],
        ["Why", ({code, reason}) => [mono(code), h("br"), h("span", {class: "faint small"}, reason)]],
        ["Attempts", ({attempts}) => count(attempts), "number"],
        ["State", ({state}) => badge(state, state === "new" ? "" : "good")],
    ], (cursor, limit) => app.api.get("dead-letters", known({...chosen, cursor, limit})), "No letter is like that.");
    const kind = chosen.fingerprint && await kindOf(app, chosen.fingerprint);
    const which = {filter: chosen, ...(Object.keys(chosen).length === 0 && {all: true})};
    return [
        h("p", {}, h("a", {href: at("dead")}, "Dead letters by what went wrong")),
        h("h1", {}, chosen.fingerprint ? "Letters that failed alike" : "Dead letters"),
        kind,
        chooser([
            {name: "channel", label: "Channel"},
            {name: "receiver", label: "Receiver", placeholder: "joe/1"},
            {name: "code", label: "Code"},
            {name: "state", label: "State", options: STATES},
            ...(chosen.fingerprint ? [{name: "fingerprint", label: "Fingerprint"}] : []),
        ], chosen, (asked) => (location.hash = at("dead", "letters", asked))),
        actions(app,
            ["Replay these …", () => replay(app, which), "primary"],
            ["Purge these …", () => purge(app, which), "danger"],
            ["Export these", () => take(app, chosen), "", true],
            ["Import …", () => bring(app)]),
        found,
    ].filter(Boolean);
}

async function kindOf(app, fingerprint) {
    const look = async () => (await app.api.get("dead-letters/groups", {fingerprint})).items[0];
    const found = await look();
    if (!found) {
        return null;
    }
    const shown = h("div", {class: "contents"}, ofKind(found));
    app.keepFresh(async () => {
        const now = await look();
        renewChildren(shown, now ? ofKind(now) : []);
    });
    return h("div", {class: "grid"}, shown, remarks(app, found));
}

/** What these have in common, and when they died. */
function ofKind(kind) {
    return [
        card(kind.channel, h("p", {}, mono(kind.code)), h("p", {}, kind.reason),
            h("p", {}, h("a", {href: at("dead", "letter", kind.sample)}, "The latest of them"))),
        card("When they died", h("div", {class: "twice"},
            h("div", {}, bars(kind.hours, `${count(sum(kind.hours))} in the last 24 hours`), h("span", {class: "faint small"}, "24 hours")),
            h("div", {}, bars(kind.days, `${count(sum(kind.days))} in the last 30 days`), h("span", {class: "faint small"}, "30 days"))),
        facts([
            ["letters", count(kind.count)],
            ["receivers, at least", count(kind.receivers)],
            ["first", when(kind.first)],
            ["last", when(kind.last)],
        ])),
    ];
}

const sum = (counts) => counts.reduce((a, b) => a + b, 0);

/** First how it would go, then whether it shall. */
export async function replay(app, which) {
    const given = await ask({
        title: "Replay dead letters",
        text: "They go into their receivers' queues once more, with the same message ids. First it is shown what would happen.",
        fields: [
            {name: "rate", label: "Letters a second", type: "number", value: 50, min: 1, max: 10000, required: true},
            {name: "canary", label: "So many go first", type: "number", value: 10, min: 0, max: 1000, required: true},
            {name: "stop_at", label: "Stop when more than this part dies again", type: "number", value: 0.1, min: 0.01, max: 1, step: 0.01, required: true},
            {name: "max_replays", label: "Leave out what was replayed so often", type: "number", value: 3, min: 1, max: 100, required: true},
            {name: "to", label: "All to this session (else each to its own)", placeholder: "joe/2"},
        ],
        yes: "Show what would happen",
    });
    if (!given) {
        return;
    }
    const {to, ...numbers} = given;
    const options = Object.fromEntries(Object.entries(numbers).map(([name, value]) => [name, Number(value)]));
    const wanted = {...which, options: {...options, ...(to && {to})}};
    const plan = await app.api.post("replays", {...wanted, dry_run: true});
    const title = `Replay ${count(plan.total - plan.skipped)} letters?`;
    if (await ask({title, text: planned(plan), yes: "Replay"})) {
        const {id} = await app.api.post("replays", {...wanted, dry_run: false});
        location.hash = at("replays", id);
    }
}

const REASONS = new Map(Object.entries({
    receiver: "receiver is not there", replayed: "replayed already", generation: "replayed too often",
    waiting: "waits in the queue", repeated: "same message", gone: "gone",
}));

export const skipped = (skips) =>
    Object.entries(skips).map(([why, n]) => `${count(n)}: ${REASONS.get(why) ?? why}`).join(", ");

export function planned({total, skips, channels, receivers}) {
    const all = (counts) => Object.entries(counts).map(([name, n]) => `${name} (${count(n)})`).join(", ") || "–";
    return facts([
        ["letters that match", count(total)],
        ["left out", skipped(skips) || "none"],
        ["channels", mono(all(channels))],
        ["receivers", mono(all(receivers))],
    ]);
}

export async function purge(app, which) {
    const {matched} = await app.api.post("dead-letters/purge", {...which, dry_run: true});
    const title = `Remove ${count(matched)} letters for good?`;
    const text = "Nobody can read or replay them afterwards. An export keeps a copy.";
    if (matched && await ask({title, text, yes: "Remove for good", kind: "danger"})) {
        const {purged} = await app.api.post("dead-letters/purge", {...which, dry_run: false});
        app.tell(`${count(purged)} letters were removed.`);
        await app.show();
    } else if (!matched) {
        app.tell("There is nothing to remove.");
    }
}
