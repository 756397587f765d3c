// The console: signs in, knows its pages, and shows the one that the address names.
import {Api} from "./api.js";
import {at, h, say} from "./dom.js";
import {Feed} from "./feed.js";
import {badge} from "./parts.js";
import {signIn} from "./sign_in.js";

const PAGES = {
    "": ["Overview", () => import("./overview.js")],
    sessions: ["Sessions", () => import("./sessions.js")],
    channels: ["Channels", () => import("./channels.js")],
    dead: ["Dead letters", () => import("./dead.js")],
    replays: ["Replays", () => import("./replays.js")],
    messages: ["Messages", () => import("./messages.js")],
    results: ["Results", () => import("./results.js")],
    audit: ["Audit", () => import("./audit.js")],
};
const TOKEN = "holdfast.token";
const NAME = "holdfast.operator";
const SHOWN_MS = 6000;

const find = (selector) => document.querySelector(selector);
const content = find("#content");

class App {
    #feed;
    #listeners = new Set();
    // What the present page must stop doing when it is left.
    #leaving = [];

    constructor(token, name, about) {
        Object.assign(this, {about, isOperator: about.role === "operator", latest: null});
        this.api = new Api(token, name);
        this.#feed = new Feed(new URL(about.bayeux, location.origin), token, {
            hear: (figures) => {
                this.latest = figures;
                this.#listeners.forEach((hear) => hear(figures));
            },
            alert: ({kind, channel, reason}) => this.tell(`${kind}: ${channel}, ${reason}`, "bad"),
            state: (isLive, why) => this.#showFeed(isLive, why),
        });
    }

    start() {
        this.#feed.run();
        this.#showWho();
        this.#showPlaces();
        addEventListener("hashchange", () => this.#isAddress() && this.show());
        addEventListener("pagehide", () => this.#feed.leave());
        return this.show();
    }

    /** Each reading of the figures, until the page is left. */
    listen(hear) {
        this.#listeners.add(hear);
        this.onLeave(() => this.#listeners.delete(hear));
    }

    /** Every so often, until the page is left; what fails is tried again. */
    every(ms, run) {
        const timer = setInterval(() => document.hidden || run().catch(() => null), ms);
        this.onLeave(() => clearInterval(timer));
    }

    onLeave(run) {
        this.#leaving.push(run);
    }

    tell(text, mood = "good") {
        const notice = h("p", {class: `notice state ${mood}`}, text);
        find("#notices").replaceChildren(notice);
        setTimeout(() => notice.remove(), SHOWN_MS);
    }

    /** The page of the present address, anew. */
    async show() {
        const [place, query] = location.hash.slice(2).split("?");
        const [name, ...rest] = place.split("/").map(decodeURIComponent);
        const [title, load] = PAGES[name] ?? PAGES[""];
        this.#leaving.splice(0).forEach((leave) => leave());
        find("#places").querySelectorAll("a").forEach((link) => {
            link.ariaCurrent = link.textContent === title ? "page" : null;
            link.ariaCurrent && link.scrollIntoView({block: "nearest", inline: "center"});
        });
        const here = location.hash;
        try {
            const {show} = await load();
            const made = await show(this, rest, Object.fromEntries(new URLSearchParams(query)));
            if (location.hash === here) {
                this.#put(title, made);
            }
        } catch (error) {
            this.#put(title, [h("h1", {}, title), h("p", {class: "card panel state bad"}, error.message)]);
            error.status === 401 && signOut();
        }
    }

    #put(title, made) {
        document.title = `${title} · Holdfast`;
        content.replaceChildren(...[made].flat());
        content.focus({preventScroll: true});
        scrollTo(0, 0);
    }

    #isAddress = () => location.hash === "" || location.hash.startsWith("#/");

    #showPlaces() {
        find("#places").replaceChildren(...Object.entries(PAGES).map(([name, [title]]) =>
            h("a", {href: at(name)}, title)));
        find("#places").hidden = false;
    }

    #showWho() {
        this.feedState = h("span", {class: "state feed"}, "connecting");
        const role = badge(this.isOperator ? this.about.who : `${this.about.who}: looking only`);
        const leave = h("button", {type: "button", onclick: signOut}, "Sign out");
        find("#who").replaceChildren(this.feedState, role, leave);
    }

    #showFeed(isLive, why) {
        this.feedState.className = `state feed ${isLive ? "good" : "warn"}`;
        this.feedState.title = isLive ? "Figures come every second." : why;
        say(this.feedState, isLive ? "live" : "no figures");
    }
}

function signOut() {
    sessionStorage.removeItem(TOKEN);
    location.reload();
}

/** Who has the token: the console; otherwise a form that asks for it. */
async function begin() {
    const [token, name] = [sessionStorage.getItem(TOKEN), localStorage.getItem(NAME) ?? ""];
    if (!token) {
        return ask("");
    }
    try {
        const about = await new Api(token, name).get("about");
        await new App(token, name, about).start();
    } catch (error) {
        error.status === 401 && sessionStorage.removeItem(TOKEN);
        ask(error.status === 401 ? "This token opens nothing here." : error.message);
    }
}

function ask(problem) {
    content.replaceChildren(signIn(localStorage.getItem(NAME) ?? "", problem, (token, name) => {
        sessionStorage.setItem(TOKEN, token);
        localStorage.setItem(NAME, name);
        begin();
    }));
    content.querySelector("input")?.focus();
}

await begin();
