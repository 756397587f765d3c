// Refreshes the data on a page while the page is visible.
import {LATE_MS} from "./age.js";

const SOON_MS = 3000;
const SELDOM_MS = 60_000;
// The pause between refreshes, as a multiple of the time that the last one took. Waiting in vain was
// no work of the server's.
const SHARE = 20;
const SHARE_IN_VAIN = 1;

export class Freshness {
    #runs = [];
    #timer;
    #isAsking = false;
    #soonMs = SOON_MS;

    /** Reports the beginning and the result of each round to `age`. */
    constructor(age) {
        this.age = age;
        document.addEventListener("visibilitychange", () => this.#seen());
    }

    /** Adds something to refresh on this page; it may ask to be refreshed sooner. */
    add(run, soonMs = SOON_MS) {
        this.#runs.push(run);
        this.#soonMs = Math.min(this.#soonMs, soonMs);
        this.age.news(SOON_MS + LATE_MS);
        this.#later(this.#soonMs);
    }

    /** Stops, because another page is shown. */
    clear() {
        this.#runs = [];
        this.#soonMs = SOON_MS;
        clearTimeout(this.#timer);
    }

    #later(ms) {
        clearTimeout(this.#timer);
        this.#timer = setTimeout(() => this.#round(), ms);
    }

    #seen() {
        if (!document.hidden && this.#runs.length) {
            this.#later(0);
        }
    }

    /** Refreshes what is due, unless text is selected or the page is hidden. */
    async #round() {
        if (document.hidden || this.#isAsking) {
            return;
        }
        const runs = this.#runs;
        const begun = performance.now();
        let tell = (withinMs) => this.age.expect(withinMs);
        let share = SHARE;
        if (getSelection().isCollapsed) {
            this.#isAsking = true;
            this.age.expect(LATE_MS);
            tell = await Promise.all(runs.map((run) => run())).then(
                () => (withinMs) => this.age.news(withinMs),
                (error) => {
                    share = SHARE_IN_VAIN;
                    return () => this.age.failed(error);
                });
            this.#isAsking = false;
        }
        const pause = Math.min(SELDOM_MS, Math.max(this.#soonMs, share * (performance.now() - begun)));
        if (runs === this.#runs) {
            tell(pause + LATE_MS);
        }
        if (this.#runs.length) {
            this.#later(pause);
        }
    }
}
