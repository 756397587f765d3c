// The connection of the page, and the channels of its components: the same for React and Vue.
import {AckExtension, CometD} from "cometd";
import {DeliveryExtension} from "holdfast-bayeux/delivery.js";
import {EventChannels} from "holdfast-bayeux/event_channels.js";
import {RequestExtension} from "holdfast-bayeux/request.js";
import {SessionChannels} from "holdfast-bayeux/session_channels.js";

const SERVER = "http://localhost:8080";

export const cometd = new CometD();
const delivery = new DeliveryExtension({session: "shop/1"});
cometd.registerExtension("ack", new AckExtension());
cometd.registerExtension("delivery", delivery);
cometd.registerExtension("request", new RequestExtension());
cometd.configure({url: `${SERVER}/cometd`});

export const session = new SessionChannels(cometd, delivery);
export const prices = new EventChannels({url: `${SERVER}/events`, after: "-1"});
cometd.handshake();

/** What people read about the session. */
export function textOf({isConnected, isHeldBack, waiting, error}) {
    const state = isHeldBack ? "held back" : isConnected ? "connected" : "not connected";
    return error ? `${state}: ${error}` : `${state}; ${waiting} waited for this page`;
}

/** A name for a message, which is the same after each repeat. */
export const keyOf = ({ext, id}) => ext?.delivery.id ?? id;
