// What a receiver has in hands, what it has finished, and what the server must still be told.
import {keep, recall} from "./storage.js";

export const HOLDBACK = "user.update.holdback";
// As many as the server has in its queue unless it is told otherwise: all may come again at once.
const REMEMBERED = 10_000;

/** What a message is called in every hand-over; a replayed dead letter is another one. */
const keyOf = ({id, generation = 0}) => `${id}:${generation}`;
const comesBack = ({errorCode}) => errorCode === HOLDBACK || /^communication\./.test(errorCode);

export class Ledger {
    #storage;
    #name;
    #hasAcks = false;
    #entries = new Map();
    #finished;
    // By the number of the hand-over.
    #verdicts = new Map();

    constructor({storage, name = "holdfast.finished"} = {}) {
        [this.#storage, this.#name] = [storage, name];
        const kept = recall(storage, name);
        this.#finished = new Set(Array.isArray(kept) ? kept : []);
    }

    /** How many messages are still worked on. */
    get size() {
        return this.#entries.size;
    }

    /** Another client id: numbers of old hand-overs mean nothing, what was not settled comes again. */
    begin(hasAcks) {
        this.#hasAcks = hasAcks;
        this.#verdicts.clear();
        this.#entries.forEach((entry) => (entry.seq = undefined));
    }

    find(said) {
        return this.#entries.get(keyOf(said));
    }

    /** Whether it is new: neither finished nor worked on. */
    take(said) {
        const key = keyOf(said);
        const entry = this.#entries.get(key);
        if (entry !== undefined) {
            entry.seq = said.seq;
        } else if (this.#finished.has(key)) {
            this.#accept(said.seq, !this.#hasAcks);
        } else {
            this.#entries.set(key, {key, seq: said.seq, running: 0, isTold: false});
            return true;
        }
        return false;
    }

    /** Judges what is done, and returns it. */
    settle() {
        const done = [...this.#entries.values()].filter(({running}) => running === 0);
        done.forEach((entry) => this.#judge(entry));
        if (done.length > 0) {
            // Without room it is remembered as long as the page lives.
            keep(this.#storage, this.#name, [...this.#finished]);
        }
        return done;
    }

    get verdicts() {
        return [...this.#verdicts.values()];
    }

    /** The server has heard these verdicts. */
    forget(verdicts) {
        verdicts.forEach(({seq}) => this.#verdicts.delete(seq));
    }

    /** The server cannot read this verdict; it must hear all the same that it was no OK. */
    rephrase(verdict, message) {
        if (verdict !== undefined && this.#verdicts.get(verdict.seq) === verdict) {
            const {seq} = verdict;
            this.#verdicts.set(seq, {seq, errorCode: "user.update.internalError", message});
        }
    }

    /** Numbers of what is worked on; from now on the acks of batches leave them out. */
    pending() {
        const open = [...this.#entries.values()].filter(({seq}) => seq !== undefined);
        open.forEach((entry) => (entry.isTold = true));
        return open.map(({seq}) => seq);
    }

    #judge({key, seq, refusal, isTold}) {
        this.#entries.delete(key);
        if (refusal === undefined) {
            this.#remember(key);
            // The ack of a batch takes back what stands behind a message that comes back.
            this.#accept(seq, isTold || !this.#hasAcks || this.verdicts.some(comesBack));
        } else if (seq !== undefined) {
            this.#verdicts.set(seq, {seq, ...refusal});
        }
    }

    /** Says OK where the ack of the batch does not. */
    #accept(seq, isOwed) {
        if (isOwed && seq !== undefined) {
            this.#verdicts.set(seq, {seq, state: "OK"});
        }
    }

    #remember(key) {
        this.#finished.add(key);
        if (this.#finished.size > REMEMBERED) {
            this.#finished.delete(this.#finished.values().next().value);
        }
    }
}
