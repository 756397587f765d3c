// The elements of the page. Data from others become text, never markup.
import {badge, h, legible, say} from "../dom.js";

const STATES = new Map([["here", "here"], ["absent", "absent"], ["held", "held back"]]);
const MOODS = new Map([["here", "good"], ["held", "warn"]]);
const find = (id) => document.getElementById(id);

/** A colour for each name. */
function hue(name) {
    const sum = [...name].reduce((value, letter) => (value * 31 + letter.codePointAt(0)) % 360, 7);
    return String((sum * 137) % 360);
}

function face(name) {
    const initial = h("span", {class: "face", "aria-hidden": "true"}, name.slice(0, 1).toUpperCase());
    initial.style.setProperty("--hue", hue(name));
    return initial;
}

const button = (onclick, ...children) => h("button", {type: "button", onclick}, ...children);

function lineItem(line) {
    const text = line.code ? `You refused a message from ${line.from}.` : line.text;
    const time = new Date(line.at).toLocaleTimeString([], {hour: "2-digit", minute: "2-digit"});
    const item = h("li", {class: "line", "data-id": line.id}, face(line.from), h("div", {},
        h("p", {class: "head"},
            h("strong", {}, line.from), line.unverified && badge("unverified"), h("time", {}, time)),
        h("p", {class: "words"}, text),
        line.to && badge(line.own ? `to ${line.to} alone` : "to you alone"),
        line.again > 0 && badge(`redelivered ×${line.again}`, "warn"),
        line.code && badge(line.code, "bad"),
    ));
    item.classList.toggle("own", line.own === true);
    item.classList.toggle("refused", Boolean(line.code));
    return item;
}

/** Keeps the end in view, unless the reader has scrolled back. */
export function atItsEnd(scroller, change) {
    const isAtEnd = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 60;
    change();
    if (isAtEnd) {
        scroller.scrollTop = scroller.scrollHeight;
    }
}

export function drawTalk(room, lines) {
    say(find("talk-title"), room);
    atItsEnd(find("log"), () => find("lines").replaceChildren(...lines.map(lineItem)));
}

/** Adds a line, or redraws it. */
export function drawLine(line) {
    const list = find("lines");
    const known = [...list.children].find(({dataset}) => dataset.id === line.id);
    const item = lineItem(line);
    atItsEnd(find("log"), () => (known ? known.replaceWith(item) : list.append(item)));
}

/** Shows the unsent messages; without storage they are lost with the page. */
export function drawUnsent(texts, isKept) {
    find("unsent").replaceChildren(
        ...texts.map((text) => h("li", {}, badge("not sent yet", "warn"), ` ${text}`)),
    );
    find("unkept").hidden = isKept;
}

export function drawRooms(rooms, {current, unread, onPick, onLeave}) {
    const items = rooms.map((room) => {
        const news = unread.get(room) > 0 && badge(`${unread.get(room)} new`, "good");
        const pick = button(() => onPick(room), h("span", {class: "name"}, room), news);
        pick.ariaCurrent = room === current ? "true" : null;
        const label = `Leave ${room}`;
        const leave = {type: "button", class: "leave", title: label, "aria-label": label};
        // Leaving the last room means leaving the chat.
        const isLast = rooms.length === 1;
        return h("li", {class: "room"},
            pick, !isLast && h("button", {...leave, onclick: () => onLeave(room)}, "×"));
    });
    find("rooms").replaceChildren(...items);
}

export function drawMembers(members, others) {
    const items = members.map(({name, state}) => h("li", {class: "member"},
        face(name), h("span", {class: "name"}, name), badge(STATES.get(state) ?? "", MOODS.get(state))));
    const rest = others > 0 ? [h("li", {class: "member faint small"}, `and ${others} more`)] : [];
    find("members").replaceChildren(...items, ...rest);
}

/** Updates the list of people to write to, and keeps the selection. */
export function drawReceivers(names) {
    const select = find("to");
    const chosen = select.value;
    const options = names.map((name) => new Option(legible(`${name} alone`), name));
    select.replaceChildren(new Option("Everybody", ""), ...options);
    select.value = names.includes(chosen) ? chosen : "";
}

export function drawTyping(names) {
    const is = names.length === 1 ? "is" : "are";
    say(find("typing"), names.length ? `${names.join(", ")} ${is} typing …` : "");
}

export function showState(text, kind) {
    say(find("state"), text);
    find("state").className = `state ${kind}`;
}

/** A sentence at the top, optionally with an action; without text it is hidden. */
export function showTrouble(text, action, onAction) {
    const trouble = find("trouble");
    trouble.hidden = !text;
    trouble.replaceChildren(text ?? "");
    if (action) {
        trouble.append(" ", button(onAction, action));
    }
}

/** Shows the form to sign in, with the reason for it, if any. */
export function showSignIn(problem) {
    showRenewal();
    find("door").hidden = find("sign-in").hidden = false;
    find("room").hidden = find("leave").hidden = true;
    showProblem(problem);
    const form = find("sign-in");
    // Do not disturb a user who is filling in the form.
    if (!form.contains(document.activeElement)) {
        form.querySelector("input, button").focus();
    }
}

export function showProblem(problem) {
    find("sign-in-problem").hidden = !problem;
    find("sign-in-problem").textContent = problem;
}

/** Shows the form to join as this subject, who cannot choose another name. */
export function showJoin(subject) {
    find("sign-in").hidden = true;
    const {name, room} = find("join").elements;
    name.value = subject;
    name.readOnly = true;
    room.focus();
}

/** Asks for a new token while the login lasts; without text the form is hidden. */
export function showRenewal(text) {
    const form = find("renew");
    if (form !== null) {
        form.hidden = !text;
        find("renew-title").textContent = text ?? "";
        find("renew-problem").textContent = "";
    }
}

export function showRenewalProblem(text) {
    find("renew-problem").textContent = text;
}

export function showRoom() {
    find("door").hidden = true;
    find("room").hidden = false;
    find("leave").hidden = false;
}

export function focusText() {
    find("text").focus();
}

/** On a phone, the page shows one part at a time. */
export function showView(name) {
    find("room").dataset.view = name;
    for (const button of find("views").children) {
        button.setAttribute("aria-pressed", String(button.dataset.view === name));
    }
    // Hidden parts cannot scroll, so scroll to new lines now.
    for (const scroller of [find("log"), find("wire")]) {
        scroller.scrollTop = scroller.scrollHeight;
    }
}

export function watchViews() {
    for (const button of find("views").children) {
        button.addEventListener("click", () => showView(button.dataset.view));
    }
}
