// Of when it is what a page shows: said as soon as something newer should have come and has not.
import {time} from "./format.js";

// How long an answer may take before what it should renew counts as old.
export const LATE_MS = 5000;
const SILENCE = "Nothing new has come from the server.";

export class Age {
    #at;
    #due;
    #why = "";
    #isMade = false;

    /** `say` gets what is to be read above the page: nothing, while the page is of now. */
    constructor(say) {
        this.say = say;
        this.begin();
    }

    /** Another page is asked for. */
    begin() {
        this.#isMade = false;
        this.#know(Date.now(), LATE_MS);
    }

    /** The page is there. What nobody renews does not grow old. */
    made() {
        if (!this.#isMade) {
            this.news();
        }
    }

    /** What is shown is of that moment; something newer is due so long after it. */
    news(withinMs = Infinity, at = Date.now()) {
        this.#isMade = true;
        this.#know(at, withinMs);
    }

    /** Something newer is due so long from now. */
    expect(withinMs) {
        this.#due = Date.now() + withinMs;
    }

    /** What should have been renewed was not. */
    failed({message}) {
        this.#why = message;
        this.check();
    }

    /** Time has passed. */
    check() {
        const isOld = this.#why || Date.now() > this.#due;
        this.say(isOld ? `${this.#why || SILENCE} What is shown here is of ${time(this.#at)}.` : "");
    }

    #know(at, withinMs) {
        this.#at = at;
        this.#due = at + withinMs;
        this.#why = "";
        this.check();
    }
}
