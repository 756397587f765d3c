// The messages that a receiver is processing or has finished, and the verdicts for the server.
import {keep, recall} from "./storage.js";

export const HOLDBACK = "user.update.holdback";
// The default size of a queue on the server, which may hand the whole queue over again at once.
const REMEMBERED = 10_000;

/** Identifies a message in every hand-over; a replayed dead letter is a different one. */
const keyOf = ({id, generation = 0}) => `${id}:${generation}`;
/** Whether a code is this one or a code below it. */
export const isOfType = (code, parent) => code === parent || `${code}`.startsWith(`${parent}.`);
const comesBack = ({errorCode}) =>
    isOfType(errorCode, HOLDBACK) || isOfType(errorCode, "communication");

export class Ledger {
    #storage;
    #name;
    #hasAcks = false;
    #entries = new Map();
    #finished;
    // Verdicts by the sequence number of the hand-over.
    #verdicts = new Map();

    constructor({storage, name = "holdfast.finished"} = {}) {
        [this.#storage, this.#name] = [storage, name];
        const kept = recall(storage, name);
        this.#finished = new Set(Array.isArray(kept) ? kept : []);
    }

    /** The number of messages that are still being processed. */
    get size() {
        return this.#entries.size;
    }

    /** Begins with a new client id: drops old sequence numbers; unsettled messages will come again. */
    begin(hasAcks) {
        this.#hasAcks = hasAcks;
        this.#verdicts.clear();
        this.#entries.forEach((entry) => (entry.seq = undefined));
    }

    find(said) {
        return this.#entries.get(keyOf(said));
    }

    /** Takes a message; returns whether it is new: neither finished nor being processed. */
    take(said) {
        const key = keyOf(said);
        const entry = this.#entries.get(key);
        if (entry !== undefined) {
            entry.seq = said.seq;
        } else if (this.#finished.has(key)) {
            this.#accept(said.seq, !this.#hasAcks);
        } else {
            this.#entries.set(key, {key, seq: said.seq, running: 0, isReported: false});
            return true;
        }
        return false;
    }

    /** Makes verdicts on finished messages and returns them. */
    settle() {
        const done = [...this.#entries.values()].filter(({running}) => running === 0);
        done.forEach((entry) => this.#judge(entry));
        if (done.length > 0) {
            // If the storage is full, the page itself remembers them until it is closed.
            keep(this.#storage, this.#name, [...this.#finished]);
        }
        return done;
    }

    get verdicts() {
        return [...this.#verdicts.values()];
    }

    /** Removes verdicts that the server has received. */
    forget(verdicts) {
        verdicts.forEach(({seq}) => this.#verdicts.delete(seq));
    }

    /** Replaces a verdict that the server cannot read by a plain refusal. */
    rephrase(verdict, message) {
        if (verdict !== undefined && this.#verdicts.get(verdict.seq) === verdict) {
            const {seq} = verdict;
            this.#verdicts.set(seq, {seq, errorCode: "user.update.internalError", message});
        }
    }

    /** Returns the sequence numbers that are being processed; later acks of batches exclude them. */
    pending() {
        const open = [...this.#entries.values()].filter(({seq}) => seq !== undefined);
        open.forEach((entry) => (entry.isReported = true));
        return open.map(({seq}) => seq);
    }

    #judge({key, seq, refusal, isReported}) {
        this.#entries.delete(key);
        if (refusal === undefined) {
            this.#remember(key);
            // The ack of a batch excludes messages after one that will come again.
            this.#accept(seq, isReported || !this.#hasAcks || this.verdicts.some(comesBack));
        } else if (seq !== undefined) {
            this.#verdicts.set(seq, {seq, ...refusal});
        }
    }

    /** Adds OK verdicts for messages that the ack of their batch excludes. */
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
