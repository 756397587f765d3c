// The user's rooms as the page shows them: messages, members, unread counts.
import {Members} from "./members.js";
import {Typing} from "./typing.js";
import * as view from "./view.js";

export class Rooms {
    #me;
    #transcript;
    #onPick;
    #onLeave;
    #current;
    #members = new Map();
    #unread = new Map();
    #typing = new Typing(() => this.#drawTyping());

    constructor(me, transcript, onPick, onLeave) {
        [this.#me, this.#transcript, this.#current] = [me, transcript, me.rooms[0]];
        [this.#onPick, this.#onLeave] = [onPick, onLeave];
    }

    /** The room that is shown. */
    get current() {
        return this.#current;
    }

    put(room, line) {
        const {line: kept, isNew} = this.#transcript.put(room, {at: Date.now(), ...line});
        if (room === this.#current) {
            view.drawLine(kept);
        } else if (isNew) {
            this.#unread.set(room, (this.#unread.get(room) ?? 0) + 1);
            this.drawList();
        }
        this.#typing.end(line.from);
    }

    /** A line was redelivered. */
    again(id, count) {
        const seen = this.#transcript.find(id);
        if (seen !== undefined) {
            this.put(seen.room, {...seen.line, again: count});
        }
    }

    /** The server has listed the members of a room. */
    list(room, presence) {
        this.#membersOf(room).list(presence);
        this.#showMembers(room);
    }

    /** Members have changed; returns whether their list must be asked for again. */
    change(room, presence) {
        const isIncomplete = this.#membersOf(room).change(presence);
        this.#showMembers(room);
        return isIncomplete;
    }

    typing(room, name) {
        this.#typing.add(room, name);
    }

    pick(room) {
        this.#current = room;
        this.#unread.delete(room);
        this.draw();
    }

    /** Leaving a room removes its transcript. */
    forget(room) {
        this.#transcript.forget(room);
        this.#unread.delete(room);
        this.#members.delete(room);
        this.pick(room === this.#current ? this.#me.rooms[0] : this.#current);
    }

    draw() {
        view.drawTitle(this.#current);
        view.drawLines(this.#transcript.lines(this.#current));
        this.drawList();
        this.#drawMembers();
        this.#drawTyping();
    }

    drawList() {
        view.drawRooms(this.#me.rooms, {
            current: this.#current,
            unread: this.#unread,
            onPick: this.#onPick,
            onLeave: this.#onLeave,
        });
    }

    #membersOf(room) {
        if (!this.#members.has(room)) {
            this.#members.set(room, new Members());
        }
        return this.#members.get(room);
    }

    #showMembers(room) {
        if (room === this.#current) {
            this.#drawMembers();
        }
    }

    #drawMembers() {
        const {people, others} = this.#membersOf(this.#current);
        view.drawMembers(people, others);
        view.drawReceivers(people.map(({name}) => name).filter((name) => name !== this.#me.name));
    }

    #drawTyping() {
        view.drawTyping(this.#typing.names(this.#current));
    }
}
