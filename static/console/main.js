// The console: signs in, and shows the page that the address names.
import {keep, recall, storageOf} from "../js/storage.js";
import {badge, h, say} from "../dom.js";
import {apart} from "./address.js";
import {Age, LATE_MS} from "./age.js";
import {Api} from "./api.js";
import {Feed} from "./feed.js";
import {Freshness} from "./freshness.js";
import {LISTS} from "./lists.js";
import {link} from "./parts.js";
import {Requests} from "./requests.js";
import {signIn} from "./sign_in.js";
import {show as audit} from "./audit.js";
import {show as channels} from "./channels.js";
import {show as dead} from "./dead.js";
import {show as messages} from "./messages.js";
import {show as now} from "./now.js";
import {show as overview} from "./overview.js";
import {show as replays} from "./replays.js";
import {show as results} from "./results.js";
import {show as sessions} from "./sessions.js";
import {subjects, work} from "./shared_queues.js";

const PAGES = new Map(Object.entries({
    "": ["Overview", overview],
    now: ["Now", now],
    sessions: ["Sessions", sessions],
    subjects: ["Subjects", subjects],
    channels: ["Channels", channels],
    work: ["Work queues", work],
    ...LISTS,
    dead: ["Dead letters", dead],
    replays: ["Replays", replays],
    messages: ["Messages", messages],
    results: ["Results", results],
    audit: ["Audit", audit],
}));
const TOKEN = "holdfast.authorization";
const REFUSED = {
    Bearer: "The server does not accept this token.",
    Basic: "The server does not accept this user and password.",
    "": "The server does not know you. Enter a token, or a user and a password.",
};
const NAME = "holdfast.operator";
const DENSITY = "holdfast.compact";
const SHOWN_MS = 6000;
// Of a change.
const UNSTORED = "The store is unavailable and does not have this yet: a kill of the server undoes it.";
// Readings of the live figures, at most one a second.
const KEPT = 121;
// A reading is late after this multiple of the time between the last two readings.
const GAPS = 3;
const CHECK_MS = 1000;
// Answers from here on are of a server that is away, or will answer later.
const AWAY = 500;
// The latest alerts, and the kind of those that are over.
const ALERTS = 10;
const CLEARED = "alert cleared";

// If the browser forbids storage, the token is kept only in this page.
const tab = storageOf("sessionStorage");
const browser = storageOf("localStorage");

const find = (selector) => document.querySelector(selector);
const content = find("#content");

class App {
    feedState = h("span", {class: "state feed"}, "connecting");
    #feed;
    #listeners = new Set();
    #age = new Age((text) => {
        find("#age").hidden = !text;
        content.classList.toggle("old", Boolean(text));
        say(find("#age"), text);
    });
    #freshness = new Freshness(this.#age);
    // The time of the last reading, and when the next one is due.
    #heardAt = null;
    #readingDue = Date.now() + LATE_MS;
    // Where the page is, without what is chosen there.
    #place = null;

    constructor(authorization, name, about, requests) {
        Object.assign(this, {about, name, requests, isOperator: about.role === "operator", readings: [], alerts: []});
        this.api = new Api(authorization, name, (unanswered) => this.tell(
            unanswered.map(({shard, reason}) => `Shard ${shard} is not in this: ${reason}`).join("; "), "warn"));
        this.#feed = new Feed(new URL("../admin/feed", location.href), authorization, {
            hear: (figures) => this.#hear(figures),
            alert: (alert) => this.#warn(alert),
            state: (isLive, why) => this.#showFeed(isLive, why),
        });
    }

    start() {
        this.#feed.run();
        setInterval(() => this.#check(), CHECK_MS);
        const who = badge(this.isOperator ? this.about.who : `${this.about.who}: read only`);
        const leave = h("button", {type: "button", onclick: signOut}, "Sign out");
        find("#who").replaceChildren(this.feedState, who, density(), leave);
        find("#places").replaceChildren(...[...PAGES].map(([name, [title]]) => link(title, name)));
        find("#places").hidden = false;
        addEventListener("hashchange", () => this.#isAddress() && this.show());
        addEventListener("pagehide", () => this.#feed.leave());
        return this.show();
    }

    /** Calls `hear` with each reading until another page is shown. */
    listen(hear) {
        this.#listeners.add(hear);
        const at = this.#heardAt ?? Date.now();
        this.#age.news(Math.max(LATE_MS, this.#readingDue - at), at);
    }

    #hear(figures) {
        const now = Date.now();
        // A server with many sessions publishes readings less often.
        const withinMs = Math.max(LATE_MS, GAPS * (now - (this.#heardAt ?? now)));
        this.#heardAt = now;
        this.#readingDue = now + withinMs;
        this.readings = [...this.readings, figures].slice(-KEPT);
        this.#listeners.forEach((hear) => hear(figures));
        if (this.#listeners.size) {
            this.#age.news(withinMs);
        }
    }

    /** Reports a late reading, even if no request has failed. */
    #check() {
        this.#age.check();
        if (Date.now() > this.#readingDue) {
            this.#showFeed(true, "");
        }
    }

    /** Refreshes what the page shows while it is visible. */
    keepFresh(run, soonMs) {
        this.#freshness.add(() => run().catch(unknown), soonMs);
    }

    tell(text, mood = "good") {
        const notice = h("p", {class: `card notice state ${mood}`}, text);
        find("#notices").replaceChildren(notice);
        setTimeout(() => notice.remove(), SHOWN_MS);
    }

    /** Reports a completed change, which the store may not have yet, and refreshes the page. */
    done(text, {unstored = false} = {}) {
        this.tell(unstored ? `${text} ${UNSTORED}` : text, unstored ? "warn" : "good");
        return this.show();
    }

    #warn({kind, channel, alert, reason}) {
        const text = `${kind}: ${channel ?? alert}, ${reason}`;
        this.alerts = [{at: Date.now(), text}, ...this.alerts].slice(0, ALERTS);
        this.tell(text, kind === CLEARED ? "good" : "bad");
    }

    /** Shows the page of the present address; again if it could not be shown because the server was away. */
    async show(isAgain = false) {
        const here = location.hash;
        const {name, rest, chosen} = apart(here);
        const [title, make] = PAGES.get(name) ?? PAGES.get("");
        this.#listeners.clear();
        this.#freshness.clear();
        this.#age.begin();
        this.#mark(title);
        content.ariaBusy = "true";
        let isAway = false;
        const made = await make(this, rest, chosen).catch(unknown).catch(({message, status}) => {
            isAway = status === 0 || status >= AWAY;
            return [h("h1", {}, title), h("p", {class: "card panel state bad"}, message)];
        });
        // The user may have opened another page meanwhile.
        if (location.hash === here) {
            this.#age.made();
            document.title = `${title} · Holdfast`;
            const focused = document.activeElement?.id;
            content.replaceChildren(...[made].flat().filter(Boolean));
            content.ariaBusy = null;
            if (!isAgain) {
                this.#come(here.split("?")[0], focused);
            }
            if (isAway) {
                this.keepFresh(async () => {
                    await this.api.get("about");
                    await this.show(true);
                });
            }
        }
    }

    /** Begins at the top of a page; but stays in a page that is only sorted or filtered, with what had the focus. */
    #come(place, focused) {
        const same = place === this.#place && focused && document.getElementById(focused);
        (same || content).focus({preventScroll: true});
        if (place !== this.#place) {
            scrollTo(0, 0);
        }
        this.#place = place;
    }

    #mark(title) {
        for (const place of find("#places").children) {
            place.ariaCurrent = place.textContent === title ? "page" : null;
            if (place.ariaCurrent) {
                place.scrollIntoView({block: "nearest", inline: "center"});
            }
        }
    }

    #isAddress = () => location.hash === "" || location.hash.startsWith("#/");

    #showFeed(isReached, why) {
        const isLate = Date.now() > this.#readingDue;
        const isLive = isReached && !isLate;
        this.feedState.className = `state feed ${isLive ? "good" : "warn"}`;
        this.feedState.title = isLive ? "Figures are arriving." : why || "No figures have arrived lately.";
        say(this.feedState, isLive ? "live" : "no figures");
    }
}

/** A button for tables with more rows on a screen, which the browser remembers. */
function density() {
    const button = h("button", {type: "button", onclick: () => set(!is())}, "Compact");
    const is = () => document.body.classList.contains("compact");
    const set = (isCompact) => {
        document.body.classList.toggle("compact", isCompact);
        button.ariaPressed = String(isCompact);
        keep(browser, DENSITY, isCompact);
    };
    set(recall(browser, DENSITY) === true);
    return button;
}

/** Asks for credentials again if the server no longer accepts these. */
function unknown(error) {
    error.status === 401 && signOut();
    throw error;
}

function signOut() {
    tab?.removeItem(TOKEN);
    location.reload();
}

/** Shows the console, or the form that asks for credentials. */
async function begin(authorization, name) {
    if (authorization === undefined) {
        return ask("");
    }
    try {
        const api = new Api(authorization, name);
        const [about, description] = await Promise.all([api.get("about"), api.get("openapi.json")]);
        await new App(authorization, name, about, new Requests(description)).start();
    } catch (error) {
        const isUnknown = error.status === 401 || error.status === 403;
        isUnknown && tab?.removeItem(TOKEN);
        ask(error.status === 401 ? REFUSED[kind(authorization)] : error.message);
    }
}

function ask(problem) {
    content.replaceChildren(signIn(recall(browser, NAME) ?? "", problem, (authorization, name) => {
        // A password is never stored.
        kind(authorization) !== "Basic" && keep(tab, TOKEN, authorization);
        keep(browser, NAME, name);
        begin(authorization, name);
    }));
    content.querySelector("input")?.focus();
}

const kind = (authorization) => authorization.split(" ")[0];

await begin(recall(tab, TOKEN), recall(browser, NAME) ?? "");
