// The page of dead letters: its groups by cause, the latest letters, and import.
import {badge, h} from "../dom.js";
import {bars} from "./charts.js";
import {count, many, sum} from "./format.js";
import {letter} from "./letter.js";
import {letters} from "./letters.js";
import {link, live, mono, when} from "./parts.js";
import {remark} from "./remarks.js";

export function show(app, [what, id], chosen) {
    if (what === "letters") {
        return letters(app, chosen);
    }
    return what === "letter" ? letter(app, id) : groups(app);
}

const groups = (app) => live(app, () => app.api.get("dead-letters/groups", {limit: 50}), drawn);

function drawn({items, total}) {
    const hidden = total - sum(items.map((each) => each.count));
    return [
        h("h1", {}, "Dead letters ", badge(count(total), total ? "warn" : "good")),
        h("p", {}, link("All dead letters", "dead", "letters"),
            h("span", {class: "faint"}, " – letters with the same cause are grouped below.")),
        items.length ? h("ul", {class: "groups"}, items.map(group))
            : h("p", {class: "card panel faint"}, "There are no dead letters."),
        hidden > 0 && h("p", {class: "faint"}, `Smaller groups hold ${count(hidden)} more.`),
    ];
}

function group(each) {
    return h("li", {class: "card group", "data-key": each.fingerprint},
        h("div", {},
            h("h2", {}, link(mono(each.channel), "dead", "letters", {fingerprint: each.fingerprint})),
            each.reason && h("p", {}, `Latest reason: ${each.reason}`),
            h("p", {class: "faint"}, mono(each.code)),
            each.remark && remark(each.remark)),
        h("div", {},
            bars(each.hours, "24 hours"),
            h("span", {class: "faint small"}, `${count(sum(each.hours))} in 24 hours,`, h("br"), "the last ", when(each.last))),
        h("div", {class: "how-many"},
            h("strong", {class: "figure"}, count(each.count)),
            h("span", {class: "faint small"}, ` of ${many(each.receivers, "receiver")}`)));
}
