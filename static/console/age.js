// The age of the data on a page: reports when newer data are overdue.
import {time} from "./format.js";

// The time that a refresh may take before the data on the page count as old.
export const LATE_MS = 5000;
const SILENCE = "The server has sent nothing new.";

export class Age {
    #at;
    #due;
    #why = "";
    #isMade = false;

    /** Passes to `say` the line to show above the page, which is empty while the data are current. */
    constructor(say) {
        this.say = say;
        this.begin();
    }

    /** Begins anew for another page, which is loading. */
    begin() {
        this.#isMade = false;
        this.#know(Date.now(), LATE_MS);
    }

    /** Notes that the page has loaded. Data that are never refreshed do not become old. */
    made() {
        if (!this.#isMade) {
            this.news();
        }
    }

    /** Notes the time of the data, and expects newer data within a time. */
    news(withinMs = Infinity, at = Date.now()) {
        this.#isMade = true;
        this.#know(at, withinMs);
    }

    /** Expects newer data within this time. */
    expect(withinMs) {
        this.#due = Date.now() + withinMs;
    }

    /** Reports a refresh that failed. */
    failed({message}) {
        this.#why = message;
        this.check();
    }

    /** Reports whether newer data are overdue. */
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
