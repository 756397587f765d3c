// The page at /: sends a message, refuses it, shows its dead letter, mends and replays it.
import {Client} from "./bayeux.js";
import {h, say} from "./dom.js";
import {keep, recall, storageOf} from "./js/storage.js";
import {newKey} from "./js/key.js";
import {fill, prepare} from "./steps/code.js";
import {textOf} from "./text.js";

// As in the code on the page.
const EXAMPLE = {origin: "http://127.0.0.1:8080", path: "/cometd", channel: "/orders/try", letter: "LETTER"};
// The console finds the token here, too.
const TOKEN = "holdfast.authorization";
const CHANNEL = "holdfast.try";
const VERDICTS = "/service/delivery";
const MOST_SHOWN = 100;

const find = (selector) => document.querySelector(selector);
const tab = storageOf("sessionStorage");
const base = new URL(".", document.baseURI).href.slice(0, -1);
const path = find("meta[name=bayeux]").content;
// Of this visitor alone: others' messages and letters are on other channels.
const channel = recall(tab, CHANNEL) ?? `${EXAMPLE.channel}-${newKey().replace("-", "").slice(0, 6)}`;
// The messages without a verdict, the oldest first.
let waiting = [];
let isConnected = false;
let canRefuse = true;
let token = recall(tab, TOKEN);
let letter = null;
let shownLetter = EXAMPLE.letter;

/** Tells something in a step, unless the server does not offer it. */
function tell(step, text, mood = "") {
    const place = find(`[data-of=${step}]`);
    if (place) {
        place.className = `said ${mood && `state ${mood}`}`;
        say(place, text);
    }
}

const finish = (step, text) => {
    tell(step, text, "good");
    find(`#${step}`).closest("li").classList.add("done");
};

function settle() {
    find("#sending button").disabled = !isConnected;
    find("#refusing button").disabled = waiting.length === 0 || !canRefuse;
    for (const button of document.querySelectorAll("#reading button")) {
        button.disabled = !find("#refusing").closest("li").matches(".done");
    }
    for (const button of document.querySelectorAll("#replaying button")) {
        button.disabled = !letter;
    }
}

/** Has a form do something, and tells what fails in its step. */
function when(step, act) {
    const form = find(`#${step}`);
    form && (form.onsubmit = (event) => {
        event.preventDefault();
        act(Object.fromEntries(new FormData(form)))
            .catch(({message}) => tell(step, message, "bad"))
            .finally(settle);
    });
}

function read(data) {
    try {
        return JSON.parse(data);
    } catch (error) {
        throw new Error(`This is no JSON: ${error.message}. Names and texts need double quotes.`);
    }
}

async function send({data}) {
    const body = JSON.stringify({channel, data: read(data)});
    const response = await fetch(`${base}/publish`, {method: "POST", body}).catch(() => null);
    const [answer] = await response?.json().catch(() => []) ?? [];
    if (!answer?.successful) {
        throw new Error(answer ? `The server refused it: ${answer.error}.` : "The server does not answer: does it run?");
    }
    finish("sending", "The server has it, and has handed it to this page.");
}

async function refuse({code, reason}) {
    const [{seq}] = waiting;
    await client.publish(VERDICTS, {seq, errorCode: code, message: reason});
    waiting = waiting.filter((each) => each.seq !== seq);
    finish("refusing", "Refused. The message is not lost: the server keeps it as a dead letter, for step 3.");
    tell("reading", "The letter is there.");
}

async function show(given) {
    token = given.token.trim() ? `Bearer ${given.token.trim()}` : token;
    const {items: [found]} = await ask("GET", `dead-letters?${new URLSearchParams({channel, limit: 1})}`);
    if (!found) {
        throw new Error("No letter is on this channel: refuse a message in step 2.");
    }
    keep(tab, TOKEN, token);
    letter = await ask("GET", `dead-letters/${found.id}`);
    fill({[shownLetter]: letter.id});
    shownLetter = letter.id;
    showFacts(letter);
    finish("reading", "Here it is, with the reason and each attempt. The console has it, too.");
    tell("replaying", "Mend the data and send it again, as a message of its own.");
}

function showFacts({id, channel, said, code, receiver, attempts, data}) {
    const facts = {
        Letter: h("a", {href: `console/#/dead/letter/${id}`}, id), Channel: channel, Reason: said || "none given",
        Code: code, Receiver: receiver, Attempts: attempts, Data: h("code", {}, textOf(data, 2000)),
    };
    const rows = Object.entries(facts).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)));
    find("#letter").replaceChildren(...rows);
    find("#letter").hidden = false;
}

async function replay({data}) {
    const filter = {ids: [letter.id]};
    await ask("POST", "replays", {filter, options: {edit: {data: read(data)}}, dry_run: false});
    letter = null;
    tell("replaying", "On its way.");
}

/** Asks the administration, as an operator. */
async function ask(method, place, body) {
    const headers = {Authorization: token ?? "", ...(body && {"Content-Type": "application/json"})};
    const request = {method, headers, cache: "no-store", body: body && JSON.stringify(body)};
    const response = await fetch(`${base}/admin/api/v1/${place}`, request).catch(() => null);
    const answer = await response?.json().catch(() => null);
    if (response?.status === 401) {
        throw new Error("The server does not accept this token: enter what data/admin-token has.");
    }
    if (!response?.ok) {
        throw new Error(answer?.error.message ?? "The server does not answer: does it run?");
    }
    return answer;
}

async function receive({data, ext}) {
    const {seq, generation, properties} = ext?.delivery ?? {};
    if (generation || properties?.__deadMessageId) {
        await client.publish(VERDICTS, {seq, state: "OK"});
        finish("replaying", `It came again, as ${textOf(data, 200)}, and this page has accepted it.`);
    } else if (seq !== undefined) {
        waiting.push({seq});
        tell("refusing", `Arrived: ${textOf(data, 200)}. Until this page answers, the server keeps it.`);
    } else {
        tell("refusing", `Arrived: ${textOf(data, 200)}. This server offers no verdicts: its setting delivery is off.`);
    }
    settle();
}

function tellState(text, mood) {
    isConnected = mood === "good";
    find("#state").className = `state ${mood}`;
    say(find("#state"), text);
    settle();
}

function append(kind, message) {
    const list = find("#wire");
    list.append(h("li", {class: kind}, textOf(message, 2000)));
    [...list.children].slice(0, -MOST_SHOWN).forEach((old) => old.remove());
    list.scrollTop = list.scrollHeight;
}

const client = new Client(new URL(path, document.baseURI), channel, {
    begun: ({ext}) => {
        // What the former session had without a verdict is a letter, or lost with it.
        waiting = [];
        canRefuse = Boolean(ext?.delivery);
    },
    connected: (advice) => {
        const how = advice["multiple-clients"] ? " by polling, because another tab is connected, too" : "";
        tellState(`Listening${how}.`, "good");
    },
    failed: ({message}) => tellState(message + (message.includes("handshake_denied")
        ? " The server has a login, and this page has none: use the code." : ""), "bad"),
    message: (message) => receive(message).catch(({message: why}) => tell("refusing", why, "bad")),
    wire: append,
}, {ext: {delivery: {responseTimeout: 0}}, pending: () => waiting.map(({seq}) => seq)});

keep(tab, CHANNEL, channel);
fill({[EXAMPLE.origin + EXAMPLE.path]: client.url.href, [EXAMPLE.origin]: base, [EXAMPLE.channel]: channel});
for (const each of document.querySelectorAll("[data-channel]")) {
    each.textContent = channel;
}
for (const each of document.querySelectorAll("[data-scheme]")) {
    each.textContent = each.dataset.scheme + location.origin.slice(4) + each.textContent;
}
if (token && find("#reading")) {
    find("#reading [name=token]").required = false;
    find("#reading [name=token]").placeholder = "known in this tab";
}
prepare();
when("sending", send);
when("refusing", refuse);
when("reading", show);
when("replaying", replay);
addEventListener("pagehide", () => client.leave());
tellState("Connecting.", "");
client.run();

const readiness = await fetch("readyz").catch(() => null);
find("#readiness").className = `state ${readiness?.ok ? "good" : "bad"}`;
say(find("#readiness"), readiness ? await readiness.text() : "gone");
