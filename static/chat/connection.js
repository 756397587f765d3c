// The connection of one person: cometd.js with its extensions, and the faults that the page can cause.
import {DeliveryExtension, Refuse} from "../js/delivery.js";
import {newKey, Outbox} from "../js/outbox.js";
import {Acks, Cable} from "./faults.js";
import {LOGIN} from "./login.js";
import {MOST} from "./members.js";
import {idOf, nameOf, presenceOf, roomsOf, wordsOf} from "./said.js";

export const PRIVATE = "/service/chat/private";
const ROOMS = "/service/chat/rooms";
const PRESENCE = "/service/presence";
const TRANSPORTS = ["websocket", "long-polling", "callback-polling"];
const TYPING_LIFE_MS = 3000;
// Of the session of a user. An application's own are usually the first ones: this demo is not to take
// them over, and acknowledge what waits for them.
const NUMBER = 100;
// The delay before a temporarily refused message is redelivered.
const PAUSE_MS = 1000;
const ONEWAY = {ext: {delivery: {oneway: true}}};
// For messages that are useless later: they are not stored, and expire in queues.
const VOLATILE = {
    ext: {delivery: {persistent: false, expiration: {lifeTime: TYPING_LIFE_MS, forceDestroy: true}}},
};

export const roomChannel = (room) => `/chat/room/${room}`;
const presenceChannel = (room) => `/sys/presence/chat/room/${room}`;
const typingChannel = (room) => `/chat/typing/${room}`;

/**
 * The sender of a message: the name that the server confirms, or else the one in the message, which
 * is unverified if this page gets confirmed names.
 */
function author(data, delivery) {
    const [, subject] = /^client\/(.+)\//.exec(delivery?.sender ?? "") ?? [];
    const isKnown = subject !== undefined && subject !== "anonymous";
    const from = isKnown ? subject : nameOf(data?.from) || "somebody";
    return {from, unverified: delivery !== undefined && !isKnown};
}

/** Passes everything that the page displays to `show`. */
export class Connection {
    outbox;
    delivery;
    /** The error code with which to refuse the next message of another person. */
    refuseNext;
    #cometd;
    #cable;
    #acks;
    #me;
    #show;
    #login;
    #isLost = false;
    // Called once, when a lost connection is back.
    #onRestored;
    // When the others were last notified that this person is typing.
    #lastTyped = 0;
    // Subscriptions by room; rooms whose subscription failed, and rooms that were left.
    #entered = new Map();
    #missed = new Set();
    #left = new Set();

    /** Needs no `login` if the server has none. */
    constructor(library, me, {show, wire, url, storage, login}) {
        [this.#me, this.#show, this.#login] = [me, show, login];
        this.#cometd = new library.CometD();
        // The URLs of callback-polling would show the credentials.
        const types = TRANSPORTS.filter((type) => !login || type !== "callback-polling");
        const used = types.includes(me.transport) ? [me.transport] : types;
        TRANSPORTS.filter((type) => !used.includes(type)).forEach((type) =>
            this.#cometd.unregisterTransport(type),
        );
        this.#cometd.configure({url, logLevel: "error", backoffIncrement: 250, maxBackoff: 2000});
        this.#cable = new Cable(this.#cometd);
        if (login) {
            this.#cometd.registerExtension("login", login);
            this.#cometd.addListener(LOGIN, ({data}) => show.loginEnds(data?.expiresIn));
        }
        this.#cometd.registerExtension("wire", wire);
        if (me.reliable) {
            this.#makeReliable(library, storage);
        }
        this.#cometd.addListener("/meta/handshake", (reply) => this.#onHandshake(reply));
        this.#cometd.addListener("/meta/connect", (reply) => this.#onConnect(reply));
        this.#cometd.addListener(PRIVATE, ({data}) => this.#hearWhisper(data));
        this.#cometd.addListener(ROOMS, ({data}) => this.#know(...roomsOf(data)));
        this.#cometd.addListener(PRESENCE, ({data}) => this.#hearMembers(data));
        this.#listen(roomChannel, (room, message) => this.#hear(room, message));
        this.#listen(presenceChannel, (room, {data}) => {
            if (show.membersChanged(room, presenceOf(data))) {
                this.#ask(room);
            }
        });
        this.#listen(typingChannel, (room, message) => this.#hearTyping(room, message));
        const {name} = me;
        this.outbox = new Outbox(this.#cometd, {name, subject: login && name});
    }

    #makeReliable(library, storage) {
        const session = {name: `${this.#me.name}/${NUMBER}`};
        const memory = {storage, name: `holdfast.finished.${this.#me.name}`};
        this.delivery = new DeliveryExtension({session}, memory);
        this.#acks = new Acks((id, count) => this.#show.again(id, count));
        // Incoming messages pass the extensions in this order, outgoing ones in reverse.
        this.#cometd.registerExtension("acks given", this.#acks);
        this.#cometd.registerExtension("ack", new library.AckExtension());
        this.#cometd.registerExtension("delivery", this.delivery);
    }

    join() {
        // Even without reliable messages, the session belongs to a name.
        const named = {ext: {delivery: {session: this.#me.name, oneway: true}}};
        this.#cometd.handshake(this.#me.reliable ? {} : named);
    }

    /** Leaves and ends the session, so that no messages wait for it any longer. */
    leave() {
        this.outbox.close();
        this.#cable.pull(false);
        const props = this.#me.reliable ? {ext: {delivery: {end: true, discard: true}}} : {};
        this.#cometd.disconnect(props);
    }

    openRoom(room) {
        this.#left.delete(room);
        if (!this.#cometd.isDisconnected()) {
            this.#cometd.batch(() => this.#enter(room));
        }
    }

    leaveRoom(room) {
        this.#left.add(room);
        this.#missed.delete(room);
        if (!this.#cometd.isDisconnected()) {
            this.#cometd.batch(() => {
                this.#entered.get(room)?.forEach((each) => this.#cometd.unsubscribe(each));
            });
        }
    }

    say(channel, data) {
        this.outbox.publish(channel, {id: newKey(), ...data});
        this.#lastTyped = 0;
    }

    /** Notifies the others that this person is typing, but not at each key. */
    typing(room) {
        const isNews = Date.now() - this.#lastTyped > TYPING_LIFE_MS / 2;
        if (isNews && this.#cometd.getStatus() === "connected") {
            this.#lastTyped = Date.now();
            const data = {from: this.#me.name};
            this.#cometd.publish(typingChannel(room), data, VOLATILE);
        }
    }

    /** Sends another handshake, to hold the queue back or to resume it. */
    hold(isHeld) {
        this.delivery.nextActive = !isHeld;
        this.again();
    }

    again() {
        if (this.#cometd.isDisconnected()) {
            this.join();
        } else {
            // cometd.js is still closing its connection when it calls back, so join later.
            this.#cometd.disconnect(() => setTimeout(() => this.join(), 0));
        }
    }

    acknowledge(areGiven) {
        this.#acks.areGiven = areGiven;
    }

    get isOffline() {
        return this.#cable.isPulled;
    }

    goOffline(isOffline) {
        this.#cable.pull(isOffline);
        this.#show.state(isOffline ? "Offline by choice" : "Connecting …", "warn");
    }

    /** Cuts the connection, and calls back when it is restored. */
    kill(onRestored) {
        this.#onRestored = onRestored;
        // The cut may fall between two connects: then none of them fails.
        this.#isLost = true;
        this.#cable.cut();
        this.#show.state("Connecting …", "warn");
    }

    #onHandshake(reply) {
        if (!reply.successful) {
            if (this.#login && reply.error?.startsWith("403")) {
                this.#show.loginEnded();
                return;
            }
            this.#show.state("No connection, reconnecting", "warn");
            if (reply.error !== undefined && !reply.error.startsWith("5")) {
                this.#show.trouble(`The server refused the login: ${reply.error}`);
            }
            return;
        }
        this.#cometd.batch(() => {
            this.#me.rooms.forEach((room) => this.#enter(room));
            this.#cometd.publish(ROOMS, {});
        });
    }

    #onConnect({successful, advice}) {
        const wasLost = this.#isLost;
        this.#isLost = !successful;
        if (successful) {
            const type = this.#cometd.getTransport()?.type;
            this.#show.state(`Connected over ${type}`, "good");
            this.#missed.forEach((room) => this.#enter(room));
            if (wasLost) {
                // Events may have expired, and another server may not know this session.
                this.#me.rooms.forEach((room) => this.#ask(room));
                this.#onRestored?.();
                this.#onRestored = undefined;
            }
        } else if (this.#cometd.getStatus() === "disconnecting") {
            this.#show.state("Connecting …", "warn");
        } else if (advice?.reconnect === "none") {
            this.#show.taken();
        } else if (!this.#cable.isPulled) {
            this.#show.state("Connection lost, reconnecting", "warn");
        }
    }

    /** Subscribes to all rooms, including those that the session was in before the page was loaded. */
    #listen(channelOf, callback) {
        this.#cometd.addListener(channelOf("*"), (message) => {
            const room = message.channel.slice(channelOf("").length);
            // Messages of a room that was left may still arrive.
            if (!this.#left.has(room)) {
                callback(room, message);
            }
        });
    }

    #enter(room) {
        // cometd.js treats a channel with a listener as subscribed.
        this.#entered.get(room)?.forEach((each) => this.#cometd.removeListener(each));
        this.#missed.delete(room);
        const onReply = ({failure, error, subscription}) => {
            if (failure) {
                this.#missed.add(room);
            } else if (error?.startsWith("403") && subscription === roomChannel(room)) {
                this.#show.trouble(`Your rights do not include the room ${room}.`);
            }
        };
        const subscribe = (channelOf, props) =>
            this.#cometd.subscribe(channelOf(room), () => undefined, props, onReply);
        this.#entered.set(room, [
            subscribe(roomChannel, {}),
            subscribe(presenceChannel, ONEWAY),
            subscribe(typingChannel, ONEWAY),
        ]);
        this.#ask(room);
    }

    /** Asks who is in the room. */
    #ask(room) {
        this.#cometd.publish(PRESENCE, {channel: roomChannel(room), limit: MOST});
    }

    #hearMembers(data) {
        const prefix = roomChannel("");
        if (Array.isArray(data?.members) && data.channel?.startsWith(prefix)) {
            const room = data.channel.slice(prefix.length);
            if (!this.#left.has(room)) {
                this.#show.members(room, presenceOf(data));
            }
        }
    }

    /** Takes the server's list of the rooms of this session. */
    #know(...rooms) {
        for (const room of rooms.filter((each) => !this.#me.rooms.includes(each))) {
            this.#left.delete(room);
            this.#me.rooms.push(room);
            this.#enter(room);
            this.#show.opened();
        }
    }

    #hear(room, {data, ext}) {
        this.#know(room);
        const {delivery} = ext ?? {};
        const who = author(data, delivery);
        const own = !who.unverified && who.from === this.#me.name;
        const code = this.refuseNext;
        if (code && !own) {
            this.refuseNext = undefined;
            this.#show.refused(room, {id: `refused ${delivery?.seq}`, ...who, own, code});
            throw new Refuse(code, "refused by hand", {delay: PAUSE_MS});
        }
        const id = idOf(data) ?? delivery?.id ?? newKey();
        this.#show.line(room, {id, text: wordsOf(data), ...who, own, again: delivery?.redelivered ?? 0});
    }

    #hearWhisper(data) {
        const [from, to] = [nameOf(data?.from), nameOf(data?.to)];
        if (data?.error) {
            this.#show.trouble(`There is nobody named ${to} here.`);
        } else {
            this.#show.whisper({id: idOf(data) ?? newKey(), from, to, text: wordsOf(data)});
        }
    }

    #hearTyping(room, {data, ext}) {
        const {from, unverified} = author(data, ext?.delivery);
        if (unverified || from !== this.#me.name) {
            this.#show.typing.add(room, from);
        }
    }
}
