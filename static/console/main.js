// The console: signs in, knows its pages, and shows the one that the address names.
import {keep, recall, storageOf} from "../js/storage.js";
import {Age, LATE_MS} from "./age.js";
import {Api} from "./api.js";
import {at, h, say} from "./dom.js";
import {Feed} from "./feed.js";
import {Freshness} from "./freshness.js";
import {badge} from "./parts.js";
import {signIn} from "./sign_in.js";
import {show as audit} from "./audit.js";
import {show as channels} from "./channels.js";
import {show as dead} from "./dead.js";
import {show as messages} from "./messages.js";
import {show as overview} from "./overview.js";
import {show as replays} from "./replays.js";
import {show as results} from "./results.js";
import {show as sessions} from "./sessions.js";

const PAGES = new Map(Object.entries({
    "": ["Overview", overview],
    sessions: ["Sessions", sessions],
    channels: ["Channels", channels],
    dead: ["Dead letters", dead],
    replays: ["Replays", replays],
    messages: ["Messages", messages],
    results: ["Results", results],
    audit: ["Audit", audit],
}));
const TOKEN = "holdfast.token";
const NAME = "holdfast.operator";
const SHOWN_MS = 6000;
// Readings of the figures, one a second at most.
const KEPT = 121;
// A reading is late when so many times the time between the last two has passed.
const GAPS = 3;
const CHECK_MS = 1000;
// What the server warned of, and that is not yet forgotten.
const ALERTS = 10;

// Where the browser keeps nothing the token lasts as long as the page.
const tab = storageOf("sessionStorage");
const browser = storageOf("localStorage");

const find = (selector) => document.querySelector(selector);
const content = find("#content");

class App {
    #feed;
    #listeners = new Set();
    #age = new Age((text) => showAge(text));
    #freshness = new Freshness({
        news: (withinMs) => this.#age.news(withinMs),
        expect: (withinMs) => this.#age.expect(withinMs),
        failed: (error) => this.#missed(error),
    });
    // Of when the last reading is, and when the next one is due.
    #heardAt = null;
    #readingDue = Date.now() + LATE_MS;
    // What the present page must stop doing when it is left.
    #leaving = [];

    constructor(token, name, about) {
        Object.assign(this, {about, name, isOperator: about.role === "operator", readings: [], alerts: []});
        this.api = new Api(token, name);
        this.#feed = new Feed(new URL("../admin/feed", location.href), token, {
            hear: (figures) => this.#hear(figures),
            alert: (alert) => this.#warn(alert),
            state: (isLive, why) => this.#showFeed(isLive, why),
        });
    }

    start() {
        this.#feed.run();
        setInterval(() => this.#check(), CHECK_MS);
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
        const at = this.#heardAt ?? Date.now();
        this.#age.news(Math.max(LATE_MS, this.#readingDue - at), at);
    }

    #hear(figures) {
        const now = Date.now();
        // A server with many sessions takes its readings less often.
        const withinMs = Math.max(LATE_MS, GAPS * (now - (this.#heardAt ?? now)));
        this.#heardAt = now;
        this.#readingDue = now + withinMs;
        this.readings = [...this.readings, figures].slice(-KEPT);
        this.#listeners.forEach((hear) => hear(figures));
        if (this.#listeners.size) {
            this.#age.news(withinMs);
        }
    }

    /** What is late is said, although nothing has failed. */
    #check() {
        this.#age.check();
        if (Date.now() > this.#readingDue) {
            this.#showFeed(true, "");
        }
    }

    #missed(error) {
        error.status === 401 && signOut();
        this.#age.failed(error);
    }

    /** Runs again and again while the page may be seen, for what it shows to stay true. */
    keepFresh(run) {
        this.#freshness.add(run);
    }

    /** Every so often, until the page is left; what fails is tried again. */
    every(ms, run) {
        let isLeft = false;
        const ask = () => run().then(() => isLeft || this.#age.news(ms + LATE_MS), (error) => isLeft || this.#missed(error));
        const timer = setInterval(() => document.hidden || ask(), ms);
        this.#age.news(ms + LATE_MS);
        this.onLeave(() => {
            isLeft = true;
            clearInterval(timer);
        });
    }

    onLeave(run) {
        this.#leaving.push(run);
    }

    tell(text, mood = "good") {
        const notice = h("p", {class: `notice state ${mood}`}, text);
        find("#notices").replaceChildren(notice);
        setTimeout(() => notice.remove(), SHOWN_MS);
    }

    #warn({kind, channel, reason}) {
        const text = `${kind}: ${channel}, ${reason}`;
        this.alerts = [{at: Date.now(), text}, ...this.alerts].slice(0, ALERTS);
        this.tell(text, "bad");
    }

    /** The page of the present address, anew. */
    async show() {
        const here = location.hash;
        const {name, rest, chosen} = address(here);
        const [title, make] = PAGES.get(name) ?? PAGES.get("");
        this.#leaving.splice(0).forEach((leave) => leave());
        this.#freshness.clear();
        this.#age.begin();
        this.#mark(title);
        const made = await make(this, rest, chosen).catch((error) => {
            error.status === 401 && signOut();
            return [h("h1", {}, title), h("p", {class: "card panel state bad"}, error.message)];
        });
        // Somebody may have gone on meanwhile.
        if (location.hash === here) {
            this.#age.made();
            this.#put(title, made);
        }
    }

    #mark(title) {
        for (const link of find("#places").children) {
            link.ariaCurrent = link.textContent === title ? "page" : null;
            if (link.ariaCurrent) {
                link.scrollIntoView({block: "nearest", inline: "center"});
            }
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
        find("#places").replaceChildren(...[...PAGES].map(([name, [title]]) =>
            h("a", {href: at(name)}, title)));
        find("#places").hidden = false;
    }

    #showWho() {
        this.feedState = h("span", {class: "state feed"}, "connecting");
        const role = badge(this.isOperator ? this.about.who : `${this.about.who}: looking only`);
        const leave = h("button", {type: "button", onclick: signOut}, "Sign out");
        find("#who").replaceChildren(this.feedState, role, leave);
    }

    #showFeed(isReached, why) {
        const isLate = Date.now() > this.#readingDue;
        const isLive = isReached && !isLate;
        this.feedState.className = `state feed ${isLive ? "good" : "warn"}`;
        this.feedState.title = isLive ? "Figures come every second." : why || "No figures have come for a while.";
        say(this.feedState, isLive ? "live" : "no figures");
    }
}

/** Above the page, while that is older than it should be. */
function showAge(text) {
    find("#age").hidden = !text;
    say(find("#age"), text);
}

/** What an address names: a page, what of it, and what was chosen there. */
function address(hash) {
    const [place, query] = hash.slice(2).split("?");
    const [name, ...rest] = place.split("/").map(plain);
    return {name, rest, chosen: Object.fromEntries(new URLSearchParams(query))};
}

function plain(part) {
    try {
        return decodeURIComponent(part);
    } catch {
        return part;
    }
}

function signOut() {
    tab?.removeItem(TOKEN);
    location.reload();
}

/** Who has the token: the console; otherwise a form that asks for it. */
async function begin(token, name) {
    if (!token) {
        return ask("");
    }
    try {
        const about = await new Api(token, name).get("about");
        await new App(token, name, about).start();
    } catch (error) {
        error.status === 401 && tab?.removeItem(TOKEN);
        ask(error.status === 401 ? "This token opens nothing here." : error.message);
    }
}

function ask(problem) {
    content.replaceChildren(signIn(recall(browser, NAME) ?? "", problem, (token, name) => {
        keep(tab, TOKEN, token);
        keep(browser, NAME, name);
        begin(token, name);
    }));
    content.querySelector("input")?.focus();
}

await begin(recall(tab, TOKEN), recall(browser, NAME) ?? "");
