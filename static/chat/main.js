// The chat page: signing in if the server has a login, joining, and continuing after a reload.
import {keep, recall, storageOf} from "../js/storage.js";
import {Chat} from "./chat.js";
import {Login, prove} from "./login.js";
import * as view from "./view.js";

const ME = "holdfast.chat.me";
const ENDED =
    "Your login has ended. Sign in again to continue: messages for you wait on the server, and what " +
    "you have not sent yet waits in this browser.";
const EMPTY = "Fill in the form first.";
const RELOADED = "This page was reloaded, and it does not store passwords. Sign in again to continue.";
const library = await import("../cometd/cometd.js").catch(() => null);
const storage = storageOf("sessionStorage");
const find = (id) => document.getElementById(id);
const {content: path} = document.querySelector("meta[name=bayeux]");
const url = new URL(`..${path}`, location.href).href;
// A server without a login sends a page without this form.
const login = find("sign-in") ? new Login(storage) : undefined;

// Whether requests of this browser may prove the user, for example by a cookie or a proxy.
const isByRequest = find("by-request") !== null;

let chat;

function begin(me) {
    const remember = () => keep(storage, ME, me);
    remember();
    view.showTrouble();
    const onLoginEnd = () => view.showSignIn(ENDED);
    chat = new Chat(library, me, {url, storage, login, onChange: remember, onLoginEnd});
    view.focusText();
}

function end() {
    chat.leave();
    login?.use();
    storage?.removeItem(ME);
    // The next person starts with an empty page.
    location.reload();
}

/** The credentials in the form; empty if the requests of this browser prove the user. */
function credentialsIn({user, password, token}) {
    if (token?.value) {
        return {token: token.value.trim()};
    }
    return user?.value ? {user: user.value, password: password.value} : undefined;
}

async function signIn(form) {
    const button = form.querySelector("button");
    const credentials = credentialsIn(form.elements);
    if (!credentials && !isByRequest) {
        view.showProblem(EMPTY);
        return;
    }
    button.disabled = true;
    view.showProblem("");
    const {subject, problem} = await prove(library, url, credentials);
    button.disabled = false;
    if (problem) {
        view.showProblem(problem);
        return;
    }
    form.reset();
    login.use(credentials);
    comeIn(subject);
}

/** Continues with what this tab has stored of the subject, and with nothing of other people. */
function comeIn(subject) {
    const me = recall(storage, ME);
    if (chat?.name === subject) {
        view.showJoin(subject);
        chat.comeBack();
    } else if (chat !== undefined) {
        storage?.removeItem(ME);
        location.reload();
    } else {
        view.showJoin(subject);
        if (me?.name === subject) {
            begin(me);
        }
    }
}

/** Calls `act` when a form is submitted; not every page has every form. */
function onSubmit(id, act) {
    find(id)?.addEventListener("submit", (event) => {
        event.preventDefault();
        act(event.target);
    });
}

function listen() {
    onSubmit("sign-in", signIn);
    onSubmit("renew", (form) => {
        chat.renew(form.elements.token.value.trim());
        form.reset();
    });
    onSubmit("join", (form) => {
        const {room, reliable, ...chosen} = Object.fromEntries(new FormData(form));
        begin({...chosen, rooms: [room], reliable: reliable !== undefined});
    });
    onSubmit("say", () => {
        chat.say(find("text").value, find("to").value);
        find("text").value = "";
    });
    onSubmit("open-room", (form) => {
        chat.pick(find("new-room").value);
        form.reset();
    });
    find("text").addEventListener("input", () => chat.type());
    find("leave").addEventListener("click", end);
    view.watchViews();
}

/** Continues after a reload, if this tab still knows who joined and how the user signed in. */
async function resume() {
    const isKnown = recall(storage, ME)?.rooms?.length > 0;
    if (login === undefined) {
        if (isKnown) {
            begin(recall(storage, ME));
        }
        return;
    }
    const {credentials} = login;
    const isTried = credentials || isByRequest;
    const {subject, problem} = isTried ? await prove(library, url, credentials) : {};
    if (subject) {
        comeIn(subject);
    } else if (credentials) {
        view.showSignIn(problem);
    } else {
        view.showSignIn(isKnown ? RELOADED : "");
    }
}

if (library === null) {
    view.showTrouble("cometd.js is missing on this server. Install Node and npm, then run `make setup-pages`.");
    find("door").hidden = true;
} else {
    listen();
    // The result of the page's own attempt must not replace the result of the user's.
    await resume();
    for (const button of document.querySelectorAll("#join button, #sign-in button")) {
        button.disabled = false;
    }
}
