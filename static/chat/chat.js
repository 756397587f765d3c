// The chat: passes the user's actions to the connection, and the connection's events to the page.
import {Connection, PRIVATE, roomChannel} from "./connection.js";
import {Controls} from "./controls.js";
import {Rooms} from "./rooms.js";
import {wordsOf} from "./said.js";
import {Transcript} from "./transcript.js";
import * as view from "./view.js";
import {Wire} from "./wire.js";

export class Chat {
    #me;
    #onChange;
    #login;
    #onLoginEnd;
    #transcript;
    #connection;
    #rooms;
    #controls;

    /**
     * `onChange` is called when `me` has changed and should be stored, `onLoginEnd` when the server
     * no longer accepts the login, if one is needed.
     */
    constructor(library, me, {url, storage, login, onChange, onLoginEnd}) {
        [this.#me, this.#onChange] = [me, onChange];
        [this.#login, this.#onLoginEnd] = [login, onLoginEnd];
        this.#transcript = new Transcript(storage, me.name);
        const wire = new Wire(document.getElementById("wire"));
        this.#connection = new Connection(library, me, {show: this, wire, url, storage, login});
        this.#rooms = new Rooms(
            me,
            this.#transcript,
            (room) => this.pick(room),
            (room) => this.#leaveRoom(room),
        );
        this.#controls = new Controls(this.#connection);
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
        this.#rooms.put(room, line);
    }

    refused(room, line) {
        this.#rooms.put(room, line);
        this.#controls.refused(line.code);
    }

    again(id, count) {
        this.#rooms.again(id, count);
    }

    whisper(line) {
        const own = line.from === this.#me.name;
        this.#rooms.put(this.#rooms.current, {...line, own, again: 0});
    }

    unheard(name) {
        view.showTrouble(`There is nobody named ${name} here.`);
    }

    /** The session is in one more room, from before this page was loaded. */
    opened() {
        this.#onChange();
        this.#rooms.drawList();
    }

    members(room, presence) {
        this.#rooms.list(room, presence);
    }

    membersChanged(room, presence) {
        return this.#rooms.change(room, presence);
    }

    typing(room, name) {
        this.#rooms.typing(room, name);
    }

    state(text, kind) {
        view.showState(text, kind);
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
        if (this.#login.isRenewable) {
            const seconds = Math.round(afterMs / 1000);
            view.showRenewal(`Your login ends in ${seconds} seconds. Paste a new token to stay.`);
        }
    }

    loginEnded() {
        view.showState("Signed out", "bad");
        this.#onLoginEnd();
    }

    notAllowed(room) {
        view.showTrouble(`Your rights do not include the room ${room}.`);
    }

    failed(error) {
        view.showTrouble(`The server refused the login: ${error}`);
    }

    // Actions of the user

    say(text, to) {
        view.showTrouble();
        if (to) {
            this.#connection.whisper(to, text);
        } else {
            this.#connection.say(this.#rooms.current, text);
        }
    }

    type() {
        this.#connection.typing(this.#rooms.current);
    }

    pick(room) {
        if (!this.#me.rooms.includes(room)) {
            this.#me.rooms.push(room);
            this.#connection.openRoom(room);
            this.#onChange();
        }
        this.#rooms.pick(room);
        this.#drawUnsent();
        view.showView("talk");
        view.focusText();
    }

    async renew(token) {
        const problem = await this.#connection.renew(token);
        if (problem) {
            view.showRenewalProblem(problem);
        } else {
            view.showRenewal();
        }
    }

    /** Goes on with a new login of the same subject. */
    comeBack() {
        view.showTrouble();
        view.showRoom();
        this.#connection.again();
    }

    leave() {
        this.#connection.leave();
        this.#transcript.clear();
    }

    #leaveRoom(room) {
        this.#me.rooms = this.#me.rooms.filter((each) => each !== room);
        this.#connection.leaveRoom(room);
        this.#onChange();
        this.#rooms.forget(room);
        this.#drawUnsent();
        view.focusText();
    }

    #draw() {
        this.#rooms.draw();
        this.#drawUnsent();
    }

    #drawUnsent() {
        const here = [PRIVATE, roomChannel(this.#rooms.current)];
        const {entries, isKept} = this.#connection.outbox;
        const waiting = entries.filter(({channel}) => here.includes(channel));
        view.drawUnsent(waiting.map(({data}) => wordsOf(data)), isKept);
    }
}
