// The page of dead letters: its groups by cause, the latest letters, and import.
import {badge, h} from "../dom.js";
import {bars} from "./charts.js";
import {count, many, sum} from "./format.js";
import {letter} from "./letter.js";
import {latest, letters} from "./letters.js";
import {at} from "./address.js";
import {link, live, mono, when} from "./parts.js";
import {remark} from "./remarks.js";

export function show(app, [what, id], chosen) {
    if (what === "letters") {
        return letters(app, chosen);
    }
    return what === "letter" ? letter(app, id, chosen) : groups(app, chosen.by ?? CAUSE);
}

const CAUSE = "cause";
const CODE = "code";
const GROUPINGS = new Map([[CAUSE, "channel and code"], ["pattern", "channel pattern and code"], [CODE, "code"]]);

const groups = (app, by) => live(app, () => app.api.get("dead-letters/groups", {by, limit: 50}), (found) => drawn(found, by));

function drawn({items, total}, by) {
    const hidden = total - sum(items.map((each) => each.count));
    return [
        h("h1", {}, "Dead letters ", badge(count(total), total ? "warn" : "good")),
        h("p", {}, link("All dead letters", "dead", "letters"),
            h("span", {class: "faint"}, " – grouped below by "),
            [...GROUPINGS].flatMap(([name, words], n) => [n > 0 && ", ",
                name === by ? h("strong", {}, words) : h("a", {href: at("dead", {by: name})}, words)]), "."),
        items.length ? h("ul", {class: "groups"}, items.map((each) => group(each, by)))
            : h("p", {class: "card panel faint"}, "No dead letters: what receivers refuse, or cannot be given, appears here."),
        hidden > 0 && h("p", {class: "faint"}, `Smaller groups hold ${count(hidden)} more.`),
    ];
}

function group(each, by) {
    const {fingerprint, code, channel} = each;
    return h("li", {class: "card group", "data-key": fingerprint ?? `${code} ${channel}`},
        h("div", {},
            h("h2", {}, link(mono(by === CODE ? code : channel), "dead", "letters", fingerprint ? {fingerprint} : {code})),
            latest(each),
            each.remark && remark(each.remark)),
        h("div", {},
            bars(each.hours, "24 hours"),
            h("span", {class: "faint small"}, `${count(sum(each.hours))} in 24 hours,`, h("br"), "the last ", when(each.last))),
        h("div", {class: "how-many"},
            h("strong", {class: "figure"}, count(each.count)),
            h("span", {class: "faint small"}, ` of ${many(each.receivers, "receiver")}`)));
}
