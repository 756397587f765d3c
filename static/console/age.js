// The age of what a page shows: reported as soon as newer data are overdue.
import {time} from "./format.js";

// How long a refresh may take before the shown data count as old.
export const LATE_MS = 5000;
const SILENCE = "The server has sent nothing new.";

export class Age {
    #at;
    #due;
    #why = "";
    #isMade = false;

    /** `say` gets the line to show above the page: empty while the data are current. */
    constructor(say) {
        this.say = say;
        this.begin();
    }

    /** Another page is loading. */
    begin() {
        this.#isMade = false;
        this.#know(Date.now(), LATE_MS);
    }

    /** The page has loaded. Data that are never refreshed do not become old. */
    made() {
        if (!this.#isMade) {
            this.news();
        }
    }

    /** The data are of this moment; newer data are due after this time. */
    news(withinMs = Infinity, at = Date.now()) {
        this.#isMade = true;
        this.#know(at, withinMs);
    }

    /** Expects newer data within this time. */
    expect(withinMs) {
        this.#due = Date.now() + withinMs;
    }

    /** A refresh has failed. */
    failed({message}) {
        this.#why = message;
        this.check();
    }

    /** Check whether newer data are overdue. */
    check() {
        const isOld = this.#why || Date.now() > this.#due;
        this.say(isOld ? `${this.#why || SILENCE} The page shows the state of ${time(this.#at)}.` : "");
    }

    #know(at, withinMs) {
        this.#at = at;
        this.#due = at + withinMs;
        this.#why = "";
        this.check();
    }
}
