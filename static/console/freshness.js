// What a page shows is asked for again and again, as long as somebody may see it.
const SOON_MS = 3000;
const LATE_MS = 60_000;
// So much longer than an answer takes is the time between two.
const SHARE = 20;

export class Freshness {
    #runs = [];
    #timer;
    #isAsking = false;

    /** `state` is told of each round: nothing, or the error that ended it. */
    constructor(state) {
        this.state = state;
        document.addEventListener("visibilitychange", () => this.#seen());
    }

    /** Asks again for something of this page. */
    add(run) {
        this.#runs.push(run);
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
        if (getSelection().isCollapsed) {
            this.#isAsking = true;
            const failure = await Promise.all(runs.map((run) => run())).then(() => null, (error) => error);
            this.#isAsking = false;
            if (runs === this.#runs) {
                this.state(failure);
            }
        }
        if (this.#runs.length) {
            this.#later(Math.min(LATE_MS, Math.max(SOON_MS, SHARE * (performance.now() - begun))));
        }
    }
}
