// What a page shows is asked for again and again, as long as somebody may see it.
import {LATE_MS} from "./age.js";

const SOON_MS = 3000;
const SELDOM_MS = 60_000;
// So much longer than an answer takes is the time between two.
const SHARE = 20;

export class Freshness {
    #runs = [];
    #timer;
    #isAsking = false;

    /** The `age` of the page learns of each round: that one begins, and how it ended. */
    constructor(age) {
        this.age = age;
        document.addEventListener("visibilitychange", () => this.#seen());
    }

    /** Asks again for something of this page. */
    add(run) {
        this.#runs.push(run);
        this.age.news(SOON_MS + LATE_MS);
        this.#later(SOON_MS);
    }

    /** Another page is shown. */
    clear() {
        this.#runs = [];
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

    /** While something is selected the page stands still; one that is not seen waits until it is. */
    async #round() {
        if (document.hidden || this.#isAsking) {
            return;
        }
        const runs = this.#runs;
        const begun = performance.now();
        let failure = null;
        const stands = !getSelection().isCollapsed;
        if (!stands) {
            this.#isAsking = true;
            this.age.expect(LATE_MS);
            failure = await Promise.all(runs.map((run) => run())).then(() => null, (error) => error);
            this.#isAsking = false;
        }
        const pause = Math.min(SELDOM_MS, Math.max(SOON_MS, SHARE * (performance.now() - begun)));
        if (runs === this.#runs) {
            this.#tell(failure, stands, pause + LATE_MS);
        }
        if (this.#runs.length) {
            this.#later(pause);
        }
    }

    #tell(failure, stands, withinMs) {
        if (failure) {
            this.age.failed(failure);
        } else if (stands) {
            this.age.expect(withinMs);
        } else {
            this.age.news(withinMs);
        }
    }
}
