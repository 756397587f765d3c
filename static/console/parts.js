// Building blocks of the console's pages.
import {h, say} from "../dom.js";
import {at, known} from "./address.js";
import {ago, time} from "./format.js";
import {renewChildren} from "./renew.js";

const READERS = "This needs the role of an operator.";

export const link = (text, ...place) => h("a", {href: at(...place)}, text);
export const messageLink = (id) => h("a", {href: at("messages", id), class: "mono"}, parted(id));
// A number and its unit stay on one line.
export const when = (ms) => h("time", {title: time(ms)}, ago(ms).replace(" ", "\u00a0"));
export const mono = (text) => h("span", {class: "mono"}, parted(text));
/** A name that may go on in the next line behind its parts. */
export const parted = (name) => String(name).split(/(?<=[./-])/u).flatMap((part) => [h("wbr"), part]);
export const json = (value) => h("pre", {class: "json", tabindex: 0}, JSON.stringify(value, null, 2));

/** A list of names and values, without null values. */
export const facts = (rows, kind) =>
    h("dl", {class: kind}, rows.filter(([, value]) => value !== null).map(([name, value]) =>
        h("div", {}, h("dt", {}, name), h("dd", {}, value))));

export const card = (title, ...children) =>
    h("section", {class: "card panel"}, title && h("h2", {}, title), children);

/** A table, which narrow screens show as cards. Columns are `[name, cell, class, field]`; those with a field sort it. */
function table(caption, columns, order) {
    const body = h("tbody");
    const element = h("table", {}, h("caption", {class: "hidden"}, caption), heads(columns, order), body);
    const row = (item) => h("tr", {"data-key": item.id ?? item.key ?? item.name}, columns.map(([name, cell, kind]) =>
        h("td", {class: kind, "data-name": name}, h("div", {}, cell(item)))));
    return {element, show: (items) => renewChildren(body, items.map(row))};
}

/** The heads of a table. Each that sorts it has an id, by which it keeps the focus. */
export const heads = (columns, order) => h("thead", {}, h("tr", {}, columns.map(([name, , kind, field, title]) =>
    h("th", {scope: "col", class: kind, title, "aria-sort": field && sorted(order, field)},
        field ? h("a", {id: `${order.name}.${field}`, href: order.by(follows(order, kind, field))}, name) : name))));

/** Whether a list is sorted by this field, and how. */
const sorted = ({sort}, field) => (sort === field ? "ascending" : sort === `-${field}` ? "descending" : null);

/** How a list is sorted next when its reader wants this column: numbers first by the largest. */
function follows({sort}, kind, field) {
    const [first, then] = kind === "number" ? [`-${field}`, field] : [field, `-${field}`];
    return sort === first ? then : first;
}

/** The choice of an order where a table is shown as cards, which have no heads. */
function orders(columns, order) {
    const choices = columns.filter(([, , , field]) => field).flatMap(([name, , , field]) =>
        [[field, `${name}, ascending`], [`-${field}`, `${name}, descending`]]);
    return h("label", {class: "field orders"}, "Sort by", h("select", {
        id: order.name,
        onchange: (event) => (location.hash = order.by(event.target.value)),
    }, [["", "as they come"], ...choices].map(([sort, text]) =>
        h("option", {value: sort, selected: sort === (order.sort ?? "")}, text))));
}

/**
 * By what a list at `place`, with what is `chosen` there, is sorted; and the address where it is sorted otherwise. A
 * page of several lists has a `name` for each.
 */
export const order = (place, chosen, name = "sort") =>
    ({name, sort: chosen[name], by: (sort) => at(...place, {...chosen, [name]: sort})});

/** Sorts items as the server does, if all that are shown are here. What has no value comes last. */
export function inOrderOf(items, {sort}) {
    if (!sort) {
        return items;
    }
    const path = sort.replace(/^-/u, "").split(".");
    const placed = items.map((item) => ({item, value: path.reduce((part, name) => part?.[name], item) ?? null}));
    const known = placed.filter(({value}) => value !== null).toSorted(compare);
    const rest = placed.filter(({value}) => value === null);
    return [...(sort.startsWith("-") ? known.toReversed() : known), ...rest].map(({item}) => item);
}

const compare = (one, other) => (one.value < other.value ? -1 : Number(one.value > other.value));

/** A table below its title, which shows all of its items. */
export function sheet(title, columns, items, nothing, order) {
    const {element, show} = table(title, columns, order);
    show(inOrderOf(items, order));
    return items.length ? section(title, element, items.length > 1 && orders(columns, order))
        : section(title, h("p", {class: "faint empty"}, nothing));
}

export const section = (title, content, above) => h("section", {}, h("h2", {}, title), above,
    h("div", {class: "card sheet", tabindex: 0, role: "region", "aria-label": title}, content));

/** Draws what `look` returns, and refreshes it while the page is visible, sooner if `look` asks. */
export async function live(app, look, draw, soonMs) {
    const shown = h("div", {class: "contents"});
    const again = async () => renewChildren(shown, [draw(await look())].flat().filter(Boolean));
    await again();
    app.keepFresh(again, soonMs);
    return shown;
}

// Items of one request; lists with more items than the maximum do not refresh.
const PART = 50;
const MOST = 500;

/** A list that loads in parts and refreshes: `ask(cursor, limit)` returns `{items, cursor}`, in this order. */
export async function parts(app, caption, columns, ask, nothing, order) {
    const {element, show} = table(caption, columns, order);
    const choice = orders(columns, order);
    const more = h("button", {type: "button", hidden: true}, "Show more");
    const none = h("p", {class: "faint empty", hidden: true}, nothing);
    const old = h("p", {class: "faint", role: "status", hidden: true});
    let items = [];
    let cursor = null;
    let asked = 0;
    let last = Promise.resolve();
    const inTurn = (run) => (last = last.then(run, run));
    const read = async (found, from, isEnough) => {
        let following = from;
        let round = 0;
        do {
            const part = await ask(following, Math.max(PART, items.length - found.length));
            found = [...found, ...part.items];
            following = part.cursor ?? null;
            round += 1;
        } while (following !== null && !isEnough(found, round));
        [items, cursor] = [found, following];
        show(items);
        more.hidden = cursor === null;
        none.hidden = items.length > 0 || cursor !== null;
        old.hidden = items.length <= MOST;
        say(old, `Long lists do not update. This one is from ${time(Date.now())}.`);
        element.hidden = !items.length;
        choice.hidden = items.length < 2;
    };
    const further = async () => {
        await read(items, cursor, () => true);
        asked += 1;
    };
    // A part may have fewer items than requested, so a refresh may need as many parts as before.
    const isAllAgain = (found, round) => found.length >= items.length || round >= asked;
    const again = async () => items.length <= MOST && read([], null, isAllAgain);
    more.addEventListener("click", guarded(app, () => inTurn(further)));
    await further();
    app.keepFresh(() => inTurn(again));
    return h("div", {class: "list"}, old, choice, h("div", {class: "card sheet"}, element, none), more);
}

/** Buttons; those that change something are disabled for readers, with the reason. */
export function actions(app, ...rows) {
    const buttons = rows.filter(Boolean).map(([text, run, kind = "", isForAll = false]) =>
        h("button", {type: "button", class: kind, onclick: guarded(app, run), disabled: !(app.isOperator || isForAll)}, text));
    const why = !app.isOperator && h("p", {class: "faint small"}, READERS);
    return h("div", {class: "actions"}, buttons, why);
}

/** Shows the error if the action fails. */
export const guarded = (app, run) => async (about) => {
    try {
        await run(about);
    } catch (error) {
        app.tell(error.message, "bad");
    }
};

/**
 * Asks in a dialog; returns the values, or null. Fields are those of `Requests`, or have the same form; a field
 * with `rows` has several lines, and its `check` returns what is wrong with its value.
 */
export function ask({title, text, fields = [], yes, no = "Cancel", kind = "primary"}) {
    return new Promise((resolve) => {
        const leave = no && h("button", {type: "button", onclick: () => dialog.close()}, no);
        const form = h("form", {onsubmit: (event) => {
            event.preventDefault();
            given = filledIn(form);
            dialog.close();
        }}, h("h2", {id: "asked"}, title), text && h("div", {}, text), fields.map(entry),
        h("div", {class: "actions"}, h("button", {class: kind}, yes), leave));
        const isWide = fields.some(({rows}) => rows > 5) || text instanceof Node;
        const dialog = h("dialog", {class: isWide ? "card wide" : "card", "aria-labelledby": "asked", onclose: () => {
            dialog.remove();
            resolve(given);
        }}, form);
        let given = null;
        document.body.append(dialog);
        dialog.showModal();
    });
}

/** Asks, then acts with the values; does nothing if the answer is no. */
export async function asked(question, run) {
    const given = await ask(question);
    if (given) {
        await run(given);
    }
}

/** Asks for confirmation, then acts. */
export const confirmed = (question, run) => asked({kind: "danger", ...question}, run);

/** The form of a list's filter: it opens the page at `place` with the values in its address. */
export const filter = (app, path, place, chosen, first) => {
    const {cursor, limit, sort, ...fields} = app.requests.query(path);
    return chooser(Object.values(fields), chosen, (asked) => (location.hash = at(...place, asked)), first);
};

/** A search form. The fields after `first` are hidden until they have values or the user asks for them. */
export function chooser(fields, chosen, go, first = fields.length) {
    const filled = fields.map((field) => ({...field, value: shownOf(field, chosen[field.name] ?? "")}));
    const [open, folded] = [filled.slice(0, first), filled.slice(first)];
    const isUsed = folded.some(({value}) => value !== "");
    return h("form", {class: "chooser", role: "search", onsubmit: (event) => {
        event.preventDefault();
        go(filledIn(event.target));
    }}, open.map(entry), h("button", {class: "primary"}, "Find"),
    folded.length > 0 && h("details", {open: isUsed},
        h("summary", {}, "More conditions"), h("div", {class: "chooser"}, folded.map(entry))));
}

function entry({name, label, hint, value = "", options, rows, check, ...given}) {
    const input = options ? h("select", {name, title: hint, ...given}, options.map(([each, shown]) =>
        h("option", {value: each, selected: each === value}, shown)))
        : rows ? h("textarea", {name, rows, spellcheck: "false", ...given}, value)
            : h("input", {name, value, title: hint, autocomplete: "off", spellcheck: "false", ...given});
    if (check) {
        input.oninput = () => input.setCustomValidity(check(input.value));
    }
    return h("label", {class: "field"}, label, input);
}

/** The values by name, in the form that the server expects. */
const filledIn = (form) => known(Object.fromEntries(
    [...new FormData(form)].map(([name, value]) => [name, taken(form.elements[name].type, value)])));

function taken(type, value) {
    switch (value && type) {
        case "number": return Number(value);
        case "datetime-local": return new Date(value).getTime();
        // Forms send CR LF as line ends.
        case "textarea": return value.replaceAll("\r\n", "\n");
        case "text": return value.trim();
        default: return value;
    }
}

/** Times are entered in the local time zone. */
function shownOf({type}, value) {
    if (type !== "datetime-local" || value === "") {
        return value;
    }
    const ms = Number(value);
    return new Date(ms - new Date(ms).getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}
