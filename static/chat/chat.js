// The chat: shows what happens in the user's rooms, and carries out what the user does.
import {Connection, PRIVATE, roomChannel} from "./connection.js";
import {control} from "./controls.js";
import {Members} from "./members.js";
import {wordsOf} from "./said.js";
import {Transcript} from "./transcript.js";
import {Typing} from "./typing.js";
import * as view from "./view.js";
import {wireOf} from "./wire.js";

export class Chat {
    // Shows the state of the connection.
    state = view.showState;
    trouble = view.showTrouble;
    typing = new Typing(() => this.#drawTyping());
    #me;
    #page;
    #transcript;
    #connection;
    #onRefused;
    // The room that is shown.
    #current;
    #members = new Map();
    #unread = new Map();

    /**
     * Calls `page.onChange` when `me` has changed and should be stored, `page.onLoginEnd` when the
     * server no longer accepts the `login`, if one is needed.
     */
    constructor(library, me, page) {
        [this.#me, this.#page, this.#current] = [me, page, me.rooms[0]];
        const {url, storage, login} = page;
        this.#transcript = new Transcript(storage, me.name);
        const wire = wireOf(document.getElementById("wire"), () => this.#connection.isOffline);
        this.#connection = new Connection(library, me, {show: this, wire, url, storage, login});
        this.#onRefused = control(this.#connection);
        const {outbox} = this.#connection;
        outbox.addEventListener("change", () => this.#drawUnsent());
        outbox.addEventListener("refused", ({detail}) =>
            view.showTrouble(`The server refused a message: ${detail.reply.error}`),
        );
        this.#draw();
        view.showRoom();
        this.#connection.join();
    }

    get name() {
        return this.#me.name;
    }

    // Events of the connection

    line(room, line) {
        const {line: kept, isNew} = this.#transcript.put(room, {at: Date.now(), ...line});
        if (room === this.#current) {
            view.drawLine(kept);
        } else if (isNew) {
            this.#unread.set(room, (this.#unread.get(room) ?? 0) + 1);
            this.#drawRooms();
        }
        this.typing.end(line.from);
    }

    refused(room, line) {
        this.line(room, line);
        this.#onRefused(line.code);
    }

    /** Marks a line as redelivered. */
    again(id, count) {
        const seen = this.#transcript.find(id);
        if (seen !== undefined) {
            this.line(seen.room, {...seen.line, again: count});
        }
    }

    whisper(line) {
        const own = line.from === this.#me.name;
        this.line(this.#current, {...line, own, again: 0});
    }

    /** Shows one more room, which the session was in before this page was loaded. */
    opened() {
        this.#page.onChange();
        this.#drawRooms();
    }

    /** Takes the server's list of the members of a room. */
    members(room, presence) {
        this.#membersOf(room).list(presence);
        this.#drawMembers(room);
    }

    /** Applies a change of members; returns whether the page must request their list again. */
    membersChanged(room, presence) {
        const isIncomplete = this.#membersOf(room).change(presence);
        this.#drawMembers(room);
        return isIncomplete;
    }

    taken() {
        view.showState("Not connected", "bad");
        const text = `${this.#me.name} opened the chat elsewhere; this page no longer receives messages.`;
        view.showTrouble(text, "Use this page", () => {
            view.showTrouble();
            this.#connection.again();
        });
    }

    loginEnds(afterMs) {
        if (this.#page.login.isRenewable) {
            const seconds = Math.round(afterMs / 1000);
            view.showRenewal(`Your login ends in ${seconds} seconds. Paste a new token to stay.`);
        }
    }

    loginEnded() {
        view.showState("Signed out", "bad");
        this.#page.onLoginEnd();
    }

    // Actions of the user

    say(text, to) {
        view.showTrouble();
        if (to) {
            this.#connection.say(PRIVATE, {to, text});
        } else {
            this.#connection.say(roomChannel(this.#current), {from: this.#me.name, text});
        }
    }

    type() {
        this.#connection.typing(this.#current);
    }

    pick(room) {
        if (!this.#me.rooms.includes(room)) {
            this.#me.rooms.push(room);
            this.#connection.openRoom(room);
            this.#page.onChange();
        }
        this.#show(room);
        view.showView("talk");
        view.focusText();
    }

    async renew(token) {
        const problem = await this.#page.login.renew(token);
        if (problem) {
            view.showRenewalProblem(problem);
        } else {
            view.showRenewal();
        }
    }

    /** Continues with a new login of the same subject. */
    comeBack() {
        view.showTrouble();
        view.showRoom();
        this.#connection.again();
    }

    leave() {
        this.#connection.leave();
        this.#transcript.clear();
    }

    /** Leaves a room and removes its transcript. */
    #leaveRoom(room) {
        this.#me.rooms = this.#me.rooms.filter((each) => each !== room);
        this.#connection.leaveRoom(room);
        this.#page.onChange();
        this.#transcript.forget(room);
        this.#unread.delete(room);
        this.#members.delete(room);
        this.#show(room === this.#current ? this.#me.rooms[0] : this.#current);
        view.focusText();
    }

    #show(room) {
        this.#current = room;
        this.#unread.delete(room);
        this.#draw();
    }

    #draw() {
        view.drawTalk(this.#current, this.#transcript.lines(this.#current));
        this.#drawRooms();
        this.#drawMembers(this.#current);
        this.#drawTyping();
        this.#drawUnsent();
    }

    #drawRooms() {
        view.drawRooms(this.#me.rooms, {
            current: this.#current,
            unread: this.#unread,
            onPick: (room) => this.pick(room),
            onLeave: (room) => this.#leaveRoom(room),
        });
    }

    #membersOf(room) {
        if (!this.#members.has(room)) {
            this.#members.set(room, new Members());
        }
        return this.#members.get(room);
    }

    #drawMembers(room) {
        if (room !== this.#current) {
            return;
        }
        const {people, others} = this.#membersOf(room);
        view.drawMembers(people, others);
        view.drawReceivers(people.map(({name}) => name).filter((name) => name !== this.#me.name));
    }

    #drawTyping() {
        view.drawTyping(this.typing.names(this.#current));
    }

    #drawUnsent() {
        const here = [PRIVATE, roomChannel(this.#current)];
        const {entries, isKept} = this.#connection.outbox;
        const waiting = entries.filter(({channel}) => here.includes(channel));
        view.drawUnsent(waiting.map(({data}) => wordsOf(data)), isKept);
    }
}
