// What is on the page. Whatever comes from elsewhere becomes text, never markup.
const STATES = {here: "here", away: "away", held: "held back"};
const find = (id) => document.getElementById(id);

function make(name, className, ...children) {
    const element = document.createElement(name);
    element.className = className;
    element.append(...children);
    return element;
}

/** A colour of its own for every name. */
function hue(name) {
    const sum = [...name].reduce((value, letter) => (value * 31 + letter.codePointAt(0)) % 360, 7);
    return String((sum * 137) % 360);
}

function face(name) {
    const initial = make("span", "face", name.slice(0, 1).toUpperCase());
    initial.setAttribute("aria-hidden", "true");
    initial.style.setProperty("--hue", hue(name));
    return initial;
}

function badge(text, kind) {
    return make("span", `badge ${kind}`, text);
}

function notes(line) {
    return [
        line.to && badge(line.own ? `to ${line.to} alone` : "to you alone", ""),
        line.again > 0 && badge(`redelivered ×${line.again}`, "warn"),
        line.code && badge(line.code, "bad"),
    ].filter(Boolean);
}

function lineItem(line) {
    const text = line.code ? `You refused a message of ${line.from}.` : (line.text ?? "");
    const time = new Date(line.at).toLocaleTimeString([], {hour: "2-digit", minute: "2-digit"});
    const head = make("p", "head", make("strong", "", line.from), make("time", "", time));
    const item = make("li", "line", face(line.from));
    item.append(make("div", "", head, make("p", "words", text), ...notes(line)));
    item.classList.toggle("own", line.own === true);
    item.classList.toggle("refused", Boolean(line.code));
    item.dataset.id = line.id;
    return item;
}

/** Who reads the end goes on reading the end; who has scrolled back is left there. */
function atItsEnd(scroller, change) {
    const isAtEnd = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 60;
    change();
    if (isAtEnd) {
        scroller.scrollTop = scroller.scrollHeight;
    }
}

export function drawLines(lines) {
    atItsEnd(find("log"), () => find("lines").replaceChildren(...lines.map(lineItem)));
}

/** Adds a line, or draws it anew. */
export function drawLine(line) {
    const list = find("lines");
    const known = [...list.children].find(({dataset}) => dataset.id === line.id);
    atItsEnd(find("log"), () => {
        if (known === undefined) {
            list.append(lineItem(line));
        } else {
            known.replaceWith(lineItem(line));
        }
    });
}

export function drawUnsent(texts) {
    const items = texts.map((text) => make("li", "", badge("not sent yet", "warn"), ` ${text}`));
    find("unsent").replaceChildren(...items);
}

export function drawRooms(rooms, current, unread, onPick) {
    const items = rooms.map((room) => {
        const button = make("button", "", make("span", "name", room));
        button.type = "button";
        if (room === current) {
            button.setAttribute("aria-current", "true");
        }
        if (unread.get(room) > 0) {
            button.append(badge(`${unread.get(room)} new`, "good"));
        }
        button.addEventListener("click", () => onPick(room));
        return make("li", "", button);
    });
    find("rooms").replaceChildren(...items);
}

export function drawMembers(members) {
    const items = members.map(({name, state, waiting}) => {
        const item = make("li", "member", face(name), make("span", "name", name));
        const words = waiting > 0 ? `${STATES[state]}, ${waiting} waiting` : STATES[state];
        item.append(badge(words, {here: "good", held: "warn"}[state] ?? ""));
        return item;
    });
    find("members").replaceChildren(...items);
}

/** To whom something can be said; who was chosen stays chosen. */
export function drawReceivers(names) {
    const select = find("to");
    const chosen = select.value;
    const options = names.map((name) => new Option(`${name} alone`, name));
    select.replaceChildren(new Option("Everybody", ""), ...options);
    select.value = names.includes(chosen) ? chosen : "";
}

export function drawTyping(names) {
    const is = names.length === 1 ? "is" : "are";
    find("typing").textContent = names.length ? `${names.join(", ")} ${is} typing …` : "";
}

export function showState(text, kind) {
    const state = find("state");
    if (state.textContent !== text) {
        state.textContent = text;
    }
    state.className = `state ${kind}`;
}

/** A sentence at the top, perhaps with something to do about it; none hides it. */
export function showTrouble(text, action, onAction) {
    const trouble = find("trouble");
    trouble.hidden = !text;
    trouble.replaceChildren(text ?? "");
    if (action) {
        const button = make("button", "", action);
        button.type = "button";
        button.addEventListener("click", onAction);
        trouble.append(" ", button);
    }
}

export function showRoom(isIn) {
    find("join").hidden = isIn;
    find("room").hidden = !isIn;
    find("leave").hidden = !isIn;
}

/** On a phone one part is seen at a time. */
export function watchViews() {
    const buttons = [...find("views").children];
    for (const button of buttons) {
        button.addEventListener("click", () => {
            find("room").dataset.view = button.dataset.view;
            for (const each of buttons) {
                each.setAttribute("aria-pressed", String(each === button));
            }
            // What came while nobody saw it could not be scrolled to.
            for (const scroller of [find("log"), find("wire")]) {
                scroller.scrollTop = scroller.scrollHeight;
            }
        });
    }
}
