// Listens to a channel of Salesforce's Streaming API, and goes on where it was. It knows nothing of
// Holdfast: the address of the login decides where it listens.
import {existsSync, readFileSync, writeFileSync} from "node:fs";
import {CometD} from "cometd";
import {adapt} from "cometd-nodejs-client";

const LOGIN = process.env.SALESFORCE_URL ?? "https://login.salesforce.com";
const CHANNEL = process.env.SALESFORCE_CHANNEL ?? "/event/Order__e";
// The replay id of the last event.
const PLACE = "place";
const ALL = -2;
const NEW = -1;

adapt();
const cometd = new CometD();
// Salesforce has no other transport.
cometd.unregisterTransport("websocket");
cometd.unregisterTransport("callback-polling");

/** Sends the place with the subscribe, as the server has offered it in its handshake. */
class Replay {
    place = existsSync(PLACE) ? Number(readFileSync(PLACE, "utf8")) : NEW;
    #isOffered = false;

    incoming(message) {
        if (message.channel === "/meta/handshake" && message.successful) {
            this.#isOffered = message.ext?.replay === true;
        }
        return message;
    }

    outgoing(message) {
        if (message.channel === "/meta/subscribe" && this.#isOffered) {
            message.ext = {...message.ext, replay: {[CHANNEL]: this.place}};
        }
        return message;
    }
}

const replay = new Replay();
cometd.registerExtension("replay", replay);

async function logIn() {
    const body = new URLSearchParams({
        grant_type: "client_credentials",
        client_id: process.env.SALESFORCE_CLIENT_ID ?? "",
        client_secret: process.env.SALESFORCE_CLIENT_SECRET ?? "",
    });
    const response = await fetch(`${LOGIN}/services/oauth2/token`, {method: "POST", body});
    const {access_token: token, instance_url: instance} = await response.json();
    cometd.configure({
        url: `${instance}/cometd/60.0`,
        requestHeaders: {Authorization: `Bearer ${token}`},
        appendMessageTypeToURL: false,
        backoffIncrement: 100,
        logLevel: "error",
    });
    cometd.handshake();
}

function hear({data}) {
    console.log(JSON.stringify(data.payload));
    replay.place = data.event.replayId;
    writeFileSync(PLACE, String(replay.place));
}

function subscribe() {
    cometd.subscribe(CHANNEL, hear, ({successful, error}) => {
        if (successful) {
            console.log("listening");
        } else {
            console.log(error);
            // The place has expired: what was missed is lost, what is kept is not.
            if (error.startsWith("400::The replayId")) {
                replay.place = ALL;
                subscribe();
            }
        }
    });
}

let isEnding = false;
for (const channel of ["/meta/handshake", "/meta/connect"]) {
    cometd.addListener(channel, ({successful, error, advice, ext}) => {
        if (!successful && error) {
            console.log(ext?.sfdc?.failureReason ?? error);
            // The login has ended. cometd.js disconnects after this.
            if (advice?.reconnect === "none" && !isEnding) {
                isEnding = true;
                setTimeout(() => logIn().finally(() => (isEnding = false)));
            }
        }
    });
}
// Each handshake makes a new session, also after "403::Unknown client".
cometd.addListener("/meta/handshake", ({successful}) => successful && subscribe());
logIn();
